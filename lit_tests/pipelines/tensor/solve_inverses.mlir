// RUN: mlirml-opt %s --split-input-file --mlirml-solve-inverses | filecheck %s
// RUN: mlirml-opt %s --split-input-file --mlirml-solve-inverses=exact | filecheck %s --check-prefix=EXACT
// RUN: mlirml-opt %s --split-input-file --mlirml-solve-inverses --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// CHECK-LABEL: func.func @vector
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<1x40x40xf64>, %[[B:[a-z0-9]+]]: tensor<40xf64>
// CHECK: %[[R:.*]] = tensor.insert_slice %[[B]] into %{{.*}}[0, 0, 0] [1, 40, 1] [1, 1, 1] : tensor<40xf64> into tensor<1x40x2xf64>
// CHECK: %[[S:.*]] = "mlirml.solve"(%[[A]], %[[R]], %{{.*}}) {{.*}} -> tensor<1x40x2xf64>
// CHECK: tensor.extract_slice %[[S]][0, 0, 0] [1, 40, 1] [1, 1, 1] : tensor<1x40x2xf64> to tensor<40xf64>
// CHECK: tensor.extract_slice %[[S]][0, 0, 1] [1, 1, 1] [1, 1, 1] : tensor<1x40x2xf64> to tensor<1xf64>
// CHECK-NOT: mlirml.inverse
// EXACT-LABEL: func.func @vector
// EXACT: mlirml.inverse
// REMARK: remark: rewritten: `inv(a) @ b` is solved: 131 kflop become 49.1 kflop
func.func @vector(%a: tensor<1x40x40xf64>, %b: tensor<40xf64>) -> (tensor<1xf64>, tensor<40xf64>) {
  %zero = arith.constant 0.0 : f64
  %e0 = tensor.empty() : tensor<1x40x40xf64>
  %i = "mlirml.inverse"(%a, %e0) {kind = "f64"} : (tensor<1x40x40xf64>, tensor<1x40x40xf64>) -> tensor<1x40x40xf64>
  %c = tensor.extract_slice %i[0, 0, 0] [1, 1, 1] [1, 1, 1] : tensor<1x40x40xf64> to tensor<1xf64>
  %m = tensor.collapse_shape %i [[0, 1], [2]] : tensor<1x40x40xf64> into tensor<40x40xf64>
  %e = tensor.empty() : tensor<40xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<40xf64>) -> tensor<40xf64>
  %x = linalg.matvec ins(%m, %b : tensor<40x40xf64>, tensor<40xf64>) outs(%z : tensor<40xf64>) -> tensor<40xf64>
  return %c, %x : tensor<1xf64>, tensor<40xf64>
}

// -----

// The inverse is a result, too.
// CHECK-LABEL: func.func @used
// CHECK: mlirml.inverse
// CHECK: linalg.batch_matmul
func.func @used(%a: tensor<3x40x40xf64>, %b: tensor<3x40x5xf64>) -> (tensor<3x40x40xf64>, tensor<3x40x5xf64>) {
  %zero = arith.constant 0.0 : f64
  %e0 = tensor.empty() : tensor<3x40x40xf64>
  %i = "mlirml.inverse"(%a, %e0) {kind = "f64"} : (tensor<3x40x40xf64>, tensor<3x40x40xf64>) -> tensor<3x40x40xf64>
  %e = tensor.empty() : tensor<3x40x5xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<3x40x5xf64>) -> tensor<3x40x5xf64>
  %x = linalg.batch_matmul ins(%i, %b : tensor<3x40x40xf64>, tensor<3x40x5xf64>) outs(%z : tensor<3x40x5xf64>) -> tensor<3x40x5xf64>
  return %i, %x : tensor<3x40x40xf64>, tensor<3x40x5xf64>
}

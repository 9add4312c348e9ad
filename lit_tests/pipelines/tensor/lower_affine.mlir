// RUN: mlirml-opt %s --mlirml-lower-affine | filecheck %s

// CHECK-LABEL: @sum_of_indices
// CHECK-NOT: affine.apply
// CHECK: %[[AT:.*]] = arith.addi
// CHECK: tensor.extract %{{.*}}[%[[AT]]]
func.func @sum_of_indices(%x: tensor<8xf64>, %i: index, %j: index) -> f64 {
  %k = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%i, %j)
  %v = tensor.extract %x[%k] : tensor<8xf64>
  return %v : f64
}

// RUN: mlirml-opt %s --split-input-file --mlirml-reduce-products | filecheck %s
// RUN: mlirml-opt %s --split-input-file --mlirml-reduce-products=exact | filecheck %s --check-prefix=EXACT
// RUN: mlirml-opt %s --split-input-file --mlirml-reduce-products --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// CHECK-LABEL: func.func @diagonal
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<90x20xf32>, %[[B:[a-z0-9]+]]: tensor<20x90xf32>
// CHECK: %[[R:.*]] = linalg.contract {{.*}} ins(%[[A]], %[[B]] : {{.*}} -> tensor<90xf32>
// CHECK-NEXT: return %[[R]]
// EXACT-LABEL: func.func @diagonal
// EXACT: linalg.contract {{.*}} -> tensor<90xf32>
// REMARK: remark: rewritten: the diagonal of `a @ b` is computed alone: 324 kflop become 3.6 kflop
func.func @diagonal(%a: tensor<90x20xf32>, %b: tensor<20x90xf32>) -> tensor<90xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<90x90xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<90x90xf32>) -> tensor<90x90xf32>
  %p = linalg.matmul ins(%a, %b : tensor<90x20xf32>, tensor<20x90xf32>) outs(%z : tensor<90x90xf32>) -> tensor<90x90xf32>
  %f = tensor.collapse_shape %p [[0, 1]] : tensor<90x90xf32> into tensor<8100xf32>
  %d = tensor.extract_slice %f[0] [90] [91] : tensor<8100xf32> to tensor<90xf32>
  return %d : tensor<90xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// The diagonal two columns off the main one, read at indices.
// CHECK-LABEL: func.func @gathered
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<90x20xf32>, %[[B:[a-z0-9]+]]: tensor<20x90xf32>
// CHECK-DAG: %[[P:.*]] = tensor.extract_slice %[[A]][0, 0] [88, 20] [1, 1]
// CHECK-DAG: %[[Q:.*]] = tensor.extract_slice %[[B]][0, 2] [20, 88] [1, 1]
// CHECK: linalg.contract {{.*}} ins(%[[P]], %[[Q]] : {{.*}} -> tensor<88xf32>
func.func @gathered(%a: tensor<90x20xf32>, %b: tensor<20x90xf32>) -> tensor<88xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<90x90xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<90x90xf32>) -> tensor<90x90xf32>
  %p = linalg.matmul ins(%a, %b : tensor<90x20xf32>, tensor<20x90xf32>) outs(%z : tensor<90x90xf32>) -> tensor<90x90xf32>
  %d = tensor.empty() : tensor<88xf32>
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%d : tensor<88xf32>) {
  ^bb0(%out: f32):
    %c2 = arith.constant 2 : index
    %i = linalg.index 0 : index
    %j = arith.addi %i, %c2 : index
    %x = tensor.extract %p[%i, %j] : tensor<90x90xf32>
    linalg.yield %x : f32
  } -> tensor<88xf32>
  return %r : tensor<88xf32>
}

// -----

// CHECK-LABEL: func.func @row
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<90x20xi32>
// CHECK: %[[S:.*]] = tensor.extract_slice %[[A]][3, 0] [1, 20] [1, 1] : tensor<90x20xi32> to tensor<20xi32>
// CHECK: linalg.contract {{.*}} ins(%[[S]], {{.*}} -> tensor<90xi32>
// EXACT-LABEL: func.func @row
// EXACT: linalg.contract {{.*}} -> tensor<90xi32>
func.func @row(%a: tensor<90x20xi32>, %b: tensor<20x90xi32>) -> tensor<90xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<90x90xi32>
  %z = linalg.fill ins(%zero : i32) outs(%e : tensor<90x90xi32>) -> tensor<90x90xi32>
  %p = linalg.matmul ins(%a, %b : tensor<90x20xi32>, tensor<20x90xi32>) outs(%z : tensor<90x90xi32>) -> tensor<90x90xi32>
  %r = tensor.extract_slice %p[3, 0] [1, 90] [1, 1] : tensor<90x90xi32> to tensor<90xi32>
  return %r : tensor<90xi32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @sum
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<90x20xf32>, %[[B:[a-z0-9]+]]: tensor<20x70xf32>
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[B]] : tensor<20x70xf32>) {{.*}} {
// CHECK: linalg.matvec ins(%[[A]], %[[S]] : tensor<90x20xf32>, tensor<20xf32>)
// EXACT-LABEL: func.func @sum
// EXACT: linalg.matmul
func.func @sum(%a: tensor<90x20xf32>, %b: tensor<20x70xf32>) -> tensor<90xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<90x70xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<90x70xf32>) -> tensor<90x70xf32>
  %p = linalg.matmul ins(%a, %b : tensor<90x20xf32>, tensor<20x70xf32>) outs(%z : tensor<90x70xf32>) -> tensor<90x70xf32>
  %e1 = tensor.empty() : tensor<90xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<90xf32>) -> tensor<90xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<90x70xf32>) outs(%z1 : tensor<90xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  } -> tensor<90xf32>
  return %s : tensor<90xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// The product is a result, too; and a maximum is no sum.
// CHECK-LABEL: func.func @used
// CHECK: linalg.matmul
// CHECK: linalg.generic
// CHECK: linalg.matmul
func.func @used(%a: tensor<90x20xf32>, %b: tensor<20x70xf32>) -> (tensor<90x70xf32>, tensor<90xf32>, tensor<90xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<90x70xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<90x70xf32>) -> tensor<90x70xf32>
  %p = linalg.matmul ins(%a, %b : tensor<90x20xf32>, tensor<20x70xf32>) outs(%z : tensor<90x70xf32>) -> tensor<90x70xf32>
  %e1 = tensor.empty() : tensor<90xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<90xf32>) -> tensor<90xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<90x70xf32>) outs(%z1 : tensor<90xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  } -> tensor<90xf32>
  %q = linalg.matmul ins(%a, %b : tensor<90x20xf32>, tensor<20x70xf32>) outs(%z : tensor<90x70xf32>) -> tensor<90x70xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%q : tensor<90x70xf32>) outs(%z1 : tensor<90xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.maximumf %in, %out : f32
    linalg.yield %0 : f32
  } -> tensor<90xf32>
  return %p, %s, %m : tensor<90x70xf32>, tensor<90xf32>, tensor<90xf32>
}

// RUN: mlirml-opt %s --split-input-file --mlirml-move-scalings | filecheck %s
// RUN: mlirml-opt %s --split-input-file --mlirml-move-scalings=exact | filecheck %s --check-prefix=EXACT
// RUN: mlirml-opt %s --split-input-file --mlirml-move-scalings --remarks 2>&1 | filecheck %s --check-prefix=REMARK

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @division
// CHECK: %[[P:.*]] = linalg.matmul
// CHECK: %[[Q:.*]] = linalg.matvec ins(%[[P]], %{{.*}} : tensor<90x80xf32>, tensor<80xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[Q]] : tensor<90xf32>)
// CHECK: arith.divf
// EXACT-LABEL: func.func @division
// EXACT: arith.divf
// EXACT: linalg.matvec
func.func @division(%a: tensor<90x4xf32>, %b: tensor<4x80xf32>, %v: tensor<80xf32>) -> tensor<90xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<90x80xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<90x80xf32>) -> tensor<90x80xf32>
  %p = linalg.matmul ins(%a, %b : tensor<90x4xf32>, tensor<4x80xf32>) outs(%z : tensor<90x80xf32>) -> tensor<90x80xf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<90x80xf32>) outs(%e : tensor<90x80xf32>) {
  ^bb0(%x: f32, %out: f32):
    %c3 = arith.constant 3.0 : f32
    %0 = arith.divf %x, %c3 : f32
    linalg.yield %0 : f32
  } -> tensor<90x80xf32>
  %e1 = tensor.empty() : tensor<90xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<90xf32>) -> tensor<90xf32>
  %r = linalg.matvec ins(%q, %v : tensor<90x80xf32>, tensor<80xf32>) outs(%z1 : tensor<90xf32>) -> tensor<90xf32>
  return %r : tensor<90xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#nothing = affine_map<(i, j) -> ()>

// A tensor of rank 0, on the left side.
// CHECK-LABEL: func.func @number
// CHECK-SAME: %[[S:[a-z0-9]+]]: tensor<f32>
// CHECK: linalg.matmul
// CHECK: %[[Q:.*]] = linalg.matvec
// CHECK: linalg.generic {{.*}} ins(%[[Q]], %[[S]] : tensor<90xf32>, tensor<f32>)
func.func @number(%s: tensor<f32>, %a: tensor<90x4xf32>, %b: tensor<4x80xf32>, %v: tensor<80xf32>) -> tensor<90xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<90x80xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<90x80xf32>) -> tensor<90x80xf32>
  %p = linalg.matmul ins(%a, %b : tensor<90x4xf32>, tensor<4x80xf32>) outs(%z : tensor<90x80xf32>) -> tensor<90x80xf32>
  %q = linalg.generic {indexing_maps = [#nothing, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %p : tensor<f32>, tensor<90x80xf32>) outs(%e : tensor<90x80xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %0 = arith.mulf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<90x80xf32>
  %e1 = tensor.empty() : tensor<90xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<90xf32>) -> tensor<90xf32>
  %r = linalg.matvec ins(%q, %v : tensor<90x80xf32>, tensor<80xf32>) outs(%z1 : tensor<90xf32>) -> tensor<90xf32>
  return %r : tensor<90xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// Rows that are all the same: exact.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: %[[U:[a-z0-9]+]]: tensor<80xf32>, %[[D:[a-z0-9]+]]: tensor<80x70xf32>
// CHECK: %[[X:.*]] = linalg.vecmat ins(%[[U]], %[[D]] : tensor<80xf32>, tensor<80x70xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]] : tensor<70xf32>) {{.*}} {
// EXACT-LABEL: func.func @rows
// EXACT: linalg.vecmat
// REMARK: remark: rewritten: a broadcast factor of `a @ b` is not repeated: 672 kflop become 11.2 kflop
func.func @rows(%u: tensor<80xf32>, %d: tensor<80x70xf32>) -> tensor<60x70xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<60x80xf32>
  %w = linalg.generic {indexing_maps = [#column, #id], iterator_types = ["parallel", "parallel"]} ins(%u : tensor<80xf32>) outs(%e0 : tensor<60x80xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  } -> tensor<60x80xf32>
  %e = tensor.empty() : tensor<60x70xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<60x70xf32>) -> tensor<60x70xf32>
  %p = linalg.matmul ins(%w, %d : tensor<60x80xf32>, tensor<80x70xf32>) outs(%z : tensor<60x70xf32>) -> tensor<60x70xf32>
  return %p : tensor<60x70xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#nothing = affine_map<(i, j) -> ()>

// One number everywhere, which leaves the sums.
// CHECK-LABEL: func.func @everywhere
// CHECK-NOT: linalg.matmul
// CHECK: arith.addf
// CHECK: arith.mulf
// CHECK-NOT: linalg.matmul
// EXACT-LABEL: func.func @everywhere
// EXACT: linalg.matmul
func.func @everywhere(%u: tensor<f32>, %d: tensor<80x70xf32>) -> tensor<60x70xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<60x80xf32>
  %w = linalg.generic {indexing_maps = [#nothing, #id], iterator_types = ["parallel", "parallel"]} ins(%u : tensor<f32>) outs(%e0 : tensor<60x80xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  } -> tensor<60x80xf32>
  %e = tensor.empty() : tensor<60x70xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<60x70xf32>) -> tensor<60x70xf32>
  %p = linalg.matmul ins(%w, %d : tensor<60x80xf32>, tensor<80x70xf32>) outs(%z : tensor<60x70xf32>) -> tensor<60x70xf32>
  return %p : tensor<60x70xf32>
}

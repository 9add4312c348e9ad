// RUN: mlirml-opt %s --split-input-file --mlirml-fuse=prologues=true | filecheck %s
// RUN: mlirml-opt %s --split-input-file --mlirml-fuse | filecheck %s --check-prefix=FUSED

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// The matrix is a result, and is read by the product: it is not stored a second time, scaled.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = linalg.generic {{.*}} outs(%{{[a-z0-9]*}} : tensor<200x100xf64>) {
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[A]] : tensor<200x100xf64>) outs(
// CHECK: linalg.matvec ins(%[[S]],
// FUSED: linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<200x100xf64>, tensor<200x100xf64>)
func.func @main(%a: tensor<200x100xf64>, %u: tensor<200xf64>, %x: tensor<100xf64>)
    -> (tensor<200x100xf64>, tensor<200xf64>) {
  %two = arith.constant 2.0 : f64
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<200x100xf64>
  %0 = linalg.generic {indexing_maps = [#m, #row, #m], iterator_types = ["parallel", "parallel"]}
      ins(%a, %u : tensor<200x100xf64>, tensor<200xf64>) outs(%e : tensor<200x100xf64>) {
  ^bb0(%p: f64, %q: f64, %out: f64):
    %s = arith.addf %p, %q : f64
    linalg.yield %s : f64
  } -> tensor<200x100xf64>
  %1 = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<200x100xf64>) outs(%e : tensor<200x100xf64>) {
  ^bb0(%p: f64, %out: f64):
    %s = arith.mulf %p, %two : f64
    linalg.yield %s : f64
  } -> tensor<200x100xf64>
  %r = tensor.empty() : tensor<200xf64>
  %z = linalg.fill ins(%zero : f64) outs(%r : tensor<200xf64>) -> tensor<200xf64>
  %2 = linalg.matvec ins(%1, %x : tensor<200x100xf64>, tensor<100xf64>) outs(%z : tensor<200xf64>) -> tensor<200xf64>
  return %0, %2 : tensor<200x100xf64>, tensor<200xf64>
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// The columns of the product are not read along memory: no kernel scales them on the way.
// CHECK-LABEL: func.func @main
// CHECK: linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<200x100xf64>, tensor<200x100xf64>)
// CHECK: linalg.vecmat
func.func @main(%a: tensor<200x100xf64>, %u: tensor<200xf64>, %x: tensor<200xf64>)
    -> (tensor<200x100xf64>, tensor<100xf64>) {
  %two = arith.constant 2.0 : f64
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<200x100xf64>
  %0 = linalg.generic {indexing_maps = [#m, #row, #m], iterator_types = ["parallel", "parallel"]}
      ins(%a, %u : tensor<200x100xf64>, tensor<200xf64>) outs(%e : tensor<200x100xf64>) {
  ^bb0(%p: f64, %q: f64, %out: f64):
    %s = arith.addf %p, %q : f64
    linalg.yield %s : f64
  } -> tensor<200x100xf64>
  %1 = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<200x100xf64>) outs(%e : tensor<200x100xf64>) {
  ^bb0(%p: f64, %out: f64):
    %s = arith.mulf %p, %two : f64
    linalg.yield %s : f64
  } -> tensor<200x100xf64>
  %r = tensor.empty() : tensor<100xf64>
  %z = linalg.fill ins(%zero : f64) outs(%r : tensor<100xf64>) -> tensor<100xf64>
  %2 = linalg.vecmat ins(%x, %1 : tensor<200xf64>, tensor<200x100xf64>) outs(%z : tensor<100xf64>) -> tensor<100xf64>
  return %0, %2 : tensor<200x100xf64>, tensor<100xf64>
}

// RUN: mlirml-opt %s --split-input-file '--mlirml-recompute-scores=device=vulkan' | filecheck %s

// The maxima and the product of the exponentials are one kernel. A product that sums over the rows of the exponentials,
// with what is computed of the first product, is another one, which computes the scores and exponentials again.
// CHECK-LABEL: func.func @main
// CHECK:       %[[S0:.*]] = linalg.contract {{.*}} {mlirml.streamed = 0 : i64} ins(%arg0, %arg1 :
// CHECK:       %[[M:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[S0]] :
// CHECK-SAME:  attrs = {mlirml.streamed = 0 : i64}
// CHECK:       %[[E0:.*]] = linalg.generic {{.*}} ins(%[[S0]], %[[M]] :
// CHECK-SAME:  attrs = {mlirml.streamed = 0 : i64}
// CHECK:       %[[O:.*]] = linalg.matmul {mlirml.streamed = 0 : i64} ins(%[[E0]], %arg2
// CHECK:       %[[G:.*]] = linalg.exp ins(%[[O]]
// CHECK:       %[[S1:.*]] = linalg.contract {{.*}} {mlirml.streamed = 1 : i64} ins(%arg0, %arg1 :
// CHECK:       %[[E1:.*]] = linalg.generic {{.*}} ins(%[[S1]], %[[M]] :
// CHECK-SAME:  attrs = {mlirml.streamed = 1 : i64}
// CHECK:       %[[D:.*]] = linalg.contract {{.*}} {mlirml.streamed = 1 : i64} ins(%[[E1]], %[[G]] :
// CHECK:       return %[[O]], %[[D]]
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%q: tensor<64x16xf32>, %k: tensor<96x16xf32>, %v: tensor<96x8xf32>)
    -> (tensor<64x8xf32>, tensor<96x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %s = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>,
                                        affine_map<(i, j, k) -> (i, j)>]
      ins(%q, %k : tensor<64x16xf32>, tensor<96x16xf32>) outs(%f : tensor<64x96xf32>) -> tensor<64x96xf32>
  %r = tensor.empty() : tensor<64xf32>
  %i = linalg.fill ins(%low : f32) outs(%r : tensor<64xf32>) -> tensor<64xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<64x96xf32>) outs(%i : tensor<64xf32>) {
  ^bb0(%x: f32, %most: f32):
    %y = arith.maximumf %x, %most : f32
    linalg.yield %y : f32
  } -> tensor<64xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<64x96xf32>, tensor<64xf32>) outs(%e : tensor<64x96xf32>) {
  ^bb0(%x: f32, %most: f32, %out: f32):
    %d = arith.subf %x, %most : f32
    %y = math.exp %d : f32
    linalg.yield %y : f32
  } -> tensor<64x96xf32>
  %eo = tensor.empty() : tensor<64x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x8xf32>) -> tensor<64x8xf32>
  %o = linalg.matmul ins(%p, %v : tensor<64x96xf32>, tensor<96x8xf32>) outs(%fo : tensor<64x8xf32>) -> tensor<64x8xf32>
  %g = linalg.exp ins(%o : tensor<64x8xf32>) outs(%eo : tensor<64x8xf32>) -> tensor<64x8xf32>
  %ev = tensor.empty() : tensor<96x8xf32>
  %fv = linalg.fill ins(%zero : f32) outs(%ev : tensor<96x8xf32>) -> tensor<96x8xf32>
  %dv = linalg.contract indexing_maps = [affine_map<(j, c, i) -> (i, j)>, affine_map<(j, c, i) -> (i, c)>,
                                         affine_map<(j, c, i) -> (j, c)>]
      ins(%p, %g : tensor<64x96xf32>, tensor<64x8xf32>) outs(%fv : tensor<96x8xf32>) -> tensor<96x8xf32>
  return %o, %dv : tensor<64x8xf32>, tensor<96x8xf32>
}

// -----

// Scores that are returned are stored, and nothing is cloned.
// CHECK-LABEL: func.func @main
// CHECK-NOT:   mlirml.streamed
func.func @main(%q: tensor<64x16xf32>, %k: tensor<16x96xf32>, %v: tensor<96x8xf32>)
    -> (tensor<64x96xf32>, tensor<64x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x16xf32>, tensor<16x96xf32>) outs(%f : tensor<64x96xf32>) -> tensor<64x96xf32>
  %eo = tensor.empty() : tensor<64x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x8xf32>) -> tensor<64x8xf32>
  %o = linalg.matmul ins(%s, %v : tensor<64x96xf32>, tensor<96x8xf32>) outs(%fo : tensor<64x8xf32>) -> tensor<64x8xf32>
  return %s, %o : tensor<64x96xf32>, tensor<64x8xf32>
}

// -----

// What is computed of a product element by element follows it, before other uses of the kernel's results.
// CHECK-LABEL: func.func @main
// CHECK:       %[[O:.*]] = linalg.matmul {mlirml.streamed = 0 : i64} ins(%{{.*}}, %arg2
// CHECK-NEXT:  linalg.generic {{.*}} ins(%[[O]] :
// CHECK:       linalg.exp
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%q: tensor<64x16xf32>, %k: tensor<16x96xf32>, %v: tensor<96x8xf32>)
    -> (tensor<64xf32>, tensor<64x8xf16>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x16xf32>, tensor<16x96xf32>) outs(%f : tensor<64x96xf32>) -> tensor<64x96xf32>
  %r = tensor.empty() : tensor<64xf32>
  %i = linalg.fill ins(%low : f32) outs(%r : tensor<64xf32>) -> tensor<64xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<64x96xf32>) outs(%i : tensor<64xf32>) {
  ^bb0(%x: f32, %most: f32):
    %y = arith.maximumf %x, %most : f32
    linalg.yield %y : f32
  } -> tensor<64xf32>
  %eo = tensor.empty() : tensor<64x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x8xf32>) -> tensor<64x8xf32>
  %o = linalg.matmul ins(%s, %v : tensor<64x96xf32>, tensor<96x8xf32>) outs(%fo : tensor<64x8xf32>) -> tensor<64x8xf32>
  %g = linalg.exp ins(%m : tensor<64xf32>) outs(%r : tensor<64xf32>) -> tensor<64xf32>
  %eh = tensor.empty() : tensor<64x8xf16>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%o : tensor<64x8xf32>) outs(%eh : tensor<64x8xf16>) {
  ^bb0(%x: f32, %out: f16):
    %y = arith.truncf %x : f32 to f16
    linalg.yield %y : f16
  } -> tensor<64x8xf16>
  return %g, %h : tensor<64xf32>, tensor<64x8xf16>
}

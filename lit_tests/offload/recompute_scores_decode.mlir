// RUN: mlirml-opt %s --split-input-file '--mlirml-recompute-scores=device=vulkan' | filecheck %s
// RUN: mlirml-opt %s --split-input-file '--mlirml-recompute-scores=device=cuda' | filecheck %s --check-prefix=CUDA

// One query over a long cache, as in decoding: on tensor cores the keys have several blocks.
// CHECK-NOT:  mlirml.streamed
// CUDA-LABEL: func.func @main
// CUDA:       linalg.batch_matmul {mlirml.streamed = 0 : i64} ins(%arg0, %arg1
// CUDA:       linalg.contract {{.*}} {mlirml.streamed = 0 : i64} ins({{.*}}, %arg2
#id = affine_map<(h, i, j) -> (h, i, j)>
#row = affine_map<(h, i, j) -> (h, i)>
func.func @main(%q: tensor<8x1x64xf16>, %k: tensor<8x64x2048xf16>, %v: tensor<8x2048x64xf16>) -> tensor<8x1x64xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<8x1x2048xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x1x2048xf32>) -> tensor<8x1x2048xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<8x1x64xf16>, tensor<8x64x2048xf16>)
      outs(%f : tensor<8x1x2048xf32>) -> tensor<8x1x2048xf32>
  %r = tensor.empty() : tensor<8x1xf32>
  %i = linalg.fill ins(%low : f32) outs(%r : tensor<8x1xf32>) -> tensor<8x1xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<8x1x2048xf32>) outs(%i : tensor<8x1xf32>) {
  ^bb0(%x: f32, %most: f32):
    %y = arith.maximumf %x, %most : f32
    linalg.yield %y : f32
  } -> tensor<8x1xf32>
  %fl = linalg.fill ins(%zero : f32) outs(%r : tensor<8x1xf32>) -> tensor<8x1xf32>
  %p, %l = linalg.generic {indexing_maps = [#id, #row, #id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s, %m : tensor<8x1x2048xf32>, tensor<8x1xf32>) outs(%e, %fl : tensor<8x1x2048xf32>, tensor<8x1xf32>) {
  ^bb0(%x: f32, %most: f32, %out: f32, %total: f32):
    %d = arith.subf %x, %most : f32
    %y = math.exp %d : f32
    %z = arith.addf %y, %total : f32
    linalg.yield %y, %z : f32, f32
  } -> (tensor<8x1x2048xf32>, tensor<8x1xf32>)
  %w = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %l : tensor<8x1x2048xf32>, tensor<8x1xf32>) outs(%e : tensor<8x1x2048xf32>) {
  ^bb0(%x: f32, %total: f32, %out: f32):
    %y = arith.divf %x, %total : f32
    linalg.yield %y : f32
  } -> tensor<8x1x2048xf32>
  %eo = tensor.empty() : tensor<8x1x64xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<8x1x64xf32>) -> tensor<8x1x64xf32>
  %o = linalg.contract indexing_maps = [affine_map<(h, i, c, j) -> (h, i, j)>, affine_map<(h, i, c, j) -> (h, j, c)>,
                                        affine_map<(h, i, c, j) -> (h, i, c)>]
      ins(%w, %v : tensor<8x1x2048xf32>, tensor<8x2048x64xf16>) outs(%fo : tensor<8x1x64xf32>) -> tensor<8x1x64xf32>
  return %o : tensor<8x1x64xf32>
}

// -----

// Products of f32 are those of vectors and matrices, which store the scores.
// CUDA-LABEL: func.func @main
// CUDA-NOT:   mlirml.streamed
#id = affine_map<(h, i, j) -> (h, i, j)>
#row = affine_map<(h, i, j) -> (h, i)>
func.func @main(%q: tensor<8x1x64xf32>, %k: tensor<8x64x2048xf32>, %v: tensor<8x2048x64xf32>) -> tensor<8x1x64xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<8x1x2048xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x1x2048xf32>) -> tensor<8x1x2048xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<8x1x64xf32>, tensor<8x64x2048xf32>)
      outs(%f : tensor<8x1x2048xf32>) -> tensor<8x1x2048xf32>
  %r = tensor.empty() : tensor<8x1xf32>
  %i = linalg.fill ins(%low : f32) outs(%r : tensor<8x1xf32>) -> tensor<8x1xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<8x1x2048xf32>) outs(%i : tensor<8x1xf32>) {
  ^bb0(%x: f32, %most: f32):
    %y = arith.maximumf %x, %most : f32
    linalg.yield %y : f32
  } -> tensor<8x1xf32>
  %fl = linalg.fill ins(%zero : f32) outs(%r : tensor<8x1xf32>) -> tensor<8x1xf32>
  %p, %l = linalg.generic {indexing_maps = [#id, #row, #id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s, %m : tensor<8x1x2048xf32>, tensor<8x1xf32>) outs(%e, %fl : tensor<8x1x2048xf32>, tensor<8x1xf32>) {
  ^bb0(%x: f32, %most: f32, %out: f32, %total: f32):
    %d = arith.subf %x, %most : f32
    %y = math.exp %d : f32
    %z = arith.addf %y, %total : f32
    linalg.yield %y, %z : f32, f32
  } -> (tensor<8x1x2048xf32>, tensor<8x1xf32>)
  %w = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %l : tensor<8x1x2048xf32>, tensor<8x1xf32>) outs(%e : tensor<8x1x2048xf32>) {
  ^bb0(%x: f32, %total: f32, %out: f32):
    %y = arith.divf %x, %total : f32
    linalg.yield %y : f32
  } -> tensor<8x1x2048xf32>
  %eo = tensor.empty() : tensor<8x1x64xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<8x1x64xf32>) -> tensor<8x1x64xf32>
  %o = linalg.contract indexing_maps = [affine_map<(h, i, c, j) -> (h, i, j)>, affine_map<(h, i, c, j) -> (h, j, c)>,
                                        affine_map<(h, i, c, j) -> (h, i, c)>]
      ins(%w, %v : tensor<8x1x2048xf32>, tensor<8x2048x64xf32>) outs(%fo : tensor<8x1x64xf32>) -> tensor<8x1x64xf32>
  return %o : tensor<8x1x64xf32>
}

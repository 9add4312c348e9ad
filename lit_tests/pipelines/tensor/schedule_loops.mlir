// RUN: mlirml-opt %s --split-input-file --mlirml-schedule-loops="tuned={4754227acdee4613976a/loops=1/join=1/rows=4/width=16/interleave=2/together=0/stream=0,d2c08014052100b377d7/conv=filters/lanes=8/vectors=2/rows=1/columns=6/last=8,0123456789abcdef0123/loops=1/join=1/rows=4/width=16/interleave=2/together=0/stream=0}" | filecheck %s
// RUN: mlirml-opt %s --split-input-file --mlirml-schedule-loops | filecheck --check-prefix=PLAIN %s

// PLAIN-NOT: mlirml.loops
// PLAIN-NOT: mlirml.window

// CHECK-LABEL: func.func @main(%arg0: tensor<512x128xf32>)
// CHECK: linalg.generic {{.*}} attrs = {mlirml.loops = "loops=1/join=1/rows=4/width=16/interleave=2/together=0/stream=0"}
#m = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<512x128xf32>) -> tensor<512x128xf32> {
  %e = tensor.empty() : tensor<512x128xf32>
  %r = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<512x128xf32>) outs(%e : tensor<512x128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  } -> tensor<512x128xf32>
  return %r : tensor<512x128xf32>
}

// -----

// CHECK-LABEL: func.func @main(%arg0: tensor<1x8x20x20xf32>
// CHECK-NOT: mlirml.loops
// CHECK: linalg.conv_2d_nchw_fchw {mlirml.window = "conv=filters/lanes=8/vectors=2/rows=1/columns=6/last=8"}
func.func @main(%x: tensor<1x8x20x20xf32>, %w: tensor<16x8x3x3xf32>) -> tensor<1x16x18x18xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x16x18x18xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x16x18x18xf32>) -> tensor<1x16x18x18xf32>
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x20x20xf32>, tensor<16x8x3x3xf32>) outs(%f : tensor<1x16x18x18xf32>) -> tensor<1x16x18x18xf32>
  return %c : tensor<1x16x18x18xf32>
}

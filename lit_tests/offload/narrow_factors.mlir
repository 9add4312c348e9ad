// RUN: mlirml-opt %s --split-input-file --mlirml-narrow-factors | filecheck %s

// Factors that are extended, and padded, are multiplied as they are.
// CHECK-LABEL: func.func @main
// CHECK-NOT:   tensor<1x4x6x6xf32>
// CHECK:       %[[P:.*]] = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1]
// CHECK:         tensor.yield %{{.*}} : f16
// CHECK:       } : tensor<1x4x6x6xf16> to tensor<1x4x8x8xf16>
// CHECK:       linalg.conv_2d_nchw_fchw ins(%[[P]], %arg1 : tensor<1x4x8x8xf16>, tensor<8x4x3x3xf16>)
// CHECK-SAME:    outs(%{{.*}} : tensor<1x8x6x6xf32>)
#map = affine_map<(a, b, c, d) -> (a, b, c, d)>
func.func @main(%x: tensor<1x4x6x6xf16>, %w: tensor<8x4x3x3xf16>) -> tensor<1x8x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<1x4x6x6xf32>
  %a = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<1x4x6x6xf16>) outs(%e0 : tensor<1x4x6x6xf32>) {
  ^bb0(%in: f16, %out: f32):
    %y = arith.extf %in : f16 to f32
    linalg.yield %y : f32
  } -> tensor<1x4x6x6xf32>
  %p = tensor.pad %a low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x4x6x6xf32> to tensor<1x4x8x8xf32>
  %e1 = tensor.empty() : tensor<8x4x3x3xf32>
  %b = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%w : tensor<8x4x3x3xf16>) outs(%e1 : tensor<8x4x3x3xf32>) {
  ^bb0(%in: f16, %out: f32):
    %y = arith.extf %in : f16 to f32
    linalg.yield %y : f32
  } -> tensor<8x4x3x3xf32>
  %e2 = tensor.empty() : tensor<1x8x6x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e2 : tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
  %c = linalg.conv_2d_nchw_fchw ins(%p, %b : tensor<1x4x8x8xf32>, tensor<8x4x3x3xf32>)
      outs(%f : tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
  return %c : tensor<1x8x6x6xf32>
}

// -----

// One factor that is f32 itself stays, and so does the other.
// CHECK-LABEL: func.func @main
// CHECK:       linalg.matmul ins(%{{.*}}, %arg1 : tensor<4x8xf32>, tensor<8x4xf32>)
#two = affine_map<(a, b) -> (a, b)>
func.func @main(%x: tensor<4x8xbf16>, %w: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xbf16>) outs(%e0 : tensor<4x8xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %y = arith.extf %in : bf16 to f32
    linalg.yield %y : f32
  } -> tensor<4x8xf32>
  %e2 = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = linalg.matmul ins(%a, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %c : tensor<4x4xf32>
}

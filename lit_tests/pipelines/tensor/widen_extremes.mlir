// RUN: mlirml-opt %s --split-input-file --mlirml-widen-extremes | filecheck %s

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @maximum
// CHECK: %[[LOWEST:.*]] = arith.extf %{{.*}} : bf16 to f32
// CHECK: %[[START:.*]] = linalg.fill ins(%[[LOWEST]] : f32) outs(%{{.*}} : tensor<8xf32>)
// CHECK: %[[WIDE:.*]] = linalg.generic {{.*}} outs(%[[START]] : tensor<8xf32>)
// CHECK: ^bb0(%[[A:.*]]: bf16, %[[BEST:.*]]: f32):
// CHECK: %[[X:.*]] = arith.extf %[[A]] : bf16 to f32
// CHECK: arith.maximumf %[[X]], %[[BEST]] : f32
// CHECK: linalg.generic {{.*}} ins(%[[WIDE]] : tensor<8xf32>)
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: return %{{.*}} : tensor<8xbf16>
func.func @maximum(%x: tensor<8x64xbf16>) -> tensor<8xbf16> {
  %lowest = arith.constant 0xFF80 : bf16
  %e = tensor.empty() : tensor<8xbf16>
  %f = linalg.fill ins(%lowest : bf16) outs(%e : tensor<8xbf16>) -> tensor<8xbf16>
  %m = linalg.generic {indexing_maps = [#m, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xbf16>) outs(%f : tensor<8xbf16>) {
  ^bb0(%a: bf16, %best: bf16):
    %0 = arith.maximumf %a, %best : bf16
    linalg.yield %0 : bf16
  } -> tensor<8xbf16>
  return %m : tensor<8xbf16>
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// An init that is not filled is widened by itself, and the index keeps its type.
// CHECK-LABEL: func.func @argmin
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: %[[R:.*]]:2 = linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<8xf32>, tensor<8xi64>)
// CHECK: %[[X:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: %[[C:.*]] = arith.cmpf olt, %[[X]], %[[BEST:.*]] : f32
// CHECK: %[[N:.*]] = arith.cmpf uno, %[[X]], %[[X]] : f32
// CHECK: %[[K:.*]] = arith.cmpf ord, %[[BEST]], %[[BEST]] : f32
// CHECK: arith.select %{{.*}}, %[[X]], %[[BEST]] : f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: return %{{.*}}, %[[R]]#1 : tensor<8xf16>, tensor<8xi64>
func.func @argmin(%x: tensor<8x64xf16>, %v: tensor<8xf16>, %p: tensor<8xi64>) -> (tensor<8xf16>, tensor<8xi64>) {
  %r:2 = linalg.generic {indexing_maps = [#m, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xf16>) outs(%v, %p : tensor<8xf16>, tensor<8xi64>) {
  ^bb0(%a: f16, %best: f16, %at: i64):
    %j = linalg.index 1 : index
    %i = arith.index_cast %j : index to i64
    %less = arith.cmpf olt, %a, %best : f16
    %nan = arith.cmpf uno, %a, %a : f16
    %number = arith.cmpf ord, %best, %best : f16
    %first = arith.andi %nan, %number : i1
    %better = arith.ori %less, %first : i1
    %value = arith.select %better, %a, %best : f16
    %index = arith.select %better, %i, %at : i64
    linalg.yield %value, %index : f16, i64
  } -> (tensor<8xf16>, tensor<8xi64>)
  return %r#0, %r#1 : tensor<8xf16>, tensor<8xi64>
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Sums are rounded where the program says so, wide floats need nothing, and without a reduction there is no extreme.
// CHECK-LABEL: func.func @others
// CHECK-NOT: arith.extf
// CHECK: return
func.func @others(%x: tensor<8x64xbf16>, %s: tensor<8xbf16>, %y: tensor<8x64xf32>, %t: tensor<8xf32>)
    -> (tensor<8xbf16>, tensor<8xf32>, tensor<8x64xbf16>) {
  %sum = linalg.generic {indexing_maps = [#m, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x64xbf16>) outs(%s : tensor<8xbf16>) {
  ^bb0(%a: bf16, %best: bf16):
    %0 = arith.addf %a, %best : bf16
    linalg.yield %0 : bf16
  } -> tensor<8xbf16>
  %wide = linalg.generic {indexing_maps = [#m, #row], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<8x64xf32>) outs(%t : tensor<8xf32>) {
  ^bb0(%a: f32, %best: f32):
    %0 = arith.maximumf %a, %best : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %both = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xbf16>) outs(%x : tensor<8x64xbf16>) {
  ^bb0(%a: bf16, %best: bf16):
    %0 = arith.maximumf %a, %best : bf16
    linalg.yield %0 : bf16
  } -> tensor<8x64xbf16>
  return %sum, %wide, %both : tensor<8xbf16>, tensor<8xf32>, tensor<8x64xbf16>
}

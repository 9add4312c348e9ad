// RUN: mlirml-opt %s --mlirml-scalarize=fewest=1 | filecheck %s

#s = affine_map<() -> ()>

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<4x4xf32>)
// CHECK: %[[A:.*]] = tensor.extract %[[X]][%c1, %c2]
// CHECK: %[[R:.*]] = math.sqrt %[[A]] : f32
// CHECK: tensor.insert %[[R]] into %[[X]][%c3, %c3]
// CHECK-NOT: linalg
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<f32>
  %s = tensor.extract_slice %x[1, 2] [1, 1] [1, 1] : tensor<4x4xf32> to tensor<f32>
  %r = linalg.generic {indexing_maps = [#s, #s], iterator_types = []} ins(%s : tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = math.sqrt %a : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  %y = tensor.insert_slice %r into %x[3, 3] [1, 1] [1, 1] : tensor<f32> into tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// RUN: mlirml-opt %s --split-input-file --mlirml-move-reshapes | filecheck %s

#v = affine_map<(i) -> (i)>
#m = affine_map<(i, j) -> (i, j)>

// CHECK: #[[M:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @expansion
// CHECK-SAME: (%[[X:.*]]: tensor<32xf32>)
// CHECK: %[[Y:.*]] = tensor.expand_shape %[[X]] {{\[\[}}0, 1]] output_shape [4, 8]
// CHECK: linalg.generic {indexing_maps = [#[[M]], #[[M]]]{{.*}} ins(%[[Y]] : tensor<4x8xf32>)
// CHECK: linalg.generic
// CHECK-NOT: tensor.expand_shape
func.func @expansion(%x: tensor<32xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<32xf32>
  %a = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%x : tensor<32xf32>) outs(%e : tensor<32xf32>) {
  ^bb0(%s: f32, %o: f32):
    %0 = arith.negf %s : f32
    linalg.yield %0 : f32
  } -> tensor<32xf32>
  %b = tensor.expand_shape %a [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  %f = tensor.empty() : tensor<4x8xf32>
  %c = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%b : tensor<4x8xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%s: f32, %o: f32):
    %0 = math.exp %s : f32
    linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  return %c : tensor<4x8xf32>
}

// -----

#v = affine_map<(i) -> (i)>
#m = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @collapse
// CHECK-NOT: tensor.collapse_shape
// CHECK: linalg.generic
// CHECK: %[[C:.*]] = linalg.generic
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[C]]
// CHECK: return %[[R]]
func.func @collapse(%x: tensor<4x8xf32>) -> tensor<32xf32> {
  %f = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%s: f32, %o: f32):
    %0 = math.exp %s : f32
    linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  %b = tensor.collapse_shape %a [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %e = tensor.empty() : tensor<32xf32>
  %c = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%b : tensor<32xf32>) outs(%e : tensor<32xf32>) {
  ^bb0(%s: f32, %o: f32):
    %0 = arith.negf %s : f32
    linalg.yield %0 : f32
  } -> tensor<32xf32>
  return %c : tensor<32xf32>
}

// -----

#v = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func @slice
// CHECK-SAME: (%[[X:.*]]: tensor<32xf32>)
// CHECK: %[[P:.*]] = tensor.extract_slice %[[X]][2] [5] [3]
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[P]] : tensor<5xf32>)
// CHECK: return %[[R]]
func.func @slice(%x: tensor<32xf32>) -> tensor<5xf32> {
  %e = tensor.empty() : tensor<32xf32>
  %a = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%x : tensor<32xf32>) outs(%e : tensor<32xf32>) {
  ^bb0(%s: f32, %o: f32):
    %0 = math.exp %s : f32
    linalg.yield %0 : f32
  } -> tensor<32xf32>
  %b = tensor.extract_slice %a[2] [5] [3] : tensor<32xf32> to tensor<5xf32>
  return %b : tensor<5xf32>
}

// -----

#v = affine_map<(i) -> (i)>
#s = affine_map<() -> ()>

// A number has no loop that could become one of the vector's.
// CHECK-LABEL: func.func @number
// CHECK: %[[A:.*]] = linalg.generic
// CHECK: %[[N:.*]] = tensor.collapse_shape %[[A]] [] : tensor<1xf32> into tensor<f32>
// CHECK: linalg.generic {{.*}} ins(%[[N]] : tensor<f32>)
func.func @number(%x: tensor<1xf32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<1xf32>
  %a = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%x : tensor<1xf32>) outs(%e : tensor<1xf32>) {
  ^bb0(%s: f32, %o: f32):
    %0 = math.exp %s : f32
    linalg.yield %0 : f32
  } -> tensor<1xf32>
  %n = tensor.collapse_shape %a [] : tensor<1xf32> into tensor<f32>
  %f = tensor.empty() : tensor<f32>
  %b = linalg.generic {indexing_maps = [#s, #s], iterator_types = []}
      ins(%n : tensor<f32>) outs(%f : tensor<f32>) {
  ^bb0(%s: f32, %o: f32):
    %0 = arith.negf %s : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  return %b : tensor<f32>
}

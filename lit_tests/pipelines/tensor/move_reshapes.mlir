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

// -----

// A row of a transpose is a column, at a dynamic index, too.
// CHECK-LABEL: func.func @row_of_transpose
// CHECK-SAME: (%[[X:.*]]: tensor<40x30xf32>, %[[I:.*]]: index)
// CHECK-NOT: linalg.transpose
// CHECK: %[[C:.*]] = tensor.extract_slice %[[X]][2, %[[I]]] [5, 1] [3, 1] : tensor<40x30xf32> to tensor<5xf32>
// CHECK: return %[[C]]
func.func @row_of_transpose(%x: tensor<40x30xf32>, %i: index) -> tensor<5xf32> {
  %e = tensor.empty() : tensor<30x40xf32>
  %t = linalg.transpose ins(%x : tensor<40x30xf32>) outs(%e : tensor<30x40xf32>) permutation = [1, 0]
  %r = tensor.extract_slice %t[%i, 2] [1, 5] [1, 3] : tensor<30x40xf32> to tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

#m = affine_map<(i, j) -> (i, j)>

// Indices in the body are those of the whole.
// CHECK-LABEL: func.func @row_of_flip
// CHECK-SAME: (%[[X:.*]]: tensor<40x30xf32>, %[[I:.*]]: index)
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]} outs(%{{.*}} : tensor<5xf32>)
// CHECK: %[[M:.*]] = arith.subi %{{.*}}, %[[I]] : index
// CHECK: %[[J:.*]] = linalg.index 0
// CHECK: %[[K:.*]] = arith.addi %[[J]], %{{.*}}
// CHECK: tensor.extract %[[X]][%[[M]], %[[K]]]
func.func @row_of_flip(%x: tensor<40x30xf32>, %i: index) -> tensor<5xf32> {
  %c39 = arith.constant 39 : index
  %e = tensor.empty() : tensor<40x30xf32>
  %f = linalg.generic {indexing_maps = [#m], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<40x30xf32>) {
  ^bb0(%o: f32):
    %0 = linalg.index 0 : index
    %1 = arith.subi %c39, %0 : index
    %2 = linalg.index 1 : index
    %3 = tensor.extract %x[%1, %2] : tensor<40x30xf32>
    linalg.yield %3 : f32
  } -> tensor<40x30xf32>
  %r = tensor.extract_slice %f[%i, 2] [1, 5] [1, 1] : tensor<40x30xf32> to tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// The source is overwritten before the row is read.
// CHECK-LABEL: func.func @stored_between
// CHECK: %[[T:.*]] = linalg.transpose
// CHECK: tensor.extract_slice %[[T]][%{{.*}}, 0]
func.func @stored_between(%x: tensor<40x30xf32>, %i: index, %s: f32) -> (tensor<40x30xf32>, tensor<40xf32>) {
  %e = tensor.empty() : tensor<30x40xf32>
  %t = linalg.transpose ins(%x : tensor<40x30xf32>) outs(%e : tensor<30x40xf32>) permutation = [1, 0]
  %y = tensor.insert %s into %x[%i, %i] : tensor<40x30xf32>
  %r = tensor.extract_slice %t[%i, 0] [1, 40] [1, 1] : tensor<30x40xf32> to tensor<40xf32>
  return %y, %r : tensor<40x30xf32>, tensor<40xf32>
}

// Slices that are the whole together are computed one by one, where each is fused with what reads it.
// CHECK-LABEL: func.func @columns
// CHECK: tensor.extract_slice %arg0[0, 0] [12, 1] [1, 1]
// CHECK: math.tanh
// CHECK: tensor.extract_slice %arg0[0, 1] [12, 1] [1, 1]
// CHECK: math.tanh
// CHECK: arith.mulf
func.func @columns(%x: tensor<12x2xf64>) -> tensor<12xf64> {
  %e = tensor.empty() : tensor<12x2xf64>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<12x2xf64>) outs(%e : tensor<12x2xf64>) {
  ^bb0(%a: f64, %o: f64):
    %r = math.tanh %a : f64
    linalg.yield %r : f64
  } -> tensor<12x2xf64>
  %first = tensor.extract_slice %y[0, 0] [12, 1] [1, 1] : tensor<12x2xf64> to tensor<12xf64>
  %second = tensor.extract_slice %y[0, 1] [12, 1] [1, 1] : tensor<12x2xf64> to tensor<12xf64>
  %f = tensor.empty() : tensor<12xf64>
  %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%first, %second : tensor<12xf64>, tensor<12xf64>) outs(%f : tensor<12xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %r = arith.mulf %a, %b : f64
    linalg.yield %r : f64
  } -> tensor<12xf64>
  return %z : tensor<12xf64>
}

// Slices that overlap would compute elements twice.
// CHECK-LABEL: func.func @windows
// CHECK: math.tanh
// CHECK-NOT: math.tanh
func.func @windows(%x: tensor<12xf64>) -> tensor<10xf64> {
  %e = tensor.empty() : tensor<12xf64>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x : tensor<12xf64>) outs(%e : tensor<12xf64>) {
  ^bb0(%a: f64, %o: f64):
    %r = math.tanh %a : f64
    linalg.yield %r : f64
  } -> tensor<12xf64>
  %first = tensor.extract_slice %y[0] [10] [1] : tensor<12xf64> to tensor<10xf64>
  %second = tensor.extract_slice %y[2] [10] [1] : tensor<12xf64> to tensor<10xf64>
  %f = tensor.empty() : tensor<10xf64>
  %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%first, %second : tensor<10xf64>, tensor<10xf64>) outs(%f : tensor<10xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %r = arith.mulf %a, %b : f64
    linalg.yield %r : f64
  } -> tensor<10xf64>
  return %z : tensor<10xf64>
}

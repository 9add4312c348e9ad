// RUN: mlirml-opt %s --split-input-file --mlirml-share-joins | filecheck %s

// The first join is a view of the second one, whose arrays are stored once, as soon as they are needed.
// CHECK-LABEL: func.func @grows
// CHECK-SAME: (%[[A:.*]]: tensor<4x64xf32>, %[[B:.*]]: tensor<4x32xf32>)
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<4x128xf32>
// CHECK: %[[ONE:.*]] = tensor.insert_slice %[[A]] into %[[EMPTY]][0, 0] [4, 64] [1, 1]
// CHECK: %[[TWO:.*]] = tensor.insert_slice %[[B]] into %[[ONE]][0, 64] [4, 32] [1, 1]
// CHECK: %[[VIEW:.*]] = tensor.extract_slice %[[TWO]][0, 0] [4, 96] [1, 1] : tensor<4x128xf32> to tensor<4x96xf32>
// CHECK: %[[LAST:.*]] = tensor.extract_slice %[[VIEW]][0, 7]
// CHECK: %[[C:.*]] = math.exp %[[LAST]]
// CHECK: %[[ALL:.*]] = tensor.insert_slice %[[C]] into %[[TWO]][0, 96] [4, 32] [1, 1]
// CHECK-NOT: tensor.insert_slice
// CHECK: return %[[ALL]]
func.func @grows(%a: tensor<4x64xf32>, %b: tensor<4x32xf32>) -> tensor<4x128xf32> {
  %e = tensor.empty() : tensor<4x96xf32>
  %0 = tensor.insert_slice %a into %e[0, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<4x96xf32>
  %ab = tensor.insert_slice %b into %0[0, 64] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<4x96xf32>
  %last = tensor.extract_slice %ab[0, 7] [4, 32] [1, 1] : tensor<4x96xf32> to tensor<4x32xf32>
  %c = math.exp %last : tensor<4x32xf32>
  %f = tensor.empty() : tensor<4x128xf32>
  %1 = tensor.insert_slice %a into %f[0, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<4x128xf32>
  %2 = tensor.insert_slice %b into %1[0, 64] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<4x128xf32>
  %abc = tensor.insert_slice %c into %2[0, 96] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<4x128xf32>
  return %abc : tensor<4x128xf32>
}

// -----

// A join that is joined itself, and one of its last arrays.
// CHECK-LABEL: func.func @nested
// CHECK-SAME: (%[[A:.*]]: tensor<2xf32>, %[[B:.*]]: tensor<3xf32>, %[[C:.*]]: tensor<4xf32>)
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<9xf32>
// CHECK: %[[ONE:.*]] = tensor.insert_slice %[[A]] into %[[EMPTY]][0] [2] [1]
// CHECK: %[[TWO:.*]] = tensor.insert_slice %[[B]] into %[[ONE]][2] [3] [1]
// CHECK: %[[AB:.*]] = tensor.extract_slice %[[TWO]][0] [5] [1]
// CHECK: %[[ABC:.*]] = tensor.insert_slice %[[C]] into %[[TWO]][5] [4] [1]
// CHECK: %[[BC:.*]] = tensor.extract_slice %[[ABC]][2] [7] [1]
// CHECK: return %[[AB]], %[[ABC]], %[[BC]]
func.func @nested(%a: tensor<2xf32>, %b: tensor<3xf32>, %c: tensor<4xf32>)
    -> (tensor<5xf32>, tensor<9xf32>, tensor<7xf32>) {
  %e = tensor.empty() : tensor<5xf32>
  %0 = tensor.insert_slice %a into %e[0] [2] [1] : tensor<2xf32> into tensor<5xf32>
  %ab = tensor.insert_slice %b into %0[2] [3] [1] : tensor<3xf32> into tensor<5xf32>
  %f = tensor.empty() : tensor<9xf32>
  %1 = tensor.insert_slice %ab into %f[0] [5] [1] : tensor<5xf32> into tensor<9xf32>
  %abc = tensor.insert_slice %c into %1[5] [4] [1] : tensor<4xf32> into tensor<9xf32>
  %g = tensor.empty() : tensor<7xf32>
  %2 = tensor.insert_slice %b into %g[0] [3] [1] : tensor<3xf32> into tensor<7xf32>
  %bc = tensor.insert_slice %c into %2[3] [4] [1] : tensor<4xf32> into tensor<7xf32>
  return %ab, %abc, %bc : tensor<5xf32>, tensor<9xf32>, tensor<7xf32>
}

// -----

// Rows of a few bytes are not read from another array's rows.
// CHECK-LABEL: func.func @columns
// CHECK: tensor.empty() : tensor<100x2xf32>
// CHECK: tensor.empty() : tensor<100x3xf32>
// CHECK-NOT: tensor.extract_slice
func.func @columns(%a: tensor<100x1xf32>, %b: tensor<100x1xf32>) -> (tensor<100x2xf32>, tensor<100x3xf32>) {
  %e = tensor.empty() : tensor<100x2xf32>
  %0 = tensor.insert_slice %a into %e[0, 0] [100, 1] [1, 1] : tensor<100x1xf32> into tensor<100x2xf32>
  %ab = tensor.insert_slice %b into %0[0, 1] [100, 1] [1, 1] : tensor<100x1xf32> into tensor<100x2xf32>
  %f = tensor.empty() : tensor<100x3xf32>
  %1 = tensor.insert_slice %a into %f[0, 0] [100, 1] [1, 1] : tensor<100x1xf32> into tensor<100x3xf32>
  %2 = tensor.insert_slice %b into %1[0, 1] [100, 1] [1, 1] : tensor<100x1xf32> into tensor<100x3xf32>
  %aba = tensor.insert_slice %a into %2[0, 2] [100, 1] [1, 1] : tensor<100x1xf32> into tensor<100x3xf32>
  return %ab, %aba : tensor<100x2xf32>, tensor<100x3xf32>
}

// -----

// Arrays of which some elements are stored twice are no joins.
// CHECK-LABEL: func.func @overlap
// CHECK: tensor.empty() : tensor<4xf32>
// CHECK: tensor.empty() : tensor<6xf32>
// CHECK-NOT: tensor.extract_slice
func.func @overlap(%a: tensor<3xf32>, %b: tensor<2xf32>) -> (tensor<4xf32>, tensor<6xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %0 = tensor.insert_slice %a into %e[0] [3] [1] : tensor<3xf32> into tensor<4xf32>
  %ab = tensor.insert_slice %b into %0[2] [2] [1] : tensor<2xf32> into tensor<4xf32>
  %f = tensor.empty() : tensor<6xf32>
  %1 = tensor.insert_slice %ab into %f[0] [4] [1] : tensor<4xf32> into tensor<6xf32>
  %abb = tensor.insert_slice %b into %1[4] [2] [1] : tensor<2xf32> into tensor<6xf32>
  return %ab, %abb : tensor<4xf32>, tensor<6xf32>
}

// -----

// Joins along another axis, of joins that have become views.
// CHECK-LABEL: func.func @across
// CHECK: %[[ACROSS:.*]] = tensor.empty() : tensor<6x128xf32>
// CHECK: %[[AB:.*]] = tensor.extract_slice %{{.*}}[0, 0] [2, 128] [1, 1] : tensor<2x256xf32> to tensor<2x128xf32>
// CHECK: tensor.insert_slice %[[AB]] into %[[ACROSS]][0, 0] [2, 128] [1, 1]
// CHECK: tensor.extract_slice %{{.*}}[0, 0] [4, 128] [1, 1] : tensor<6x128xf32> to tensor<4x128xf32>
// CHECK: tensor.insert_slice %[[AB]] into %{{.*}}[4, 0] [2, 128] [1, 1]
func.func @across(%a: tensor<2x64xf32>, %b: tensor<2x64xf32>) -> (tensor<2x128xf32>, tensor<2x256xf32>, tensor<4x128xf32>, tensor<6x128xf32>) {
  %e = tensor.empty() : tensor<2x128xf32>
  %0 = tensor.insert_slice %a into %e[0, 0] [2, 64] [1, 1] : tensor<2x64xf32> into tensor<2x128xf32>
  %ab = tensor.insert_slice %b into %0[0, 64] [2, 64] [1, 1] : tensor<2x64xf32> into tensor<2x128xf32>
  %f = tensor.empty() : tensor<2x256xf32>
  %1 = tensor.insert_slice %a into %f[0, 0] [2, 64] [1, 1] : tensor<2x64xf32> into tensor<2x256xf32>
  %2 = tensor.insert_slice %b into %1[0, 64] [2, 64] [1, 1] : tensor<2x64xf32> into tensor<2x256xf32>
  %6 = tensor.insert_slice %a into %2[0, 128] [2, 64] [1, 1] : tensor<2x64xf32> into tensor<2x256xf32>
  %abab = tensor.insert_slice %b into %6[0, 192] [2, 64] [1, 1] : tensor<2x64xf32> into tensor<2x256xf32>
  %g = tensor.empty() : tensor<4x128xf32>
  %d = math.exp %ab : tensor<2x128xf32>
  %3 = tensor.insert_slice %ab into %g[0, 0] [2, 128] [1, 1] : tensor<2x128xf32> into tensor<4x128xf32>
  %pair = tensor.insert_slice %d into %3[2, 0] [2, 128] [1, 1] : tensor<2x128xf32> into tensor<4x128xf32>
  %h = tensor.empty() : tensor<6x128xf32>
  %4 = tensor.insert_slice %ab into %h[0, 0] [2, 128] [1, 1] : tensor<2x128xf32> into tensor<6x128xf32>
  %5 = tensor.insert_slice %d into %4[2, 0] [2, 128] [1, 1] : tensor<2x128xf32> into tensor<6x128xf32>
  %triple = tensor.insert_slice %ab into %5[4, 0] [2, 128] [1, 1] : tensor<2x128xf32> into tensor<6x128xf32>
  return %ab, %abab, %pair, %triple : tensor<2x128xf32>, tensor<2x256xf32>, tensor<4x128xf32>, tensor<6x128xf32>
}

// RUN: mlirml-opt %s --split-input-file '--mlirml-narrow-integers=device=webgpu' | filecheck %s
// RUN: mlirml-opt %s --split-input-file '--mlirml-narrow-integers=device=cuda' | filecheck %s --check-prefix=WIDE

#one = affine_map<(i, j) -> (i)>
#id = affine_map<(i, j) -> (i, j)>

// A table of positions gets 32 bits, and the sums of its elements too; the positions that the caller gives are left.
// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]] = arith.constant dense<[2, -1, 0]> : tensor<3xi32>
// CHECK: linalg.generic {{.*}} ins(%[[T]], %arg1 : tensor<3xi32>, tensor<3xi64>)
// CHECK: ^bb0(%[[I:.*]]: i32, %[[J:.*]]: i64, %{{.*}}: f32):
// CHECK: %[[L:.*]] = arith.cmpi slt, %[[I]], %{{.*}} : i32
// CHECK: %[[S:.*]] = arith.addi %[[I]], %{{.*}} : i32
// CHECK: %[[P:.*]] = arith.select %[[L]], %[[S]], %[[I]] : i32
// CHECK: arith.index_cast %[[P]] : i32 to index
// CHECK: arith.index_cast %[[J]] : i64 to index
// WIDE: arith.constant dense<[2, -1, 0]> : tensor<3xi64>
func.func @main(%x: tensor<6x5xf32>, %given: tensor<3xi64>) -> tensor<3x5xf32> {
  %table = arith.constant dense<[2, -1, 0]> : tensor<3xi64>
  %zero = arith.constant 0 : i64
  %six = arith.constant 6 : i64
  %e = tensor.empty() : tensor<3x5xf32>
  %y = linalg.generic {indexing_maps = [#one, #one, #id], iterator_types = ["parallel", "parallel"]}
      ins(%table, %given : tensor<3xi64>, tensor<3xi64>) outs(%e : tensor<3x5xf32>) {
  ^bb0(%i: i64, %j: i64, %out: f32):
    %0 = arith.cmpi slt, %i, %zero : i64
    %1 = arith.addi %i, %six : i64
    %2 = arith.select %0, %1, %i : i64
    %3 = arith.index_cast %2 : i64 to index
    %4 = arith.index_cast %j : i64 to index
    %5 = tensor.extract %x[%3, %4] : tensor<6x5xf32>
    linalg.yield %5 : f32
  } -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// -----

#all = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>

// The position of the greatest element is computed in 32 bits; the number of large ones may need more.
// CHECK-LABEL: func.func @main
// CHECK: %[[M:.*]]:3 = linalg.generic
// CHECK-SAME: tensor<f32>, tensor<i32>, tensor<i64>)
// CHECK: %[[Q:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: arith.select %{{.*}}, %[[Q]], %{{.*}} : i32
// CHECK: arith.addi %{{.*}}, %{{.*}} : i64
// CHECK: %[[R:.*]] = tensor.extract %[[M]]#1[] : tensor<i32>
// CHECK: return %[[R]], %[[M]]#2 : i32, tensor<i64>
func.func @main(%x: tensor<70xf32>) -> (i32, tensor<i64>) {
  %zero = arith.constant 0 : i64
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<f32>
  %m0 = linalg.fill ins(%low : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %e1 = tensor.empty() : tensor<i64>
  %p0 = linalg.fill ins(%zero : i64) outs(%e1 : tensor<i64>) -> tensor<i64>
  %e2 = tensor.empty() : tensor<i64>
  %n0 = linalg.fill ins(%zero : i64) outs(%e2 : tensor<i64>) -> tensor<i64>
  %m:3 = linalg.generic {indexing_maps = [#all, #none, #none, #none], iterator_types = ["reduction"]}
      ins(%x : tensor<70xf32>) outs(%m0, %p0, %n0 : tensor<f32>, tensor<i64>, tensor<i64>) {
  ^bb0(%a: f32, %b: f32, %p: i64, %n: i64):
    %0 = arith.cmpf ogt, %a, %b : f32
    %1 = linalg.index 0 : index
    %2 = arith.index_cast %1 : index to i64
    %3 = arith.select %0, %a, %b : f32
    %4 = arith.select %0, %2, %p : i64
    %5 = arith.extui %0 : i1 to i64
    %6 = arith.addi %n, %5 : i64
    linalg.yield %3, %4, %6 : f32, i64, i64
  } -> (tensor<f32>, tensor<i64>, tensor<i64>)
  %p = tensor.extract %m#1[] : tensor<i64>
  %r = arith.trunci %p : i64 to i32
  return %r, %m#2 : i32, tensor<i64>
}

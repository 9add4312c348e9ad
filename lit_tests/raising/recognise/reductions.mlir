// RUN: mlirml-opt %s --mlirml-recognise --canonicalize --split-input-file | filecheck %s

// A comparison that keeps the larger number passes over NaN: `maxnumf`; a NaN at the start stays.
// CHECK-LABEL: func.func @maximum
// CHECK: %[[M:.*]] = linalg.generic
// CHECK: arith.maxnumf
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[M]] : tensor<4xf32>, tensor<4xf32>)
// CHECK: arith.cmpf uno
func.func @maximum(%x: tensor<4x9xf32>, %m: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x9xf32>) outs(%m : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = arith.cmpf ogt, %a, %out : f32
    %1 = arith.select %0, %a, %out : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// After NaN the next number wins: the order counts, and the comparison stays.
// CHECK-LABEL: func.func @order_counts
// CHECK: arith.cmpf ogt, %out, %in
func.func @order_counts(%x: tensor<4x9xf32>, %m: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x9xf32>) outs(%m : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = arith.cmpf ogt, %out, %a : f32
    %1 = arith.select %0, %out, %a : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// The largest element so far and its place: the form of argmax that kernels take.
// CHECK-LABEL: func.func @argmax
// CHECK-NOT: scf.for
// CHECK: %[[S:.*]] = tensor.extract_slice %{{.*}}[1] [63] [1]
// CHECK: linalg.generic {{.*}} ins(%[[S]] : tensor<63xf32>) outs(%{{.*}}, %{{.*}} : tensor<f32>, tensor<i64>)
// CHECK: linalg.index 0
func.func @argmax(%x: tensor<64xf32>, %m0: f32) -> i64 {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %k0 = arith.constant 0 : i64
  %r:2 = scf.for %i = %c1 to %c64 step %c1 iter_args(%m = %m0, %k = %k0) -> (f32, i64) {
    %a = tensor.extract %x[%i] : tensor<64xf32>
    %better = arith.cmpf ogt, %a, %m : f32
    %here = arith.index_cast %i : index to i64
    %m1 = arith.select %better, %a, %m : f32
    %k1 = arith.select %better, %here, %k : i64
    scf.yield %m1, %k1 : f32, i64
  }
  return %r#1 : i64
}

// -----

// The last of equal elements is another place: the loop stays.
// CHECK-LABEL: func.func @last
// CHECK: scf.for
func.func @last(%x: tensor<64xf32>, %m0: f32) -> i64 {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %k0 = arith.constant 0 : i64
  %r:2 = scf.for %i = %c1 to %c64 step %c1 iter_args(%m = %m0, %k = %k0) -> (f32, i64) {
    %a = tensor.extract %x[%i] : tensor<64xf32>
    %better = arith.cmpf oge, %a, %m : f32
    %here = arith.index_cast %i : index to i64
    %m1 = arith.select %better, %a, %m : f32
    %k1 = arith.select %better, %here, %k : i64
    scf.yield %m1, %k1 : f32, i64
  }
  return %r#1 : i64
}

// -----

// A sum of the elements where a condition holds adds zeros for the others.
// CHECK-LABEL: func.func @masked_sum
// CHECK: %[[ZERO:.*]] = arith.constant -0.000000e+00
// CHECK: linalg.generic
// CHECK: %[[E:.*]] = math.exp %in
// CHECK: %[[KEPT:.*]] = arith.select %in_0, %[[E]], %[[ZERO]]
// CHECK: arith.addf %out, %[[KEPT]]
func.func @masked_sum(%x: tensor<4x9xf32>, %c: tensor<4x9xi1>, %s: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x, %c : tensor<4x9xf32>, tensor<4x9xi1>) outs(%s : tensor<4xf32>) {
  ^bb0(%a: f32, %m: i1, %out: f32):
    %e = math.exp %a : f32
    %0 = arith.addf %out, %e : f32
    %1 = arith.select %m, %0, %out : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

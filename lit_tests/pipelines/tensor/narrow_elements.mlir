// RUN: mlirml-opt %s --split-input-file --mlirml-narrow-elements | filecheck %s

#map = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @bins
// CHECK: linalg.generic
// CHECK: %[[SHORT:.*]] = arith.trunci %{{.*}} : i64 to i32
// CHECK-NEXT: linalg.yield %[[SHORT]] : i32
// CHECK: scf.for
// CHECK: %[[READ:.*]] = tensor.extract %{{.*}} : tensor<8000xi32>
// CHECK-NEXT: %[[BIN:.*]] = arith.extsi %[[READ]] : i32 to i64
// CHECK-NEXT: arith.index_cast %[[BIN]]
func.func @bins(%x: tensor<8000xf64>, %counts: tensor<8xi64>) -> tensor<8xi64> {
  %zero = arith.constant 0.0 : f64
  %seven = arith.constant 7.0 : f64
  %c1_i64 = arith.constant 1 : i64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8000 = arith.constant 8000 : index
  %empty = tensor.empty() : tensor<8000xi64>
  %bins = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<8000xf64>) outs(%empty : tensor<8000xi64>) {
  ^bb0(%a: f64, %out: i64):
    %0 = arith.maxnumf %a, %zero : f64
    %1 = arith.minnumf %0, %seven : f64
    %bin = arith.fptosi %1 : f64 to i64
    linalg.yield %bin : i64
  } -> tensor<8000xi64>
  %sums = scf.for %i = %c0 to %c8000 step %c1 iter_args(%sum = %counts) -> (tensor<8xi64>) {
    %bin = tensor.extract %bins[%i] : tensor<8000xi64>
    %index = arith.index_cast %bin : i64 to index
    %before = tensor.extract %sum[%index] : tensor<8xi64>
    %after = arith.addi %before, %c1_i64 : i64
    %stored = tensor.insert %after into %sum[%index] : tensor<8xi64>
    scf.yield %stored : tensor<8xi64>
  }
  return %sums : tensor<8xi64>
}

// -----

#map = affine_map<(d0) -> (d0)>

// Small tensors, results of the function and numbers of unknown size stay as they are.
// CHECK-LABEL: func.func @others
// CHECK-NOT: i32
func.func @others(%x: tensor<8000xi64>, %y: tensor<9xi64>, %i: index) -> (tensor<8000xi64>, i64, i64, i64) {
  %c7 = arith.constant 7 : i64
  %empty = tensor.empty() : tensor<8000xi64>
  %short = tensor.empty() : tensor<9xi64>
  %result = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<8000xi64>) outs(%empty : tensor<8000xi64>) {
  ^bb0(%a: i64, %out: i64):
    %0 = arith.andi %a, %c7 : i64
    linalg.yield %0 : i64
  } -> tensor<8000xi64>
  %unknown = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<8000xi64>) outs(%empty : tensor<8000xi64>) {
  ^bb0(%a: i64, %out: i64):
    %0 = arith.addi %a, %c7 : i64
    linalg.yield %0 : i64
  } -> tensor<8000xi64>
  %small = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%y : tensor<9xi64>) outs(%short : tensor<9xi64>) {
  ^bb0(%a: i64, %out: i64):
    %0 = arith.andi %a, %c7 : i64
    linalg.yield %0 : i64
  } -> tensor<9xi64>
  %1 = tensor.extract %result[%i] : tensor<8000xi64>
  %2 = tensor.extract %unknown[%i] : tensor<8000xi64>
  %3 = tensor.extract %small[%i] : tensor<9xi64>
  return %result, %1, %2, %3 : tensor<8000xi64>, i64, i64, i64
}

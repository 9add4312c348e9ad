// RUN: mlirml-opt %s --split-input-file --mlirml-move-gathers | filecheck %s

#row = affine_map<(d0, d1) -> (d0)>
#both = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0) -> (d0)>

// The cosine of a column of the table, which is gathered then; the sum is cheaper than another gather.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[TABLE:.*]]: tensor<49x11xf64>, %[[INDICES:.*]]: tensor<32000xi64>)
// CHECK: %[[ANGLES:.*]] = tensor.extract_slice %[[TABLE]][0, 2] [49, 1]
// CHECK: %[[COSINES:.*]] = linalg.generic {{.*}} ins(%[[ANGLES]] : tensor<49xf64>)
// CHECK: math.cos
// CHECK: %[[FOUND:.*]] = linalg.generic {{.*}} ins(%[[INDICES]] : tensor<32000xi64>)
// CHECK: tensor.extract %[[COSINES]][
// CHECK: linalg.generic {{.*}} ins(%[[FOUND]]
// CHECK: arith.addf
func.func @main(%table: tensor<49x11xf64>, %indices: tensor<32000xi64>) -> tensor<32000xf64> {
  %0 = tensor.empty() : tensor<32000x11xf64>
  %rows = linalg.generic {indexing_maps = [#row, #both], iterator_types = ["parallel", "parallel"]}
      ins(%indices : tensor<32000xi64>) outs(%0 : tensor<32000x11xf64>) {
  ^bb0(%in: i64, %out: f64):
    %i = arith.index_cast %in : i64 to index
    %j = linalg.index 1 : index
    %x = tensor.extract %table[%i, %j] : tensor<49x11xf64>
    linalg.yield %x : f64
  } -> tensor<32000x11xf64>
  %angles = tensor.extract_slice %rows[0, 2] [32000, 1] [1, 1] : tensor<32000x11xf64> to tensor<32000xf64>
  %1 = tensor.empty() : tensor<32000xf64>
  %cosines = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%angles : tensor<32000xf64>) outs(%1 : tensor<32000xf64>) {
  ^bb0(%in: f64, %out: f64):
    %c = math.cos %in : f64
    linalg.yield %c : f64
  } -> tensor<32000xf64>
  %sums = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%cosines : tensor<32000xf64>) outs(%1 : tensor<32000xf64>) {
  ^bb0(%in: f64, %out: f64):
    %c = arith.addf %in, %in : f64
    linalg.yield %c : f64
  } -> tensor<32000xf64>
  return %sums : tensor<32000xf64>
}

// -----

#one = affine_map<(d0) -> (d0)>

// Divisions of integers trap for a row of zeros that no index has.
// CHECK-LABEL: func.func @main
// CHECK: tensor.extract
// CHECK: arith.divsi
// CHECK-NOT: tensor.extract
func.func @main(%table: tensor<8xi64>, %indices: tensor<4096xi64>) -> tensor<4096xi64> {
  %c100 = arith.constant 100 : i64
  %0 = tensor.empty() : tensor<4096xi64>
  %rows = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%indices : tensor<4096xi64>) outs(%0 : tensor<4096xi64>) {
  ^bb0(%in: i64, %out: i64):
    %i = arith.index_cast %in : i64 to index
    %x = tensor.extract %table[%i] : tensor<8xi64>
    linalg.yield %x : i64
  } -> tensor<4096xi64>
  %quotients = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%rows : tensor<4096xi64>) outs(%0 : tensor<4096xi64>) {
  ^bb0(%in: i64, %out: i64):
    %c = arith.divsi %c100, %in : i64
    linalg.yield %c : i64
  } -> tensor<4096xi64>
  return %quotients : tensor<4096xi64>
}

// -----

#one = affine_map<(d0) -> (d0)>

// A table that is as long as the indices.
// CHECK-LABEL: func.func @main
// CHECK: tensor.extract
// CHECK: math.exp
// CHECK-NOT: tensor.extract
func.func @main(%table: tensor<4096xf32>, %indices: tensor<4096xi64>) -> tensor<4096xf32> {
  %0 = tensor.empty() : tensor<4096xf32>
  %rows = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%indices : tensor<4096xi64>) outs(%0 : tensor<4096xf32>) {
  ^bb0(%in: i64, %out: f32):
    %i = arith.index_cast %in : i64 to index
    %x = tensor.extract %table[%i] : tensor<4096xf32>
    linalg.yield %x : f32
  } -> tensor<4096xf32>
  %powers = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%rows : tensor<4096xf32>) outs(%0 : tensor<4096xf32>) {
  ^bb0(%in: f32, %out: f32):
    %c = math.exp %in : f32
    linalg.yield %c : f32
  } -> tensor<4096xf32>
  return %powers : tensor<4096xf32>
}

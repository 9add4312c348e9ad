// RUN: mlirml-opt %s --split-input-file --mlirml-recompute-masks | filecheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// The second operation compares by itself, and the mask is not stored.

// CHECK-LABEL: func.func @causal
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<300x300xf32>
// CHECK:         %[[M:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<300x300xf32>) outs(%{{.*}} : tensor<300xf32>)
// CHECK:         linalg.generic {{.*}} ins(%[[X]], %[[M]] : tensor<300x300xf32>, tensor<300xf32>)
// CHECK:         arith.cmpi sle
// CHECK:         arith.select
func.func @causal(%x: tensor<300x300xf32>) -> tensor<300x300xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<300x300xf32>
  %b = tensor.empty() : tensor<300x300xi1>
  %r = tensor.empty() : tensor<300xf32>
  %l = linalg.fill ins(%lowest : f32) outs(%r : tensor<300xf32>) -> tensor<300xf32>
  %m:2 = linalg.generic {indexing_maps = [#id, #id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<300x300xf32>) outs(%b, %l : tensor<300x300xi1>, tensor<300xf32>) {
  ^bb0(%in: f32, %keep: i1, %most: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %0 = arith.cmpi sle, %j, %i : index
    %1 = arith.select %0, %in, %lowest : f32
    %2 = arith.maximumf %1, %most : f32
    linalg.yield %0, %2 : i1, f32
  } -> (tensor<300x300xi1>, tensor<300xf32>)
  %s = linalg.generic {indexing_maps = [#id, #id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%m#0, %x, %m#1 : tensor<300x300xi1>, tensor<300x300xf32>, tensor<300xf32>) outs(%e : tensor<300x300xf32>) {
  ^bb0(%keep: i1, %in: f32, %most: f32, %out: f32):
    %0 = arith.select %keep, %in, %lowest : f32
    %1 = arith.subf %0, %most : f32
    linalg.yield %1 : f32
  } -> tensor<300x300xf32>
  return %s : tensor<300x300xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#one = affine_map<(i) -> (i)>

// Indices that are stored are recomputed; lengths of rows are read where the mask was.

// CHECK-LABEL: func.func @padded
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<300x400xf64>, %[[N:[a-z0-9]+]]: tensor<300xi64>
// CHECK:         linalg.generic {{.*}} ins(%[[N]], %[[X]] : tensor<300xi64>, tensor<300x400xf64>)
// CHECK:         linalg.index 1
// CHECK:         arith.cmpi slt
func.func @padded(%x: tensor<300x400xf64>, %n: tensor<300xi64>) -> tensor<300x400xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<300x400xf64>
  %k = tensor.empty() : tensor<400xi64>
  %j = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]} outs(%k : tensor<400xi64>) {
  ^bb0(%out: i64):
    %0 = linalg.index 0 : index
    %1 = arith.index_cast %0 : index to i64
    linalg.yield %1 : i64
  } -> tensor<400xi64>
  %s = linalg.generic {indexing_maps = [#column, #row, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%j, %n, %x : tensor<400xi64>, tensor<300xi64>, tensor<300x400xf64>) outs(%e : tensor<300x400xf64>) {
  ^bb0(%index: i64, %length: i64, %in: f64, %out: f64):
    %0 = arith.cmpi slt, %index, %length : i64
    %1 = arith.select %0, %in, %zero : f64
    linalg.yield %1 : f64
  } -> tensor<300x400xf64>
  return %s : tensor<300x400xf64>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// A mask of numbers is read.

// CHECK-LABEL: func.func @positive
// CHECK:         linalg.generic
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<300x300xi1>, tensor<300x300xf32>)
func.func @positive(%x: tensor<300x300xf32>) -> tensor<300x300xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<300x300xf32>
  %b = tensor.empty() : tensor<300x300xi1>
  %m = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<300x300xf32>) outs(%b : tensor<300x300xi1>) {
  ^bb0(%in: f32, %out: i1):
    %0 = arith.cmpf ogt, %in, %zero : f32
    linalg.yield %0 : i1
  } -> tensor<300x300xi1>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%m, %x : tensor<300x300xi1>, tensor<300x300xf32>) outs(%e : tensor<300x300xf32>) {
  ^bb0(%keep: i1, %in: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %f = arith.sitofp %j : i32 to f32
    %0 = arith.select %keep, %in, %f : f32
    linalg.yield %0 : f32
  } -> tensor<300x300xf32>
  return %s : tensor<300x300xf32>
}

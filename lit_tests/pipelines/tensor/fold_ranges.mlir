// RUN: mlirml-opt %s --split-input-file --mlirml-fold-ranges --canonicalize | filecheck %s

#map = affine_map<(d0) -> (d0)>
#point = affine_map<(d0) -> ()>

// A bin is from 0 to 7, whatever the element: the check of the greatest one and the clamps are dropped.
// CHECK-LABEL: func.func @bins
// CHECK: arith.fptosi
// CHECK-NOT: arith.maxui
// CHECK-NOT: cf.assert
// CHECK: %[[COUNTS:.*]] = scf.for
// CHECK: %[[BIN:.*]] = tensor.extract
// CHECK: %[[INDEX:.*]] = arith.index_cast %[[BIN]]
// CHECK-NEXT: tensor.extract %{{.*}}[%[[INDEX]]]
func.func @bins(%x: tensor<9xf64>, %counts: tensor<8xi64>) -> tensor<8xi64> {
  %zero = arith.constant 0.0 : f64
  %seven = arith.constant 7.0 : f64
  %c0_i64 = arith.constant 0 : i64
  %c1_i64 = arith.constant 1 : i64
  %c8_i64 = arith.constant 8 : i64
  %c16_i64 = arith.constant 16 : i64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %empty = tensor.empty() : tensor<9xf64>
  %clipped = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%x : tensor<9xf64>) outs(%empty : tensor<9xf64>) {
  ^bb0(%a: f64, %out: f64):
    %0 = arith.maxnumf %a, %zero : f64
    %1 = arith.minnumf %0, %seven : f64
    %2 = math.floor %1 : f64
    linalg.yield %2 : f64
  } -> tensor<9xf64>
  %empty_bins = tensor.empty() : tensor<9xi64>
  %bins = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%clipped : tensor<9xf64>) outs(%empty_bins : tensor<9xi64>) {
  ^bb0(%a: f64, %out: i64):
    %bin = arith.fptosi %a : f64 to i64
    linalg.yield %bin : i64
  } -> tensor<9xi64>
  %none = tensor.empty() : tensor<i64>
  %start = linalg.fill ins(%c0_i64 : i64) outs(%none : tensor<i64>) -> tensor<i64>
  %greatest = linalg.generic {indexing_maps = [#map, #point], iterator_types = ["reduction"]}
      ins(%bins : tensor<9xi64>) outs(%start : tensor<i64>) {
  ^bb0(%bin: i64, %out: i64):
    %moved = arith.addi %bin, %c8_i64 : i64
    %most = arith.maxui %moved, %out : i64
    linalg.yield %most : i64
  } -> tensor<i64>
  %last = tensor.extract %greatest[] : tensor<i64>
  %inside = arith.cmpi ult, %last, %c16_i64 : i64
  cf.assert %inside, "an index is out of bounds" {mlirml.check = 0 : i64, mlirml.check_base = 8 : i64}
  %sums = scf.for %i = %c0 to %c9 step %c1 iter_args(%sum = %counts) -> (tensor<8xi64>) {
    %bin = tensor.extract %bins[%i] : tensor<9xi64>
    %index = arith.index_cast %bin : i64 to index
    %negative = arith.cmpi slt, %index, %c0 : index
    %from_end = arith.addi %index, %c8 : index
    %place = arith.select %negative, %from_end, %index : index
    %clamped = arith.minui %place, %c7 : index
    %before = tensor.extract %sum[%clamped] : tensor<8xi64>
    %after = arith.addi %before, %c1_i64 : i64
    %stored = tensor.insert %after into %sum[%clamped] : tensor<8xi64>
    scf.yield %stored : tensor<8xi64>
  }
  return %sums : tensor<8xi64>
}

// -----

// A NaN has no bin: `arith.maximumf` hands it on. Neither does a range that is one too long fold anything.
// CHECK-LABEL: func.func @unknown
// CHECK: arith.minui
// CHECK: arith.minui
func.func @unknown(%a: f64, %x: tensor<8xf64>) -> (f64, f64) {
  %zero = arith.constant 0.0 : f64
  %seven = arith.constant 7.0 : f64
  %eight = arith.constant 8.0 : f64
  %c7 = arith.constant 7 : index
  %0 = arith.maximumf %a, %zero : f64
  %1 = arith.minimumf %0, %seven : f64
  %2 = arith.fptosi %1 : f64 to i64
  %3 = arith.index_cast %2 : i64 to index
  %4 = arith.minui %3, %c7 : index
  %5 = tensor.extract %x[%4] : tensor<8xf64>
  %6 = arith.maxnumf %a, %zero : f64
  %7 = arith.minnumf %6, %eight : f64
  %8 = arith.fptosi %7 : f64 to i64
  %9 = arith.index_cast %8 : i64 to index
  %10 = arith.minui %9, %c7 : index
  %11 = tensor.extract %x[%10] : tensor<8xf64>
  return %5, %11 : f64, f64
}

// -----

// The greater of two is the one whose range is above the other's.
// CHECK-LABEL: func.func @greater
// CHECK-DAG: %[[C9:.*]] = arith.constant 9 : i64
// CHECK-DAG: %[[BIN:.*]] = arith.fptosi
// CHECK: return %[[C9]], %[[BIN]]
func.func @greater(%a: f64) -> (i64, i64) {
  %zero = arith.constant 0.0 : f64
  %seven = arith.constant 7.0 : f64
  %c9 = arith.constant 9 : i64
  %c-1 = arith.constant -1 : i64
  %0 = arith.maxnumf %a, %zero : f64
  %1 = arith.minnumf %0, %seven : f64
  %2 = arith.fptosi %1 : f64 to i64
  %3 = arith.maxsi %2, %c9 : i64
  %4 = arith.maxsi %c-1, %2 : i64
  return %3, %4 : i64, i64
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#all = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>

// The position of an extreme, and the elements of a table, are within bounds.
// CHECK-LABEL: func.func @positions
// CHECK-NOT: cf.assert
// CHECK: %[[P:.*]] = tensor.extract %{{.*}}[%{{.*}}] : tensor<6xi64>
// CHECK: %[[I:.*]] = arith.index_cast %[[P]] : i64 to index
// CHECK: tensor.extract %{{.*}}[%[[I]]] : tensor<5xf32>
func.func @positions(%x: tensor<6x5xf32>, %y: tensor<5xf32>, %at: index) -> f32 {
  %zero = arith.constant 0 : i64
  %five = arith.constant 5 : i64
  %ten = arith.constant 10 : i64
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %table = arith.constant dense<[4, 0, 3]> : tensor<3xi64>
  %e0 = tensor.empty() : tensor<6xf32>
  %least = linalg.fill ins(%low : f32) outs(%e0 : tensor<6xf32>) -> tensor<6xf32>
  %e1 = tensor.empty() : tensor<6xi64>
  %first = linalg.fill ins(%zero : i64) outs(%e1 : tensor<6xi64>) -> tensor<6xi64>
  %max:2 = linalg.generic {indexing_maps = [#m, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<6x5xf32>) outs(%least, %first : tensor<6xf32>, tensor<6xi64>) {
  ^bb0(%a: f32, %b: f32, %p: i64):
    %0 = arith.cmpf ogt, %a, %b : f32
    %1 = linalg.index 1 : index
    %2 = arith.index_cast %1 : index to i64
    %3 = arith.select %0, %a, %b : f32
    %4 = arith.select %0, %2, %p : i64
    linalg.yield %3, %4 : f32, i64
  } -> (tensor<6xf32>, tensor<6xi64>)
  %e2 = tensor.empty() : tensor<i64>
  %start = linalg.fill ins(%zero : i64) outs(%e2 : tensor<i64>) -> tensor<i64>
  %last = linalg.generic {indexing_maps = [#all, #none], iterator_types = ["reduction"]}
      ins(%max#1 : tensor<6xi64>) outs(%start : tensor<i64>) {
  ^bb0(%a: i64, %out: i64):
    %0 = arith.addi %a, %five : i64
    %1 = arith.maxui %0, %out : i64
    linalg.yield %1 : i64
  } -> tensor<i64>
  %greatest = tensor.extract %last[] : tensor<i64>
  %valid = arith.cmpi ult, %greatest, %ten : i64
  cf.assert %valid, "an index is out of bounds"
  %entry = tensor.extract %table[%at] : tensor<3xi64>
  %known = arith.cmpi ult, %entry, %five : i64
  cf.assert %known, "an index is out of bounds"
  %position = tensor.extract %max#1[%at] : tensor<6xi64>
  %index = arith.index_cast %position : i64 to index
  %negative = arith.cmpi slt, %index, %c0 : index
  %from_end = arith.addi %index, %c5 : index
  %chosen = arith.select %negative, %from_end, %index : index
  %r = tensor.extract %y[%chosen] : tensor<5xf32>
  return %r : f32
}

// RUN: mlirml-opt %s --split-input-file "--mlirml-lower-loops=copy-bytes=64" | filecheck %s

// A short copy between contiguous pieces of memory stays one, whatever made it.
// CHECK-LABEL: func.func @rows
// CHECK: %[[ROW:.*]] = memref.subview
// CHECK: memref.copy %[[ROW]], %arg1 : memref<8xf64, strided<[1], offset: 16>> to memref<8xf64>
// CHECK-NOT: scf.for
func.func @rows(%x: memref<4x8xf64>, %y: memref<8xf64>) {
  %row = memref.subview %x[2, 0] [1, 8] [1, 1] : memref<4x8xf64> to memref<8xf64, strided<[1], offset: 16>>
  memref.copy %row, %y : memref<8xf64, strided<[1], offset: 16>> to memref<8xf64>
  return
}

// -----

// CHECK-LABEL: func.func @longer_ones_are_loops
// CHECK: scf.for
// CHECK-NOT: memref.copy
func.func @longer_ones_are_loops(%x: memref<17xf64>, %y: memref<17xf64>) {
  memref.copy %x, %y : memref<17xf64> to memref<17xf64>
  return
}

// -----

// CHECK-LABEL: func.func @columns_are_read_by_element
// CHECK: memref.load
// CHECK-NOT: memref.copy
func.func @columns_are_read_by_element(%x: memref<4x8xf64>, %y: memref<4xf64>) {
  %column = memref.subview %x[0, 3] [4, 1] [1, 1] : memref<4x8xf64> to memref<4xf64, strided<[8], offset: 3>>
  memref.copy %column, %y : memref<4xf64, strided<[8], offset: 3>> to memref<4xf64>
  return
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>

// CHECK-LABEL: func.func @transposes_are_loops
// CHECK: scf.for
// CHECK-NOT: memref.copy
func.func @transposes_are_loops(%x: memref<2x2xf64>, %y: memref<2x2xf64>) {
  linalg.generic {indexing_maps = [#m, #t], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<2x2xf64>) outs(%y : memref<2x2xf64>) {
  ^bb0(%a: f64, %o: f64):
    linalg.yield %a : f64
  }
  return
}

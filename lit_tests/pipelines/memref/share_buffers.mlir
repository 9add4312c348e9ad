// RUN: mlirml-opt %s --split-input-file "--mlirml-share-buffers=least=8" | filecheck %s

// What is computed of the last elements that are read of %a goes there, in loops that sum up as well.

// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = memref.alloc() : memref<4x8xf64>
// CHECK-NOT: memref.alloc
// CHECK: %[[V:.*]] = memref.collapse_shape %[[A]]
// CHECK: %[[W:.*]] = memref.collapse_shape %[[A]]
// CHECK: memref.load %[[V]]
// CHECK: memref.store %{{.*}}, %[[W]]
// CHECK: memref.copy %[[A]], %{{.*}}
func.func @main(%x: memref<4x8xf64>, %sums: memref<4xf64>, %out: memref<4x8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f64
  %a = memref.alloc() : memref<4x8xf64>
  %b = memref.alloc() : memref<4x8xf64>
  memref.copy %x, %a : memref<4x8xf64> to memref<4x8xf64>
  %v = memref.collapse_shape %a [[0, 1]] : memref<4x8xf64> into memref<32xf64>
  %w = memref.collapse_shape %b [[0, 1]] : memref<4x8xf64> into memref<32xf64>
  scf.for %i = %c0 to %c4 step %c1 {
    %row = arith.muli %i, %c8 : index
    %sum = scf.for %j = %c0 to %c8 step %c1 iter_args(%s = %zero) -> (f64) {
      %at = arith.addi %row, %j : index
      %e = memref.load %v[%at] : memref<32xf64>
      %f = arith.mulf %e, %e : f64
      memref.store %f, %w[%at] : memref<32xf64>
      %t = arith.addf %s, %e : f64
      scf.yield %t : f64
    }
    memref.store %sum, %sums[%i] : memref<4xf64>
  }
  memref.copy %b, %out : memref<4x8xf64> to memref<4x8xf64>
  return
}

// -----

// An element that later rounds read again, one that is stored at another place, and a buffer that is read later stay.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-6: memref.alloc
func.func @main(%x: memref<8xf64>, %out: memref<8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %a = memref.alloc() : memref<8xf64>
  %b = memref.alloc() : memref<8xf64>
  %c = memref.alloc() : memref<8xf64>
  %d = memref.alloc() : memref<8xf64>
  %e = memref.alloc() : memref<8xf64>
  %f = memref.alloc() : memref<8xf64>
  memref.copy %x, %a : memref<8xf64> to memref<8xf64>
  scf.for %t = %c0 to %c2 step %c1 {
    scf.for %i = %c0 to %c8 step %c1 {
      %0 = memref.load %a[%i] : memref<8xf64>
      memref.store %0, %b[%i] : memref<8xf64>
    }
  }
  memref.copy %b, %c : memref<8xf64> to memref<8xf64>
  scf.for %i = %c0 to %c7 step %c1 {
    %j = arith.addi %i, %c1 : index
    %0 = memref.load %c[%i] : memref<8xf64>
    memref.store %0, %d[%j] : memref<8xf64>
  }
  memref.copy %d, %e : memref<8xf64> to memref<8xf64>
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %e[%i] : memref<8xf64>
    memref.store %0, %f[%i] : memref<8xf64>
  }
  memref.copy %e, %out : memref<8xf64> to memref<8xf64>
  memref.copy %f, %out : memref<8xf64> to memref<8xf64>
  return
}

// -----

// Rounds of both loops meet at the same element: 2 i + j.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: memref.alloc
func.func @main(%x: memref<16xf64>, %out: memref<16xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() : memref<16xf64>
  %b = memref.alloc() : memref<16xf64>
  memref.copy %x, %a : memref<16xf64> to memref<16xf64>
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      %0 = arith.muli %i, %c2 : index
      %1 = arith.addi %0, %j : index
      %2 = memref.load %a[%1] : memref<16xf64>
      memref.store %2, %b[%1] : memref<16xf64>
    }
  }
  memref.copy %b, %out : memref<16xf64> to memref<16xf64>
  return
}

// RUN: mlirml-opt %s --split-input-file --mlirml-carry-elements | filecheck %s

// CHECK-LABEL: func.func @checked
// CHECK-SAME: (%[[X:.*]]: memref<9xf32>, %[[N:.*]]: index)
// CHECK: %[[START:.*]] = scf.if
// CHECK: %[[J:.*]] = arith.subi
// CHECK: %[[FIRST:.*]] = arith.minui %[[J]]
// CHECK: memref.load %[[X]][%[[FIRST]]]
// CHECK: scf.for {{.*}} iter_args(%[[BEFORE:.*]] = %[[START]])
// CHECK: cf.assert
// CHECK: %[[OLD:.*]] = memref.load
// CHECK-NOT: memref.load
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]], %[[BEFORE]]
// CHECK: memref.store %[[NEW]]
// CHECK: scf.yield %[[NEW]]
func.func @checked(%x: memref<9xf32>, %n: index) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  scf.for %j = %c1 to %n step %c1 {
    %inside = arith.cmpi ult, %j, %c9 : index
    cf.assert %inside, "the index is out of bounds"
    %last = arith.minui %j, %c8 : index
    %j1 = arith.subi %j, %c1 : index
    %first = arith.minui %j1, %c8 : index
    %old = memref.load %x[%last] : memref<9xf32>
    %before = memref.load %x[%first] : memref<9xf32>
    %new = arith.addf %old, %before : f32
    memref.store %new, %x[%last] : memref<9xf32>
  }
  return
}

// -----

// An element that is stored two iterations ago, or that is read after the store, where clamps may make one of both.
// CHECK-LABEL: func.func @other
// CHECK-NOT: iter_args
func.func @other(%x: memref<9xf32>, %y: memref<9xf32>, %n: index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  scf.for %j = %c2 to %n step %c1 {
    %inside = arith.cmpi ult, %j, %c9 : index
    cf.assert %inside, "the index is out of bounds"
    %last = arith.minui %j, %c8 : index
    %j2 = arith.subi %j, %c2 : index
    %first = arith.minui %j2, %c8 : index
    %before = memref.load %x[%first] : memref<9xf32>
    memref.store %before, %x[%last] : memref<9xf32>
  }
  scf.for %j = %c1 to %n step %c1 {
    %inside = arith.cmpi ult, %j, %c9 : index
    cf.assert %inside, "the index is out of bounds"
    %last = arith.minui %j, %c8 : index
    %j1 = arith.subi %j, %c1 : index
    %first = arith.minui %j1, %c8 : index
    %old = memref.load %x[%last] : memref<9xf32>
    memref.store %old, %x[%last] : memref<9xf32>
    %before = memref.load %x[%first] : memref<9xf32>
    memref.store %before, %x[%last] : memref<9xf32>
  }
  return
}

// -----

// Stores into two elements, or into two buffers, which may be one.
// CHECK-LABEL: func.func @stores
// CHECK-NOT: iter_args
func.func @stores(%x: memref<9xf32>, %y: memref<9xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  scf.for %j = %c1 to %n step %c1 {
    %inside = arith.cmpi ult, %j, %c9 : index
    cf.assert %inside, "the index is out of bounds"
    %last = arith.minui %j, %c8 : index
    %j1 = arith.subi %j, %c1 : index
    %first = arith.minui %j1, %c8 : index
    %before = memref.load %x[%first] : memref<9xf32>
    memref.store %before, %x[%last] : memref<9xf32>
    memref.store %before, %y[%last] : memref<9xf32>
  }
  return
}

// -----

// A loop that carries a number already.
// CHECK-LABEL: func.func @carries
// CHECK: %[[BOTH:.*]]:2 = scf.for {{.*}} iter_args(%[[T:.*]] = %{{.*}}, %[[BEFORE:.*]] = %{{.*}})
// CHECK: %[[NEW:.*]] = arith.addf %[[BEFORE]], %[[T]]
// CHECK: scf.yield %{{.*}}, %[[NEW]]
// CHECK: return %[[BOTH]]#0
func.func @carries(%x: memref<9xf32>, %n: index, %t0: f32) -> f32 {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %last_t = scf.for %j = %c1 to %n step %c1 iter_args(%t = %t0) -> (f32) {
    %inside = arith.cmpi ult, %j, %c9 : index
    cf.assert %inside, "the index is out of bounds"
    %last = arith.minui %j, %c8 : index
    %j1 = arith.subi %j, %c1 : index
    %first = arith.minui %j1, %c8 : index
    %before = memref.load %x[%first] : memref<9xf32>
    %new = arith.addf %before, %t : f32
    memref.store %new, %x[%last] : memref<9xf32>
    %next = arith.mulf %t, %t : f32
    scf.yield %next : f32
  }
  return %last_t : f32
}

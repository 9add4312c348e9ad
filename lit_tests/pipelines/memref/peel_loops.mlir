// RUN: mlirml-opt %s --split-input-file --mlirml-peel-loops | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[Y:.*]]: memref<100xf64>, %[[X:.*]]: f64)
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %c1
// CHECK: memref.store %[[X]], %[[Y]][%[[I]]]
// CHECK: scf.for %[[J:.*]] = %c1{{.*}} to %c99
// CHECK: %[[BEFORE:.*]] = arith.subi %[[J]]
// CHECK: %[[OLD:.*]] = memref.load %[[Y]][%[[BEFORE]]]
// CHECK: %[[NEW:.*]] = arith.addf %[[X]], %[[OLD]]
// CHECK: memref.store %[[NEW]], %[[Y]][%[[J]]]
// CHECK: scf.for %[[K:.*]] = %c99{{.*}} to %c100
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK: %[[TWICE:.*]] = arith.addf %[[SUM]], %[[SUM]]
// CHECK: memref.store %[[TWICE]], %[[Y]][%[[K]]]
func.func @main(%y: memref<100xf64>, %x: f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c99 = arith.constant 99 : index
  %c100 = arith.constant 100 : index
  scf.for %i = %c0 to %c100 step %c1 {
    %before = arith.subi %i, %c1 : index
    %is_there = arith.cmpi sge, %before, %c0 : index
    %place = arith.maxsi %before, %c0 : index
    %old = memref.load %y[%place] : memref<100xf64>
    %sum = arith.addf %x, %old : f64
    %new = arith.select %is_there, %sum, %x : f64
    %is_last = arith.cmpi eq, %i, %c99 : index
    %twice = arith.addf %new, %new : f64
    %chosen = arith.select %is_last, %twice, %new : f64
    memref.store %chosen, %y[%i] : memref<100xf64>
  }
  return
}

// -----

// The middle of a loop is no end of it, and a loop of few iterations stays whole.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: scf.for
// CHECK-NOT: scf.for
func.func @main(%y: memref<100xf64>, %x: f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %c50 = arith.constant 50 : index
  %c100 = arith.constant 100 : index
  %zero = arith.constant 0.0 : f64
  scf.for %i = %c0 to %c100 step %c1 {
    %below = arith.cmpi slt, %i, %c50 : index
    %new = arith.select %below, %x, %zero : f64
    memref.store %new, %y[%i] : memref<100xf64>
  }
  scf.for %i = %c0 to %c9 step %c1 {
    %first = arith.cmpi eq, %i, %c0 : index
    %new = arith.select %first, %x, %zero : f64
    memref.store %new, %y[%i] : memref<100xf64>
  }
  return
}

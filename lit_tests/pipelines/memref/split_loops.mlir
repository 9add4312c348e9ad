// RUN: mlirml-opt %s --split-input-file --mlirml-split-loops | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<8x8xf32>, %[[I:.*]]: index, %[[K:.*]]: index)
// CHECK: scf.if
// CHECK-NEXT: %[[A:.*]] = memref.load %[[X]][%[[I]], %[[K]]]
// CHECK-NEXT: scf.for %[[J:.*]] = %c0 to %[[M:[a-z0-9]+]] step
// CHECK-NEXT: memref.load %[[X]][%[[K]], %[[J]]]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: memref.store %{{.*}}, %[[X]][%[[I]], %[[J]]]
// CHECK: scf.for %[[J2:.*]] = %[[M]] to %[[N:[a-z0-9]+]] step
// CHECK: memref.load %[[X]][%[[I]], %[[K]]]
// CHECK: scf.if
// CHECK-NEXT: memref.load %[[X]][%[[I]], %[[K]]]
// CHECK-NEXT: scf.for %{{.*}} = %[[N]] to %c8 step
func.func @main(%x: memref<8x8xf32>, %i: index, %k: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %j = %c0 to %c8 step %c1 {
    %a = memref.load %x[%i, %k] : memref<8x8xf32>
    %b = memref.load %x[%k, %j] : memref<8x8xf32>
    %s = arith.addf %a, %b : f32
    memref.store %s, %x[%i, %j] : memref<8x8xf32>
  }
  return
}

// -----

// A recurrence, and an array that is not stored into.
// CHECK-LABEL: func.func @main
// CHECK-NOT: scf.if
func.func @main(%x: memref<8x8xf32>, %y: memref<8x8xf32>, %i: index, %k: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %j = %c1 to %c8 step %c1 {
    %before = arith.subi %j, %c1 : index
    %a = memref.load %x[%i, %k] : memref<8x8xf32>
    %b = memref.load %x[%i, %before] : memref<8x8xf32>
    %s = arith.addf %a, %b : f32
    memref.store %s, %x[%i, %j] : memref<8x8xf32>
  }
  scf.for %j = %c0 to %c8 step %c1 {
    %a = memref.load %y[%i, %k] : memref<8x8xf32>
    memref.store %a, %x[%i, %j] : memref<8x8xf32>
  }
  return
}

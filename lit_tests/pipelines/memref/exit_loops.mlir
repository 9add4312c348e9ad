// RUN: mlirml-opt %s --split-input-file --mlirml-exit-loops | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: %[[INIT:.*]] = memref.load
// CHECK: %[[N:.*]] = memref.load
// CHECK: %[[R:.*]]:3 = scf.while (%[[I:.*]] = %c0, %[[STOP:.*]] = %false, %[[X:.*]] = %[[INIT]]) : (index, i1, f64) -> (index, i1, f64) {
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[I]], %[[N]]
// CHECK: %[[GO:.*]] = arith.select %[[STOP]], %{{.*}}, %[[MORE]]
// CHECK: scf.condition(%[[GO]]) %[[I]], %[[STOP]], %[[X]]
// CHECK: } do {
// CHECK: ^bb0(%[[J:.*]]: index, %{{.*}}: i1, %[[Y:.*]]: f64):
// CHECK: %[[NEW:.*]] = arith.mulf %[[Y]], %[[Y]]
// CHECK: %[[END:.*]] = arith.cmpf
// CHECK: %[[NEXT:.*]] = arith.addi %[[J]], %c1
// CHECK: scf.yield %[[NEXT]], %[[END]], %[[NEW]]
// CHECK: memref.store %[[R]]#2
func.func @main(%inits: memref<f64>, %ns: memref<index>, %o: memref<f64>) {
  %init = memref.load %inits[] : memref<f64>
  %n = memref.load %ns[] : memref<index>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %false = arith.constant false
  %true = arith.constant true
  %big = arith.constant 1.0e9 : f64
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%stop = %false, %x = %init) -> (i1, f64) {
    %s:2 = scf.if %stop -> (i1, f64) {
      scf.yield %true, %x : i1, f64
    } else {
      %y = arith.mulf %x, %x : f64
      %end = arith.cmpf ogt, %y, %big : f64
      scf.yield %end, %y : i1, f64
    }
    scf.yield %s#0, %s#1 : i1, f64
  }
  memref.store %r#1, %o[] : memref<f64>
  return
}

// -----

// Something is done in the other iterations, or a value changes.

// CHECK-LABEL: func.func @main
// CHECK-NOT: scf.while
func.func @main(%x: memref<8xf64>, %inits: memref<f64>, %o: memref<f64>) {
  %init = memref.load %inits[] : memref<f64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %false = arith.constant false
  %true = arith.constant true
  %q = scf.for %i = %c0 to %c8 step %c1 iter_args(%stop = %false) -> (i1) {
    %a = memref.load %x[%i] : memref<8xf64>
    %s = scf.if %stop -> (i1) {
      memref.store %init, %x[%i] : memref<8xf64>
      scf.yield %true : i1
    } else {
      %end = arith.cmpf ogt, %a, %init : f64
      scf.yield %end : i1
    }
    scf.yield %s : i1
  }
  %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%stop = %q, %y = %init) -> (i1, f64) {
    %s:2 = scf.if %stop -> (i1, f64) {
      scf.yield %true, %init : i1, f64
    } else {
      %z = arith.addf %y, %y : f64
      %end = arith.cmpf ogt, %z, %init : f64
      scf.yield %end, %z : i1, f64
    }
    scf.yield %s#0, %s#1 : i1, f64
  }
  memref.store %r#1, %o[] : memref<f64>
  return
}

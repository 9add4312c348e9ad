// RUN: mlirml-opt %s --split-input-file --mlirml-poll-signals | filecheck %s

// A `while` with a short body polls once in a while; the counter is in memory that LLVM promotes.
// CHECK: func.func private @mlirml_poll()
// CHECK-LABEL: func.func @main
// CHECK: %[[COUNTER:.*]] = memref.alloca() : memref<i32>
// CHECK: } do {
// CHECK: %[[BEFORE:.*]] = memref.load %[[COUNTER]][]
// CHECK: %[[AFTER:.*]] = arith.addi %[[BEFORE]], %{{.*}} : i32
// CHECK: memref.store %[[AFTER]], %[[COUNTER]][]
// CHECK: %[[REST:.*]] = arith.andi %[[AFTER]], %{{.*}} : i32
// CHECK: %[[DUE:.*]] = arith.cmpi eq, %[[REST]], %{{.*}} : i32
// CHECK: scf.if %[[DUE]] {
// CHECK-NEXT: func.call @mlirml_poll() : () -> ()
func.func @main(%start: f64) -> f64 {
  %last = scf.while (%x = %start) : (f64) -> f64 {
    %zero = arith.constant 0.0 : f64
    %going = arith.cmpf ogt, %x, %zero : f64
    scf.condition(%going) %x : f64
  } do {
  ^bb0(%x: f64):
    %next = arith.addf %x, %x : f64
    scf.yield %next : f64
  }
  return %last : f64
}

// -----

// A loop of unknown length with short iterations runs in chunks: what it calls, and inner loops that end soon, too.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[N:.*]]: index, %[[START:.*]]: f64)
// CHECK: %[[SIZE:.*]] = arith.muli
// CHECK: %[[RESULT:.*]] = scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[SUM:.*]] = %[[START]])
// CHECK-NEXT: func.call @mlirml_poll()
// CHECK: %[[OFFSET:.*]] = arith.muli %[[K]], %[[SIZE]]
// CHECK: %[[FIRST:.*]] = arith.addi %{{.*}}, %[[OFFSET]]
// CHECK: %[[LEFT:.*]] = arith.subi %[[N]], %[[FIRST]]
// CHECK: %[[COUNT:.*]] = arith.minsi %[[LEFT]], %[[SIZE]]
// CHECK: %[[END:.*]] = arith.addi %[[FIRST]], %[[COUNT]]
// CHECK: %[[PART:.*]] = scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %{{.*}} iter_args(%{{.*}} = %[[SUM]])
// CHECK-NOT: call @mlirml_poll
// CHECK: scf.yield %[[PART]]
// CHECK: return %[[RESULT]]
func.func @main(%n: index, %start: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %start) -> (f64) {
    %more = scf.for %j = %c0 to %c3 step %c1 iter_args(%p = %s) -> (f64) {
      %twice = func.call @twice(%p) : (f64) -> f64
      scf.yield %twice : f64
    }
    scf.yield %more : f64
  }
  return %sum : f64
}
func.func private @twice(%x: f64) -> f64 {
  %r = arith.addf %x, %x : f64
  return %r : f64
}

// -----

// Short loops are left alone, and `scf.parallel`, of which functions are made before.
// CHECK-LABEL: func.func @main
// CHECK-NOT: call @mlirml_poll
func.func @main(%n: index, %x: memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %one = arith.constant 1.0 : f64
  scf.for %i = %c0 to %c9 step %c1 {
    memref.store %one, %x[%i] : memref<?xf64>
  }
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    scf.for %j = %c0 to %n step %c1 {
      memref.store %one, %x[%j] : memref<?xf64>
    }
  }
  return
}

// -----

// Where a loop that is known to be long is inside of a short one, the inner one polls.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK-NOT: call @mlirml_poll
// CHECK: scf.for
// CHECK: func.call @mlirml_poll()
// CHECK: scf.for
func.func @main(%x: memref<f64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %many = arith.constant 1000000000000 : index
  scf.for %i = %c0 to %c3 step %c1 {
    scf.for %j = %c0 to %many step %c1 {
      %old = memref.load %x[] : memref<f64>
      %new = arith.addf %old, %old : f64
      memref.store %new, %x[] : memref<f64>
    }
  }
  return
}

// -----

// The part of a parallel loop that a thread runs polls, too.
// CHECK-LABEL: func.func @main
// CHECK-NOT: call @mlirml_poll
// CHECK: call @main.parallel0
// CHECK-LABEL: func.func private @main.parallel0
// CHECK: scf.while
// CHECK: func.call @mlirml_poll()
func.func @main(%n: index, %x: memref<?xf64>) {
  %c0 = arith.constant 0 : index
  call @main.parallel0(%c0, %n, %x) {mlirml.parallel_for = 64 : i64} : (index, index, memref<?xf64>) -> ()
  return
}
func.func private @main.parallel0(%first: index, %end: index, %x: memref<?xf64>) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  scf.for %i = %first to %end step %c1 {
    %start = memref.load %x[%i] : memref<?xf64>
    %last = scf.while (%s = %start) : (f64) -> f64 {
      %goes_on = arith.cmpf ogt, %s, %zero : f64
      scf.condition(%goes_on) %s : f64
    } do {
    ^bb0(%s: f64):
      %next = arith.mulf %s, %s : f64
      scf.yield %next : f64
    }
    memref.store %last, %x[%i] : memref<?xf64>
  }
  return
}

// -----

// A loop whose end is at most a constant is no longer than that.
// CHECK-LABEL: func.func @main
// CHECK-NOT: call @mlirml_poll
// CHECK: return
func.func @main(%n: index, %x: memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f64
  %end = arith.minsi %n, %c8 : index
  scf.for %i = %c0 to %end step %c1 {
    memref.store %zero, %x[%i] : memref<?xf64>
  }
  return
}

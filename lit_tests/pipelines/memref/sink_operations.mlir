// RUN: mlirml-opt %s --split-input-file --mlirml-sink-operations | filecheck %s

// An element that others depend on: the exponential is computed for those that need it.

// CHECK-LABEL: func.func @main
// CHECK: %[[ALWAYS:.*]] = arith.cmpf ole
// CHECK-NOT: math.exp
// CHECK: %[[TAKEN:.*]] = scf.if %[[ALWAYS]] -> (i1) {
// CHECK: scf.yield %true
// CHECK: } else {
// CHECK: %[[U:.*]] = memref.load
// CHECK: %[[E:.*]] = math.exp
// CHECK: %[[BELOW:.*]] = arith.cmpf olt, %[[U]], %[[E]]
// CHECK: scf.yield %[[BELOW]]
// CHECK: arith.select %[[TAKEN]]
func.func @main(%x: memref<9xf64>, %u: memref<8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f64
  %true = arith.constant true
  scf.for %i = %c0 to %c8 step %c1 {
    %n = arith.addi %i, %c1 : index
    %a = memref.load %x[%i] : memref<9xf64>
    %always = arith.cmpf ole, %a, %zero : f64
    %b = memref.load %u[%i] : memref<8xf64>
    %e = math.exp %a : f64
    %below = arith.cmpf olt, %b, %e : f64
    %taken = arith.select %always, %true, %below : i1
    %new = arith.select %taken, %a, %zero : f64
    memref.store %new, %x[%n] : memref<9xf64>
  }
  return
}

// -----

// Selects by one condition share a branch, and what is in it has branches of its own.

// CHECK-LABEL: func.func @main
// CHECK: scf.for {{.*}} iter_args(%[[NEAREST:.*]] = %{{.*}}, %[[SHADE:.*]] = %{{.*}})
// CHECK: %[[HIT:.*]] = arith.cmpf ogt
// CHECK: %[[R:.*]]:2 = scf.if %[[HIT]] -> (f64, f64) {
// CHECK: math.log
// CHECK: %[[CLOSER:.*]] = arith.cmpf olt
// CHECK: scf.if %[[CLOSER]]
// CHECK: math.exp
// CHECK: } else {
// CHECK: scf.yield %[[NEAREST]], %[[SHADE]]
// CHECK: scf.yield %[[R]]#0, %[[R]]#1
func.func @main(%x: memref<8xf64>, %starts: memref<f64>, %o: memref<f64>, %p: memref<f64>) {
  %start = memref.load %starts[] : memref<f64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f64
  %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%nearest = %start, %shade = %zero) -> (f64, f64) {
    %a = memref.load %x[%i] : memref<8xf64>
    %hit = arith.cmpf ogt, %a, %zero : f64
    %t = math.log %a : f64
    %closer = arith.cmpf olt, %t, %nearest : f64
    %e = math.exp %t : f64
    %near = arith.select %closer, %t, %nearest : f64
    %lit = arith.select %closer, %e, %shade : f64
    %near1 = arith.select %hit, %near, %nearest : f64
    %lit1 = arith.select %hit, %lit, %shade : f64
    scf.yield %near1, %lit1 : f64, f64
  }
  memref.store %r#0, %o[] : memref<f64>
  memref.store %r#1, %p[] : memref<f64>
  return
}

// -----

// Elements that do not wait for each other are computed in vectors; one division takes less than a branch.

// CHECK-LABEL: func.func @main
// CHECK-NOT: scf.if
func.func @main(%x: memref<8xf64>, %y: memref<8xf64>, %o: memref<f64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f64
  scf.for %i = %c0 to %c8 step %c1 {
    %a = memref.load %x[%i] : memref<8xf64>
    %always = arith.cmpf ole, %a, %zero : f64
    %e = math.exp %a : f64
    %new = arith.select %always, %a, %e : f64
    memref.store %new, %y[%i] : memref<8xf64>
  }
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero) -> (f64) {
    %a = memref.load %x[%i] : memref<8xf64>
    %big = arith.cmpf ogt, %s, %a : f64
    %d = arith.divf %s, %a : f64
    %next = arith.select %big, %d, %a : f64
    scf.yield %next : f64
  }
  memref.store %r, %o[] : memref<f64>
  return
}

// -----

// What is loaded before a store stays before it, and both sides need the root.

// CHECK-LABEL: func.func @main
// CHECK: memref.load
// CHECK: math.sqrt
// CHECK: memref.store
// CHECK: scf.if
// CHECK: math.exp
func.func @main(%x: memref<9xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f64
  scf.for %i = %c0 to %c8 step %c1 {
    %n = arith.addi %i, %c1 : index
    %a = memref.load %x[%i] : memref<9xf64>
    %some = arith.cmpf ole, %a, %zero : f64
    %next = memref.load %x[%n] : memref<9xf64>
    %root = math.sqrt %a : f64
    memref.store %zero, %x[%n] : memref<9xf64>
    %sum = arith.addf %root, %next : f64
    %e = math.exp %sum : f64
    %new = arith.select %some, %root, %e : f64
    memref.store %new, %x[%i] : memref<9xf64>
  }
  return
}

// -----

// Nothing is saved where the condition is nearly always the same.

// CHECK-LABEL: func.func @main
// CHECK-NOT: scf.if
func.func @main(%x: memref<8xf64>, %o: memref<f64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f64
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero) -> (f64) {
    %a = memref.load %x[%i] : memref<8xf64>
    %same = arith.cmpf oeq, %s, %a : f64
    %nan = arith.cmpf uno, %s, %s : f64
    %both = arith.andi %same, %nan : i1
    %e = math.exp %a : f64
    %next = arith.select %both, %s, %e : f64
    scf.yield %next : f64
  }
  memref.store %r, %o[] : memref<f64>
  return
}

// -----

// What is chosen by the condition of a store is computed in its branch; a store of a choice of choices is under two.
// CHECK-LABEL: func.func @chosen
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[N:.*]] = %{{.*}})
// CHECK: %[[C:.*]] = arith.cmpi
// CHECK-NEXT: scf.if %[[C]] {
// CHECK-NEXT: %[[D:.*]] = arith.cmpi
// CHECK-NEXT: scf.if %[[D]] {
// CHECK: memref.store
// CHECK: %[[M:.*]] = scf.if %[[C]] -> (i64)
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[N]]
// CHECK-NEXT: scf.yield %[[NEXT]]
// CHECK: scf.yield %[[M]] : i64
func.func @chosen(%x: memref<8xi64>, %y: memref<8xi64>) -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%n = %zero) -> (i64) {
    %a = memref.load %x[%i] : memref<8xi64>
    %c = arith.cmpi slt, %a, %n : i64
    %d = arith.cmpi slt, %a, %one : i64
    %old = memref.load %y[%i] : memref<8xi64>
    %inner = arith.select %d, %n, %old : i64
    %new = arith.select %c, %inner, %old : i64
    memref.store %new, %y[%i] : memref<8xi64>
    %next = arith.addi %n, %one : i64
    %m = arith.select %c, %next, %n : i64
    scf.yield %m : i64
  }
  return %r : i64
}

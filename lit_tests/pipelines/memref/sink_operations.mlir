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
// CHECK-NEXT: %[[M:.*]] = scf.if %[[C]] -> (i64) {
// CHECK-NEXT: %[[D:.*]] = arith.cmpi
// CHECK-NEXT: scf.if %[[D]] {
// CHECK: memref.store
// CHECK: %[[NEXT:.*]] = arith.addi %[[N]]
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

// -----

// A word ends at a space, which few of the letters are: its side is skipped for the others, though it is fast.
// CHECK-LABEL: func.func @words
// CHECK: %[[SPACE:.*]] = arith.cmpi eq
// CHECK-NEXT: scf.if %[[SPACE]] -> (i64, i64, i64) {
// CHECK: arith.maxsi
// CHECK: } else {
// CHECK-NEXT: arith.addi
// CHECK-NEXT: scf.yield
// CHECK-NOT: arith.select
func.func @words(%text: memref<90xi8>, %space: i8) -> (i64, i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c90 = arith.constant 90 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %r:3 = scf.for %i = %c0 to %c90 step %c1 iter_args(%n = %zero, %m = %zero, %k = %zero) -> (i64, i64, i64) {
    %a = memref.load %text[%i] : memref<90xi8>
    %at = arith.cmpi eq, %a, %space : i8
    %some = arith.cmpi sgt, %k, %zero : i64
    %some64 = arith.extui %some : i1 to i64
    %n1 = arith.addi %n, %some64 : i64
    %n2 = arith.select %at, %n1, %n : i64
    %m1 = arith.maxsi %k, %m : i64
    %m2 = arith.muli %some64, %m1 : i64
    %m3 = arith.select %at, %m2, %m : i64
    %k1 = arith.addi %k, %one : i64
    %k2 = arith.select %at, %zero, %k1 : i64
    scf.yield %n2, %m3, %k2 : i64, i64, i64
  }
  return %r#0, %r#1 : i64, i64
}

// -----

// One choice of two numbers is none of many operations.
// CHECK-LABEL: func.func @match
// CHECK-NOT: scf.if
func.func @match(%a: memref<9xi64>, %b: i64) -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%n = %zero) -> (i64) {
    %v = memref.load %a[%i] : memref<9xi64>
    %same = arith.cmpi eq, %v, %b : i64
    %more = arith.addi %n, %one : i64
    %next = arith.select %same, %more, %n : i64
    %less = arith.cmpi slt, %next, %v : i64
    %last = arith.select %less, %next, %v : i64
    scf.yield %last : i64
  }
  return %r : i64
}

// -----

// Branches by one condition and by its negation are one.
// CHECK-LABEL: func.func @joined
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: memref.store %[[A:.*]], %{{.*}}[%{{.*}}] : memref<9xi64>
// CHECK-NEXT: memref.store %[[A]], %{{.*}}[%{{.*}}] : memref<9xi64>
// CHECK-NEXT: } else {
// CHECK-NEXT: memref.store %{{.*}} : memref<8xi64>
// CHECK-NEXT: }
// CHECK-NOT: scf.if
func.func @joined(%x: memref<9xi64>, %y: memref<9xi64>, %z: memref<8xi64>, %limit: i64) -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %true = arith.constant true
  %zero = arith.constant 0 : i64
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%n = %zero) -> (i64) {
    %a = memref.load %x[%i] : memref<9xi64>
    %c = arith.cmpi slt, %a, %n : i64
    scf.if %c {
      memref.store %a, %x[%c1] : memref<9xi64>
    }
    %not = arith.xori %c, %true : i1
    scf.if %not {
      memref.store %a, %z[%i] : memref<8xi64>
    }
    scf.if %c {
      memref.store %a, %y[%i] : memref<9xi64>
    }
    %next = arith.addi %n, %a : i64
    %wrapped = arith.divsi %next, %limit : i64
    scf.yield %wrapped : i64
  }
  return %r : i64
}

// RUN: mlirml-opt %s --split-input-file --mlirml-lower-asserts | filecheck %s

// CHECK: func.func private @mlirml_check_failed(i64)

// A check of @main returns at once.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[OK:.*]]: i1, %[[OTHER:.*]]: i1, %{{.*}}: memref<f32>)
// CHECK: cf.cond_br %[[OK]], ^[[NEXT:.*]], ^[[FIRST:.*]]
// CHECK: ^[[NEXT]]:
// CHECK: cf.cond_br %[[OTHER]], ^[[REST:.*]], ^[[SECOND:.*]]
// CHECK: ^[[FIRST]]:
// CHECK: %[[NUMBER:.*]] = arith.constant 3 : i64
// CHECK: call @mlirml_check_failed(%[[NUMBER]]) : (i64) -> ()
// CHECK-NEXT: return
// CHECK: ^[[REST]]:
// CHECK: memref.store
// CHECK-NEXT: return
// CHECK: ^[[SECOND]]:
// CHECK: arith.constant 4 : i64
// CHECK-NOT: cf.assert
func.func @main(%ok: i1, %other: i1, %x: memref<f32>) {
  %one = arith.constant 1.0 : f32
  cf.assert %ok, "an index is out of bounds" {mlirml.check = 3 : i64}
  cf.assert %other, "an index is out of bounds" {mlirml.check = 4 : i64}
  memref.store %one, %x[] : memref<f32>
  return
}

// -----

// Inside of a loop, and in other functions, the program goes on.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK: %[[FAILED:.*]] = arith.xori %{{.*}}, %{{.*}} : i1
// CHECK: scf.if %[[FAILED]] {
// CHECK: %[[NONE:.*]] = arith.constant -1 : i64
// CHECK: func.call @mlirml_check_failed(%[[NONE]])
func.func @main(%oks: memref<8xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %ok = memref.load %oks[%i] : memref<8xi1>
    cf.assert %ok, "no number"
  }
  return
}

// CHECK-LABEL: func.func @part
// CHECK: scf.if
func.func @part(%ok: i1) {
  cf.assert %ok, "an index is out of bounds" {mlirml.check = 3 : i64}
  return
}

// -----

// A `while` ends after a failed check.
// CHECK-LABEL: func.func @main
// CHECK: %[[GOING:.*]] = memref.alloca() : memref<i1>
// CHECK: memref.store %true{{.*}}, %[[GOING]][] : memref<i1>
// CHECK: scf.while
// CHECK: scf.if
// CHECK: func.call @mlirml_check_failed
// CHECK: memref.store %false{{.*}}, %[[GOING]][] : memref<i1>
// CHECK: %[[NONE_FAILED:.*]] = memref.load %[[GOING]][] : memref<i1>
// CHECK: %[[BOTH:.*]] = arith.andi %{{.*}}, %[[NONE_FAILED]] : i1
// CHECK: scf.condition(%[[BOTH]])
func.func @main(%oks: memref<8xi1>, %more: memref<8xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.while (%i = %c0) : (index) -> index {
    %ok = memref.load %oks[%i] : memref<8xi1>
    cf.assert %ok, "no number" {mlirml.check = 1 : i64}
    %proceed = memref.load %more[%i] : memref<8xi1>
    scf.condition(%proceed) %i : index
  } do {
  ^bb0(%i: index):
    %next = arith.addi %i, %c1 : index
    scf.yield %next : index
  }
  return
}

// -----

// What a check about a number reports has that number in its upper bits.
// CHECK-LABEL: func.func @main
// CHECK: cf.cond_br
// CHECK: %[[CHECK:.*]] = arith.constant 3 : i64
// CHECK: %[[INDEX:.*]] = arith.subi %{{.*}}, %{{.*}} : i32
// CHECK: %[[WIDE:.*]] = arith.extsi %[[INDEX]] : i32 to i64
// CHECK: arith.muli
// CHECK: %[[CODE:.*]] = arith.ori %{{.*}}, %[[CHECK]] : i64
// CHECK: call @mlirml_check_failed(%[[CODE]])
func.func @main(%index: i32) {
  %five = arith.constant 5 : i32
  %ten = arith.constant 10 : i32
  %moved = arith.addi %index, %five : i32
  %inside = arith.cmpi ult, %moved, %ten : i32
  cf.assert %inside, "an index is out of bounds" {mlirml.check = 3 : i64, mlirml.check_base = 5 : i64}
  return
}

// RUN: mlirml-opt %s --mlirml-collect-checks | filecheck %s

// A `while` of a function that goes on ends after a failed check, which is told behind it.
// CHECK-LABEL: func.func @part
// CHECK: %[[CELL:.*]] = memref.alloca() : memref<i1>
// CHECK: scf.while
// CHECK: arith.maxui
// CHECK: memref.store %{{.*}}, %[[CELL]][] : memref<i1>
// CHECK: %[[SO_FAR:.*]] = memref.load %[[CELL]][] : memref<i1>
// CHECK: %[[PASSED:.*]] = arith.cmpi ult, %[[SO_FAR]]
// CHECK: %[[BOTH:.*]] = arith.andi %{{.*}}, %[[PASSED]] : i1
// CHECK: scf.condition(%[[BOTH]])
// CHECK: } do {
// CHECK: memref.load %[[CELL]][] : memref<i1>
// CHECK: cf.assert
func.func @part(%oks: memref<8xi1>, %more: memref<8xi1>) {
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

// @main returns where its check fails.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK: cf.assert
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

// A check outside of all loops and branches is left as it is, if its function has no `while`.
// CHECK-LABEL: func.func @plain
// CHECK-NEXT: cf.assert %arg0, "no number" {mlirml.check = 2 : i64}
// CHECK-NEXT: return
func.func @plain(%ok: i1) {
  cf.assert %ok, "no number" {mlirml.check = 2 : i64}
  return
}

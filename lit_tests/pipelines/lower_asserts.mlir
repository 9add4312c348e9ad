// RUN: mlirml-opt %s --mlirml-lower-asserts | filecheck %s

// CHECK: func.func private @mlirml_check_failed(i64)

// CHECK-LABEL: func.func @numbered
// CHECK-SAME: (%[[OK:.*]]: i1)
// CHECK: %[[FAILED:.*]] = arith.xori %[[OK]], %{{.*}} : i1
// CHECK: scf.if %[[FAILED]] {
// CHECK: %[[NUMBER:.*]] = arith.constant 3 : i64
// CHECK: func.call @mlirml_check_failed(%[[NUMBER]]) : (i64) -> ()
// CHECK-NOT: cf.assert
func.func @numbered(%ok: i1) {
  cf.assert %ok, "an index is out of bounds" {mlirml.check = 3 : i64}
  return
}

// CHECK-LABEL: func.func @in_a_loop
// CHECK: scf.for
// CHECK: scf.if
// CHECK: %[[NONE:.*]] = arith.constant -1 : i64
// CHECK: func.call @mlirml_check_failed(%[[NONE]])
func.func @in_a_loop(%oks: memref<8xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %ok = memref.load %oks[%i] : memref<8xi1>
    cf.assert %ok, "no number"
  }
  return
}

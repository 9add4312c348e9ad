// RUN: mlirml-opt %s --mlirml-promote-scalars --split-input-file | filecheck %s

// CHECK-LABEL: func.func @counts_up
// CHECK: %[[R:.*]] = scf.for %[[I:.*]] = %c0 to %c8 step %c1 iter_args(%[[X:.*]] = %arg0)
// CHECK: tensor.insert {{.*}} into %[[X]][%[[I]]]
// CHECK: return %[[R]]
func.func @counts_up(%x0: tensor<8xi64>) -> tensor<8xi64> {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c8 = arith.constant 8 : i64
  %r:2 = scf.while (%x = %x0, %i = %c0) : (tensor<8xi64>, i64) -> (tensor<8xi64>, i64) {
    %going_on = arith.cmpi slt, %i, %c8 : i64
    scf.condition(%going_on) %x, %i : tensor<8xi64>, i64
  } do {
  ^bb0(%x: tensor<8xi64>, %i: i64):
    %p = arith.index_cast %i : i64 to index
    %y = tensor.insert %i into %x[%p] : tensor<8xi64>
    %j = arith.addi %i, %c1 : i64
    scf.yield %y, %j : tensor<8xi64>, i64
  }
  return %r#0 : tensor<8xi64>
}

// -----

// The counter ends at the limit, or where it began if that is greater. What is passed on comes in another order.
// CHECK-LABEL: func.func @ends_at_the_limit
// CHECK: %[[S:.*]] = scf.for %{{.*}} = %[[A:.*]] to %[[B:.*]] step %c1 iter_args(%{{.*}} = %c0_i64) -> (i64)
// CHECK: %[[END:.*]] = arith.maxsi %[[A]], %[[B]] : index
// CHECK: %[[I:.*]] = arith.index_cast %[[END]] : index to i64
// CHECK: return %[[S]], %[[I]]
func.func @ends_at_the_limit(%a: i64, %b: i64) -> (i64, i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %r:2 = scf.while (%i = %a, %s = %c0) : (i64, i64) -> (i64, i64) {
    %going_on = arith.cmpi sgt, %b, %i : i64
    scf.condition(%going_on) %s, %i : i64, i64
  } do {
  ^bb0(%s: i64, %i: i64):
    %t = arith.muli %s, %i : i64
    %j = arith.addi %i, %c1 : i64
    scf.yield %j, %t : i64, i64
  }
  return %r#0, %r#1 : i64, i64
}

// -----

// By more than one, only towards a limit that is known not to be near the greatest number.
// CHECK-LABEL: func.func @may_wrap
// CHECK: scf.while
func.func @may_wrap(%b: i64) -> i64 {
  %c0 = arith.constant 0 : i64
  %c3 = arith.constant 3 : i64
  %r = scf.while (%i = %c0) : (i64) -> i64 {
    %going_on = arith.cmpi slt, %i, %b : i64
    scf.condition(%going_on) %i : i64
  } do {
  ^bb0(%i: i64):
    %j = arith.addi %i, %c3 : i64
    scf.yield %j : i64
  }
  return %r : i64
}

// -----

// A loop that another condition ends, too, stays a `while`; its indices are in bounds all the same.
// CHECK-LABEL: func.func @ends_early
// CHECK: scf.while
// CHECK-NOT: cf.assert
func.func @ends_early(%x: tensor<8xi64>) -> i64 {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c8 = arith.constant 8 : i64
  %false = arith.constant false
  %r = scf.while (%i = %c0) : (i64) -> i64 {
    %inside = arith.cmpi slt, %i, %c8 : i64
    %going_on = scf.if %inside -> (i1) {
      %ok = arith.cmpi ult, %i, %c8 : i64
      cf.assert %ok, "the index is out of bounds"
      %p = arith.index_cast %i : i64 to index
      %a = tensor.extract %x[%p] : tensor<8xi64>
      %found = arith.cmpi ne, %a, %c0 : i64
      scf.yield %found : i1
    } else {
      scf.yield %false : i1
    }
    scf.condition(%going_on) %i : i64
  } do {
  ^bb0(%i: i64):
    %ok = arith.cmpi ult, %i, %c8 : i64
    cf.assert %ok, "the index is out of bounds"
    %j = arith.addi %i, %c1 : i64
    scf.yield %j : i64
  }
  return %r : i64
}

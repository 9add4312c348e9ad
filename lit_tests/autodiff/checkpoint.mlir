// RUN: mlirml-opt %s --split-input-file --mlirml-checkpoint --canonicalize | filecheck %s

// A loop in a function that is computed again goes over segments of the square root of its rounds.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[C32:.*]] = arith.constant 32 : index
// CHECK: %[[R:.*]] = scf.for %[[S:.*]] = %{{.*}} to %{{.*}} step %[[C32]] iter_args(%[[C:.*]] = %{{.*}})
// CHECK: %[[NEXT:.*]] = arith.addi %[[S]], %[[C32]]
// CHECK: %[[END:.*]] = arith.minsi %[[NEXT]]
// CHECK: scf.for %{{.*}} = %[[S]] to %[[END]] step %{{.*}} iter_args(%{{.*}} = %[[C]])
// CHECK: math.sin
// CHECK: mlirml.levels = 1 : i64, mlirml.max_trip_count = 32 : i64
// CHECK: mlirml.levels = 1 : i64, mlirml.max_trip_count = 32 : i64
// CHECK: "mlirml.again_output"(%[[R]])
func.func @main(%x: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1000 : index
  %0 = "mlirml.again_input"(%x) {group = 0 : i64, policy = "nothing"} : (f64) -> f64
  %1 = scf.for %i = %c0 to %n step %c1 iter_args(%c = %0) -> (f64) {
    %3 = math.sin %c : f64
    scf.yield %3 : f64
  }
  %2 = "mlirml.again_output"(%1) {group = 0 : i64, policy = "nothing"} : (f64) -> f64
  return %2 : f64
}

// -----

// One outside of it stays whole, and so does one in a function that keeps the results of contractions.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: "mlirml.again_input"
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @main(%x: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1000 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%c = %x) -> (f64) {
    %4 = math.sin %c : f64
    scf.yield %4 : f64
  }
  %1 = "mlirml.again_input"(%0) {group = 0 : i64, policy = "contractions"} : (f64) -> f64
  %2 = scf.for %i = %c0 to %n step %c1 iter_args(%c = %1) -> (f64) {
    %4 = math.sin %c : f64
    scf.yield %4 : f64
  }
  %3 = "mlirml.again_output"(%2) {group = 0 : i64, policy = "contractions"} : (f64) -> f64
  return %3 : f64
}

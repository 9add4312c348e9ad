// RUN: mlirml-opt %s --split-input-file --mlirml-distribute-factors | filecheck %s

// The next iteration waits for one multiply-add; the element that was stored before is the sum.

// CHECK-LABEL: func.func @smooth(
// CHECK:         scf.for %{{.*}} iter_args(%[[BEFORE:.*]] = %{{.*}}) -> (f64)
// CHECK:           %[[A:.*]] = memref.load
// CHECK:           %[[QUOTIENT:.*]] = arith.divf %[[A]], %{{.*}} : f64
// CHECK:           %[[PRODUCT:.*]] = arith.mulf %[[BEFORE]], %{{.*}} fastmath<contract> : f64
// CHECK:           %[[NEW:.*]] = arith.addf %[[QUOTIENT]], %[[PRODUCT]] fastmath<contract> : f64
// CHECK:           memref.store %[[NEW]]
// CHECK:           scf.yield %[[NEW]]
func.func @smooth(%x: memref<50xf64>, %start: f64) {
  %c1 = arith.constant 1 : index
  %c50 = arith.constant 50 : index
  %c9 = arith.constant 9.0 : f64
  %last = scf.for %j = %c1 to %c50 step %c1 iter_args(%before = %start) -> (f64) {
    %a = memref.load %x[%j] : memref<50xf64>
    %sum = arith.addf %a, %before : f64
    memref.store %sum, %x[%j] : memref<50xf64>
    %again = memref.load %x[%j] : memref<50xf64>
    %new = arith.divf %again, %c9 : f64
    memref.store %new, %x[%j] : memref<50xf64>
    scf.yield %new : f64
  }
  return
}

// -----

// The order of a difference stays.

// CHECK-LABEL: func.func @difference(
// CHECK:         scf.for %{{.*}} iter_args(%[[BEFORE:.*]] = %{{.*}}) -> (f32)
// CHECK:           %[[EARLY:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK:           %[[LATE:.*]] = arith.mulf %[[BEFORE]], %{{.*}} fastmath<contract> : f32
// CHECK:           arith.subf %[[LATE]], %[[EARLY]] fastmath<contract> : f32
func.func @difference(%x: memref<50xf32>, %start: f32) -> f32 {
  %c1 = arith.constant 1 : index
  %c50 = arith.constant 50 : index
  %factor = arith.constant 0.9 : f32
  %last = scf.for %j = %c1 to %c50 step %c1 iter_args(%before = %start) -> (f32) {
    %a = memref.load %x[%j] : memref<50xf32>
    %sum = arith.subf %before, %a : f32
    %new = arith.mulf %factor, %sum : f32
    scf.yield %new : f32
  }
  return %last : f32
}

// -----

// Both terms are loop-carried; the reciprocal would be subnormal.

// CHECK-LABEL: func.func @unchanged(
// CHECK:         arith.addf %[[A:.*]], %[[B:.*]] : f64
// CHECK-NEXT:    arith.divf
// CHECK:         arith.addf
// CHECK-NEXT:    arith.divf
func.func @unchanged(%x: memref<50xf64>, %start: f64) -> (f64, f64) {
  %c1 = arith.constant 1 : index
  %c50 = arith.constant 50 : index
  %three = arith.constant 3.0 : f64
  %large = arith.constant 1.0e300 : f64
  %last:2 = scf.for %j = %c1 to %c50 step %c1 iter_args(%a = %start, %b = %start) -> (f64, f64) {
    %sum = arith.addf %a, %b : f64
    %new = arith.divf %sum, %three : f64
    %e = memref.load %x[%j] : memref<50xf64>
    %other = arith.addf %b, %e : f64
    %small = arith.divf %other, %large : f64
    scf.yield %new, %small : f64, f64
  }
  return %last#0, %last#1 : f64, f64
}

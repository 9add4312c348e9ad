// RUN: mlirml-opt %s --split-input-file --mlirml-fold-guards | filecheck %s

// The product of a factor and a constant is zero where the factor is.
// CHECK-LABEL: func.func @constants
// CHECK: %[[X:.*]] = arith.mulf %arg0, %{{.*}} : f64
// CHECK: %[[Y:.*]] = arith.negf %[[X]] : f64
// CHECK-NOT: arith.select
// CHECK: return %[[Y]], %arg0
func.func @constants(%w: f64, %p: i1) -> (f64, f64) {
  %c0 = arith.constant 0.0 : f64
  %c2 = arith.constant 2.0 : f64
  %zero = arith.cmpf oeq, %w, %c0 : f64
  %dead = arith.andi %p, %zero : i1
  %x = arith.mulf %w, %c2 : f64
  %y = arith.negf %x : f64
  %a = arith.select %dead, %c0, %y : f64
  %b = arith.select %zero, %c0, %w : f64
  return %a, %b : f64, f64
}

// -----

// Infinity times zero is NaN, another factor may be infinite, a sum is not zero, and an unordered test holds for NaN.
// CHECK-LABEL: func.func @others
// CHECK: arith.select
// CHECK: arith.select
// CHECK: arith.select
// CHECK: arith.select
func.func @others(%w: f64, %v: f64) -> (f64, f64, f64, f64) {
  %c0 = arith.constant 0.0 : f64
  %c2 = arith.constant 2.0 : f64
  %inf = arith.constant 0x7FF0000000000000 : f64
  %zero = arith.cmpf oeq, %w, %c0 : f64
  %unordered = arith.cmpf ueq, %w, %c0 : f64
  %0 = arith.mulf %w, %inf : f64
  %1 = arith.mulf %w, %v : f64
  %2 = arith.addf %w, %c2 : f64
  %a = arith.select %zero, %c0, %0 : f64
  %b = arith.select %zero, %c0, %1 : f64
  %c = arith.select %zero, %c0, %2 : f64
  %d = arith.select %unordered, %c0, %w : f64
  return %a, %b, %c, %d : f64, f64, f64, f64
}

// RUN: mlirml-opt %s --split-input-file --mlirml-predict-selects | filecheck %s

// The next sample waits for two exponentials of the last one: its choice is predicted.
// CHECK-LABEL: func.func @samples
// CHECK:       %[[BETTER:.*]] = arith.cmpf olt
// CHECK-NEXT:  %[[NEXT:.*]] = scf.execute_region -> f64 no_inline {
// CHECK-NEXT:    cf.cond_br %[[BETTER]] weights([1, 2000]), ^[[A:.*]], ^[[B:.*]]
// CHECK-NEXT:  ^[[A]]:
// CHECK-NEXT:    scf.yield %{{.*}} : f64
// CHECK-NEXT:  ^[[B]]:
// CHECK-NEXT:    scf.yield %{{.*}} : f64
// CHECK-NEXT:  }
// CHECK-NEXT:  scf.yield %[[NEXT]] : f64
func.func @samples(%steps: memref<90xf64>, %chances: memref<90xf64>, %start: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c90 = arith.constant 90 : index
  %r = scf.for %i = %c0 to %c90 step %c1 iter_args(%x = %start) -> (f64) {
    %step = memref.load %steps[%i] : memref<90xf64>
    %u = memref.load %chances[%i] : memref<90xf64>
    %y = arith.addf %x, %step : f64
    %a = math.exp %y : f64
    %b = math.log1p %a : f64
    %better = arith.cmpf olt, %u, %b : f64
    %next = arith.select %better, %y, %x : f64
    scf.yield %next : f64
  }
  return %r : f64
}

// -----

// The condition does not wait for the last iteration, or not long, or what it chooses is not carried.
// CHECK-LABEL: func.func @others
// CHECK-NOT:   scf.execute_region
func.func @others(%levels: memref<90xf64>, %out: memref<90xf64>, %start: f64) -> (f64, f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c90 = arith.constant 90 : index
  %half = arith.constant 0.5 : f64
  %r:2 = scf.for %i = %c0 to %c90 step %c1 iter_args(%x = %start, %z = %start) -> (f64, f64) {
    %level = memref.load %levels[%i] : memref<90xf64>
    %a = math.exp %level : f64
    %b = math.log1p %a : f64
    %high = arith.cmpf olt, %half, %b : f64
    %first = arith.select %high, %level, %x : f64
    %above = arith.cmpf olt, %x, %level : f64
    %factor = arith.select %above, %half, %level : f64
    %next = arith.mulf %first, %factor : f64
    %e = math.exp %z : f64
    %l = math.log1p %e : f64
    %low = arith.cmpf olt, %l, %half : f64
    %kept = arith.select %low, %half, %level : f64
    memref.store %kept, %out[%i] : memref<90xf64>
    %after = arith.addf %z, %level : f64
    scf.yield %next, %after : f64, f64
  }
  return %r#0, %r#1 : f64, f64
}

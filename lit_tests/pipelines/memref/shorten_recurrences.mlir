// RUN: mlirml-opt %s --split-input-file --mlirml-shorten-recurrences | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%{{.*}}: memref<9xf32>, %[[A:.*]]: f32, %[[B:.*]]: f32)
// CHECK: %[[BEFORE:.*]] = memref.load
// CHECK: %[[X:.*]] = memref.load
// CHECK: %[[S:.*]] = arith.addf %[[A]], %[[B]]
// CHECK: %[[T:.*]] = arith.addf %[[S]], %[[X]]
// CHECK: %[[U:.*]] = arith.addf %[[T]], %[[BEFORE]]
// CHECK: arith.mulf %[[U]], %[[A]]
func.func @main(%x: memref<9xf32>, %a: f32, %b: f32) {
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %j = %c1 to %c9 step %c1 {
    %j1 = arith.subi %j, %c1 : index
    %before = memref.load %x[%j1] : memref<9xf32>
    %old = memref.load %x[%j] : memref<9xf32>
    %0 = arith.addf %a, %before : f32
    %1 = arith.addf %b, %old : f32
    %2 = arith.addf %0, %1 : f32
    %3 = arith.mulf %2, %a : f32
    memref.store %3, %x[%j] : memref<9xf32>
  }
  return
}

// -----

// What was stored two iterations ago comes last, too; not where a part of the sum is needed as well.
// CHECK-LABEL: func.func @main
// CHECK: %[[BEFORE:.*]] = memref.load
// CHECK: %[[REST:.*]] = arith.addf
// CHECK: arith.addf %[[REST]], %[[BEFORE]]
// CHECK: %[[BEFORE2:.*]] = memref.load
// CHECK: %[[PART:.*]] = arith.addf %{{.*}}, %[[BEFORE2]]
// CHECK: %[[SUM:.*]] = arith.addf %[[PART]]
// CHECK: arith.mulf %[[SUM]], %[[PART]]
func.func @main(%x: memref<9xf32>, %y: memref<9xf32>, %a: f32, %b: f32) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c9 = arith.constant 9 : index
  scf.for %j = %c2 to %c9 step %c1 {
    %j2 = arith.subi %j, %c2 : index
    %before = memref.load %x[%j2] : memref<9xf32>
    %0 = arith.addf %a, %before : f32
    %1 = arith.addf %0, %b : f32
    memref.store %1, %x[%j] : memref<9xf32>
  }
  scf.for %j = %c1 to %c9 step %c1 {
    %j1 = arith.subi %j, %c1 : index
    %before = memref.load %y[%j1] : memref<9xf32>
    %0 = arith.addf %a, %before : f32
    %1 = arith.addf %0, %b : f32
    %2 = arith.mulf %1, %0 : f32
    memref.store %2, %y[%j] : memref<9xf32>
  }
  return
}

// -----

// The sum waits for the second product, which is to be fused with it.
// CHECK-LABEL: func.func @fused
// CHECK:         %[[A:.*]] = arith.mulf %{{.*}}, %{{.*}} : f64
// CHECK:         %[[B:.*]] = arith.mulf %{{.*}}, %{{.*}} fastmath<contract> : f64
// CHECK:         arith.subf %[[A]], %[[B]] fastmath<contract> : f64
func.func @fused(%x: memref<64xf64>, %y: memref<64xf64>, %p: f64, %q: f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 64 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %p) -> f64 {
    %v = memref.load %x[%i] : memref<64xf64>
    %a = arith.mulf %p, %v fastmath<contract> : f64
    %b = arith.mulf %q, %s fastmath<contract> : f64
    %t = arith.subf %a, %b fastmath<contract> : f64
    memref.store %t, %y[%i] : memref<64xf64>
    scf.yield %t : f64
  }
  return
}

// -----

// A filter: differences of products of stored elements, the oldest first.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%{{.*}}: memref<9xf32>, %[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32)
// CHECK: %[[P1:.*]] = arith.mulf %[[A]]
// CHECK: %[[P2:.*]] = arith.mulf %[[B]]
// CHECK: %[[S:.*]] = arith.subf %[[C]], %[[P2]]
// CHECK: %[[T:.*]] = arith.subf %[[S]], %[[P1]]
// CHECK: memref.store %[[T]]
func.func @main(%y: memref<9xf32>, %a: f32, %b: f32, %c: f32) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c9 = arith.constant 9 : index
  scf.for %j = %c2 to %c9 step %c1 {
    %j1 = arith.subi %j, %c1 : index
    %j2 = arith.subi %j, %c2 : index
    %y1 = memref.load %y[%j1] : memref<9xf32>
    %y2 = memref.load %y[%j2] : memref<9xf32>
    %p1 = arith.mulf %a, %y1 : f32
    %p2 = arith.mulf %b, %y2 : f32
    %0 = arith.subf %c, %p1 : f32
    %1 = arith.subf %0, %p2 : f32
    memref.store %1, %y[%j] : memref<9xf32>
  }
  return
}

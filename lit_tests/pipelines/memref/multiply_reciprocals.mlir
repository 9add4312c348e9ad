// RUN: mlirml-opt %s --split-input-file --mlirml-multiply-reciprocals | filecheck %s
// RUN: mlirml-opt %s --split-input-file --mlirml-multiply-reciprocals=processor=x86-64 | filecheck %s --check-prefix=PLAIN
// RUN: mlirml-opt %s --split-input-file --mlirml-multiply-reciprocals --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// The sum of a row is the same in all iterations of the inner loop.

// CHECK-LABEL: func.func @rows(
// CHECK:         scf.for
// CHECK:           %[[B:.*]] = memref.load %{{.*}} : memref<90xf64>
// CHECK:           %[[SIZE:.*]] = math.absf %[[B]]
// CHECK:           %[[SCALE:.*]] = math.copysign %{{.*}}, %[[B]]
// CHECK:           %[[D:.*]] = arith.mulf %[[B]], %[[SCALE]]
// CHECK:           %[[R:.*]] = arith.divf %{{.*}}, %[[D]]
// CHECK:           scf.for
// CHECK:             %[[A:.*]] = memref.load %{{.*}} : memref<90x70xf64>
// CHECK-NOT:         arith.divf
// CHECK:             %[[S:.*]] = arith.mulf %[[A]], %[[SCALE]]
// CHECK:             %[[Q:.*]] = arith.mulf %[[S]], %[[R]]
// CHECK:             %[[MINUS:.*]] = arith.negf %[[S]]
// CHECK:             %[[REST:.*]] = math.fma %[[Q]], %[[D]], %[[MINUS]]
// CHECK:             %[[OFF:.*]] = arith.negf %[[REST]]
// CHECK:             %[[BETTER:.*]] = math.fma %[[OFF]], %[[R]], %[[Q]]
// CHECK:             %[[KNOWN:.*]] = arith.cmpf ord, %[[BETTER]], %[[BETTER]]
// CHECK:             %[[NEW:.*]] = arith.select %[[KNOWN]], %[[BETTER]], %[[Q]]
// CHECK:             memref.store %[[NEW]]
// PLAIN-LABEL: func.func @rows(
// PLAIN:         arith.divf
// PLAIN-NOT:     arith.mulf
// REMARK: rewritten: `a / b` multiplies by 1 / b, computed once before the loop
func.func @rows(%x: memref<90x70xf64>, %sums: memref<90xf64>, %y: memref<90x70xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c70 = arith.constant 70 : index
  %c90 = arith.constant 90 : index
  scf.for %i = %c0 to %c90 step %c1 {
    scf.for %j = %c0 to %c70 step %c1 {
      %a = memref.load %x[%i, %j] : memref<90x70xf64>
      %b = memref.load %sums[%i] : memref<90xf64>
      %q = arith.divf %a, %b : f64
      memref.store %q, %y[%i, %j] : memref<90x70xf64>
    }
  }
  return
}

// -----

// A constant needs no scale, and what is computed of it before the loop is constant.

// CHECK-LABEL: func.func @constant(
// CHECK-DAG:     %[[D:.*]] = arith.constant 3.000000e+00 : f64
// CHECK-DAG:     %[[R:.*]] = arith.constant 0.33333333333333331 : f64
// CHECK:         scf.parallel
// CHECK:           %[[A:.*]] = memref.load
// CHECK:           arith.mulf %[[A]], %[[R]]
// REMARK: rewritten: `a / 3` multiplies by 1 / 3, computed once before the loop
func.func @constant(%x: memref<90xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c90 = arith.constant 90 : index
  %c3 = arith.constant 3.0 : f64
  scf.parallel (%i) = (%c0) to (%c90) step (%c1) {
    %a = memref.load %x[%i] : memref<90xf64>
    %q = arith.divf %a, %c3 : f64
    memref.store %q, %x[%i] : memref<90xf64>
    scf.reduce
  }
  return
}

// -----

// The loop writes the divisor; LLVM multiplies by the reciprocal of a power of two; the next iteration waits.

// CHECK-LABEL: func.func @stay(
// CHECK-COUNT-3: arith.divf
// CHECK-NOT:     math.fma
func.func @stay(%x: memref<90xf64>, %s: memref<f64>, %y: memref<90xf32>, %b: f32, %init: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c90 = arith.constant 90 : index
  %c4 = arith.constant 4.0 : f64
  %last = scf.for %i = %c0 to %c90 step %c1 iter_args(%p = %init) -> (f32) {
    %a = memref.load %x[%i] : memref<90xf64>
    %d = memref.load %s[] : memref<f64>
    %q = arith.divf %a, %d : f64
    memref.store %q, %s[] : memref<f64>
    %h = arith.divf %a, %c4 : f64
    memref.store %h, %x[%i] : memref<90xf64>
    %f = memref.load %y[%i] : memref<90xf32>
    %e = arith.addf %f, %p : f32
    %g = arith.divf %e, %b : f32
    memref.store %g, %y[%i] : memref<90xf32>
    scf.yield %g : f32
  }
  return %last : f32
}

// -----

// A loop that may have no iterations does not read an element that may not exist; the only one of a memref does.

// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME:    %{{.*}}: memref<?xf64>, %{{.*}}: memref<?xf64>, %[[S:.*]]: memref<f64>
// CHECK-NOT:     memref.load %{{.*}}[%{{.*}}]
// CHECK:         memref.load %[[S]][]
// CHECK:         scf.for
// CHECK:           arith.divf
// CHECK:           math.fma
func.func @dynamic(%x: memref<?xf64>, %y: memref<?xf64>, %s: memref<f64>, %n: index, %k: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %x[%i] : memref<?xf64>
    %d = memref.load %y[%k] : memref<?xf64>
    %q = arith.divf %a, %d : f64
    %b = memref.load %s[] : memref<f64>
    %p = arith.divf %q, %b : f64
    memref.store %p, %x[%i] : memref<?xf64>
  }
  return
}

// -----

// f16 is divided in f32, where its reciprocal needs no scale, and the product no correction; that of bf16 may.

// CHECK-LABEL: func.func @narrow(
// CHECK-SAME:    %{{.*}}: memref<90xf16>, %{{.*}}: memref<90xbf16>, %[[B:.*]]: f16, %[[C:.*]]: bf16)
// CHECK:         %[[WIDE:.*]] = arith.extf %[[B]] : f16 to f32
// CHECK:         %[[R:.*]] = arith.divf %{{.*}}, %[[WIDE]] : f32
// CHECK:         %[[SCALE:.*]] = math.copysign
// CHECK:         scf.for
// CHECK-NOT:       arith.divf
// CHECK:           %[[A:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK:           %[[Q:.*]] = arith.mulf %[[A]], %[[R]] : f32
// CHECK:           arith.truncf %[[Q]] : f32 to f16
// CHECK:           %[[E:.*]] = arith.extf %{{.*}} : bf16 to f32
// CHECK:           %[[S:.*]] = arith.mulf %[[E]], %[[SCALE]] : f32
// CHECK:           %[[P:.*]] = arith.mulf %[[S]], %{{.*}} : f32
// CHECK:           arith.truncf %[[P]] : f32 to bf16
func.func @narrow(%x: memref<90xf16>, %y: memref<90xbf16>, %b: f16, %c: bf16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c90 = arith.constant 90 : index
  scf.for %i = %c0 to %c90 step %c1 {
    %a = memref.load %x[%i] : memref<90xf16>
    %q = arith.divf %a, %b : f16
    memref.store %q, %x[%i] : memref<90xf16>
    %e = memref.load %y[%i] : memref<90xbf16>
    %p = arith.divf %e, %c : bf16
    memref.store %p, %y[%i] : memref<90xbf16>
  }
  return
}

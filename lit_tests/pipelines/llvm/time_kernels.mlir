// RUN: mlirml-opt %s --split-input-file --mlirml-time-kernels | filecheck %s

// Loops, copies, and calls are timed, each with its own number; views and numbers are not.
// CHECK-DAG: func.func private @mlirml_kernel_begins(i64)
// CHECK-DAG: func.func private @mlirml_kernel_ends(i64)
// CHECK-LABEL: func.func @main
// CHECK: memref.subview
// CHECK: %[[FIRST:.*]] = arith.constant 0 : i64
// CHECK-NEXT: call @mlirml_kernel_begins(%[[FIRST]])
// CHECK-NEXT: scf.for
// CHECK: call @mlirml_kernel_ends(%[[FIRST]])
// CHECK: %[[SECOND:.*]] = arith.constant 1 : i64
// CHECK-NEXT: call @mlirml_kernel_begins(%[[SECOND]])
// CHECK-NEXT: memref.copy
// CHECK-NEXT: call @mlirml_kernel_ends(%[[SECOND]])
// CHECK-NEXT: memref.load
// CHECK-NEXT: memref.store
// CHECK-NEXT: return
func.func @main(%x: memref<8xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %half = memref.subview %x[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %x[%i] : memref<8xf32>
    memref.store %v, %y[%i] : memref<8xf32>
  }
  memref.copy %x, %y : memref<8xf32> to memref<8xf32>
  %first = memref.load %half[%c0] : memref<4xf32, strided<[1]>>
  memref.store %first, %y[%c1] : memref<8xf32>
  return
}

// -----

// The kernels of a loop that belongs to the host are timed, and not the loop.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK-NEXT: %[[ONLY:.*]] = arith.constant 0 : i64
// CHECK-NEXT: call @mlirml_kernel_begins(%[[ONLY]])
// CHECK-NEXT: memref.copy
// CHECK-NEXT: call @mlirml_kernel_ends(%[[ONLY]])
// CHECK-NOT: call @mlirml_kernel_begins
// CHECK: return
func.func @main(%x: memref<8xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    memref.copy %x, %y : memref<8xf32> to memref<8xf32>
  } loc(fused["step.py":3:1, "<mlirml host>":1:0])
  return
}

// -----

// Without kernels there is no clock.
// CHECK-LABEL: func.func @main
// CHECK-NOT: mlirml_kernel_begins
func.func @main(%x: memref<8xf32>) {
  return
}

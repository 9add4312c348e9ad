// RUN: mlirml-opt %s --split-input-file --mlirml-parallelize-loops | filecheck %s

// A buffer of the loop goes to the stack.
// CHECK-LABEL: func.func @main
// CHECK: scf.parallel
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<4xf32>
// CHECK: mlirml.grain
func.func @main(%a: memref<65536xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c65536 = arith.constant 65536 : index
  scf.for %i = %c0 to %c65536 step %c1 {
    %t = memref.alloc() : memref<4xf32>
    %x = memref.load %a[%i] : memref<65536xf32>
    %y = math.sin %x : f32
    memref.store %y, %t[%c0] : memref<4xf32>
    %z = memref.load %t[%c0] : memref<4xf32>
    memref.store %z, %a[%i] : memref<65536xf32>
  } {mlirml.parallel}
  return
}

// -----

// Too little work; a buffer from outside that all rounds work in; a loop that nobody called parallel.
// CHECK-LABEL: func.func @main
// CHECK-NOT: scf.parallel
func.func @main(%a: memref<65536xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c65536 = arith.constant 65536 : index
  scf.for %i = %c0 to %c16 step %c1 {
    %x = memref.load %a[%i] : memref<65536xf32>
    %y = math.sin %x : f32
    memref.store %y, %a[%i] : memref<65536xf32>
  } {mlirml.parallel}
  %t = memref.alloc() : memref<4xf32>
  scf.for %i = %c0 to %c65536 step %c1 {
    %x = memref.load %a[%i] : memref<65536xf32>
    %y = math.sin %x : f32
    memref.store %y, %t[%c0] : memref<4xf32>
    %z = memref.load %t[%c0] : memref<4xf32>
    memref.store %z, %a[%i] : memref<65536xf32>
  } {mlirml.parallel}
  scf.for %i = %c0 to %c65536 step %c1 {
    %x = memref.load %a[%i] : memref<65536xf32>
    %y = math.sin %x : f32
    memref.store %y, %a[%i] : memref<65536xf32>
  }
  return
}

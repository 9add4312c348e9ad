// RUN: mlirml-opt %s --split-input-file --mlirml-prove-parallel | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: } {mlirml.parallel}
func.func @main(%a: memref<9xf32>, %b: memref<9xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %next = arith.addi %i, %c1 : index
    %x = memref.load %a[%next] : memref<9xf32>
    %y = memref.load %b[%next] : memref<9xf32>
    %s = arith.addf %x, %y : f32
    memref.store %s, %b[%next] : memref<9xf32>
  }
  return
}

// -----

// The rows are independent, the elements of a row are not.
// CHECK-LABEL: func.func @main
// CHECK: memref.store
// CHECK-NEXT: }
// CHECK-NEXT: } {mlirml.parallel}
func.func @main(%a: memref<8x9xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %next = arith.addi %j, %c1 : index
      %x = memref.load %a[%i, %j] : memref<8x9xf32>
      memref.store %x, %a[%i, %next] : memref<8x9xf32>
    }
  }
  return
}

// -----

// Rounds that store where another round reads, and at places that are computed.
// CHECK-LABEL: func.func @main
// CHECK-NOT: mlirml.parallel
func.func @main(%a: memref<8x8xf32>, %b: memref<8xindex>, %c: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %x = memref.load %a[%c1, %i] : memref<8x8xf32>
    memref.store %x, %a[%i, %c0] : memref<8x8xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %x = memref.load %a[%i, %i] : memref<8x8xf32>
    %k = memref.load %b[%i] : memref<8xindex>
    memref.store %x, %c[%k] : memref<8xf32>
  }
  return
}

// RUN: mlirml-opt %s --split-input-file "--mlirml-outline-loops=min-ops=4" | filecheck %s

// Slices of the workspace are arguments, so that equal loops on other slices share a function.
// CHECK: func.func private @main.loops0(%[[X:.*]]: memref<8xf32> {llvm.noalias}, %[[T:.*]]: memref<8xf32> {llvm.noalias})
// CHECK-SAME: attributes {mlirml.no_inline}
// CHECK-NOT: memref.view
// CHECK: scf.for
// CHECK: memref.load %[[X]]
// CHECK: memref.store {{.*}}, %[[T]]
// CHECK-NOT: @main.loops1
// CHECK: func.func @main(%[[A:.*]]: memref<8xf32>, %[[B:.*]]: memref<8xf32>, %[[W:.*]]: memref<64xi8>)
// CHECK-DAG: %[[T:.*]] = memref.view %[[W]]
// CHECK: call @main.loops0(%[[A]], %[[T]])
// CHECK-NEXT: call @main.loops0(%[[T]], %[[B]])
// CHECK-NEXT: return
func.func @main(%x: memref<8xf32>, %y: memref<8xf32>, %w: memref<64xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %t = memref.view %w[%c32][] : memref<64xi8> to memref<8xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %x[%i] : memref<8xf32>
    %1 = arith.negf %0 : f32
    memref.store %1, %t[%i] : memref<8xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %t[%i] : memref<8xf32>
    %1 = arith.negf %0 : f32
    memref.store %1, %y[%i] : memref<8xf32>
  }
  return
}

// -----

// Overlapping slices, and the workspace beside a slice of it, are no separate arguments; checks stay in @main.
// CHECK-NOT: func.func private
// CHECK: func.func @main
func.func @main(%x: memref<8xf32>, %y: memref<8xf32>, %w: memref<64xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c4 = arith.constant 4 : index
  %t = memref.view %w[%c4][] : memref<64xi8> to memref<8xf32>
  %u = memref.view %w[%c0][] : memref<64xi8> to memref<8xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %t[%i] : memref<8xf32>
    memref.store %0, %u[%i] : memref<8xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %t[%i] : memref<8xf32>
    %1 = arith.fptosi %0 : f32 to i8
    memref.store %1, %w[%i] : memref<64xi8>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %x[%i] : memref<8xf32>
    %1 = arith.cmpf one, %0, %0 : f32
    cf.assert %1, "equal"
    memref.store %0, %y[%i] : memref<8xf32>
  }
  return
}

// -----

// What a loop computes for later operations goes with them; stack buffers stay, and one loop nest is the whole program.
// CHECK: func.func private @main.loops0(%{{.*}}: memref<8xf32> {llvm.noalias}, %{{.*}}: memref<f32> {llvm.noalias})
// CHECK: %[[S:.*]] = scf.for
// CHECK: memref.store %[[S]]
// CHECK: func.func @main
// CHECK: memref.alloca
// CHECK: call @main.loops0
// CHECK-NEXT: scf.for
func.func @main(%x: memref<8xf32>, %y: memref<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %a = memref.alloca() : memref<8xf32>
  %s = scf.for %i = %c0 to %c8 step %c1 iter_args(%t = %zero) -> (f32) {
    %0 = memref.load %x[%i] : memref<8xf32>
    %1 = arith.addf %0, %t : f32
    scf.yield %1 : f32
  }
  memref.store %s, %y[] : memref<f32>
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %x[%i] : memref<8xf32>
    memref.store %0, %a[%i] : memref<8xf32>
  }
  return
}

// -----

// CHECK-NOT: func.func private
// CHECK: func.func @main
func.func @main(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %x[%i] : memref<8xf32>
    %1 = arith.negf %0 : f32
    memref.store %1, %x[%i] : memref<8xf32>
  }
  return
}

// RUN: mlirml-opt %s --split-input-file "--mlirml-split-function=max-ops=6" | filecheck %s

// Each part builds its views and constants itself; the arguments of @main do not overlap, its workspace is one buffer.
// CHECK: func.func private @main.part0(%[[X:.*]]: memref<8xf32> {llvm.noalias}, %[[W:.*]]: memref<64xi8> {llvm.noalias})
// CHECK-SAME: attributes {mlirml.no_inline}
// CHECK-DAG: %[[T:.*]] = memref.view %[[W]]
// CHECK: scf.for
// CHECK: memref.load %[[X]]
// CHECK: memref.store {{.*}}, %[[T]]
// CHECK: func.func private @main.part1(%[[W:.*]]: memref<64xi8> {llvm.noalias}, %[[Y:.*]]: memref<8xf32> {llvm.noalias})
// CHECK-DAG: %[[T:.*]] = memref.view %[[W]]
// CHECK: memref.load %[[T]]
// CHECK: memref.store {{.*}}, %[[Y]]
// CHECK: func.func @main(%arg0: memref<8xf32>, %arg1: memref<8xf32>, %arg2: memref<64xi8>)
// CHECK-NEXT: call @main.part0(%arg0, %arg2)
// CHECK-NEXT: call @main.part1(%arg2, %arg1)
// CHECK-NEXT: return
func.func @main(%x: memref<8xf32>, %y: memref<8xf32>, %w: memref<64xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %t = memref.view %w[%c0][] : memref<64xi8> to memref<8xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %x[%i] : memref<8xf32>
    %1 = arith.negf %0 : f32
    %2 = math.absf %1 : f32
    memref.store %2, %t[%i] : memref<8xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %t[%i] : memref<8xf32>
    %1 = arith.mulf %0, %0 : f32
    memref.store %1, %y[%i] : memref<8xf32>
  }
  return
}

// -----

// No cut while a scalar is needed further on; a stack buffer stays where it is.
// CHECK: func.func private @main.part0(%[[X:[^:]*]]: memref<8xf32> {llvm.noalias}, %[[A:[^:]*]]: memref<1xf32>)
// CHECK: memref.load %[[X]]
// CHECK: scf.for
// CHECK: scf.for
// CHECK: memref.store {{.*}}, %[[A]]
// CHECK: func.func private @main.part1(%[[A:[^:]*]]: memref<1xf32>, %[[X:[^:]*]]: memref<8xf32> {llvm.noalias})
// CHECK: func.func @main
// CHECK-NEXT: memref.alloca
// CHECK-NEXT: call @main.part0
// CHECK-NEXT: call @main.part1
// CHECK-NEXT: return
func.func @main(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = memref.alloca() : memref<1xf32>
  %s = memref.load %x[%c0] : memref<8xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %x[%i] : memref<8xf32>
    %1 = arith.negf %0 : f32
    %2 = math.absf %1 : f32
    memref.store %2, %x[%i] : memref<8xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %s, %x[%i] : memref<8xf32>
  }
  memref.store %s, %a[%c0] : memref<1xf32>
  %r = memref.load %a[%c0] : memref<1xf32>
  memref.store %r, %x[%c1] : memref<8xf32>
  return
}

// -----

// A short function stays whole.
// CHECK-NOT: func.func private
// CHECK: func.func @main
// CHECK: scf.for
func.func @main(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %x[%i] : memref<8xf32>
    memref.store %0, %x[%i] : memref<8xf32>
  }
  return
}

// -----

// A view at a place that a part computes is built in that part.
// CHECK: func.func private @main.part0(%arg0: memref<8xindex> {llvm.noalias}, %arg1: memref<8xf32> {llvm.noalias})
// CHECK: memref.load
// CHECK: memref.subview
// CHECK: func.func @main
// CHECK-NOT: memref.subview
// CHECK: call @main.part0
func.func @main(%p: memref<8xindex>, %x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %i = memref.load %p[%c0] : memref<8xindex>
  %v = memref.subview %x[%i] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: ?>>
  %0 = memref.load %v[%c0] : memref<4xf32, strided<[1], offset: ?>>
  %1 = arith.negf %0 : f32
  %2 = math.absf %1 : f32
  memref.store %2, %v[%c1] : memref<4xf32, strided<[1], offset: ?>>
  memref.store %2, %v[%c3] : memref<4xf32, strided<[1], offset: ?>>
  memref.store %2, %x[%c0] : memref<8xf32>
  memref.store %2, %x[%c1] : memref<8xf32>
  memref.store %2, %x[%c3] : memref<8xf32>
  scf.for %j = %c0 to %c8 step %c1 {
    %e = memref.load %x[%j] : memref<8xf32>
    %f = arith.negf %e : f32
    %g = math.absf %f : f32
    memref.store %g, %x[%j] : memref<8xf32>
  }
  return
}

// -----

// Equal parts are one function. They are cut where the repetition begins, which is longer than a part should be.
// CHECK: func.func private @main.part0(%[[X:.*]]: memref<8xf32> {llvm.noalias})
// CHECK-COUNT-2: scf.for
// CHECK-NOT: func.func private
// CHECK: func.func @main
// CHECK-COUNT-3: call @main.part0(%arg0)
// CHECK-NEXT: return
func.func @main(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %x[%i] : memref<8xf32>
    %1 = arith.negf %0 : f32
    memref.store %1, %x[%i] : memref<8xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %x[%i] : memref<8xf32>
    memref.store %0, %x[%i] : memref<8xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %x[%i] : memref<8xf32>
    %1 = arith.negf %0 : f32
    memref.store %1, %x[%i] : memref<8xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %x[%i] : memref<8xf32>
    memref.store %0, %x[%i] : memref<8xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %x[%i] : memref<8xf32>
    %1 = arith.negf %0 : f32
    memref.store %1, %x[%i] : memref<8xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %x[%i] : memref<8xf32>
    memref.store %0, %x[%i] : memref<8xf32>
  }
  return
}

// -----

// The body of a long loop is cut, too; numbers that its parts need are given to them.
// CHECK: func.func private @main.part0(%arg0: memref<8xf32> {llvm.noalias}, %arg1: index)
// CHECK: func.func @main
// CHECK: scf.for %[[I:.*]] = %c0
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[I]]
// CHECK-NEXT: call @main.part0(%arg0, %[[NEXT]])
// CHECK-NEXT: call @main.part1(%arg0, %[[I]])
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @main(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  scf.for %i = %c0 to %c7 step %c1 {
    %next = arith.addi %i, %c1 : index
    %0 = memref.load %x[%next] : memref<8xf32>
    %1 = arith.negf %0 : f32
    %2 = math.absf %1 : f32
    %3 = arith.mulf %2, %1 : f32
    %4 = arith.mulf %3, %1 : f32
    memref.store %4, %x[%next] : memref<8xf32>
    %5 = memref.load %x[%i] : memref<8xf32>
    %6 = arith.negf %5 : f32
    %7 = math.absf %6 : f32
    %8 = arith.addf %7, %6 : f32
    memref.store %8, %x[%i] : memref<8xf32>
  }
  return
}

// -----

// A loop that hands buffers on may hand on arguments: its body stays whole, and @main, which would be one part.
// CHECK-NOT: func.func private
// CHECK: func.func @main
// CHECK: scf.for
// CHECK-COUNT-2: math.absf
// CHECK-NOT: call
// CHECK: return
func.func @main(%x: memref<8xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %end:2 = scf.for %i = %c0 to %c7 step %c1 iter_args(%a = %x, %b = %y) -> (memref<8xf32>, memref<8xf32>) {
    %0 = memref.load %a[%i] : memref<8xf32>
    %1 = arith.negf %0 : f32
    %2 = math.absf %1 : f32
    %3 = arith.mulf %2, %1 : f32
    memref.store %3, %b[%i] : memref<8xf32>
    %5 = memref.load %a[%c0] : memref<8xf32>
    %6 = arith.negf %5 : f32
    %7 = math.absf %6 : f32
    %8 = arith.addf %7, %6 : f32
    memref.store %8, %b[%c0] : memref<8xf32>
    scf.yield %b, %a : memref<8xf32>, memref<8xf32>
  }
  return
}

// -----

// A part that stays long has no loops in it: they are functions of their own, with or without other parts.
// CHECK: func.func private @main.part0(%arg0: f32, %arg1: memref<8xf32> {llvm.noalias})
// CHECK: scf.for
// CHECK: func.func @main
// CHECK-COUNT-24: math.absf
// CHECK: call @main.part0
// CHECK-NEXT: memref.store
func.func @main(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %0 = memref.load %x[%c0] : memref<8xf32>
  %1 = math.absf %0 : f32
  %2 = math.absf %1 : f32
  %3 = math.absf %2 : f32
  %4 = math.absf %3 : f32
  %5 = math.absf %4 : f32
  %6 = math.absf %5 : f32
  %7 = math.absf %6 : f32
  %8 = math.absf %7 : f32
  %9 = math.absf %8 : f32
  %10 = math.absf %9 : f32
  %11 = math.absf %10 : f32
  %12 = math.absf %11 : f32
  %13 = math.absf %12 : f32
  %14 = math.absf %13 : f32
  %15 = math.absf %14 : f32
  %16 = math.absf %15 : f32
  %17 = math.absf %16 : f32
  %18 = math.absf %17 : f32
  %19 = math.absf %18 : f32
  %20 = math.absf %19 : f32
  %21 = math.absf %20 : f32
  %22 = math.absf %21 : f32
  %23 = math.absf %22 : f32
  %24 = math.absf %23 : f32
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %24, %x[%i] : memref<8xf32>
  }
  memref.store %0, %x[%c0] : memref<8xf32>
  return
}

// RUN: mlirml-opt %s --split-input-file --mlirml-relax-floats | filecheck %s

// A sum that the loop carries.
// CHECK-LABEL: func.func @main
// CHECK: arith.mulf %{{.*}}, %{{.*}} fastmath<contract>
// CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<reassoc,contract>
func.func @main(%a: memref<8xf32>, %zero: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %s = scf.for %i = %c0 to %c8 step %c1 iter_args(%total = %zero) -> (f32) {
    %x = memref.load %a[%i] : memref<8xf32>
    %square = arith.mulf %x, %x : f32
    %sum = arith.addf %total, %square : f32
    scf.yield %sum : f32
  }
  return %s : f32
}

// -----

// A sum in an element that stays the same while the loop runs; the other element moves on.
// CHECK-LABEL: func.func @main
// CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<reassoc,contract>
// CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<contract>
func.func @main(%a: memref<8xf32>, %b: memref<8xf32>, %k: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %x = memref.load %a[%i] : memref<8xf32>
    %old = memref.load %b[%k] : memref<8xf32>
    %new = arith.addf %old, %x : f32
    memref.store %new, %b[%k] : memref<8xf32>
    %y = memref.load %b[%i] : memref<8xf32>
    %z = arith.addf %y, %x : f32
    memref.store %z, %b[%i] : memref<8xf32>
  }
  return
}

// -----

// A total that is read on the way is added up in order; so is what no loop repeats.
// CHECK-LABEL: func.func @main
// CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<contract>
// CHECK: return
// CHECK-NOT: fastmath
func.func @main(%a: memref<8xf32>, %b: memref<8xf32>, %zero: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %s = scf.for %i = %c0 to %c8 step %c1 iter_args(%total = %zero) -> (f32) {
    %x = memref.load %a[%i] : memref<8xf32>
    %sum = arith.addf %total, %x : f32
    memref.store %sum, %b[%i] : memref<8xf32>
    scf.yield %sum : f32
  }
  return %s : f32
}

func.func @once(%x: f32, %y: f32) -> f32 {
  %s = arith.addf %x, %y : f32
  return %s : f32
}

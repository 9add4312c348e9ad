// RUN: mlirml-opt %s --split-input-file --mlirml-split-masked | filecheck %s

// Elements up to the diagonal are added without a test but for the block with the edge; the rest is zero, added once.

// CHECK-LABEL: func.func @causal(
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           %[[FIRST:.*]] = scf.for
// CHECK-NOT:         arith.select
// CHECK:             memref.load
// CHECK:             arith.addf
// CHECK:             scf.yield
// CHECK:           %[[SECOND:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[FIRST]])
// CHECK:             arith.cmpi sle
// CHECK:             arith.select
// CHECK:             scf.yield
// CHECK:           %[[ONCE:.*]] = arith.select
// CHECK:           scf.for %{{.*}} = %{{.*}} to %[[ONCE]] {{.*}} iter_args(%{{.*}} = %[[SECOND]])
// CHECK-NOT:         memref.load
// CHECK:             scf.yield
func.func @causal(%x: memref<300x300xf32>, %y: memref<300xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c300 = arith.constant 300 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c300 step %c1 {
    %t = scf.for %j = %c0 to %c300 step %c1 iter_args(%sum = %zero) -> (f32) {
      %a = memref.load %x[%i, %j] : memref<300x300xf32>
      %keep = arith.cmpi sle, %j, %i : index
      %b = arith.select %keep, %a, %zero : f32
      %new = arith.addf %sum, %b : f32
      scf.yield %new : f32
    }
    memref.store %t, %y[%i] : memref<300xf32>
  }
  return
}

// -----

// A length that is read may be any number: between the edges the condition is tested. What is stored is stored.

// CHECK-LABEL: func.func @padded(
// CHECK:         scf.for
// CHECK:           memref.load %{{.*}} : memref<300xi64>
// CHECK:           scf.for
// CHECK:             arith.select
// CHECK:             memref.store
// CHECK:           scf.for
// CHECK-NOT:         arith.select
// CHECK-NOT:         memref.load
// CHECK:             memref.store
func.func @padded(%x: memref<300x300xf32>, %n: memref<300xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c300 = arith.constant 300 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c300 step %c1 {
    scf.for %j = %c0 to %c300 step %c1 {
      %a = memref.load %x[%i, %j] : memref<300x300xf32>
      %l = memref.load %n[%i] : memref<300xi64>
      %k = arith.index_cast %j : index to i64
      %keep = arith.cmpi slt, %k, %l : i64
      %b = arith.select %keep, %a, %zero : f32
      memref.store %b, %x[%i, %j] : memref<300x300xf32>
    }
  }
  return
}

// -----

// Short loops, and conditions that are no interval, stay.

// CHECK-LABEL: func.func @stay(
// CHECK-COUNT-3: scf.for
// CHECK-NOT:     scf.for
func.func @stay(%x: memref<300x300xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c100 = arith.constant 100 : index
  %c300 = arith.constant 300 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c300 step %c1 {
    scf.for %j = %c0 to %c100 step %c1 {
      %a = memref.load %x[%i, %j] : memref<300x300xf32>
      %keep = arith.cmpi sle, %j, %i : index
      %b = arith.select %keep, %a, %zero : f32
      memref.store %b, %x[%i, %j] : memref<300x300xf32>
    }
    scf.for %j = %c0 to %c300 step %c1 {
      %a = memref.load %x[%i, %j] : memref<300x300xf32>
      %r = arith.remui %j, %c2 : index
      %keep = arith.cmpi eq, %r, %c0 : index
      %b = arith.select %keep, %a, %zero : f32
      memref.store %b, %x[%i, %j] : memref<300x300xf32>
    }
  }
  return
}

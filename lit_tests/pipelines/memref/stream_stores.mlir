// RUN: mlirml-opt %s --split-input-file --mlirml-stream-stores="processor=avx2,l2=256K least-bytes=1048576" | filecheck %s

// One loop over elements: it is cut into tiles that begin where lines do, and each is copied from the stack.
// CHECK-LABEL: func.func @main
// CHECK: scf.parallel (%{{.*}}) = (%c0{{.*}}) to (%c4097{{.*}}) step (%c1{{.*}}) {
// CHECK: %[[TILE:.*]] = memref.alloca() {alignment = 64 : i64} : memref<256xf32>
// CHECK: memref.extract_aligned_pointer_as_index %arg1
// CHECK: %[[ORIGIN:.*]] = arith.subi
// CHECK: scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step
// CHECK: %[[X:.*]] = memref.load %arg0[%[[J]]]
// CHECK: %[[NEG:.*]] = arith.negf %[[X]]
// CHECK: %[[PLACE:.*]] = arith.subi %[[J]], %[[ORIGIN]]
// CHECK: memref.store %[[NEG]], %[[TILE]][%[[PLACE]]]
// CHECK: scf.if
// CHECK: vector.maskedstore %arg1
// CHECK: scf.for
// CHECK: %[[LINE:.*]] = vector.load %[[TILE]]{{.*}} : memref<256xf32>, vector<16xf32>
// CHECK: vector.store %[[LINE]], %arg1{{.*}} {alignment = 64 : i64, nontemporal = true}
// CHECK: scf.if
// CHECK: vector.maskedstore %arg1
// CHECK: mlirml.grain = 16 : i64, mlirml.streams
func.func @main(%x: memref<1048576xf32>, %y: memref<1048576xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1048576 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %x[%i] : memref<1048576xf32>
    %b = arith.negf %a : f32
    memref.store %b, %y[%i] : memref<1048576xf32>
    scf.reduce
  } {mlirml.grain = 4096 : i64}
  return
}

// -----

// Rows that two loops work on: what the second reads is in the buffer, and it is copied while the second runs.
// CHECK-LABEL: func.func @main
// CHECK: scf.parallel
// CHECK: %[[ROW:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1000xf64>
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %c1000{{.*}} step %c1
// CHECK: memref.store %{{.*}}, %[[ROW]][%[[I]]]
// CHECK: scf.for
// CHECK: scf.for %[[J:.*]] =
// CHECK: memref.load %[[ROW]][%[[J]]]
// CHECK: memref.store %{{.*}}, %[[ROW]][%[[J]]]
// CHECK: vector.store {{.*}} {alignment = 64 : i64, nontemporal = true} : memref<1000000xf64>, vector<8xf64>
// CHECK: mlirml.streams
func.func @main(%x: memref<1000x1000xf64>, %y: memref<1000x1000xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1000 : index
  %flat = memref.collapse_shape %y [[0, 1]] : memref<1000x1000xf64> into memref<1000000xf64>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %row = arith.muli %i, %n : index
    scf.for %j = %c0 to %n step %c1 {
      %a = memref.load %x[%i, %j] : memref<1000x1000xf64>
      %b = arith.negf %a : f64
      memref.store %b, %y[%i, %j] : memref<1000x1000xf64>
    }
    scf.for %j = %c0 to %n step %c1 {
      %k = arith.addi %row, %j : index
      %a = memref.load %flat[%k] : memref<1000000xf64>
      %b = arith.addf %a, %a : f64
      memref.store %b, %flat[%k] : memref<1000000xf64>
    }
    scf.reduce
  } {mlirml.grain = 16 : i64}
  return
}

// -----

// A loop that adds up what it stores is not cut: the row is copied behind it. A fence follows the loop over the rows.
// CHECK-LABEL: func.func @main
// CHECK: %[[ROW:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1024xi32>
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args
// CHECK: memref.store %{{.*}}, %[[ROW]]
// CHECK: nontemporal = true
// CHECK: memref.store %{{.*}}, %arg2
// CHECK: llvm.call_intrinsic "llvm.x86.sse.sfence"
// CHECK-NEXT: return
func.func @main(%x: memref<512x1024xi32>, %y: memref<512x1024xi32>, %sums: memref<512xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = arith.constant 512 : index
  %n = arith.constant 1024 : index
  %zero = arith.constant 0 : i32
  scf.for %i = %c0 to %m step %c1 {
    %sum = scf.for %j = %c0 to %n step %c1 iter_args(%s = %zero) -> i32 {
      %a = memref.load %x[%i, %j] : memref<512x1024xi32>
      memref.store %a, %y[%i, %j] : memref<512x1024xi32>
      %t = arith.addi %s, %a : i32
      scf.yield %t : i32
    }
    memref.store %sum, %sums[%i] : memref<512xi32>
  }
  return
}

// -----

// What stays: %read is read elsewhere, %again written in each of two rounds, %half only in part, %update is read before
// it is written, %columns is not walked in its order, %small is small, %maybe is stored under a
// condition, and %slow takes longer to compute than to move.
// CHECK-LABEL: func.func @main
// CHECK-NOT: nontemporal
func.func @main(%read: memref<1048576xf32>, %again: memref<1048576xf32>, %half: memref<1048576xf32>,
                %update: memref<1048576xf32>, %columns: memref<1024x1024xf32>, %small: memref<65536xf32>,
                %maybe: memref<1048576xf32>, %slow: memref<1048576xf32>, %sum: memref<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c1024 = arith.constant 1024 : index
  %c65536 = arith.constant 65536 : index
  %n = arith.constant 1048576 : index
  %v = arith.constant 1.0 : f32
  scf.for %t = %c0 to %c2 step %c1 {
    scf.for %i = %c0 to %n step %c1 {
      memref.store %v, %again[%i] : memref<1048576xf32>
    }
  }
  scf.for %i = %c0 to %n step %c1 {
    memref.store %v, %read[%i] : memref<1048576xf32>
  }
  scf.for %i = %c0 to %c65536 step %c1 {
    memref.store %v, %half[%i] : memref<1048576xf32>
    memref.store %v, %small[%i] : memref<65536xf32>
  }
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %update[%i] : memref<1048576xf32>
    %b = arith.addf %a, %v : f32
    memref.store %b, %update[%i] : memref<1048576xf32>
  }
  scf.for %i = %c0 to %c1024 step %c1 {
    scf.for %j = %c0 to %c1024 step %c1 {
      memref.store %v, %columns[%j, %i] : memref<1024x1024xf32>
    }
  }
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %update[%i] : memref<1048576xf32>
    %positive = arith.cmpf ogt, %a, %v : f32
    scf.if %positive {
      memref.store %a, %maybe[%i] : memref<1048576xf32>
    }
  }
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %update[%i] : memref<1048576xf32>
    %b = math.tanh %a : f32
    %c = math.exp %b : f32
    memref.store %c, %slow[%i] : memref<1048576xf32>
  }
  %first = memref.load %read[%c0] : memref<1048576xf32>
  memref.store %first, %sum[] : memref<f32>
  return
}

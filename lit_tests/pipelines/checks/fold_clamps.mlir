// RUN: mlirml-opt %s --mlirml-fold-clamps | filecheck %s

// The number of a check may be moved and cast; the clamp after it, in a nested loop, changes nothing.
// CHECK-LABEL: func.func @main
// CHECK: cf.assert
// CHECK-NOT: arith.minui
// CHECK: %[[PLACE:.*]] = arith.select
// CHECK-NOT: arith.minui
// CHECK: memref.load %{{.*}}[%[[PLACE]]]
// Before the check and for less than its limit, clamps stay.
// CHECK: %[[EARLY:.*]] = arith.minui
// CHECK: cf.assert
// CHECK: %[[SHORT:.*]] = arith.minui
// CHECK: memref.load %{{.*}}[%[[SHORT]]]
// CHECK-NEXT: memref.load %{{.*}}[%[[EARLY]]]
func.func @main(%keys: memref<9xi32>, %x: memref<4xf32>, %y: memref<4xf32>, %out: memref<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %c4_i32 = arith.constant 4 : i32
  %c8_i32 = arith.constant 8 : i32
  scf.for %i = %c0 to %c9 step %c1 {
    %key = memref.load %keys[%i] : memref<9xi32>
    %moved = arith.addi %key, %c4_i32 : i32
    %inside = arith.cmpi ult, %moved, %c8_i32 : i32
    cf.assert %inside, "index out of bounds" {mlirml.check = 3 : i64, mlirml.check_base = 4 : i64}
    scf.for %j = %c0 to %c4 step %c1 {
      %index = arith.index_cast %key : i32 to index
      %negative = arith.cmpi slt, %index, %c0 : index
      %from_end = arith.addi %index, %c4 : index
      %place = arith.select %negative, %from_end, %index : index
      %clamped = arith.minui %place, %c3 : index
      %a = memref.load %x[%clamped] : memref<4xf32>
      memref.store %a, %y[%j] : memref<4xf32>
    }
  }
  %last = memref.load %keys[%c0] : memref<9xi32>
  %position = arith.index_castui %last : i32 to index
  %early = arith.minui %position, %c3 : index
  %fits = arith.cmpi ult, %position, %c4 : index
  cf.assert %fits, "index out of bounds" {mlirml.check = 4 : i64, mlirml.check_base = 0 : i64}
  %short = arith.minui %position, %c2 : index
  %b = memref.load %x[%short] : memref<4xf32>
  %c = memref.load %x[%early] : memref<4xf32>
  %d = arith.addf %b, %c : f32
  memref.store %d, %out[] : memref<f32>
  return
}

// A function that goes on after a failed check needs its clamps.
// CHECK-LABEL: func.func private @main.part0
// CHECK: arith.minui
func.func private @main.part0(%keys: memref<9xi64>, %x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %key = memref.load %keys[%c0] : memref<9xi64>
  %place = arith.index_cast %key : i64 to index
  %inside = arith.cmpi ult, %place, %c4 : index
  cf.assert %inside, "index out of bounds" {mlirml.check = 3 : i64, mlirml.check_base = 0 : i64}
  %clamped = arith.minui %place, %c3 : index
  %a = memref.load %x[%clamped] : memref<4xf32>
  memref.store %a, %x[%c0] : memref<4xf32>
  return
}

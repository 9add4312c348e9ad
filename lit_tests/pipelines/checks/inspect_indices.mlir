// RUN: mlirml-opt %s --split-input-file --mlirml-inspect-indices | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[KEYS:.*]]: memref<9999xi64>, %[[X:.*]]: memref<5xf32>
// CHECK: scf.for %[[C:.*]] =
// CHECK: %[[END:.*]] = arith.addi %[[C]]
// CHECK: %[[OUTSIDE:.*]] = scf.for %[[I:.*]] = %[[C]] to %[[END]] {{.*}} iter_args(%[[ANY:.*]] = %{{.*}})
// CHECK: %[[KEY:.*]] = memref.load %[[KEYS]][%[[I]]]
// CHECK: %[[BEYOND:.*]] = arith.cmpi uge, %[[KEY]], %c5_i64
// CHECK: arith.ori %[[ANY]], %[[BEYOND]]
// CHECK: scf.if %[[OUTSIDE]] {
// CHECK: scf.for %{{.*}} = %[[C]] to %[[END]]
// CHECK: cf.assert
// CHECK: arith.minui
// CHECK: mlirml.inspected
// CHECK: } else {
// CHECK: scf.for %{{.*}} = %[[C]] to %[[END]]
// CHECK-NOT: cf.assert
// CHECK-NOT: arith.minui
// CHECK: %[[INDEX:.*]] = arith.index_cast
// CHECK: memref.store %{{.*}}, %[[X]][%[[INDEX]]]
func.func @main(%keys: memref<9999xi64>, %x: memref<5xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c5_i64 = arith.constant 5 : i64
  %c10_i64 = arith.constant 10 : i64
  %n = arith.constant 9999 : index
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %key = memref.load %keys[%i] : memref<9999xi64>
    %moved = arith.addi %key, %c5_i64 : i64
    %inside = arith.cmpi ult, %moved, %c10_i64 : i64
    cf.assert %inside, "index out of bounds" {mlirml.check = 4 : i64, mlirml.check_base = 5 : i64}
    %index = arith.index_cast %key : i64 to index
    %negative = arith.cmpi slt, %index, %c0 : index
    %from_end = arith.addi %index, %c5 : index
    %position = arith.select %negative, %from_end, %index : index
    %clamped = arith.minui %position, %c4 : index
    %old = memref.load %x[%clamped] : memref<5xf32>
    %new = arith.addf %old, %one : f32
    memref.store %new, %x[%clamped] : memref<5xf32>
  }
  return
}

// -----

// The loop stores into what its indices are loaded from.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: scf.if
func.func @main(%keys: memref<99xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c98 = arith.constant 98 : index
  %c99 = arith.constant 99 : i64
  %c198 = arith.constant 198 : i64
  %n = arith.constant 99 : index
  %zero = arith.constant 0 : i64
  scf.for %i = %c0 to %n step %c1 {
    %key = memref.load %keys[%i] : memref<99xi64>
    %moved = arith.addi %key, %c99 : i64
    %inside = arith.cmpi ult, %moved, %c198 : i64
    cf.assert %inside, "index out of bounds" {mlirml.check = 4 : i64, mlirml.check_base = 99 : i64}
    %index = arith.index_cast %key : i64 to index
    %clamped = arith.minui %index, %c98 : index
    memref.store %zero, %keys[%clamped] : memref<99xi64>
  }
  return
}

// -----

// The rows of a sparse matrix: one range of columns for a chunk of rows, if `start` does not fall.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[START:.*]]: memref<8xi64>, %[[COLUMNS:.*]]: memref<20xi64>
// CHECK: scf.for %[[C:.*]] =
// CHECK: %[[END:.*]] = arith.addi %[[C]]
// CHECK: %[[FALLS:.*]] = scf.for %{{.*}} = %[[C]] to %[[END]]
// CHECK: arith.cmpi sgt
// CHECK: %[[OUTSIDE:.*]] = scf.if %[[FALLS]]
// CHECK: } else {
// CHECK: memref.load %[[START]][%[[C]]]
// CHECK: memref.load %[[START]][%[[END]]]
// CHECK: scf.for
// CHECK: %[[COLUMN:.*]] = memref.load %[[COLUMNS]]
// CHECK: arith.cmpi uge, %[[COLUMN]]
// CHECK: scf.if %[[OUTSIDE]] {
// CHECK: scf.for %{{.*}} = %[[C]] to %[[END]]
// CHECK: cf.assert
// CHECK: } else {
// CHECK: scf.for %{{.*}} = %[[C]] to %[[END]]
// CHECK-NOT: cf.assert
func.func @main(%start: memref<8xi64>, %columns: memref<20xi64>, %x: memref<5xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c19 = arith.constant 19 : index
  %c20 = arith.constant 20 : index
  %c40 = arith.constant 40 : index
  %c5_i64 = arith.constant 5 : i64
  %c10_i64 = arith.constant 10 : i64
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %c7 step %c1 {
    %next = arith.addi %i, %c1 : index
    %first = memref.load %start[%i] : memref<8xi64>
    %last = memref.load %start[%next] : memref<8xi64>
    %from = arith.index_cast %first : i64 to index
    %to = arith.index_cast %last : i64 to index
    scf.for %k = %from to %to step %c1 {
      %shifted = arith.addi %k, %c20 : index
      %valid = arith.cmpi ult, %shifted, %c40 : index
      cf.assert %valid, "index out of bounds" {mlirml.check = 2 : i64, mlirml.check_base = 20 : i64}
      %below = arith.cmpi slt, %k, %c0 : index
      %wrapped = arith.select %below, %shifted, %k : index
      %at = arith.minui %wrapped, %c19 : index
      %key = memref.load %columns[%at] : memref<20xi64>
      %moved = arith.addi %key, %c5_i64 : i64
      %inside = arith.cmpi ult, %moved, %c10_i64 : i64
      cf.assert %inside, "index out of bounds" {mlirml.check = 4 : i64, mlirml.check_base = 5 : i64}
      %index = arith.index_cast %key : i64 to index
      %clamped = arith.minui %index, %c4 : index
      memref.store %one, %x[%clamped] : memref<5xf32>
    }
  }
  return
}

// -----

// A loop over a slice runs from its start to its end, which are made of 32 bits without a sign, and clamped.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[START:.*]]: memref<8xi32>, %[[COLUMNS:.*]]: memref<20xi64>
// CHECK: scf.for %[[C:.*]] =
// CHECK: scf.for %{{.*}} = %[[C]] to
// CHECK: arith.extui
// CHECK: arith.minsi
// CHECK: arith.cmpi sgt
// CHECK: scf.if
// CHECK: } else {
// CHECK: %[[FIRST:.*]] = arith.minsi
// CHECK: %[[LAST:.*]] = arith.minsi
// CHECK: scf.for %[[K:.*]] = %[[FIRST]] to %[[LAST]]
// CHECK: memref.load %[[COLUMNS]][%[[K]]]
// CHECK: scf.if
// CHECK: cf.assert
// CHECK: } else {
// CHECK-NOT: cf.assert
func.func @main(%start: memref<8xi32>, %columns: memref<20xi64>, %x: memref<5xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c20 = arith.constant 20 : index
  %c5_i64 = arith.constant 5 : i64
  %c10_i64 = arith.constant 10 : i64
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %c7 step %c1 {
    %next = arith.addi %i, %c1 : index
    %first = memref.load %start[%i] : memref<8xi32>
    %last = memref.load %start[%next] : memref<8xi32>
    %wide_first = arith.extui %first : i32 to i64
    %wide_last = arith.extui %last : i32 to i64
    %index_first = arith.index_cast %wide_first : i64 to index
    %index_last = arith.index_cast %wide_last : i64 to index
    %from = arith.minsi %index_first, %c20 : index
    %to = arith.minsi %index_last, %c20 : index
    %length = arith.subi %to, %from : index
    scf.for %j = %c0 to %length step %c1 {
      %k = arith.addi %from, %j : index
      %key = memref.load %columns[%k] : memref<20xi64>
      %moved = arith.addi %key, %c5_i64 : i64
      %inside = arith.cmpi ult, %moved, %c10_i64 : i64
      cf.assert %inside, "index out of bounds" {mlirml.check = 4 : i64, mlirml.check_base = 5 : i64}
      %index = arith.index_cast %key : i64 to index
      %clamped = arith.minui %index, %c4 : index
      memref.store %one, %x[%clamped] : memref<5xf32>
    }
  }
  return
}

// -----

// A check outside of loops stays.
// CHECK-LABEL: func.func @main(
// CHECK: cf.assert
func.func @main(%n: index, %x: memref<5xf32>) {
  %c5 = arith.constant 5 : index
  %one = arith.constant 1.0 : f32
  %inside = arith.cmpi ult, %n, %c5 : index
  cf.assert %inside, "index out of bounds" {mlirml.check = 4 : i64, mlirml.check_base = 0 : i64}
  memref.store %one, %x[%n] : memref<5xf32>
  return
}

// RUN: mlirml-opt %s --split-input-file --mlirml-version-checks | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[KEYS:.*]]: memref<9999xi64>, %[[X:.*]]: memref<5xf32>
// CHECK: scf.for %[[C:.*]] =
// CHECK: %[[END:.*]] = arith.addi %[[C]]
// CHECK: %[[REST:.*]] = scf.while (%[[I:.*]] = %[[C]])
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[I]], %[[END]]
// CHECK: %[[PLAIN:.*]] = scf.if %[[MORE]]
// CHECK: %[[KEY:.*]] = memref.load %[[KEYS]][%[[I]]]
// CHECK: arith.cmpi ult, %[[KEY]], %c5_i64
// CHECK: scf.condition(%[[PLAIN]])
// CHECK: do {
// CHECK-NOT: cf.assert
// CHECK-NOT: arith.minui
// CHECK: %[[INDEX:.*]] = arith.index_cast
// CHECK: memref.store %{{.*}}, %[[X]][%[[INDEX]]]
// CHECK: scf.yield
// CHECK: scf.for %{{.*}} = %[[REST]] to %[[END]]
// CHECK: cf.assert
// CHECK: arith.minui
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

// An index that is loaded after a store, which may change it, is not looked at before.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: scf.while
func.func @main(%keys: memref<99xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c99 = arith.constant 99 : i64
  %c198 = arith.constant 198 : i64
  %n = arith.constant 99 : index
  %zero = arith.constant 0 : i64
  scf.for %i = %c0 to %n step %c1 {
    memref.store %zero, %keys[%i] : memref<99xi64>
    %key = memref.load %keys[%i] : memref<99xi64>
    %moved = arith.addi %key, %c99 : i64
    %inside = arith.cmpi ult, %moved, %c198 : i64
    cf.assert %inside, "index out of bounds" {mlirml.check = 4 : i64, mlirml.check_base = 99 : i64}
  }
  return
}

// -----

// Where indices go up or down with the loop variable, the ends of a chunk tell of all of them.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[W:.*]]: memref<index>, %[[X:.*]]: memref<5xf32>
// CHECK: scf.for %[[C:.*]] =
// CHECK: %[[END:.*]] = arith.addi %[[C]]
// CHECK: %[[LAST:.*]] = arith.subi %[[END]], %{{.*}}
// CHECK: %[[A:.*]] = arith.subi %{{.*}}, %[[C]]
// CHECK: %[[LOW:.*]] = arith.cmpi ult, %[[A]]
// CHECK: %[[B:.*]] = arith.subi %{{.*}}, %[[LAST]]
// CHECK: %[[HIGH:.*]] = arith.cmpi ult, %[[B]]
// CHECK: %[[PLAIN:.*]] = arith.andi %[[LOW]], %[[HIGH]]
// CHECK: scf.if %[[PLAIN]] {
// CHECK: scf.for %{{.*}} = %[[C]] to %[[END]]
// CHECK-NOT: cf.assert
// CHECK: } else {
// CHECK: scf.for %{{.*}} = %[[C]] to %[[END]]
// CHECK: cf.assert
func.func @main(%w: memref<index>, %x: memref<5xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c10 = arith.constant 10 : index
  %n = arith.constant 9999 : index
  %one = arith.constant 1.0 : f32
  %weight = memref.load %w[] : memref<index>
  scf.for %i = %c0 to %n step %c1 {
    %key = arith.subi %weight, %i : index
    %moved = arith.addi %key, %c5 : index
    %inside = arith.cmpi ult, %moved, %c10 : index
    cf.assert %inside, "index out of bounds" {mlirml.check = 4 : i64, mlirml.check_base = 5 : i64}
    %negative = arith.cmpi slt, %key, %c0 : index
    %from_end = arith.addi %key, %c5 : index
    %position = arith.select %negative, %from_end, %key : index
    %clamped = arith.minui %position, %c4 : index
    memref.store %one, %x[%clamped] : memref<5xf32>
  }
  return
}

// -----

// An index that counts down, whose sum with the size is folded: both indices are compared for the first and the last.
// CHECK-LABEL: func.func @main
// CHECK:       scf.if
// CHECK:         scf.for
// CHECK-NOT:       cf.assert
// CHECK:         } else {
// CHECK:           cf.assert
// CHECK:           cf.assert
func.func @main(%x: memref<1001xf64>, %w: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1000 = arith.constant 1000 : index
  %c1001 = arith.constant 1001 : index
  %c2001 = arith.constant 2001 : index
  %c2002 = arith.constant 2002 : index
  scf.for %i = %c0 to %n step %c1 {
    %k = arith.subi %c1000, %i : index
    %moved = arith.subi %c2001, %i : index
    %inside = arith.cmpi ult, %moved, %c2002 : index
    cf.assert %inside, "an index is out of bounds" {mlirml.check = 0 : i64, mlirml.check_base = 1001 : i64}
    %negative = arith.cmpi slt, %k, %c0 : index
    %position = arith.select %negative, %moved, %k : index
    %to = arith.minui %position, %c1000 : index
    %other = arith.subi %k, %w : index
    %far = arith.addi %other, %c1001 : index
    %near = arith.cmpi ult, %far, %c2002 : index
    cf.assert %near, "an index is out of bounds" {mlirml.check = 1 : i64, mlirml.check_base = 1001 : i64}
    %below = arith.cmpi slt, %other, %c0 : index
    %place = arith.select %below, %far, %other : index
    %from = arith.minui %place, %c1000 : index
    %a = memref.load %x[%from] : memref<1001xf64>
    memref.store %a, %x[%to] : memref<1001xf64>
  }
  return
}

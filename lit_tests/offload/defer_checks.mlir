// RUN: mlirml-opt %s --split-input-file --mlirml-defer-checks | filecheck %s

// The number of the check goes to its slot; nobody reads it during the call.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: memref<4xi32>, %[[SLOTS:.*]]: memref<8xi8>)
// CHECK-SAME:  mlirml.deferred_checks = [{base = 5 : i64, bits = 32 : i64, check = 3 : i64, limit = 10 : i64}]
// CHECK:       %[[T:.*]] = memref.alloc() : memref<i32>
// CHECK:       gpu.launch_func
// CHECK:       %[[SLOT:.*]] = memref.view %[[SLOTS]][%c0{{.*}}][] : memref<8xi8> to memref<i32>
// CHECK:       memref.copy %[[T]], %[[SLOT]]
// CHECK-NOT:   cf.assert
// CHECK:       return
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k0(%x: memref<4xi32>, %t: memref<i32>) kernel { gpu.return }
  }
  func.func @main(%x: memref<4xi32>) {
    %c1 = arith.constant 1 : index
    %c10 = arith.constant 10 : i32
    %t = memref.alloc() : memref<i32>
    gpu.launch_func @kernels::@k0 blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<4xi32>, %t : memref<i32>)
    %n = memref.load %t[] : memref<i32>
    %ok = arith.cmpi ult, %n, %c10 : i32
    cf.assert %ok, "an index is out of bounds" {mlirml.check = 3 : i64, mlirml.check_base = 5 : i64}
    return
  }
}

// -----

// What the host has, what is about no index or has no number, and what stands in a loop is checked at once.
// CHECK-LABEL: func.func @main
// CHECK-NOT:   mlirml.deferred_checks
// CHECK-COUNT-4: cf.assert
func.func @main(%n: memref<i32>, %i: index, %x: memref<4xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : i32
  %t = memref.alloc() : memref<i32>
  %0 = memref.load %n[] : memref<i32>
  %1 = arith.cmpi ult, %0, %c10 : i32
  cf.assert %1, "an index is out of bounds" {mlirml.check = 0 : i64, mlirml.check_base = 5 : i64}
  %2 = memref.load %t[] : memref<i32>
  %3 = arith.cmpi ult, %2, %c10 : i32
  cf.assert %3, "there are too many" {mlirml.check = 1 : i64}
  %u = memref.alloc() : memref<i32>
  %6 = memref.load %u[] : memref<i32>
  %7 = arith.cmpi ult, %6, %c10 : i32
  cf.assert %7, "an index is out of bounds" {mlirml.check_base = 5 : i64}
  scf.for %j = %c0 to %i step %c1 {
    %4 = memref.load %t[] : memref<i32>
    %5 = arith.cmpi ult, %4, %c10 : i32
    cf.assert %5, "an index is out of bounds" {mlirml.check = 2 : i64, mlirml.check_base = 5 : i64}
  }
  return
}

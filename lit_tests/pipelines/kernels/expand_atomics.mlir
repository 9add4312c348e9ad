// RUN: mlirml-opt %s "--mlirml-expand-atomics=native={addi,maxu}" | filecheck %s
// RUN: mlirml-opt %s "--mlirml-expand-atomics=native={addf,addi,maximumf,maxs,maxu} small=true" | filecheck %s --check-prefix=SMALL

// A thread takes what is there, leaves what changes no sum, and puts the sum back until it meets nothing of others.
// CHECK-LABEL: gpu.func @floats(
// CHECK-SAME: %[[M:.*]]: memref<16xi32>, %[[V:.*]]: memref<64xf32>
// CHECK: %[[NONE:.*]] = arith.constant -2147483648 : i32
// CHECK: %[[BITS:.*]] = arith.bitcast %{{.*}} : f32 to i32
// CHECK: scf.while (%[[HELD:.*]] = %[[BITS]]) : (i32) -> i32 {
// CHECK: %[[TAKEN:.*]] = memref.atomic_rmw assign %[[NONE]], %[[M]][%{{.*}}] : (i32, memref<16xi32>) -> i32
// CHECK: %[[A:.*]] = arith.bitcast %[[TAKEN]] : i32 to f32
// CHECK: %[[B:.*]] = arith.bitcast %[[HELD]] : i32 to f32
// CHECK: %[[SUM:.*]] = arith.addf %[[A]], %[[B]] : f32
// CHECK: %[[NEW:.*]] = arith.bitcast %[[SUM]] : f32 to i32
// CHECK: %[[LEFT:.*]] = memref.atomic_rmw assign %[[NEW]], %[[M]][%{{.*}}] : (i32, memref<16xi32>) -> i32
// CHECK: %[[MORE:.*]] = arith.cmpi ne, %[[LEFT]], %[[NONE]] : i32
// CHECK: scf.condition(%[[MORE]]) %[[LEFT]] : i32
// SMALL-LABEL: gpu.func @floats(
// SMALL: memref.atomic_rmw addf
// SMALL-NOT: scf.while
gpu.module @kernels {
  gpu.func @floats(%m: memref<16xf32>, %v: memref<64xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %t = gpu.thread_id x
    %c3 = arith.constant 3 : index
    %x = memref.load %v[%t] : memref<64xf32>
    %old = memref.atomic_rmw addf %x, %m[%c3] : (f32, memref<16xf32>) -> f32
    gpu.return
  }

  // What the device has stays.
  // CHECK-LABEL: gpu.func @integers(
  // CHECK: memref.atomic_rmw addi
  // CHECK-NOT: scf.while
  // CHECK: memref.atomic_rmw maxu
  gpu.func @integers(%m: memref<16xi32>, %n: memref<16xi32>) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c5 = arith.constant 5 : i32
    %a = memref.atomic_rmw addi %c5, %m[%c0] : (i32, memref<16xi32>) -> i32
    %b = memref.atomic_rmw maxu %c5, %n[%c0] : (i32, memref<16xi32>) -> i32
    gpu.return
  }

  // Two halves share a word: the one beside meets -infinity, which is no larger than anything.
  // CHECK-LABEL: gpu.func @halves(
  // CHECK-SAME: memref<4xi32>
  // CHECK: %[[NONE:.*]] = arith.constant -67044352 : i32
  // CHECK: arith.remui
  // CHECK: %[[WORD:.*]] = arith.divui
  // CHECK: scf.while
  // CHECK: memref.atomic_rmw assign %[[NONE]], %{{.*}}[%[[WORD]]]
  // CHECK: arith.maximumf %{{.*}} : f16
  // CHECK: arith.shrui
  // CHECK: arith.maximumf %{{.*}} : f16
  // CHECK: arith.shli
  // CHECK: arith.ori
  // SMALL-LABEL: gpu.func @halves(
  // SMALL: memref.atomic_rmw maximumf
  gpu.func @halves(%m: memref<7xf16>, %x: f16) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
    %c3 = arith.constant 3 : index
    %old = memref.atomic_rmw maximumf %x, %m[%c3] : (f16, memref<7xf16>) -> f16
    gpu.return
  }

  // Small integers are computed in words, with their signs.
  // CHECK-LABEL: gpu.func @bytes(
  // CHECK-SAME: memref<2xi32>
  // CHECK: arith.constant -2139062144 : i32
  // CHECK-COUNT-4: arith.maxsi %{{.*}} : i32
  gpu.func @bytes(%m: memref<8xi8>, %x: i8) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
    %c3 = arith.constant 3 : index
    %old = memref.atomic_rmw maxs %x, %m[%c3] : (i8, memref<8xi8>) -> i8
    gpu.return
  }

  // No device has products.
  // SMALL-LABEL: gpu.func @products(
  // SMALL: arith.constant 4607182418800017408 : i64
  // SMALL: arith.mulf %{{.*}} : f64
  gpu.func @products(%m: memref<8xf64>, %x: f64) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
    %c3 = arith.constant 3 : index
    %old = memref.atomic_rmw mulf %x, %m[%c3] : (f64, memref<8xf64>) -> f64
    gpu.return
  }
}

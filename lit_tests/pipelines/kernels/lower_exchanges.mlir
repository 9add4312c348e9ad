// RUN: mlirml-opt %s --mlirml-lower-exchanges | filecheck %s

// In front of the conversion an operation that it takes stands in for an exchange.
// CHECK-LABEL: gpu.func @k(
// CHECK: memref.atomic_rmw maxs %{{.*}}, %{{.*}}[%{{.*}}] : (i32, memref<8xi32>) -> i32
// CHECK: memref.atomic_rmw addi
gpu.module @kernels {
  gpu.func @k(%m: memref<8xi32>, %v: i32) kernel {
    %c0 = arith.constant 0 : index
    %a = memref.atomic_rmw assign %v, %m[%c0] : (i32, memref<8xi32>) -> i32
    %b = memref.atomic_rmw addi %a, %m[%c0] : (i32, memref<8xi32>) -> i32
    gpu.return
  }
}

// Behind it, what that became is the exchange.
// CHECK-LABEL: spirv.func @f(
// CHECK: %[[OLD:.*]] = spirv.AtomicExchange <Device> <AcquireRelease> %{{.*}}, %{{.*}} : !spirv.ptr<i32, StorageBuffer>
// CHECK: spirv.ReturnValue %[[OLD]]
spirv.module Logical GLSL450 requires #spirv.vce<v1.3, [Shader], [SPV_KHR_storage_buffer_storage_class]> {
  spirv.func @f(%p: !spirv.ptr<i32, StorageBuffer>, %v: i32) -> i32 "None" {
    %old = spirv.AtomicSMax <Device> <AcquireRelease> %p, %v : !spirv.ptr<i32, StorageBuffer>
    spirv.ReturnValue %old : i32
  }
}

// RUN: mlirml-opt %s --mlirml-schedule-kernels=device=gpu,tensor-cores=true | filecheck %s
// RUN: mlirml-opt %s --mlirml-schedule-kernels | filecheck %s --check-prefix=WITHOUT

// Small tiles of f32 are copied to shared memory three steps ahead, and multiplied in full precision.
// CHECK-LABEL: gpu.func @k0_matmul_contract
// CHECK-COUNT-2: memref.alloc() : memref<2048xf32, #gpu.address_space<workgroup>>
// CHECK: nvgpu.device_async_copy {{.*}}, 4 {bypassL1} : memref<4096xf32> to memref<2048xf32, #gpu.address_space<workgroup>>
// CHECK: nvgpu.device_async_create_group
// CHECK: scf.for
// CHECK: nvgpu.device_async_wait %{{.*}} {numGroups = 2 : i32}
// CHECK-NEXT: gpu.barrier
// CHECK: nvgpu.device_async_copy
// CHECK: scf.for
// CHECK: vector.load %{{.*}} {alignment = 16 : i64} : memref<2048xf32, #gpu.address_space<workgroup>>, vector<4xf32>
// CHECK: math.fma
// CHECK-NOT: gpu.barrier
// CHECK: gpu.return

// WITHOUT-LABEL: gpu.func @k0_matmul_contract
// WITHOUT-NOT: nvgpu
// WITHOUT: gpu.return
func.func private @k0_matmul(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %out: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {mlirml.kernel} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// RUN: mlirml-opt %s --mlirml-schedule-kernels | filecheck %s
// RUN: mlirml-opt %s --mlirml-schedule-kernels=naive=true | filecheck %s --check-prefix=NAIVE
// RUN: mlirml-opt %s --mlirml-schedule-kernels=device=gpu,subgroup=32,tensor-cores=true | filecheck %s --check-prefix=CORES

// Tiles of both operands are shared; a thread keeps its sums in registers.
// CHECK-LABEL: gpu.func @k0_matmul_contract
// CHECK: memref.alloc() : memref<16x{{.*}}xf32, #gpu.address_space<workgroup>>
// CHECK: scf.for {{.*}} iter_args
// CHECK: vector.load %{{.*}} {alignment = 8 : i64} : memref<4096xf16>, vector<4xf16>
// CHECK: gpu.barrier
// CHECK: math.fma
// CHECK: gpu.barrier
// CHECK: vector.store

// NAIVE-LABEL: gpu.func @k0_matmul_reduce
// NAIVE-NOT: gpu.barrier
// NAIVE: gpu.return

// Half floats are multiplied on tensor cores, and copied to shared memory two rounds ahead.
// CORES-LABEL: gpu.func @k0_matmul_contract
// CORES-COUNT-2: memref.alloc() : memref<6144xf16, #gpu.address_space<workgroup>>
// CORES: nvgpu.device_async_copy {{.*}}, 8 {bypassL1} : memref<4096xf16> to memref<6144xf16, #gpu.address_space<workgroup>>
// CORES: nvgpu.device_async_create_group
// CORES: scf.for
// CORES: nvgpu.device_async_wait %{{.*}} {numGroups = 1 : i32}
// CORES-NEXT: gpu.barrier
// CORES: nvgpu.device_async_copy
// CORES: nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = false}
// CORES: nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = true}
// CORES: nvgpu.mma.sync{{.*}}mmaShape = [16, 8, 16]
func.func private @k0_matmul(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>, %out: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {mlirml.kernel} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<64x64xf16>, tensor<64x64xf16>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

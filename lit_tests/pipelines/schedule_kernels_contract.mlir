// RUN: mlirml-opt %s --mlirml-schedule-kernels | filecheck %s
// RUN: mlirml-opt %s --mlirml-schedule-kernels=naive=true | filecheck %s --check-prefix=NAIVE
// RUN: mlirml-opt %s --mlirml-schedule-kernels="subgroup=32 tensor-cores=true" | filecheck %s --check-prefix=CORES

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

// Half floats are multiplied on tensor cores, and lie in shared memory as they are.
// CORES-LABEL: gpu.func @k0_matmul_contract
// CORES: memref.alloc() : memref<64x40xf16, #gpu.address_space<workgroup>>
// CORES: vector.load %{{.*}} {alignment = 16 : i64} : memref<4096xf16>, vector<8xf16>
// CORES: nvgpu.mma.sync{{.*}}mmaShape = [16, 8, 16]
func.func private @k0_matmul(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>, %out: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {mlirml.kernel} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<64x64xf16>, tensor<64x64xf16>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

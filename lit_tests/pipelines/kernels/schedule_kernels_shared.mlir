// The same kernels go to both ends: only the last conversion differs. (Where copies can run ahead, as CUDA's do for rows
// of whole 16 bytes, that is a fact which the schedule is told; here no row is.)
// RUN: mlirml-opt %s --target=vulkan --stop-after=schedule > %t.vulkan
// RUN: mlirml-opt %s --target=cuda --stop-after=schedule > %t.cuda
// RUN: filecheck %s < %t.cuda
// RUN: mlirml-opt %s --target=vulkan | filecheck %s --check-prefix=SPIRV
// RUN: mlirml-opt %s --target=cuda | filecheck %s --check-prefix=NVVM
// RUN: diff %t.vulkan %t.cuda

// CHECK: gpu.module @kernels
// CHECK: gpu.func @k0_matmul_tanh_contract
// CHECK: memref.alloc() : memref<16x68xf32, #gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK: math.tanh

// SPIRV: llvm.call @mgpuLaunchKernel
// SPIRV: gpu.binary @kernels [#gpu.object<#spirv.target_env

// NVVM: llvm.call @mgpuLaunchKernel
// NVVM: gpu.module @kernels
// NVVM: llvm.func @k0_matmul_tanh_contract
// NVVM-SAME: nvvm.kernel
// NVVM: nvvm.barrier

#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%a: tensor<126x93xf32>, %b: tensor<93x127xf32>) -> tensor<126x127xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<126x127xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<126x127xf32>) -> tensor<126x127xf32>
  %p = linalg.matmul ins(%a, %b : tensor<126x93xf32>, tensor<93x127xf32>) outs(%f : tensor<126x127xf32>) -> tensor<126x127xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<126x127xf32>) outs(%e : tensor<126x127xf32>) {
  ^bb0(%x: f32, %o: f32):
    %t = math.tanh %x : f32
    linalg.yield %t : f32
  } -> tensor<126x127xf32>
  return %r : tensor<126x127xf32>
}

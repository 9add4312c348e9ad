// RUN: mlirml-opt %s --mlirml-schedule-kernels="device=gpu,subgroup=32,tensor-cores=true,processors=16" | filecheck %s
// RUN: mlirml-opt %s --mlirml-schedule-kernels=device=gpu,subgroup=32,tensor-cores=true | filecheck %s --check-prefix=WHOLE

// One tile of results and much depth: 16 blocks compute a part of the sums each, a second kernel adds them.
// CHECK-LABEL: gpu.func @k0_matmul_contract
// CHECK-SAME: %[[PARTIAL:.*]]: memref<65536xf32>)
// CHECK: scf.for
// CHECK: nvgpu.mma.sync
// CHECK-LABEL: gpu.func @k0_matmul_2_sum
// CHECK-COUNT-16: memref.load {{.*}} : memref<65536xf32>
// CHECK: math.tanh
// CHECK: memref.store {{.*}} : memref<4096xf32>
// CHECK-LABEL: func.func private @k0_matmul__launch
// CHECK: %[[MEMORY:.*]] = memref.alloc() {alignment = 64 : i64} : memref<65536xf32>
// CHECK: gpu.launch_func @kernels::@k0_matmul_contract blocks in (%c16{{[_0-9]*}},
// CHECK: gpu.launch_func @kernels::@k0_matmul_2_sum

// WHOLE: gpu.func @k0_matmul_contract
// WHOLE-NOT: gpu.func
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func private @k0_matmul(%a: tensor<64x8192xf16>, %b: tensor<8192x64xf16>, %out: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {mlirml.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<64x8192xf16>, tensor<8192x64xf16>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<64x64xf32>) outs(%out : tensor<64x64xf32>) {
  ^bb0(%x: f32, %o: f32):
    %t = math.tanh %x : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}

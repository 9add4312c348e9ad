// RUN: mlirml-opt %s --target=cuda --emit=ptx | filecheck %s

// 16 bytes at a time through memory, and tensor cores for half floats.
// CHECK: .target sm_80
// CHECK-LABEL: .entry k0_add
// CHECK: ld.global.v4.b32
// CHECK: st.global.v4.b32
// CHECK-LABEL: .entry k1_matmul
// CHECK: cp.async.cg.shared.global [{{.*}}], [{{.*}}], 16;
// CHECK: cp.async.commit_group
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// CHECK-NOT: .local
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: tensor<256x256xf32>, %a: tensor<64x64xf16>) -> (tensor<256x256xf32>, tensor<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %big = tensor.empty() : tensor<256x256xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<256x256xf32>) outs(%big : tensor<256x256xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.addf %p, %p : f32
    linalg.yield %t : f32
  } -> tensor<256x256xf32>
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = linalg.matmul ins(%a, %a : tensor<64x64xf16>, tensor<64x64xf16>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r, %p : tensor<256x256xf32>, tensor<64x64xf32>
}

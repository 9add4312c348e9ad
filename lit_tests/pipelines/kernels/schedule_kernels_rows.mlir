// RUN: mlirml-opt %s --mlirml-schedule-kernels --split-input-file | filecheck %s
// RUN: mlirml-opt %s --mlirml-schedule-kernels=device=gpu,subgroup=32 --split-input-file | filecheck %s --check-prefix=SHUFFLE

// A row is reduced by neighbouring threads: in shared memory, or by shuffles where subgroups are known.
// CHECK-LABEL: gpu.func @k0_sum_rows
// CHECK: memref.alloc() : memref<256xf32, #gpu.address_space<workgroup>>
// CHECK: vector.load
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK: memref.store
// SHUFFLE-LABEL: gpu.func @k0_sum_rows
// SHUFFLE-NOT: gpu.barrier
// SHUFFLE: gpu.shuffle xor
// SHUFFLE: gpu.return
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func private @k0_sum(%x: tensor<64x512xf32>, %out: tensor<64xf32>) -> tensor<64xf32> attributes {mlirml.kernel} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<64xf32>) -> tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x512xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// One long row is cut into pieces, whose sums a second kernel merges.
// CHECK-LABEL: gpu.func @k0_all_pieces
// CHECK-LABEL: gpu.func @k0_all_2_merge
// CHECK: func.func private @k0_all__launch
// CHECK: %[[PARTS:.*]] = memref.alloc() {{.*}} : memref<[[N:.*]]xf32>
// CHECK: gpu.launch_func @kernels::@k0_all_pieces
// CHECK-SAME: %[[PARTS]]
// CHECK: gpu.launch_func @kernels::@k0_all_2_merge
#all = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
func.func private @k0_all(%x: tensor<1048576xf32>, %out: tensor<f32>) -> tensor<f32> attributes {mlirml.kernel} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<f32>) -> tensor<f32>
  %0 = linalg.generic {indexing_maps = [#all, #none], iterator_types = ["reduction"]}
      ins(%x : tensor<1048576xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

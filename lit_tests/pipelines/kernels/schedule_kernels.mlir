// RUN: mlirml-opt %s --mlirml-schedule-kernels --split-input-file | filecheck %s

// An elementwise chain is one kernel; a thread loads and stores 16 bytes at once, under one guard.
// CHECK-LABEL: gpu.func @k0_chain_elementwise
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK: scf.if
// CHECK: vector.load %{{.*}} {alignment = 16 : i64} : memref<3600xf32>, vector<4xf32>
// CHECK: math.tanh
// CHECK: vector.store
// CHECK: func.func private @k0_chain(
// CHECK: func.func private @k0_chain__launch(%[[X:.*]]: memref<60x60xf32>, %[[B:.*]]: memref<60xf32>, %[[OUT:.*]]: memref<60x60xf32>)
// CHECK: gpu.launch_func @kernels::@k0_chain_elementwise blocks in (%{{.*}}, %{{.*}}, %{{.*}}) threads in
// CHECK-NOT: gpu.launch_func
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func private @k0_chain(%x: tensor<60x60xf32>, %b: tensor<60xf32>, %out: tensor<60x60xf32>) -> tensor<60x60xf32>
    attributes {mlirml.kernel} {
  %e = tensor.empty() : tensor<60x60xf32>
  %0 = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<60x60xf32>, tensor<60xf32>) outs(%e : tensor<60x60xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<60x60xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<60x60xf32>) outs(%out : tensor<60x60xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  } -> tensor<60x60xf32>
  return %1 : tensor<60x60xf32>
}

// -----

// What is accumulated in an order of its own: a thread for each result, a loop in it.
// CHECK-LABEL: gpu.func @k0_last_reduce
// CHECK: scf.for {{.*}} iter_args
// CHECK: arith.divf
// CHECK: memref.store
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func private @k0_last(%x: tensor<64x10xf32>, %out: tensor<64xf32>) -> tensor<64xf32> attributes {mlirml.kernel} {
  %one = arith.constant 1.0 : f32
  %f = linalg.fill ins(%one : f32) outs(%out : tensor<64xf32>) -> tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x10xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.divf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// A concatenation is one kernel: one branch for all that a thread computes, and vectors.
// CHECK-LABEL: gpu.func @k9_concatenate_elementwise(
// CHECK: scf.if %{{.*}} -> (f32, f32, f32, f32)
// CHECK: vector.load
// CHECK: vector.store
// CHECK-NOT: gpu.func
func.func private @k9_concatenate(%x: tensor<8x64xf32>, %y: tensor<8x32xf32>, %out: tensor<8x96xf32>)
    -> tensor<8x96xf32> attributes {mlirml.kernel} {
  %a = tensor.insert_slice %x into %out[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x96xf32>
  %b = tensor.insert_slice %y into %a[0, 64] [8, 32] [1, 1] : tensor<8x32xf32> into tensor<8x96xf32>
  return %b : tensor<8x96xf32>
}

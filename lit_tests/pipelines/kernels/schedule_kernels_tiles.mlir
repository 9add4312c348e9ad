// RUN: mlirml-opt %s --mlirml-schedule-kernels='device=cuda,tile=sm_90' | filecheck %s
// RUN: mlirml-opt %s --mlirml-schedule-kernels='device=cuda' | filecheck %s --check-prefix=THREADS

// A block is one thread, and its values are tiles. Views of the arrays say what their strides are.
// CHECK: gpu.func @product_contract(%[[A:[a-z0-9]+]]: memref<300x192xf16, strided<[192, 1]>>, %[[B:[a-z0-9]+]]: memref<192x264xf16, strided<[264, 1]>>, %[[C:[a-z0-9]+]]: memref<264xf16, strided<[1]>>, %[[OUT:[a-z0-9]+]]: memref<300x264xf16, strided<[264, 1]>>) kernel attributes {known_block_size = array<i32: 1, 1, 1>, mlirml.tile = {warps = 4 : i64}}
// CHECK: scf.for {{.*}} iter_args(%[[SUMS:.*]] = {{.*}}) -> (vector<64x64xf32>)
// CHECK:   %[[X:.*]] = vector.transfer_read %[[A]]{{.*}} {in_bounds = [false, true]} : {{.*}}, vector<64x64xf16>
// CHECK:   %[[Y:.*]] = vector.transfer_read %[[B]]{{.*}} {in_bounds = [true, false]} : {{.*}}, vector<64x64xf16>
// CHECK:   vector.contract {{.*}} %[[X]], %[[Y]], %[[SUMS]] : vector<64x64xf16>, vector<64x64xf16> into vector<64x64xf32>
// CHECK: %[[ROW:.*]] = vector.transfer_read %[[C]]
// CHECK: arith.truncf {{.*}} : vector<64x64xf32> to vector<64x64xf16>
// CHECK: vector.shape_cast %[[ROW]] : vector<64xf16> to vector<1x64xf16>
// CHECK: math.tanh {{.*}} : vector<64x64xf16>
// CHECK: vector.transfer_write {{.*}}, %[[OUT]]

// THREADS: gpu.func @product_contract({{.*}}) kernel attributes {known_block_size = array<i32: 128, 1, 1>}
func.func private @product(%a: tensor<300x192xf16>, %b: tensor<192x264xf16>, %c: tensor<264xf16>, %o: tensor<300x264xf16>) -> tensor<300x264xf16> attributes {mlirml.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<300x264xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<300x264xf32>) -> tensor<300x264xf32>
  %m = linalg.matmul ins(%a, %b : tensor<300x192xf16>, tensor<192x264xf16>) outs(%f : tensor<300x264xf32>) -> tensor<300x264xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%m, %c : tensor<300x264xf32>, tensor<264xf16>) outs(%o : tensor<300x264xf16>) {
  ^bb0(%x: f32, %y: f16, %out: f16):
    %t = arith.truncf %x : f32 to f16
    %u = arith.addf %t, %y : f16
    %v = math.tanh %u : f16
    linalg.yield %v : f16
  } -> tensor<300x264xf16>
  return %r : tensor<300x264xf16>
}

// Rows that are not aligned to 16 bytes are not for the copy engine.
// CHECK: gpu.func @unaligned_contract({{.*}}) kernel attributes {known_block_size = array<i32: 128, 1, 1>}
func.func private @unaligned(%a: tensor<64x63xf16>, %b: tensor<63x64xf16>, %o: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {mlirml.kernel} {
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%o : tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = linalg.matmul ins(%a, %b : tensor<64x63xf16>, tensor<63x64xf16>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %m : tensor<64x64xf32>
}

// RUN: mlirml-opt %s --mlirml-lower-contract=processor=amx --remarks -o /dev/null 2>&1 | filecheck %s

// Users see how each contraction is computed.
#id = affine_map<(i, j) -> (i, j)>
// CHECK: remark: linalg.matmul: computed by @contract_packed_f32_64x128x64, register tile 8 x 32, packs a and b in blocks of 64 along k [mlirml-lower-contract]
// CHECK: remark: linalg.matmul: computed by @contract_direct_f32_32x32x32, register tile 8 x 32, and its elementwise consumer runs on the tile
// CHECK: remark: linalg.matmul: computed by @contract_packed_f32_64x64x64, register tile 32 x 32 (AMX), packs a and b
func.func @main(%a: memref<64x64xf32>, %b: memref<64x128xf32>, %c: memref<64x128xf32>, %d: memref<32x32xf32>, %e: memref<32x32xf32>, %f: memref<64x64xbf16>, %g: memref<64x64xf32>) {
  linalg.matmul {mlirml.schedule = {kernel = "packed", lanes = 16, mr = 8, nr = 32, kc = 64, mc = 64, nc = 128, pack = "ab"}}
    ins(%a, %b : memref<64x64xf32>, memref<64x128xf32>) outs(%c : memref<64x128xf32>)
  linalg.matmul {mlirml.schedule = {kernel = "direct", lanes = 16, mr = 8, nr = 32, kc = 32, mc = 32, nc = 32}}
    ins(%d, %d : memref<32x32xf32>, memref<32x32xf32>) outs(%e : memref<32x32xf32>)
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%e : memref<32x32xf32>) outs(%e : memref<32x32xf32>) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.negf %x : f32
    linalg.yield %0 : f32
  }
  linalg.matmul ins(%f, %f : memref<64x64xbf16>, memref<64x64xbf16>) outs(%g : memref<64x64xf32>)
  return
}

// RUN: mlirml-opt %s --mlirml-lower-contract=processor=avx512 --split-input-file | filecheck %s

// The fill is dropped, because the kernel overwrites; two equal contractions share a kernel.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[A:[^:]*]]: memref<12x20xf32>, %[[B:[^:]*]]: memref<20x32xf32>, %[[C:[^:]*]]: memref<12x32xf32>, %[[D:[^:]*]]: memref<12x32xf32>
// CHECK-NOT: linalg
// CHECK: call @contract_direct_f32_12x32x20(%[[A]], %[[B]], %[[C]])
// CHECK-NEXT: call @contract_direct_f32_12x32x20(%[[A]], %[[B]], %[[D]])
// CHECK: func.func private @contract_direct_f32_12x32x20(
// CHECK: scf.for
// CHECK-COUNT-24: vector.fma {{.*}} : vector<16xf32>
// CHECK-NOT: arith.addf
// CHECK-COUNT-24: vector.store {{.*}} : memref<384xf32>, vector<16xf32>
func.func @main(%a: memref<12x20xf32>, %b: memref<20x32xf32>, %c: memref<12x32xf32>, %d: memref<12x32xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<12x32xf32>)
  linalg.matmul {mlirml.schedule = {kernel = "direct", lanes = 16, mr = 12, nr = 32, kc = 20, mc = 12, nc = 32}}
    ins(%a, %b : memref<12x20xf32>, memref<20x32xf32>) outs(%c : memref<12x32xf32>)
  linalg.fill ins(%zero : f32) outs(%d : memref<12x32xf32>)
  linalg.matmul {mlirml.schedule = {kernel = "direct", lanes = 16, mr = 12, nr = 32, kc = 20, mc = 12, nc = 32}}
    ins(%a, %b : memref<12x20xf32>, memref<20x32xf32>) outs(%d : memref<12x32xf32>)
  return
}

// -----

// Right before the product, the fill of a row of something larger is dropped, too.
// CHECK-LABEL: func.func @main
// CHECK-NOT: linalg.fill
// CHECK: call @contract_direct_f32_4x16x8(
// CHECK: memref.copy
// CHECK-NOT: linalg.fill
// CHECK: call @contract_direct_f32_4x16x8(
// CHECK: return
func.func @main(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<3x4x16xf32>, %d: memref<4x8xf32>, %i: index) {
  %zero = arith.constant 0.0 : f32
  %row = memref.subview %c[%i, 0, 0] [1, 4, 16] [1, 1, 1] : memref<3x4x16xf32> to memref<4x16xf32, strided<[16, 1], offset: ?>>
  linalg.fill ins(%zero : f32) outs(%row : memref<4x16xf32, strided<[16, 1], offset: ?>>)
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x16xf32>) outs(%row : memref<4x16xf32, strided<[16, 1], offset: ?>>)
  memref.copy %a, %d : memref<4x8xf32> to memref<4x8xf32>
  linalg.fill ins(%zero : f32) outs(%row : memref<4x16xf32, strided<[16, 1], offset: ?>>)
  %other = memref.subview %c[0, 0, 0] [1, 4, 16] [1, 1, 1] : memref<3x4x16xf32> to memref<4x16xf32, strided<[16, 1]>>
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x16xf32>) outs(%row : memref<4x16xf32, strided<[16, 1], offset: ?>>)
  return
}

// -----

// What stands in between could read that memory.
// CHECK-LABEL: func.func @main
// CHECK: linalg.fill
// CHECK: call @contract_direct_f32_4x16x8(
func.func @main(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<3x4x16xf32>, %d: memref<3x4x16xf32>, %i: index) {
  %zero = arith.constant 0.0 : f32
  %row = memref.subview %c[%i, 0, 0] [1, 4, 16] [1, 1, 1] : memref<3x4x16xf32> to memref<4x16xf32, strided<[16, 1], offset: ?>>
  linalg.fill ins(%zero : f32) outs(%row : memref<4x16xf32, strided<[16, 1], offset: ?>>)
  memref.copy %c, %d : memref<3x4x16xf32> to memref<3x4x16xf32>
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x16xf32>) outs(%row : memref<4x16xf32, strided<[16, 1], offset: ?>>)
  return
}

// -----

// A fill with anything but zero stays, and the kernel adds.
// CHECK-LABEL: func.func @main
// CHECK: linalg.fill
// CHECK-NEXT: call @contract_direct_f32_4x16x8(
// CHECK: func.func private @contract_direct_f32_4x16x8(
// CHECK: arith.addf
func.func @main(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%c : memref<4x16xf32>)
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x16xf32>) outs(%c : memref<4x16xf32>)
  return
}

// -----

// So does one that is read in between.
// CHECK-LABEL: func.func @main
// CHECK: linalg.fill
// CHECK-NEXT: memref.load
// CHECK: call @contract_direct_f32_4x16x8(
func.func @main(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  linalg.fill ins(%zero : f32) outs(%c : memref<4x16xf32>)
  %r = memref.load %c[%c0, %c0] : memref<4x16xf32>
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x16xf32>) outs(%c : memref<4x16xf32>)
  return %r : f32
}

// -----

// Packing buffers live for the call, so that others may lie there in the rest of a round; split loops carry a grain.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK: memref.alloc() {alignment = 64 : i64}
// CHECK: memref.alloc() {alignment = 64 : i64}
// CHECK: func.call @contract_packed_f32_64x64x64(
// CHECK: func.func private @contract_packed_f32_64x64x64(
// CHECK: scf.parallel
// CHECK: {mlirml.grain = {{[0-9]+}} : i64}
// CHECK: scf.parallel
// CHECK: {mlirml.grain = 2 : i64}
func.func @main(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c0 to %c9 step %c1 {
    linalg.matmul {mlirml.schedule = {kernel = "packed", lanes = 16, mr = 8, nr = 32, kc = 64, mc = 16, nc = 64, pack = "ab", parallel = "rows", chunks = 4, grain = 2}}
      ins(%a, %b : memref<64x64xf32>, memref<64x64xf32>) outs(%c : memref<64x64xf32>)
  }
  return
}

// -----

// The offset of a view that is known at run time only is an argument of its own; b is on the right of the transposed out.
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (n, m)>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: memref<5x8x16xf32>, %[[B:[^:]*]]: memref<16x32xf32>, %[[C:[^:]*]]: memref<32x8xf32>
// CHECK: %[[BASE:.*]], %[[OFFSET:.*]], %{{.*}}:2, %{{.*}}:2 = memref.extract_strided_metadata
// CHECK: call @contract_packed_f32_32x8x16(%[[B]], %[[BASE]], %[[C]], %[[OFFSET]], %{{.*}})
// CHECK: func.func private @contract_packed_f32_32x8x16(%{{.*}}: memref<16x32xf32>, %{{.*}}: memref<f32>, %{{.*}}: memref<32x8xf32>, %{{.*}}: index, %{{.*}}: memref
func.func @main(%x: memref<5x8x16xf32>, %b: memref<16x32xf32>, %c: memref<32x8xf32>, %t: index) {
  %a = memref.subview %x[%t, 0, 0] [1, 8, 16] [1, 1, 1] : memref<5x8x16xf32> to memref<8x16xf32, strided<[16, 1], offset: ?>>
  linalg.contract indexing_maps = [#a, #b, #c] ins(%a, %b : memref<8x16xf32, strided<[16, 1], offset: ?>>, memref<16x32xf32>) outs(%c : memref<32x8xf32>)
  return
}

// -----

// f16 is summed in f32, bytes in i32.
// CHECK-LABEL: func.func @main
// CHECK: func.func private @contract_{{[a-z]*}}_f32_
// CHECK: arith.extf {{.*}} : vector<16xf16> to vector<16xf32>
// CHECK: vector.fma {{.*}} : vector<16xf32>
// CHECK: arith.truncf {{.*}} : vector<16xf32> to vector<16xf16>
// CHECK: func.func private @contract_{{[a-z]*}}_i32_
// CHECK: arith.extsi
// CHECK: arith.muli {{.*}} : vector<16xi32>
// CHECK: arith.trunci {{.*}} : vector<16xi32> to vector<16xi8>
func.func @main(%a: memref<4x8xf16>, %b: memref<8x16xf16>, %c: memref<4x16xf16>, %d: memref<4x8xi8>, %e: memref<8x16xi8>, %f: memref<4x16xi8>) {
  linalg.matmul ins(%a, %b : memref<4x8xf16>, memref<8x16xf16>) outs(%c : memref<4x16xf16>)
  linalg.matmul ins(%d, %e : memref<4x8xi8>, memref<8x16xi8>) outs(%f : memref<4x16xi8>)
  return
}

// -----

// Left to mlirml-lower-loops: what its schedule gives to it, booleans, no elements, dynamic shapes, other layouts.
// CHECK-LABEL: func.func @main
// CHECK-NOT: call
// CHECK: linalg.matmul ins
// CHECK: linalg.matmul ins
// CHECK: linalg.matmul ins
// CHECK: linalg.matmul ins
// CHECK: linalg.matmul ins
// CHECK-NOT: func.func private
func.func @main(%a: memref<4x4xf32>, %i: memref<4x4xi1>, %e: memref<4x0xf32>, %f: memref<0x4xf32>, %d: memref<?x?xf32>, %s: memref<4x4xf32, strided<[?, 1]>>) {
  linalg.matmul {mlirml.schedule = {kernel = "loops"}} ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%a : memref<4x4xf32>)
  linalg.matmul ins(%i, %i : memref<4x4xi1>, memref<4x4xi1>) outs(%i : memref<4x4xi1>)
  linalg.matmul ins(%e, %f : memref<4x0xf32>, memref<0x4xf32>) outs(%a : memref<4x4xf32>)
  linalg.matmul ins(%d, %d : memref<?x?xf32>, memref<?x?xf32>) outs(%d : memref<?x?xf32>)
  linalg.matmul ins(%s, %a : memref<4x4xf32, strided<[?, 1]>>, memref<4x4xf32>) outs(%a : memref<4x4xf32>)
  return
}

// -----

// The elementwise consumer runs on the register tile; the product itself is never in memory.
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[A:[^:]*]]: memref<30x20xf32>, %[[B:[^:]*]]: memref<20x40xf32>, %[[BIAS:[^:]*]]: memref<40xf32>, %[[C:[^:]*]]: memref<30x40xf32>
// CHECK-NOT: linalg
// CHECK: call @contract_direct_f32_30x40x20(%[[A]], %[[B]], %[[BIAS]], %[[C]])
// CHECK: func.func private @contract_direct_f32_30x40x20(
// CHECK: %[[TILE:.*]] = memref.alloca()
// CHECK: call @contract_direct_f32_30x40x20_write(%[[TILE]]
// CHECK: func.func private @contract_direct_f32_30x40x20_write(
// CHECK: scf.for
// CHECK: scf.for
// CHECK: %[[SUM:.*]] = arith.addf {{.*}} : vector<16xf32>
// CHECK: %[[MAX:.*]] = arith.maximumf %[[SUM]], {{.*}} : vector<16xf32>
// CHECK: vector.maskedstore {{.*}}, %[[MAX]]
func.func @main(%a: memref<30x20xf32>, %b: memref<20x40xf32>, %bias: memref<40xf32>, %c: memref<30x40xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<30x40xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<30x40xf32>)
  linalg.matmul ins(%a, %b : memref<30x20xf32>, memref<20x40xf32>) outs(%t : memref<30x40xf32>)
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%t, %bias : memref<30x40xf32>, memref<40xf32>) outs(%c : memref<30x40xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %0 = arith.addf %x, %y : f32
    %1 = arith.maximumf %0, %zero : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

// It does not where the consumer writes over an operand of the product: other tiles still need that.
#id = affine_map<(i, j) -> (i, j)>
// CHECK-LABEL: func.func @main
// CHECK: call @contract_direct_f32_32x32x32(
// CHECK: linalg.generic
func.func @main(%a: memref<32x32xf32>, %b: memref<32x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<32x32xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<32x32xf32>)
  linalg.matmul ins(%a, %b : memref<32x32xf32>, memref<32x32xf32>) outs(%t : memref<32x32xf32>)
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%t, %a : memref<32x32xf32>, memref<32x32xf32>) outs(%a : memref<32x32xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Products of other sizes share what takes time: the product of two panels, and packing.
// CHECK-LABEL: func.func @main
// CHECK: func.func private @contract_packed_f32_64x128x64(
// CHECK: call @contract_pack_squares_f32_
// CHECK: call @contract_pack_rows_f32_
// CHECK: call @contract_tile_f32_
// CHECK: func.func private @contract_tile_f32_
// CHECK: func.func private @contract_packed_f32_96x64x128(
// CHECK: call @contract_pack_squares_f32_
// CHECK: call @contract_pack_rows_f32_
// CHECK: call @contract_tile_f32_
// CHECK-NOT: func.func private @contract_tile_f32_
func.func @main(%a: memref<64x64xf32>, %b: memref<64x128xf32>, %c: memref<64x128xf32>, %d: memref<96x128xf32>, %e: memref<128x64xf32>, %f: memref<96x64xf32>) {
  linalg.matmul {mlirml.schedule = {kernel = "packed", lanes = 16, mr = 8, nr = 32, kc = 64, mc = 64, nc = 128, pack = "ab"}}
    ins(%a, %b : memref<64x64xf32>, memref<64x128xf32>) outs(%c : memref<64x128xf32>)
  linalg.matmul {mlirml.schedule = {kernel = "packed", lanes = 16, mr = 8, nr = 32, kc = 128, mc = 96, nc = 64, pack = "ab"}}
    ins(%d, %e : memref<96x128xf32>, memref<128x64xf32>) outs(%f : memref<96x64xf32>)
  return
}

// -----

// Pairs of bf16 are packed side by side and multiplied by one instruction; by tiles where there are registers for them.
// RUN: mlirml-opt %s --mlirml-lower-contract=processor=avx512+avx512_bf16 --split-input-file | filecheck %s --check-prefix=PAIRS
// CHECK-LABEL: func.func @main
// PAIRS-LABEL: func.func @main
// PAIRS: call @contract_packed_f32_64x128x64_1(
// PAIRS: func.func private @contract_packed_f32_64x128x64_1(
// PAIRS: call @contract_pack_squares_bf16_pairs_
// PAIRS: call @contract_pack_rows_bf16_pairs_
// PAIRS: func.func private @contract_tile_f32_{{.*}}_bf16_pairs(
// PAIRS: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"({{.*}}) : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>
// PAIRS: vector.interleave {{.*}} : vector<16xbf16> -> vector<32xbf16>
// RUN: mlirml-opt %s --mlirml-lower-contract=processor=amx --split-input-file | filecheck %s --check-prefix=TILES
// TILES-LABEL: func.func private @contract_packed_f32_64x128x64_1(
// TILES: call @contract_pack_tiles_squares_bf16_32_whole(
// TILES: call @contract_pack_rows_bf16_pairs_for_tiles_
// TILES: call @contract_configure_tiles()
// TILES: call @contract_tile_f32_32x32_bf16_tiles(
// TILES: call @contract_write_f32_32x32_16_add(
// TILES: llvm.call_intrinsic "llvm.x86.tilerelease"()
// TILES: func.func private @contract_tile_f32_32x32_bf16_tiles(
// TILES-COUNT-4: "llvm.x86.tilezero"
// TILES: scf.for
// TILES-COUNT-3: "llvm.x86.tileloadd64"
// TILES-COUNT-2: "llvm.x86.tdpbf16ps"
// TILES: "llvm.x86.tileloadd64"
// TILES-COUNT-2: "llvm.x86.tdpbf16ps"
// TILES: }
// TILES-COUNT-4: "llvm.x86.tilestored64"
// TILES: func.func private @contract_pack_tiles_squares_bf16_32_whole(
// TILES: vector.bitcast {{.*}} : vector<32xbf16> to vector<16xi32>
// TILES: func.func private @contract_configure_tiles(
// TILES: "llvm.x86.ldtilecfg"
func.func private @contract_packed_f32_64x128x64()
func.func @main(%a: memref<64x64xbf16>, %b: memref<64x128xbf16>, %c: memref<64x128xf32>) {
  linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : memref<64x64xbf16>, memref<64x128xbf16>) outs(%c : memref<64x128xf32>)
  return
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
#row = affine_map<(i, j) -> (i)>

// The rows of a product with a vector are computed as they are read; the buffer for them is gone.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: memref<100x40xf32>, %[[S:[^:]*]]: memref<40xf32>, %[[W:[^:]*]]: memref<40xf32>
// CHECK-NOT: memref.alloc
// CHECK-NOT: linalg
// CHECK: call @contract_dot_f32_1x100x40({{.*}}%[[X]]{{.*}}%[[S]])
// CHECK: func.func private @contract_dot_f32_1x100x40(
// CHECK: scf.for
// CHECK: %[[A:.*]] = vector.load {{.*}} : memref<4000xf32>, vector<16xf32>
// CHECK: %[[B:.*]] = vector.load {{.*}} : memref<40xf32>, vector<16xf32>
// CHECK: %[[P:.*]] = arith.mulf %[[A]], %[[B]]
// CHECK: vector.fma %[[P]]
func.func @main(%x: memref<100x40xf32>, %s: memref<40xf32>, %w: memref<40xf32>, %c: memref<100xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<100x40xf32>
  linalg.generic {indexing_maps = [#m, #column, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : memref<100x40xf32>, memref<40xf32>) outs(%a : memref<100x40xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.mulf %p, %q : f32
    linalg.yield %0 : f32
  }
  linalg.fill ins(%zero : f32) outs(%c : memref<100xf32>)
  linalg.matvec ins(%a, %w : memref<100x40xf32>, memref<40xf32>) outs(%c : memref<100xf32>)
  return
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// An operand that is packed is computed as it is packed.
// CHECK-LABEL: func.func @main
// CHECK-NOT: linalg
// CHECK: call @contract_packed_f32_100x64x40(
// CHECK: func.func private @contract_pack_squares_f32_8_8_16_of_{{[0-9a-f]*}}({{.*}}memref<f32>, {{.*}}memref<f32>, {{.*}}memref<f32>, {{[^:]*}}: index)
// CHECK: %[[A:.*]] = vector.maskedload
// CHECK: %[[B:.*]] = memref.load
// CHECK: %[[C:.*]] = vector.broadcast %[[B]]
// CHECK: arith.subf %[[A]], %[[C]] : vector<16xf32>
func.func @main(%x: memref<100x40xf32>, %s: memref<100xf32>, %w: memref<40x64xf32>, %c: memref<100x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<100x40xf32>
  linalg.generic {indexing_maps = [#m, #row, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : memref<100x40xf32>, memref<100xf32>) outs(%a : memref<100x40xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.subf %p, %q : f32
    linalg.yield %0 : f32
  }
  linalg.fill ins(%zero : f32) outs(%c : memref<100x64xf32>)
  linalg.matmul {mlirml.schedule = {kernel = "packed", pack = "ab", lanes = 16, mr = 8, nr = 48, kc = 40, mc = 104, nc = 96}}
    ins(%a, %w : memref<100x40xf32>, memref<40x64xf32>) outs(%c : memref<100x64xf32>)
  return
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Kernels share what packs such operands, if it computes the same.
// CHECK-LABEL: func.func @main
// CHECK-NOT: linalg
// CHECK: call @contract_packed_f32_100x64x40(
// CHECK: call @contract_packed_f32_100x96x40(
// CHECK: func.func private @contract_packed_f32_100x64x40(
// CHECK: call @[[PACK:contract_pack_squares_f32_8_8_16_of_[0-9a-f]*]](
// CHECK: func.func private @[[PACK]](
// CHECK-NOT: func.func private @contract_pack_squares_f32_8_8_16_of
// CHECK: func.func private @contract_packed_f32_100x96x40(
// CHECK: call @[[PACK]](
// CHECK-NOT: func.func private @contract_pack_squares_f32_8_8_16_of
func.func @main(%x: memref<100x40xf32>, %s: memref<100xf32>, %w: memref<40x64xf32>, %c: memref<100x64xf32>,
                %v: memref<40x96xf32>, %d: memref<100x96xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<100x40xf32>
  linalg.generic {indexing_maps = [#m, #row, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : memref<100x40xf32>, memref<100xf32>) outs(%a : memref<100x40xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.subf %p, %q : f32
    linalg.yield %0 : f32
  }
  linalg.fill ins(%zero : f32) outs(%c : memref<100x64xf32>)
  linalg.matmul {mlirml.schedule = {kernel = "packed", pack = "ab", lanes = 16, mr = 8, nr = 48, kc = 40, mc = 104, nc = 96}}
    ins(%a, %w : memref<100x40xf32>, memref<40x64xf32>) outs(%c : memref<100x64xf32>)
  %b = memref.alloc() : memref<100x40xf32>
  linalg.generic {indexing_maps = [#m, #row, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : memref<100x40xf32>, memref<100xf32>) outs(%b : memref<100x40xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.subf %p, %q : f32
    linalg.yield %0 : f32
  }
  linalg.fill ins(%zero : f32) outs(%d : memref<100x96xf32>)
  linalg.matmul {mlirml.schedule = {kernel = "packed", pack = "ab", lanes = 16, mr = 8, nr = 48, kc = 40, mc = 104, nc = 96}}
    ins(%b, %v : memref<100x40xf32>, memref<40x96xf32>) outs(%d : memref<100x96xf32>)
  return
}

// -----

#m = affine_map<(i, j) -> (i, j)>

// Not an operand that is read again.
// CHECK-LABEL: func.func @main
// CHECK: linalg.generic
// CHECK: call @contract_dot_f32_1x100x40(
func.func @main(%x: memref<100x40xf32>, %w: memref<40xf32>, %c: memref<100xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : memref<100x40xf32>
  linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<100x40xf32>) outs(%a : memref<100x40xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.negf %p : f32
    linalg.yield %0 : f32
  }
  linalg.fill ins(%zero : f32) outs(%c : memref<100xf32>)
  linalg.matvec ins(%a, %w : memref<100x40xf32>, memref<40xf32>) outs(%c : memref<100xf32>)
  %r = memref.load %a[%c0, %c0] : memref<100x40xf32>
  return %r : f32
}

// -----

#m = affine_map<(i, j) -> (i, j)>

// Nor one that is computed from what is overwritten in between.
// CHECK-LABEL: func.func @main
// CHECK: linalg.generic
// CHECK: linalg.fill
// CHECK: call @contract_dot_f32_1x100x40(
func.func @main(%x: memref<100x40xf32>, %w: memref<40xf32>, %c: memref<100xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<100x40xf32>
  linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<100x40xf32>) outs(%a : memref<100x40xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.negf %p : f32
    linalg.yield %0 : f32
  }
  linalg.fill ins(%zero : f32) outs(%x : memref<100x40xf32>)
  linalg.fill ins(%zero : f32) outs(%c : memref<100xf32>)
  linalg.matvec ins(%a, %w : memref<100x40xf32>, memref<40xf32>) outs(%c : memref<100xf32>)
  return
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Slices that start at different places of their rows share a kernel, which is told where.
// CHECK-LABEL: func.func @slices_share_a_kernel
// CHECK: %[[P:.*]], %[[AT:.*]], %{{.*}}:2, %{{.*}}:2 = memref.extract_strided_metadata %arg1
// CHECK: call @[[KERNEL:contract_.*]](%arg0, %[[P]], %arg3, %[[AT]]
// CHECK: %[[Q:.*]], %[[THERE:.*]], %{{.*}}:2, %{{.*}}:2 = memref.extract_strided_metadata %arg2
// CHECK: call @[[KERNEL]](%arg0, %[[Q]], %arg4, %[[THERE]]
// CHECK-NOT: func.func private @{{.*}}_1(
func.func @slices_share_a_kernel(%x: memref<128x128xf32>, %p: memref<128x64xf32, strided<[2304, 1], offset: 768>>,
                                 %q: memref<128x64xf32, strided<[2304, 1], offset: 1536>>,
                                 %y: memref<128x64xf32>, %z: memref<128x64xf32>) {
  linalg.contract indexing_maps = [#a, #b, #c]
      ins(%x, %p : memref<128x128xf32>, memref<128x64xf32, strided<[2304, 1], offset: 768>>)
      outs(%y : memref<128x64xf32>)
  linalg.contract indexing_maps = [#a, #b, #c]
      ins(%x, %q : memref<128x128xf32>, memref<128x64xf32, strided<[2304, 1], offset: 1536>>)
      outs(%z : memref<128x64xf32>)
  return
}

// -----

// With enough tiles of rows in a block, but not too many, the next panel of b is copied while they multiply, a row at a
// time; only the first is packed alone.
// CHECK-LABEL: func.func @main
// CHECK: func.func private @contract_packed_f32_256x96x64(
// CHECK: scf.for %{{.*}} = %c0 to %c2 step %c1
// CHECK: scf.parallel
// CHECK: %[[START:.*]] = arith.minsi %{{.*}}, %c0 {mlirml.span = "start"}
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %[[START]]
// CHECK: scf.if %[[FIRST]]
// CHECK: call @contract_pack_rows_f32_48_48_16_whole(
// CHECK: call @contract_tile_f32_8x48_16_48_copy_f32_exact_whole(
// CHECK: func.func private @contract_tile_f32_8x48_16_48_copy_f32_exact_whole(
// CHECK: scf.for
// CHECK-COUNT-4: memref.prefetch
// CHECK-COUNT-3: vector.store
// CHECK: scf.for
// CHECK-COUNT-48: vector.fma
// CHECK-NOT: vector.fma
func.func @main(%a: memref<256x64xf32>, %b: memref<64x96xf32>, %c: memref<256x96xf32>) {
  linalg.matmul {mlirml.schedule = {kernel = "packed", lanes = 16, mr = 8, nr = 48, kc = 64, mc = 128, nc = 96, pack = "ab", parallel = "columns", chunks = 2, grain = 1}}
    ins(%a, %b : memref<256x64xf32>, memref<64x96xf32>) outs(%c : memref<256x96xf32>)
  return
}

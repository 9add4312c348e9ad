// RUN: mlirml-opt %s --mlirml-schedule-contract=processor=avx512 --split-input-file | filecheck %s
// RUN: mlirml-opt %s --mlirml-schedule-contract --split-input-file | filecheck %s --check-prefix=AVX2
// RUN: mlirml-opt %s --mlirml-schedule-contract=processor=avx512,cores=1 --split-input-file | filecheck %s --check-prefix=SERIAL

// A small product stays in registers and reads its operands where they are.
// CHECK-LABEL: func.func @small
// CHECK: linalg.matmul {mlirml.schedule = {kc = 64 : i64, kernel = "direct", lanes = 16 : i64,
// AVX2-LABEL: func.func @small
// AVX2: kernel = "direct", mc = {{.*}}, mr = 4 : i64, {{.*}}nr = 16 : i64
func.func @small(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// -----

// A big one packs all of a, and one panel of b at a time; it splits its columns.
// CHECK-LABEL: func.func @big
// CHECK: chunks = 16 : i64, kc = 1024 : i64, kernel = "packed"
// CHECK-SAME: pack = "ab", parallel = "columns", prefetch = 8 : i64
// SERIAL-LABEL: func.func @big
// SERIAL-NOT: parallel =
func.func @big(%a: tensor<1024x1024xf32>, %b: tensor<1024x1024xf32>, %c: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<1024x1024xf32>, tensor<1024x1024xf32>) outs(%c : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %r : tensor<1024x1024xf32>
}

// -----

// b is transposed: the register tile needs it packed. Its few columns read a once or twice, which is not worth packing.
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: func.func @transposed
// CHECK: kernel = "packed"
// CHECK-SAME: pack = "b"
func.func @transposed(%a: tensor<30x20xf32>, %b: tensor<40x20xf32>, %c: tensor<30x40xf32>) -> tensor<30x40xf32> {
  %r = linalg.contract indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<30x20xf32>, tensor<40x20xf32>) outs(%c : tensor<30x40xf32>) -> tensor<30x40xf32>
  return %r : tensor<30x40xf32>
}

// -----

// CHECK-LABEL: func.func @vectors
// CHECK: linalg.matvec {mlirml.schedule = {kernel = "dot", lanes = 16 : i64, mr = 16 : i64}}
// CHECK: linalg.vecmat {{.*}}kernel = "stream"
// CHECK: linalg.dot {mlirml.schedule = {kernel = "dot"
func.func @vectors(%a: tensor<100x64xf32>, %x: tensor<64xf32>, %y: tensor<100xf32>, %b: tensor<2000x2000xf32>, %v: tensor<2000xf32>, %s: tensor<f32>) -> (tensor<100xf32>, tensor<2000xf32>, tensor<f32>) {
  %0 = linalg.matvec ins(%a, %x : tensor<100x64xf32>, tensor<64xf32>) outs(%y : tensor<100xf32>) -> tensor<100xf32>
  %1 = linalg.vecmat ins(%v, %b : tensor<2000xf32>, tensor<2000x2000xf32>) outs(%v : tensor<2000xf32>) -> tensor<2000xf32>
  %2 = linalg.dot ins(%x, %x : tensor<64xf32>, tensor<64xf32>) outs(%s : tensor<f32>) -> tensor<f32>
  return %0, %1, %2 : tensor<100xf32>, tensor<2000xf32>, tensor<f32>
}

// -----

// Fields that are given stay, and the others go with them.
// CHECK-LABEL: func.func @given
// CHECK: kernel = "packed", lanes = 16 : i64, mc = {{[0-9]+}} : i64, mr = 5 : i64
// CHECK-SAME: pack = "ab"
// CHECK: mlirml.schedule = {kernel = "loops"}
func.func @given(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = linalg.matmul {mlirml.schedule = {kernel = "packed", mr = 5}} ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = linalg.matmul {mlirml.schedule = {kernel = "loops"}} ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}

// -----

// No kernel for no elements, nor for booleans.
// CHECK-LABEL: func.func @no_kernel
// CHECK-COUNT-2: linalg.matmul {mlirml.schedule = {kernel = "loops"}}
func.func @no_kernel(%a: tensor<64x0xf32>, %b: tensor<0x64xf32>, %c: tensor<64x64xf32>, %i: tensor<64x64xi1>) -> (tensor<64x64xf32>, tensor<64x64xi1>) {
  %0 = linalg.matmul ins(%a, %b : tensor<64x0xf32>, tensor<0x64xf32>) outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = linalg.matmul ins(%i, %i : tensor<64x64xi1>, tensor<64x64xi1>) outs(%i : tensor<64x64xi1>) -> tensor<64x64xi1>
  return %0, %1 : tensor<64x64xf32>, tensor<64x64xi1>
}

// -----

// Only contractions get a schedule.
// CHECK-LABEL: func.func @elementwise
// CHECK-NOT: mlirml.schedule
func.func @elementwise(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %r = linalg.add ins(%a, %a : tensor<64xf32>, tensor<64xf32>) outs(%b : tensor<64xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// -----

// Options choose for every contraction that such a kernel can compute; what an operation says itself comes first.
// RUN: mlirml-opt %s --mlirml-schedule-contract="processor=avx512 kernel=packed mr=4 nr=32 kc=64" --split-input-file | filecheck %s --check-prefix=OPTIONS
// OPTIONS-LABEL: func.func @options
// OPTIONS: linalg.matmul {mlirml.schedule = {{.*}}kc = 64 : i64, kernel = "packed", lanes = 16 : i64, {{.*}}mr = 4 : i64, {{.*}}nr = 32 : i64, pack = "ab"
// OPTIONS: linalg.matmul {mlirml.schedule = {{.*}}kc = 64 : i64, kernel = "packed", lanes = 16 : i64, {{.*}}mr = 10 : i64, {{.*}}nr = 32 : i64, pack = "ab"
// OPTIONS: linalg.matvec {mlirml.schedule = {{.*}}kernel = "packed"
// CHECK-LABEL: func.func @options
// CHECK: linalg.matvec {mlirml.schedule = {kernel = "dot"
func.func @options(%a: tensor<128x128xf32>, %x: tensor<128xf32>) -> tensor<128xf32> {
  %0 = linalg.matmul ins(%a, %a : tensor<128x128xf32>, tensor<128x128xf32>) outs(%a : tensor<128x128xf32>) -> tensor<128x128xf32>
  %1 = linalg.matmul {mlirml.schedule = {mr = 10}} ins(%0, %a : tensor<128x128xf32>, tensor<128x128xf32>) outs(%a : tensor<128x128xf32>) -> tensor<128x128xf32>
  %2 = linalg.matvec ins(%1, %x : tensor<128x128xf32>, tensor<128xf32>) outs(%x : tensor<128xf32>) -> tensor<128xf32>
  return %2 : tensor<128xf32>
}

// -----

// Where b lies, a vector of it costs more than an element of a: tiles are tall. What b fills of the cache is worth packing
// from some size on. Rows of a are read where they are, also by a product of f64 that is so big that others pack them.
// CHECK-LABEL: func.func @in_place
// CHECK: kernel = "direct", lanes = 16 : i64, mc = {{[0-9]+}} : i64, mr = 13 : i64, {{.*}}nr = 32 : i64
// CHECK: kernel = "packed", {{.*}}pack = "b"
// CHECK: kc = 1024 : i64, kernel = "packed", {{.*}}mr = 8 : i64, {{.*}}pack = "b"
func.func @in_place(%a: tensor<128x128xf32>, %b: tensor<320x320xf64>, %c: tensor<1024x1024xf64>) -> (tensor<128x128xf32>, tensor<320x320xf64>, tensor<1024x1024xf64>) {
  %0 = linalg.matmul ins(%a, %a : tensor<128x128xf32>, tensor<128x128xf32>) outs(%a : tensor<128x128xf32>) -> tensor<128x128xf32>
  %1 = linalg.matmul ins(%b, %b : tensor<320x320xf64>, tensor<320x320xf64>) outs(%b : tensor<320x320xf64>) -> tensor<320x320xf64>
  %2 = linalg.matmul ins(%c, %c : tensor<1024x1024xf64>, tensor<1024x1024xf64>) outs(%c : tensor<1024x1024xf64>) -> tensor<1024x1024xf64>
  return %0, %1, %2 : tensor<128x128xf32>, tensor<320x320xf64>, tensor<1024x1024xf64>
}

// -----

// Tiles of bf16 where there are registers for them; `pairs` asks for another instruction. Short sums are left to pairs.
// RUN: mlirml-opt %s --mlirml-schedule-contract=processor=amx --split-input-file | filecheck %s --check-prefix=TILES
// CHECK-LABEL: func.func @tiles
// TILES-LABEL: func.func @tiles
// TILES: linalg.matmul {mlirml.schedule = {{.*}}kernel = "packed", {{.*}}mr = 32 : i64, {{.*}}nr = 32 : i64, pack = "ab", pairs = 32 : i64, {{.*}}
// TILES: linalg.matmul {mlirml.schedule = {{.*}}mr = 6 : i64, {{.*}}pairs = 2 : i64}}
// TILES: linalg.matmul {mlirml.schedule = {{.*}}mr = 16 : i64, {{.*}}nr = 32 : i64, {{.*}}pairs = 32 : i64, {{.*}}
// TILES: linalg.matmul {mlirml.schedule = {{.*}}nr = 64 : i64, {{.*}}pairs = 2 : i64}}
func.func @tiles(%a: tensor<64x64xbf16>, %b: tensor<64x64xbf16>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = linalg.matmul {mlirml.schedule = {pairs = 2}} ins(%a, %b : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = linalg.matmul {mlirml.schedule = {mr = 16}} ins(%a, %b : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%1 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = linalg.matmul {mlirml.schedule = {nr = 64}} ins(%a, %b : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%2 : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %3 : tensor<64x64xf32>
}

// TILES-LABEL: func.func @short_sums
// TILES: pairs = 2 : i64
func.func @short_sums(%a: tensor<64x4xbf16>, %b: tensor<4x64xbf16>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<64x4xbf16>, tensor<4x64xbf16>) outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// RUN: mlirml-opt %s --split-input-file --mlirml-form-dispatches=device=cuda,tile=sm_90 | filecheck %s
// RUN: mlirml-opt %s --split-input-file --mlirml-form-dispatches=device=cuda | filecheck %s --check-prefix=APART

// A product of small floats and reductions of its rows are one kernel on a device with kernels of tiles.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-1: scf.execute_region
// CHECK-NOT:   scf.execute_region
// CHECK:       return
// APART-LABEL: func.func @main
// APART-COUNT-2: scf.execute_region
// APART:       return
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @main(%x: tensor<4096x64xf16>, %w: tensor<64x96xf16>) -> tensor<4096xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x96xf32>) -> tensor<4096x96xf32>
  %p = linalg.matmul ins(%x, %w : tensor<4096x64xf16>, tensor<64x96xf16>) outs(%f : tensor<4096x96xf32>) -> tensor<4096x96xf32>
  %r = tensor.empty() : tensor<4096xf32>
  %s = linalg.fill ins(%zero : f32) outs(%r : tensor<4096xf32>) -> tensor<4096xf32>
  %t = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%p : tensor<4096x96xf32>) outs(%s : tensor<4096xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = math.absf %a : f32
    %1 = arith.addf %0, %b : f32
    linalg.yield %1 : f32
  } -> tensor<4096xf32>
  return %t : tensor<4096xf32>
}

// -----

// Products of f32 are not, and neither are too few rows for the device.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: scf.execute_region
// CHECK:       return
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @main(%x: tensor<4096x64xf32>, %w: tensor<64x96xf32>) -> tensor<4096xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x96xf32>) -> tensor<4096x96xf32>
  %p = linalg.matmul ins(%x, %w : tensor<4096x64xf32>, tensor<64x96xf32>) outs(%f : tensor<4096x96xf32>) -> tensor<4096x96xf32>
  %r = tensor.empty() : tensor<4096xf32>
  %s = linalg.fill ins(%zero : f32) outs(%r : tensor<4096xf32>) -> tensor<4096xf32>
  %t = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%p : tensor<4096x96xf32>) outs(%s : tensor<4096xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = math.absf %a : f32
    %1 = arith.addf %0, %b : f32
    linalg.yield %1 : f32
  } -> tensor<4096xf32>
  return %t : tensor<4096xf32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: scf.execute_region
// CHECK:       return
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @main(%x: tensor<64x64xf16>, %w: tensor<64x96xf16>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %p = linalg.matmul ins(%x, %w : tensor<64x64xf16>, tensor<64x96xf16>) outs(%f : tensor<64x96xf32>) -> tensor<64x96xf32>
  %r = tensor.empty() : tensor<64xf32>
  %s = linalg.fill ins(%zero : f32) outs(%r : tensor<64xf32>) -> tensor<64xf32>
  %t = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%p : tensor<64x96xf32>) outs(%s : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = math.absf %a : f32
    %1 = arith.addf %0, %b : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  return %t : tensor<64xf32>
}

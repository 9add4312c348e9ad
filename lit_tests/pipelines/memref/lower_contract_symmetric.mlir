// RUN: mlirml-opt %s --mlirml-schedule-contract=processor=avx512 \
// RUN:   --mlirml-bufferize --mlirml-lower-contract=processor=avx512 --split-input-file | filecheck %s

#i = affine_map<(i, j, k) -> (i, k)>
#j = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>

// The matrix is packed once; each tile on or below the diagonal is written, and below it the mirrored one, too.
// CHECK-LABEL: func.func @main
// CHECK:       call @contract_symmetric_f64_256x256x500(
// CHECK:       func.func private @contract_symmetric_f64_256x256x500(
// CHECK-COUNT-1: call @contract_pack
// CHECK-NOT:   call @contract_pack
// CHECK:       call @contract_tile_f64_8x24_8_24_of_24(
// CHECK:       call @contract_write_f64_8x24_8
// CHECK:       arith.cmpi slt
// CHECK:       scf.if
// CHECK-NEXT:  {{.*}}
// CHECK:       call @contract_mirror_f64_8x24_8
func.func @main(%a: tensor<256x500xf64>) -> tensor<256x256xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<256x256xf64>
  %zeros = linalg.fill ins(%zero : f64) outs(%e : tensor<256x256xf64>) -> tensor<256x256xf64>
  %c = linalg.contract indexing_maps = [#i, #j, #c] ins(%a, %a : tensor<256x500xf64>, tensor<256x500xf64>)
    outs(%zeros : tensor<256x256xf64>) -> tensor<256x256xf64>
  return %c : tensor<256x256xf64>
}

// -----

#square = affine_map<(i, j, k) -> (i, k)>
#turned = affine_map<(i, j, k) -> (k, j)>
#out = affine_map<(i, j, k) -> (i, j)>

// A matrix times itself is not symmetric.
// CHECK-LABEL: func.func @main
// CHECK-NOT:   call @contract_symmetric
// CHECK:       return
func.func @main(%a: tensor<256x256xf64>) -> tensor<256x256xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<256x256xf64>
  %zeros = linalg.fill ins(%zero : f64) outs(%e : tensor<256x256xf64>) -> tensor<256x256xf64>
  %c = linalg.contract indexing_maps = [#square, #turned, #out] ins(%a, %a : tensor<256x256xf64>, tensor<256x256xf64>)
    outs(%zeros : tensor<256x256xf64>) -> tensor<256x256xf64>
  return %c : tensor<256x256xf64>
}

// -----

#i = affine_map<(i, j, k) -> (i, k)>
#j = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>

// What it is added to need not be symmetric.
// CHECK-LABEL: func.func @main
// CHECK-NOT:   call @contract_symmetric
// CHECK:       return
func.func @main(%a: tensor<256x500xf64>, %b: tensor<256x256xf64>) -> tensor<256x256xf64> {
  %c = linalg.contract indexing_maps = [#i, #j, #c] ins(%a, %a : tensor<256x500xf64>, tensor<256x500xf64>)
    outs(%b : tensor<256x256xf64>) -> tensor<256x256xf64>
  return %c : tensor<256x256xf64>
}

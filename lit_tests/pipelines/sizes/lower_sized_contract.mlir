// RUN: mlirml-opt %s --mlirml-lower-sized-contract="processor=avx2" --split-input-file | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[C40:.*]] = arith.constant 40 : index
// CHECK-DAG:     %[[C64:.*]] = arith.constant 64 : index
// CHECK:         scf.parallel
// CHECK:           call @contract_sized_f32({{.*}}, %[[C40]], %[[C64]])
// CHECK-NOT:     linalg.matmul
// CHECK-LABEL: func.func private @contract_sized_f32
// CHECK:         vector.create_mask
// CHECK:         vector.fma
func.func @main(%a: memref<?x64xf32>, %b: memref<64x40xf32>, %c: memref<?x40xf32>) {
  linalg.matmul ins(%a, %b : memref<?x64xf32>, memref<64x40xf32>) outs(%c : memref<?x40xf32>)
  return
}

// -----

// A loop that indexes all operands goes around the call; columns of adjacent elements are transposed into a buffer.
// CHECK-LABEL: func.func @main
// CHECK:         scf.for
// CHECK:           func.call @contract_sized_turned_f64
// CHECK-LABEL: func.func private @contract_sized_turned_f64
// CHECK:         memref.alloca() {alignment = 64 : i64} : memref<256x8xf64>
// CHECK:         vector.shuffle
func.func @main(%a: memref<?x?x64xf64>, %b: memref<?x?x64xf64>, %c: memref<?x?x?xf64>) {
  linalg.contract indexing_maps = [affine_map<(h, i, j, k) -> (h, i, k)>, affine_map<(h, i, j, k) -> (h, j, k)>, affine_map<(h, i, j, k) -> (h, i, j)>]
      ins(%a, %b : memref<?x?x64xf64>, memref<?x?x64xf64>) outs(%c : memref<?x?x?xf64>)
  return
}

// -----

// Where neither rows nor columns are adjacent, elements are copied one by one.
// CHECK-LABEL: func.func @main
// CHECK:         call @contract_sized_packed_f64
// CHECK-LABEL: func.func private @contract_sized_packed_f64
// CHECK-NOT:     vector.shuffle
func.func @main(%a: memref<?x64xf64>, %b: memref<?x64xf64, strided<[128, 2]>>, %c: memref<?x?xf64>) {
  linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%a, %b : memref<?x64xf64>, memref<?x64xf64, strided<[128, 2]>>) outs(%c : memref<?x?xf64>)
  return
}

// -----

// Short short integers, and products with a vector, are left to loops.
// CHECK-LABEL: func.func @main
// CHECK:         linalg.matmul
// CHECK:         linalg.matvec
func.func @main(%a: memref<?x64xi16>, %b: memref<64x40xi16>, %c: memref<?x40xi16>, %x: memref<?x64xf32>, %y: memref<64xf32>, %z: memref<?xf32>) {
  linalg.matmul ins(%a, %b : memref<?x64xi16>, memref<64x40xi16>) outs(%c : memref<?x40xi16>)
  linalg.matvec ins(%x, %y : memref<?x64xf32>, memref<64xf32>) outs(%z : memref<?xf32>)
  return
}

// -----

// A convolution is a product for each image, row and point of the window: of filters and channels by columns.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-4: scf.for
// CHECK:         func.call @contract_sized_f32(
// CHECK-NOT:     linalg.conv_2d_nchw_fchw
// CHECK-LABEL: func.func private @contract_sized_f32
func.func @main(%x: memref<?x3x8x8xf32>, %w: memref<4x3x3x3xf32>, %y: memref<?x4x6x6xf32>) {
  linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : memref<?x3x8x8xf32>, memref<4x3x3x3xf32>) outs(%y : memref<?x4x6x6xf32>)
  return
}

// -----

// Integers have a kernel of the same form.
// CHECK-LABEL: func.func @main
// CHECK:         func.call @contract_sized_i32
// CHECK-LABEL: func.func private @contract_sized_i32
// CHECK:         arith.muli %{{.*}} : vector<8xi32>
// CHECK:         arith.addi %{{.*}} : vector<8xi32>
func.func @main(%a: memref<?x64xi32>, %b: memref<64x40xi32>, %c: memref<?x40xi32>) {
  linalg.matmul ins(%a, %b : memref<?x64xi32>, memref<64x40xi32>) outs(%c : memref<?x40xi32>)
  return
}

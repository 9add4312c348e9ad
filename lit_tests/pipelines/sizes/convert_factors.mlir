// RUN: mlirml-opt %s --mlirml-convert-factors --split-input-file | filecheck %s

// Both factors are converted before, and the product is one of f32.
// CHECK-LABEL: func.func @main
// CHECK:         linalg.generic {{.*}} ins(%arg0 : tensor<262147x64xf16>)
// CHECK:           arith.extf %{{.*}} : f16 to f32
// CHECK:         linalg.generic {{.*}} ins(%arg1 : tensor<64x40xf16>)
// CHECK:         linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<262147x64xf32>, tensor<64x40xf32>) outs(%arg2 : tensor<262147x40xf32>)
func.func @main(%a: tensor<262147x64xf16>, %b: tensor<64x40xf16>, %c: tensor<262147x40xf32>) -> tensor<262147x40xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<262147x64xf16>, tensor<64x40xf16>) outs(%c : tensor<262147x40xf32>) -> tensor<262147x40xf32>
  return %0 : tensor<262147x40xf32>
}

// -----

// Sums in a narrow type round each product: they stay.
// CHECK-LABEL: func.func @rounded
// CHECK-NOT:     arith.extf
// CHECK:         linalg.matmul ins(%arg0, %arg1 : tensor<8x8xf16>, tensor<8x8xf16>) outs(%arg2 : tensor<8x8xf16>)
func.func @rounded(%a: tensor<8x8xf16>, %b: tensor<8x8xf16>, %c: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %0 = linalg.matmul ins(%a, %b : tensor<8x8xf16>, tensor<8x8xf16>) outs(%c : tensor<8x8xf16>) -> tensor<8x8xf16>
  return %0 : tensor<8x8xf16>
}

// RUN: mlirml-opt %s --split-input-file --mlirml-fold-scales | filecheck %s
// RUN: mlirml-opt %s --split-input-file --mlirml-fold-scales=exact | filecheck %s --check-prefix=EXACT
// RUN: mlirml-opt %s --split-input-file --mlirml-fold-scales --remarks 2>&1 | filecheck %s --check-prefix=REMARK

#f = affine_map<(n, f, i, j) -> (f)>
#id = affine_map<(n, f, i, j) -> (n, f, i, j)>

// CHECK-LABEL: func.func @batch_norm
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<4x16x34x34xf32>, %[[W:[a-z0-9]+]]: tensor<32x16x3x3xf32>, %[[BIAS:[a-z0-9]+]]: tensor<32xf32>, %[[SCALE:[a-z0-9]+]]: tensor<32xf32>, %[[SHIFT:[a-z0-9]+]]: tensor<32xf32>
// CHECK:         %[[P:.*]] = linalg.generic {{.*}} ins(%[[BIAS]], %[[SCALE]] : tensor<32xf32>, tensor<32xf32>)
// CHECK:         arith.mulf
// CHECK:         %[[Q:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[SHIFT]] : tensor<32xf32>, tensor<32xf32>)
// CHECK:         arith.addf
// CHECK:         %[[V:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[SCALE]] : tensor<32x16x3x3xf32>, tensor<32xf32>)
// CHECK:         arith.mulf
// CHECK:         %[[B:.*]] = linalg.generic {{.*}} ins(%[[Q]] : tensor<32xf32>)
// CHECK:         %[[R:.*]] = linalg.conv_2d_nchw_fchw ins(%[[X]], %[[V]] : {{.*}}) outs(%[[B]]
// CHECK:         return %[[R]]
// EXACT-LABEL: func.func @batch_norm
// EXACT:       linalg.conv_2d_nchw_fchw
// EXACT:       arith.mulf
// EXACT:       arith.addf
// REMARK: rewritten: the scale of channels is folded into the weights of a convolution: 262 kflop become 4.67 kflop
func.func @batch_norm(%x: tensor<4x16x34x34xf32>, %w: tensor<32x16x3x3xf32>, %bias: tensor<32xf32>, %scale: tensor<32xf32>, %shift: tensor<32xf32>) -> tensor<4x32x32x32xf32> {
  %e = tensor.empty() : tensor<4x32x32x32xf32>
  %b = linalg.generic {indexing_maps = [#f, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%bias : tensor<32xf32>) outs(%e : tensor<4x32x32x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x32x32x32xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<4x16x34x34xf32>, tensor<32x16x3x3xf32>) outs(%b : tensor<4x32x32x32xf32>) -> tensor<4x32x32x32xf32>
  %z = linalg.generic {indexing_maps = [#id, #f, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%y, %scale : tensor<4x32x32x32xf32>, tensor<32xf32>) outs(%e : tensor<4x32x32x32xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %0 = arith.mulf %in, %s : f32
    linalg.yield %0 : f32
  } -> tensor<4x32x32x32xf32>
  %r = linalg.generic {indexing_maps = [#id, #f, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%z, %shift : tensor<4x32x32x32xf32>, tensor<32xf32>) outs(%e : tensor<4x32x32x32xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %0 = arith.addf %in, %s : f32
    linalg.yield %0 : f32
  } -> tensor<4x32x32x32xf32>
  return %r : tensor<4x32x32x32xf32>
}

// -----

#i = affine_map<(i, j) -> (j)>
#id = affine_map<(i, j) -> (i, j)>

// The columns of a product of short sums: the shift is added to the result.
// CHECK-LABEL: func.func @columns
// CHECK-SAME:    %[[A:[a-z0-9]+]]: tensor<900x8xf64>, %[[B:[a-z0-9]+]]: tensor<8x70xf64>
// CHECK:         %[[V:.*]] = linalg.generic {{.*}} ins(%[[B]], %{{.*}} : tensor<8x70xf64>, tensor<70xf64>)
// CHECK:         linalg.matmul ins(%[[A]], %[[V]]
// CHECK:         arith.addf
func.func @columns(%a: tensor<900x8xf64>, %b: tensor<8x70xf64>, %shift: tensor<70xf64>, %scale: tensor<70xf64>) -> tensor<900x70xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<900x70xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<900x70xf64>) -> tensor<900x70xf64>
  %p = linalg.matmul ins(%a, %b : tensor<900x8xf64>, tensor<8x70xf64>) outs(%z : tensor<900x70xf64>) -> tensor<900x70xf64>
  %q = linalg.generic {indexing_maps = [#id, #i, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %shift : tensor<900x70xf64>, tensor<70xf64>) outs(%e : tensor<900x70xf64>) {
  ^bb0(%in: f64, %s: f64, %out: f64):
    %0 = arith.subf %in, %s : f64
    linalg.yield %0 : f64
  } -> tensor<900x70xf64>
  %r = linalg.generic {indexing_maps = [#id, #i, #id], iterator_types = ["parallel", "parallel"]} ins(%q, %scale : tensor<900x70xf64>, tensor<70xf64>) outs(%e : tensor<900x70xf64>) {
  ^bb0(%in: f64, %s: f64, %out: f64):
    %0 = arith.divf %in, %s : f64
    linalg.yield %0 : f64
  } -> tensor<900x70xf64>
  return %r : tensor<900x70xf64>
}

// -----

#k = affine_map<(i, j) -> (i, j)>

// A scale of elements stays.
// CHECK-LABEL: func.func @elements
// CHECK:         linalg.matmul
// CHECK:         arith.mulf
func.func @elements(%a: tensor<900x8xf64>, %b: tensor<8x70xf64>, %s: tensor<900x70xf64>) -> tensor<900x70xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<900x70xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<900x70xf64>) -> tensor<900x70xf64>
  %p = linalg.matmul ins(%a, %b : tensor<900x8xf64>, tensor<8x70xf64>) outs(%z : tensor<900x70xf64>) -> tensor<900x70xf64>
  %q = linalg.generic {indexing_maps = [#k, #k, #k], iterator_types = ["parallel", "parallel"]} ins(%p, %s : tensor<900x70xf64>, tensor<900x70xf64>) outs(%e : tensor<900x70xf64>) {
  ^bb0(%in: f64, %x: f64, %out: f64):
    %0 = arith.mulf %in, %x : f64
    linalg.yield %0 : f64
  } -> tensor<900x70xf64>
  return %q : tensor<900x70xf64>
}

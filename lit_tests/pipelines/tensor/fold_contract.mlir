// RUN: mlirml-opt %s --mlirml-fold-contract --split-input-file | filecheck %s
// RUN: mlirml-opt %s '--mlirml-fold-contract=narrowing=false' --split-input-file | filecheck %s --check-prefix=STORED
// RUN: mlirml-opt %s '--mlirml-fold-contract=converting=false' --split-input-file | filecheck %s --check-prefix=TYPED

#id = affine_map<(i, j) -> (i, j)>
#turn = affine_map<(i, j) -> (j, i)>

// A transposed and converted operand is read where it is.
// CHECK: #[[A:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK: #[[B:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK: #[[C:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @operand
// CHECK-SAME: %[[X:[^:]*]]: tensor<30x20xf32>, %[[Y:[^:]*]]: tensor<40x20xbf16>, %[[Z:[^:]*]]: tensor<30x40xf32>
// CHECK-NOT: linalg.generic
// CHECK: %[[R:.*]] = linalg.contract indexing_maps = [#[[A]], #[[B]], #[[C]]] ins(%[[X]], %[[Y]] : tensor<30x20xf32>, tensor<40x20xbf16>) outs(%[[Z]] : tensor<30x40xf32>)
// CHECK: return %[[R]]
// TYPED-LABEL: func.func @operand
// TYPED: arith.extf
// TYPED: linalg.matmul
func.func @operand(%x: tensor<30x20xf32>, %y: tensor<40x20xbf16>, %z: tensor<30x40xf32>) -> tensor<30x40xf32> {
  %e = tensor.empty() : tensor<20x40xf32>
  %t = linalg.generic {indexing_maps = [#turn, #id], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<40x20xbf16>) outs(%e : tensor<20x40xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<20x40xf32>
  %r = linalg.matmul ins(%x, %t : tensor<30x20xf32>, tensor<20x40xf32>) outs(%z : tensor<30x40xf32>) -> tensor<30x40xf32>
  return %r : tensor<30x40xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#turn = affine_map<(i, j) -> (j, i)>

// A transposed result is written where it belongs.
// CHECK: #[[C:.*]] = affine_map<(d0, d1, d2) -> (d1, d0)>
// CHECK-LABEL: func.func @result
// CHECK: %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<40x30xf32>
// CHECK-NOT: linalg.generic
// CHECK: linalg.contract indexing_maps = [{{.*}}, {{.*}}, #[[C]]] ins({{.*}}) outs(%[[ZEROS]] : tensor<40x30xf32>)
func.func @result(%x: tensor<30x20xf32>, %y: tensor<20x40xf32>) -> tensor<40x30xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<30x40xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<30x40xf32>) -> tensor<30x40xf32>
  %p = linalg.matmul ins(%x, %y : tensor<30x20xf32>, tensor<20x40xf32>) outs(%z : tensor<30x40xf32>) -> tensor<30x40xf32>
  %f = tensor.empty() : tensor<40x30xf32>
  %t = linalg.generic {indexing_maps = [#turn, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<30x40xf32>) outs(%f : tensor<40x30xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<40x30xf32>
  return %t : tensor<40x30xf32>
}

// -----

// What else reads the copy, computes, or would leave the contiguous dim to the batch, stays.
#id = affine_map<(i, j) -> (i, j)>
#turn = affine_map<(i, j) -> (j, i)>
// CHECK-LABEL: func.func @stays
// CHECK: linalg.generic
// CHECK: linalg.matmul
// CHECK: linalg.transpose
// CHECK: linalg.batch_matmul
func.func @stays(%x: tensor<20x20xf32>, %b: tensor<8x9x4xf32>, %c: tensor<4x9x8xf32>, %z: tensor<4x8x8xf32>) -> (tensor<20x20xf32>, tensor<20x20xf32>, tensor<4x8x8xf32>) {
  %e = tensor.empty() : tensor<20x20xf32>
  %t = linalg.generic {indexing_maps = [#turn, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<20x20xf32>) outs(%e : tensor<20x20xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<20x20xf32>
  %r = linalg.matmul ins(%x, %t : tensor<20x20xf32>, tensor<20x20xf32>) outs(%x : tensor<20x20xf32>) -> tensor<20x20xf32>
  %f = tensor.empty() : tensor<4x8x9xf32>
  %a = linalg.transpose ins(%b : tensor<8x9x4xf32>) outs(%f : tensor<4x8x9xf32>) permutation = [2, 0, 1]
  %s = linalg.batch_matmul ins(%a, %c : tensor<4x8x9xf32>, tensor<4x9x8xf32>) outs(%z : tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
  return %r, %t, %s : tensor<20x20xf32>, tensor<20x20xf32>, tensor<4x8x8xf32>
}

// -----

#turn = affine_map<(b, u, i, j) -> (b, u, j, i)>
#id = affine_map<(b, u, i, j) -> (b, u, i, j)>

// Dims of size 1 around a transpose, as those of keys that several heads share.
// CHECK-LABEL: func.func @shared
// CHECK-SAME: %[[Q:[^:]*]]: tensor<3x4x8x16xf32>, %[[K:[^:]*]]: tensor<3x32x16xf32>
// CHECK-NOT: linalg.generic
// CHECK: linalg.contract {{.*}} ins(%[[Q]], %[[K]] : tensor<3x4x8x16xf32>, tensor<3x32x16xf32>)
func.func @shared(%q: tensor<3x4x8x16xf32>, %k: tensor<3x32x16xf32>, %z: tensor<3x4x8x32xf32>) -> tensor<3x4x8x32xf32> {
  %x = tensor.expand_shape %k [[0, 1], [2], [3]] output_shape [3, 1, 32, 16] : tensor<3x32x16xf32> into tensor<3x1x32x16xf32>
  %e = tensor.empty() : tensor<3x1x16x32xf32>
  %t = linalg.generic {indexing_maps = [#turn, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<3x1x32x16xf32>) outs(%e : tensor<3x1x16x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<3x1x16x32xf32>
  %c = tensor.collapse_shape %t [[0, 1], [2], [3]] : tensor<3x1x16x32xf32> into tensor<3x16x32xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, h, i, j, k) -> (b, h, i, k)>, affine_map<(b, h, i, j, k) -> (b, k, j)>,
                                        affine_map<(b, h, i, j, k) -> (b, h, i, j)>]
      ins(%q, %c : tensor<3x4x8x16xf32>, tensor<3x16x32xf32>) outs(%z : tensor<3x4x8x32xf32>) -> tensor<3x4x8x32xf32>
  return %r : tensor<3x4x8x32xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// A product that is rounded to f16, and extended for the next one: it is stored as f16 without `narrowing`.
// CHECK-LABEL: func.func @rounded
// CHECK: linalg.contract {{.*}} ins(%arg0, %arg1 : tensor<32x32xf32>, tensor<32x32xf16>)
// STORED-LABEL: func.func @rounded
// STORED: %[[R:.*]] = linalg.generic
// STORED: arith.truncf
// STORED: linalg.contract {{.*}} ins(%[[R]], %arg1 : tensor<32x32xf16>, tensor<32x32xf16>)
func.func @rounded(%x: tensor<32x32xf32>, %b: tensor<32x32xf16>, %z: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %eh = tensor.empty() : tensor<32x32xf16>
  %e = tensor.empty() : tensor<32x32xf32>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<32x32xf32>) outs(%eh : tensor<32x32xf16>) {
  ^bb0(%in: f32, %out: f16):
    %0 = arith.truncf %in : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<32x32xf16>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%h : tensor<32x32xf16>) outs(%e : tensor<32x32xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<32x32xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<32x32xf16>) outs(%e : tensor<32x32xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<32x32xf32>
  %r = linalg.matmul ins(%w, %y : tensor<32x32xf32>, tensor<32x32xf32>) outs(%z : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %r : tensor<32x32xf32>
}

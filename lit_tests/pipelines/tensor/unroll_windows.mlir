// RUN: mlirml-opt %s --split-input-file --mlirml-unroll-windows | filecheck %s

// The order of the window is kept.
// CHECK-LABEL: func.func @sum
// CHECK-SAME: (%[[X:.*]]: tensor<10xf32>)
// CHECK-DAG: %[[X0:.*]] = tensor.extract_slice %[[X]][0] [8] [1]
// CHECK-DAG: %[[X1:.*]] = tensor.extract_slice %[[X]][1] [8] [1]
// CHECK-DAG: %[[X2:.*]] = tensor.extract_slice %[[X]][2] [8] [1]
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel"]} ins(%{{.*}}, %[[X0]], %[[X1]], %[[X2]] :
// CHECK: ^bb0(%[[S:.*]]: f32, %[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32, %{{.*}}: f32):
// CHECK: %[[S1:.*]] = arith.addf %[[S]], %[[A]]
// CHECK: %[[S2:.*]] = arith.addf %[[S1]], %[[B]]
// CHECK: %[[S3:.*]] = arith.addf %[[S2]], %[[C]]
// CHECK: linalg.yield %[[S3]]
func.func @sum(%x: tensor<10xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %w = tensor.empty() : tensor<3xf32>
  %0 = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i + k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<10xf32>, tensor<3xf32>) outs(%0 : tensor<8xf32>) {
  ^bb0(%a: f32, %shape: f32, %s: f32):
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// Weights become numbers, the loops of the window constants, and those that stay are counted anew.
// CHECK-LABEL: func.func @weights
// CHECK-SAME: (%{{.*}}: tensor<9x4xf32>, %[[W:.*]]: tensor<2xf32>)
// CHECK: tensor.extract_slice %[[W]][0] [1] [1] : tensor<2xf32> to tensor<f32>
// CHECK: tensor.extract_slice %[[W]][1] [1] [1] : tensor<2xf32> to tensor<f32>
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]}
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: %[[J:.*]] = linalg.index 1
// CHECK: arith.addi %[[ZERO]], %[[J]]
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: %[[J2:.*]] = linalg.index 1
// CHECK: arith.addi %[[ONE]], %[[J2]]
func.func @weights(%x: tensor<9x4xf32>, %w: tensor<2xf32>) -> tensor<8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %0 = linalg.fill ins(%zero : f32) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, k, j) -> (i + k, j)>, affine_map<(i, k, j) -> (k)>, affine_map<(i, k, j) -> (i, j)>], iterator_types = ["parallel", "reduction", "parallel"]} ins(%x, %w : tensor<9x4xf32>, tensor<2xf32>) outs(%0 : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %k = linalg.index 1 : index
    %j = linalg.index 2 : index
    %n = arith.addi %k, %j : index
    %i = arith.index_cast %n : index to i32
    %f = arith.sitofp %i : i32 to f32
    %p = arith.mulf %a, %b : f32
    %q = arith.mulf %p, %f : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

// A big window, one in strides, and a convolution with channels have kernels of their own.
// CHECK-LABEL: func.func @others
// CHECK: "parallel", "reduction"
// CHECK: "parallel", "reduction"
// CHECK: "parallel", "parallel", "reduction"
func.func @others(%x: tensor<80xf32>, %y: tensor<17xf32>, %w: tensor<5x3xf32>, %a: tensor<41xf32>, %b: tensor<8xf32>, %c: tensor<5x15xf32>) -> (tensor<41xf32>, tensor<8xf32>, tensor<5x15xf32>) {
  %big = tensor.empty() : tensor<40xf32>
  %three = tensor.empty() : tensor<3xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i + k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x, %big : tensor<80xf32>, tensor<40xf32>) outs(%a : tensor<41xf32>) {
  ^bb0(%v: f32, %shape: f32, %s: f32):
    %t = arith.addf %s, %v : f32
    linalg.yield %t : f32
  } -> tensor<41xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i * 2 + k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%y, %three : tensor<17xf32>, tensor<3xf32>) outs(%b : tensor<8xf32>) {
  ^bb0(%v: f32, %shape: f32, %s: f32):
    %t = arith.addf %s, %v : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(o, i, k) -> (i + k)>, affine_map<(o, i, k) -> (o, k)>, affine_map<(o, i, k) -> (o, i)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%y, %w : tensor<17xf32>, tensor<5x3xf32>) outs(%c : tensor<5x15xf32>) {
  ^bb0(%v: f32, %f: f32, %s: f32):
    %p = arith.mulf %v, %f : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<5x15xf32>
  return %0, %1, %2 : tensor<41xf32>, tensor<8xf32>, tensor<5x15xf32>
}

// -----

// Loops that stay and walk along one dimension together are no window.
// CHECK-LABEL: func.func @diagonals
// CHECK: "parallel", "parallel", "reduction"
func.func @diagonals(%x: tensor<9x6xf32>, %init: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %shape = tensor.empty() : tensor<4x3x4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i + j, j + k)>, affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %shape : tensor<9x6xf32>, tensor<4x3x4xf32>) outs(%init : tensor<4x3xf32>) {
  ^bb0(%a: f32, %s: f32, %t: f32):
    %u = arith.addf %a, %t : f32
    linalg.yield %u : f32
  } -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

// A pooling of many images has kernels of its own.
// CHECK-LABEL: func.func @pooling
// CHECK: "parallel", "parallel", "reduction"
func.func @pooling(%x: tensor<4x9xf32>, %init: tensor<4x7xf32>) -> tensor<4x7xf32> {
  %window = tensor.empty() : tensor<3xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(c, i, k) -> (c, i + k)>, affine_map<(c, i, k) -> (k)>, affine_map<(c, i, k) -> (c, i)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %window : tensor<4x9xf32>, tensor<3xf32>) outs(%init : tensor<4x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %m = arith.maximumf %out, %a : f32
    linalg.yield %m : f32
  } -> tensor<4x7xf32>
  return %0 : tensor<4x7xf32>
}

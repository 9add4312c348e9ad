// RUN: mlirml-opt %s --mlirml-recognise --canonicalize --split-input-file | filecheck %s

// A window that slides over one operand, with strides; the sums start from zeros.
// CHECK-LABEL: func.func @strided
// CHECK-SAME: %[[X:[^:]*]]: tensor<1x3x9x9xf32>, %[[W:[^:]*]]: tensor<4x3x3x3xf32>
// CHECK: linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins(%[[X]], %[[W]] : tensor<1x3x9x9xf32>, tensor<4x3x3x3xf32>)
func.func @strided(%x: tensor<1x3x9x9xf32>, %w: tensor<4x3x3x3xf32>, %z: tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%z : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, f, y, x, c, i, j) -> (f, c, i, j)>, affine_map<(n, f, y, x, c, i, j) -> (n, c, y * 2 + i, x * 2 + j)>, affine_map<(n, f, y, x, c, i, j) -> (n, f, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%w, %x : tensor<4x3x3x3xf32>, tensor<1x3x9x9xf32>) outs(%start : tensor<1x4x4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<1x4x4x4xf32>
  return %r : tensor<1x4x4x4xf32>
}

// -----

// One plane: a generic with the window first. An if that keeps the window inside is padding.
// CHECK-LABEL: func.func @padded
// CHECK: %[[P:.*]] = tensor.pad %{{.*}} low[1] high[1]
// CHECK: linalg.generic {{.*}} ins(%[[P]], %{{.*}} : tensor<10xf32>, tensor<3xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: linalg.yield
func.func @padded(%x: tensor<8xf32>, %w: tensor<3xf32>, %z: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = linalg.generic {indexing_maps = [affine_map<(y, i) -> (i)>, affine_map<(y, i) -> (y)>], iterator_types = ["parallel", "reduction"]} ins(%w : tensor<3xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %y = linalg.index 0 : index
    %i = linalg.index 1 : index
    %0 = arith.addi %y, %i : index
    %place = arith.subi %0, %c1 : index
    %low = arith.cmpi sge, %place, %c0 : index
    %high = arith.cmpi slt, %place, %c8 : index
    %inside = arith.andi %low, %high : i1
    %safe = arith.select %inside, %place, %c0 : index
    %v = tensor.extract %x[%safe] : tensor<8xf32>
    %1 = arith.mulf %v, %a : f32
    %2 = arith.addf %out, %1 : f32
    %3 = arith.select %inside, %2, %out : f32
    linalg.yield %3 : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// A condition that leaves out what lies inside is no padding.
// CHECK-LABEL: func.func @other
// CHECK-NOT: tensor.pad
// CHECK: arith.cmpi
func.func @other(%x: tensor<8xf32>, %w: tensor<3xf32>, %z: tensor<6xf32>) -> tensor<6xf32> {
  %c4 = arith.constant 4 : index
  %r = linalg.generic {indexing_maps = [affine_map<(y, i) -> (y + i)>, affine_map<(y, i) -> (i)>, affine_map<(y, i) -> (y)>], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%z : tensor<6xf32>) {
  ^bb0(%v: f32, %a: f32, %out: f32):
    %y = linalg.index 0 : index
    %i = linalg.index 1 : index
    %place = arith.addi %y, %i : index
    %inside = arith.cmpi slt, %place, %c4 : index
    %1 = arith.mulf %v, %a : f32
    %2 = arith.addf %out, %1 : f32
    %3 = arith.select %inside, %2, %out : f32
    linalg.yield %3 : f32
  } -> tensor<6xf32>
  return %r : tensor<6xf32>
}

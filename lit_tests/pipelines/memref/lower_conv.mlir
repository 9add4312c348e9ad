// RUN: mlirml-opt %s --mlirml-lower-conv=processor=avx512 --split-input-file | filecheck %s

// Padding and bias are folded into the kernel; two equal convolutions share it.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: memref<1x4x6x30xf32>, %[[W:[^:]*]]: memref<32x4x3x3xf32>, %[[B:[^:]*]]: memref<32xf32>, %[[Y:[^:]*]]: memref<1x32x6x30xf32>
// CHECK-NOT: linalg
// CHECK-NOT: memref.copy
// CHECK: call @conv_filters_f32_32x1x6x30x4x1x3x3(%[[X]], %[[W]], %[[Y]], %[[B]], %{{.*}}, %{{.*}})
// CHECK: call @conv_filters_f32_32x1x6x30x4x1x3x3(%[[X]], %[[W]], %{{.*}}, %[[B]], %{{.*}}, %{{.*}})
// CHECK: func.func private @conv_filters_f32_32x1x6x30x4x1x3x3(
// CHECK-COUNT-3: vector.fma {{.*}} : vector<16xf32>
// CHECK: vector.maskedstore
#bias = affine_map<(n, f, h, w) -> (f)>
#all = affine_map<(n, f, h, w) -> (n, f, h, w)>
func.func @main(%x: memref<1x4x6x30xf32>, %w: memref<32x4x3x3xf32>, %b: memref<32xf32>, %y: memref<1x32x6x30xf32>, %z: memref<1x32x6x30xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<1x4x8x32xf32>
  linalg.fill ins(%zero : f32) outs(%p : memref<1x4x8x32xf32>)
  %middle = memref.subview %p[0, 0, 1, 1] [1, 4, 6, 30] [1, 1, 1, 1]
    : memref<1x4x8x32xf32> to memref<1x4x6x30xf32, strided<[1024, 256, 32, 1], offset: 33>>
  memref.copy %x, %middle : memref<1x4x6x30xf32> to memref<1x4x6x30xf32, strided<[1024, 256, 32, 1], offset: 33>>
  linalg.generic {indexing_maps = [#bias, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%b : memref<32xf32>) outs(%y : memref<1x32x6x30xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w : memref<1x4x8x32xf32>, memref<32x4x3x3xf32>) outs(%y : memref<1x32x6x30xf32>)
  %q = memref.alloc() : memref<1x4x8x32xf32>
  linalg.fill ins(%zero : f32) outs(%q : memref<1x4x8x32xf32>)
  %inner = memref.subview %q[0, 0, 1, 1] [1, 4, 6, 30] [1, 1, 1, 1]
    : memref<1x4x8x32xf32> to memref<1x4x6x30xf32, strided<[1024, 256, 32, 1], offset: 33>>
  memref.copy %x, %inner : memref<1x4x6x30xf32> to memref<1x4x6x30xf32, strided<[1024, 256, 32, 1], offset: 33>>
  linalg.generic {indexing_maps = [#bias, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%b : memref<32xf32>) outs(%z : memref<1x32x6x30xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%q, %w : memref<1x4x8x32xf32>, memref<32x4x3x3xf32>) outs(%z : memref<1x32x6x30xf32>)
  return
}

// -----

// Few channels in many groups: lanes are pixels. What is added to something stays.
// CHECK-LABEL: func.func @main
// CHECK: call @conv_pixels_f32_1x1x6x40x1x1x3x3(
// CHECK-NEXT: linalg.depthwise_conv_2d_nchw_chw
func.func @main(%x: memref<1x8x8x42xf32>, %w: memref<8x3x3xf32>, %y: memref<1x8x6x40xf32>, %z: memref<1x8x6x40xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<1x8x6x40xf32>)
  linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<1x8x8x42xf32>, memref<8x3x3xf32>) outs(%y : memref<1x8x6x40xf32>)
  linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<1x8x8x42xf32>, memref<8x3x3xf32>) outs(%z : memref<1x8x6x40xf32>)
  return
}

// -----

// An input that is written between its copy and the convolution is read from the copy.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: memref<1x8x6x40xf32>
// CHECK: linalg.fill ins(%{{.*}}) outs(%[[P:.*]] : memref<1x8x6x42xf32>)
// CHECK: memref.copy %[[X]]
// CHECK: linalg.fill ins(%{{.*}}) outs(%[[X]]
// CHECK: call @conv_pixels_f32_1x1x4x40x1x1x3x3(%[[P]],
func.func @main(%x: memref<1x8x6x40xf32>, %w: memref<8x3x3xf32>, %y: memref<1x8x4x40xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<1x8x6x42xf32>
  linalg.fill ins(%zero : f32) outs(%p : memref<1x8x6x42xf32>)
  %middle = memref.subview %p[0, 0, 0, 1] [1, 8, 6, 40] [1, 1, 1, 1]
    : memref<1x8x6x42xf32> to memref<1x8x6x40xf32, strided<[2016, 252, 42, 1], offset: 1>>
  memref.copy %x, %middle : memref<1x8x6x40xf32> to memref<1x8x6x40xf32, strided<[2016, 252, 42, 1], offset: 1>>
  linalg.fill ins(%zero : f32) outs(%x : memref<1x8x6x40xf32>)
  linalg.fill ins(%zero : f32) outs(%y : memref<1x8x4x40xf32>)
  linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w : memref<1x8x6x42xf32>, memref<8x3x3xf32>) outs(%y : memref<1x8x4x40xf32>)
  return
}

// -----

// One elementwise operation behind is done before the store, in another buffer too if nothing else reads the sums.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[Z:[^:]*]]: memref<1x8x6x40xf32>) {
// CHECK-NOT: linalg
// CHECK: call @conv_pixels_f32_1x1x6x40x1x1x3x3(%{{.*}}, %{{.*}}, %[[Z]])
// CHECK-NOT: linalg
// CHECK: func.func private
// CHECK: arith.maximumf
// CHECK-SAME: vector<16xf32>
// CHECK: vector.store
#e = affine_map<(n, c, h, w) -> (n, c, h, w)>
func.func @main(%x: memref<1x8x8x42xf32>, %w: memref<8x3x3xf32>, %z: memref<1x8x6x40xf32>) {
  %zero = arith.constant 0.0 : f32
  %y = memref.alloc() : memref<1x8x6x40xf32>
  linalg.fill ins(%zero : f32) outs(%y : memref<1x8x6x40xf32>)
  linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<1x8x8x42xf32>, memref<8x3x3xf32>) outs(%y : memref<1x8x6x40xf32>)
  linalg.generic {indexing_maps = [#e, #e], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y : memref<1x8x6x40xf32>) outs(%z : memref<1x8x6x40xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.maximumf %in, %zero : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Vectors hold filters, which kernels write to rows in one piece: with channels last, to a copy in another order.
// CHECK-LABEL: func.func @main
// CHECK: %[[COPY:.*]] = memref.alloc() {{.*}} : memref<1x16x6x6xf32>
// CHECK: memref.reinterpret_cast %[[COPY]] to offset: [0], sizes: [1, 6, 6, 16], strides: [576, 6, 1, 36]
// CHECK: call @conv_filters_f32
// CHECK: memref.copy
func.func @main(%x: memref<1x8x8x4xf32>, %w: memref<3x3x4x16xf32>, %y: memref<1x6x6x16xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<1x6x6x16xf32>)
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%x, %w : memref<1x8x8x4xf32>, memref<3x3x4x16xf32>) outs(%y : memref<1x6x6x16xf32>)
  return
}

// -----

// The only row of the only plane: four chains of additions in a tile of 32 pixels, and the 1,250 tiles are shared.
// CHECK-LABEL: func.func private @conv_pixels_f64_1x1x1x40000x1x1x1x101(
// CHECK: scf.parallel
// CHECK: %[[SUMS:.*]]:4 = scf.for %{{.*}} iter_args({{.*}}) -> (vector<8xf64>, vector<8xf64>, vector<8xf64>, vector<8xf64>)
// CHECK-COUNT-4: vector.fma
// CHECK-NOT: vector.fma
// CHECK-COUNT-4: vector.store
// CHECK: mlirml.grain
func.func @main(%x: memref<1x1x40100xf64>, %w: memref<1x1x101xf64>, %y: memref<1x1x40000xf64>) {
  %zero = arith.constant 0.0 : f64
  linalg.fill ins(%zero : f64) outs(%y : memref<1x1x40000xf64>)
  linalg.conv_1d_ncw_fcw {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}
    ins(%x, %w : memref<1x1x40100xf64>, memref<1x1x101xf64>) outs(%y : memref<1x1x40000xf64>)
  return
}

// -----

// The taps along the rows that meet padding of zeros are skipped, unless a weight of the block is infinite; padding with
// ones is computed. 24 filters are a vector and a half.
// CHECK-LABEL: func.func private @conv_filters_f32_24x1x8x30x4x1x3x3(
// CHECK: vector.reduction <add>
// CHECK: scf.for
// CHECK: arith.cmpf oeq
// CHECK: %[[LOW:.*]] = arith.select
// CHECK: %[[HIGH:.*]] = arith.select
// CHECK: scf.for %{{.*}} = %[[LOW]] to %[[HIGH]]
// CHECK: vector.fma {{.*}} : vector<16xf32>
// CHECK: vector.fma {{.*}} : vector<8xf32>
// CHECK-LABEL: func.func private @conv_filters_f32_24x1x8x30x4x1x3x3_1(
// CHECK-NOT: arith.cmpf
func.func @main(%x: memref<1x4x6x32xf32>, %w: memref<24x4x3x3xf32>, %y: memref<1x24x8x30xf32>, %z: memref<1x24x8x30xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %p = memref.alloc() : memref<1x4x10x32xf32>
  linalg.fill ins(%zero : f32) outs(%p : memref<1x4x10x32xf32>)
  %middle = memref.subview %p[0, 0, 2, 0] [1, 4, 6, 32] [1, 1, 1, 1]
    : memref<1x4x10x32xf32> to memref<1x4x6x32xf32, strided<[1280, 320, 32, 1], offset: 64>>
  memref.copy %x, %middle : memref<1x4x6x32xf32> to memref<1x4x6x32xf32, strided<[1280, 320, 32, 1], offset: 64>>
  linalg.fill ins(%zero : f32) outs(%y : memref<1x24x8x30xf32>)
  linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w : memref<1x4x10x32xf32>, memref<24x4x3x3xf32>) outs(%y : memref<1x24x8x30xf32>)
  %q = memref.alloc() : memref<1x4x10x32xf32>
  linalg.fill ins(%one : f32) outs(%q : memref<1x4x10x32xf32>)
  %inner = memref.subview %q[0, 0, 2, 0] [1, 4, 6, 32] [1, 1, 1, 1]
    : memref<1x4x10x32xf32> to memref<1x4x6x32xf32, strided<[1280, 320, 32, 1], offset: 64>>
  memref.copy %x, %inner : memref<1x4x6x32xf32> to memref<1x4x6x32xf32, strided<[1280, 320, 32, 1], offset: 64>>
  linalg.fill ins(%zero : f32) outs(%z : memref<1x24x8x30xf32>)
  linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%q, %w : memref<1x4x10x32xf32>, memref<24x4x3x3xf32>) outs(%z : memref<1x24x8x30xf32>)
  return
}

// -----

// The largest element of a window: NaN wins, the sign of a zero does not matter.
// CHECK-LABEL: func.func private @conv_pixels_f32_1x1x6x40x1x1x3x3(
// CHECK: arith.maximumf %{{.*}}, %{{.*}} fastmath<nsz> : vector<16xf32>
#x = affine_map<(n, c, h, w, i, j) -> (n, c, h + i, w + j)>
#taps = affine_map<(n, c, h, w, i, j) -> (i, j)>
#y = affine_map<(n, c, h, w, i, j) -> (n, c, h, w)>
func.func @main(%x: memref<1x8x8x42xf32>, %w: memref<3x3xf32>, %y: memref<1x8x6x40xf32>) {
  %least = arith.constant 0xFF800000 : f32
  linalg.fill ins(%least : f32) outs(%y : memref<1x8x6x40xf32>)
  linalg.generic {indexing_maps = [#x, #taps, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : memref<1x8x8x42xf32>, memref<3x3xf32>) outs(%y : memref<1x8x6x40xf32>) {
  ^bb0(%in: f32, %tap: f32, %out: f32):
    %0 = arith.maximumf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// The rows of a pooling's window are combined to a line in memory, then its columns are.
// CHECK-LABEL: func.func @main
// CHECK-NOT: linalg
// CHECK: call @conv_separable_f32_1x1x6x40x1x1x5x5(
// CHECK-LABEL: func.func private @conv_separable_f32_1x1x6x40x1x1x5x5(
// CHECK: %[[FIRST:.*]] = vector.load {{.*}} vector<16xf32>
// CHECK: vector.load {{.*}} vector<16xf32>
// CHECK: %{{.*}} = arith.addf %[[FIRST]],
func.func @main(%x: memref<1x8x30x200xf32>, %w: memref<5x5xf32>, %y: memref<1x8x6x40xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<1x8x6x40xf32>)
  linalg.pooling_nchw_sum {dilations = dense<1> : tensor<2xi64>, strides = dense<5> : tensor<2xi64>}
    ins(%x, %w : memref<1x8x30x200xf32>, memref<5x5xf32>) outs(%y : memref<1x8x6x40xf32>)
  return
}

// -----

// A vector of pixels that are far apart would take a load for each of them: the pooling is left to loops.
// CHECK-LABEL: func.func @main
// CHECK: linalg.pooling_ncw_sum
// CHECK-NOT: call
func.func @main(%x: memref<2x3x640xf32>, %w: memref<16xf32>, %y: memref<2x3x40xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<2x3x40xf32>)
  linalg.pooling_ncw_sum {dilations = dense<1> : tensor<1xi64>, strides = dense<16> : tensor<1xi64>}
    ins(%x, %w : memref<2x3x640xf32>, memref<16xf32>) outs(%y : memref<2x3x40xf32>)
  return
}

// -----

// The position of the window is that of the row, too: no window slides along one dimension.
// CHECK-LABEL: func.func @diagonal_windows
// CHECK-NOT: call
// CHECK: linalg.generic
// CHECK-NOT: call
// CHECK: return
func.func @diagonal_windows(%x: memref<3x6xi64>, %w: memref<4xi64>, %y: memref<3xi64>) {
  %least = arith.constant -9223372036854775808 : i64
  linalg.fill ins(%least : i64) outs(%y : memref<3xi64>)
  linalg.generic {
      indexing_maps = [affine_map<(i, k) -> (i, i + k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : memref<3x6xi64>, memref<4xi64>) outs(%y : memref<3xi64>) {
  ^bb0(%in: i64, %tap: i64, %out: i64):
    %most = arith.maxsi %out, %in : i64
    linalg.yield %most : i64
  }
  return
}

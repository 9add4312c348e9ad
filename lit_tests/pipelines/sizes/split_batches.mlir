// RUN: mlirml-opt %s --mlirml-split-batches --canonicalize --cse --split-input-file | filecheck %s

// A padded pooling of each image: what only it uses has the size of one image, arguments are views of the image.
// CHECK-LABEL: func.func @main
// CHECK:         %[[PADDED:.*]] = memref.alloc() {alignment = 64 : i64} : memref<1x4x10x10xf32>
// CHECK:         scf.for %[[B:.*]] = %c0 to %{{.*}} step %c1 {
// CHECK:           linalg.fill ins(%{{.*}}) outs(%[[PADDED]] : memref<1x4x10x10xf32>)
// CHECK:           %[[OFFSET:.*]] = arith.muli %[[B]], %c1024
// CHECK:           %[[X:.*]] = memref.view %arg0[%[[OFFSET]]][] : memref<1xi8> to memref<1x4x8x8xf32>
// CHECK:           memref.copy %[[X]], %{{.*}} : memref<1x4x8x8xf32> to memref<1x4x8x8xf32, strided<[400, 100, 10, 1], offset: 11>>
// CHECK:           %[[Y:.*]] = memref.view %arg2[%{{.*}}][] : memref<1xi8> to memref<1x4x5x5xf32>
// CHECK:           linalg.generic {{.*}} ins(%[[PADDED]], %{{.*}}) outs(%[[Y]] : memref<1x4x5x5xf32>)
// CHECK:         } {mlirml.images}
// CHECK-NOT:     linalg.generic
#image = affine_map<(b, c, i, j, k, l) -> (b, c, i * 2 + k, j * 2 + l)>
#window = affine_map<(b, c, i, j, k, l) -> (k, l)>
#result = affine_map<(b, c, i, j, k, l) -> (b, c, i, j)>
func.func @main(%arg0: memref<1xi8>, %sizes: memref<1xi64>, %arg2: memref<1xi8>) {
  %c0 = arith.constant 0 : index
  %low = arith.constant 0xFF800000 : f32
  %0 = memref.load %sizes[%c0] : memref<1xi64>
  %n = arith.index_cast %0 : i64 to index
  %x = memref.view %arg0[%c0][%n] : memref<1xi8> to memref<?x4x8x8xf32>
  %y = memref.view %arg2[%c0][%n] : memref<1xi8> to memref<?x4x5x5xf32>
  %w = memref.alloc() : memref<2x2xf32>
  %p = memref.alloc(%n) : memref<?x4x10x10xf32>
  linalg.fill ins(%low : f32) outs(%p : memref<?x4x10x10xf32>)
  %middle = memref.subview %p[0, 0, 1, 1] [%n, 4, 8, 8] [1, 1, 1, 1] : memref<?x4x10x10xf32> to memref<?x4x8x8xf32, strided<[400, 100, 10, 1], offset: 11>>
  memref.copy %x, %middle : memref<?x4x8x8xf32> to memref<?x4x8x8xf32, strided<[400, 100, 10, 1], offset: 11>>
  linalg.fill ins(%low : f32) outs(%y : memref<?x4x5x5xf32>)
  linalg.generic {indexing_maps = [#image, #window, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%p, %w : memref<?x4x10x10xf32>, memref<2x2xf32>) outs(%y : memref<?x4x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %m: f32):
    %1 = arith.maximumf %m, %a : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

// A window over the batch, and a sum over it, are of several images: they stay.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     scf.for
// CHECK:         linalg.generic
#image = affine_map<(b, i, j, k) -> (b + k, i + j)>
#window = affine_map<(b, i, j, k) -> (j, k)>
#result = affine_map<(b, i, j, k) -> (b, i)>
func.func @main(%arg0: memref<1xi8>, %sizes: memref<2xi64>, %arg2: memref<1xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = memref.load %sizes[%c0] : memref<2xi64>
  %1 = memref.load %sizes[%c1] : memref<2xi64>
  %n = arith.index_cast %0 : i64 to index
  %m = arith.index_cast %1 : i64 to index
  %x = memref.view %arg0[%c0][%n] : memref<1xi8> to memref<?x8xf32>
  %y = memref.view %arg2[%c0][%m] : memref<1xi8> to memref<?x7xf32>
  %w = memref.alloc() : memref<2x2xf32>
  linalg.generic {indexing_maps = [#image, #window, #result], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : memref<?x8xf32>, memref<2x2xf32>) outs(%y : memref<?x7xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    %2 = arith.addf %t, %a : f32
    linalg.yield %2 : f32
  }
  return
}

// -----

// What others use, too, are bytes, of which an image is one view.
// CHECK-LABEL: func.func @main
// CHECK:         %[[BYTES:.*]] = memref.alloc(%{{.*}}) {alignment = 64 : i64} : memref<?xi8>
// CHECK:         %[[ALL:.*]] = memref.view %[[BYTES]][%c0][%{{.*}}] : memref<?xi8> to memref<?x7xf32>
// CHECK:         scf.for
// CHECK:           %[[ONE:.*]] = memref.view %[[BYTES]][%{{.*}}][] : memref<?xi8> to memref<1x7xf32>
// CHECK:           linalg.fill {{.*}} outs(%[[ONE]] : memref<1x7xf32>)
// CHECK:           linalg.generic {{.*}} outs(%[[ONE]] : memref<1x7xf32>)
// CHECK:         linalg.matmul ins(%[[ALL]], %{{.*}}
#image = affine_map<(b, i, j) -> (b, i + j)>
#window = affine_map<(b, i, j) -> (j)>
#result = affine_map<(b, i, j) -> (b, i)>
func.func @main(%arg0: memref<1xi8>, %m: memref<7x8xf32>, %sizes: memref<1xi64>, %arg2: memref<1xi8>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %0 = memref.load %sizes[%c0] : memref<1xi64>
  %n = arith.index_cast %0 : i64 to index
  %x = memref.view %arg0[%c0][%n] : memref<1xi8> to memref<?x8xf32>
  %y = memref.view %arg2[%c0][%n] : memref<1xi8> to memref<?x8xf32>
  %w = memref.alloc() : memref<2xf32>
  %t = memref.alloc(%n) : memref<?x7xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<?x7xf32>)
  linalg.generic {indexing_maps = [#image, #window, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<?x8xf32>, memref<2xf32>) outs(%t : memref<?x7xf32>) {
  ^bb0(%a: f32, %b: f32, %total: f32):
    %1 = arith.addf %total, %a : f32
    linalg.yield %1 : f32
  }
  linalg.matmul ins(%t, %m : memref<?x7xf32>, memref<7x8xf32>) outs(%y : memref<?x8xf32>)
  return
}

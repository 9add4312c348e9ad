// RUN: mlirml-opt %s --split-input-file --mlirml-fuse-attention | filecheck %s

#all = affine_map<(b, i, j) -> (b, i, j)>
#row = affine_map<(b, i, j) -> (b, i)>
#mask = affine_map<(b, i, j) -> (i, j)>

// Four blocks of 128 rows for each of 8 batches; the mask is cut with the rows, and indices count from the beginning.
// CHECK-LABEL: func.func @attention
// CHECK-SAME: (%[[Q:.*]]: tensor<8x512x64xf32>, %[[K:.*]]: tensor<8x64x512xf32>, %[[V:.*]]: tensor<8x512x32xf32>, %[[M:.*]]: tensor<512x512xi1>)
// CHECK: scf.for %[[T:.*]] = %c0 to %c32 step %c1 iter_args(%[[O:.*]] = %{{.*}}) -> (tensor<8x512x32xf32>)
// CHECK: %[[B:.*]] = arith.divui %[[T]], %c4
// CHECK: %[[N:.*]] = arith.remui %[[T]], %c4
// CHECK: %[[I:.*]] = arith.muli %[[N]], %c128
// CHECK: tensor.extract_slice %[[Q]][%[[B]], %[[I]], 0] [1, 128, 64]
// CHECK: tensor.extract_slice %[[K]][%[[B]], 0, 0] [1, 64, 512]
// CHECK: linalg.batch_matmul {{.*}} -> tensor<1x128x512xf32>
// CHECK: tensor.extract_slice %[[M]][%[[I]], 0] [128, 512]
// CHECK: linalg.generic {{.*}}"parallel", "parallel", "reduction"
// CHECK: linalg.index 1
// CHECK-NEXT: arith.addi %{{.*}}, %[[I]]
// CHECK: tensor.extract_slice %[[V]][%[[B]], 0, 0] [1, 512, 32]
// CHECK: %[[R:.*]] = linalg.batch_matmul {{.*}} -> tensor<1x128x32xf32>
// CHECK: tensor.insert_slice %[[R]] into %[[O]][%[[B]], %[[I]], 0] [1, 128, 32]
// CHECK-NOT: 8x512x512
func.func @attention(%q: tensor<8x512x64xf32>, %k: tensor<8x64x512xf32>, %v: tensor<8x512x32xf32>, %mask: tensor<512x512xi1>) -> tensor<8x512x32xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<8x512x512xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<8x512x512xf32>) -> tensor<8x512x512xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<8x512x64xf32>, tensor<8x64x512xf32>) outs(%fs : tensor<8x512x512xf32>) -> tensor<8x512x512xf32>
  %er = tensor.empty() : tensor<8x512xf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<8x512xf32>) -> tensor<8x512xf32>
  %t = linalg.generic {indexing_maps = [#all, #mask, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s, %mask : tensor<8x512x512xf32>, tensor<512x512xi1>) outs(%fr : tensor<8x512xf32>) {
  ^bb0(%x: f32, %m: i1, %o: f32):
    %0 = arith.select %m, %x, %zero : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x512xf32>
  %p = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %t : tensor<8x512x512xf32>, tensor<8x512xf32>) outs(%es : tensor<8x512x512xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %i = linalg.index 1 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %0 = arith.divf %x, %y : f32
    %1 = arith.addf %0, %f : f32
    linalg.yield %1 : f32
  } -> tensor<8x512x512xf32>
  %e = tensor.empty() : tensor<8x512x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x512x32xf32>) -> tensor<8x512x32xf32>
  %r = linalg.batch_matmul ins(%p, %v : tensor<8x512x512xf32>, tensor<8x512x32xf32>) outs(%f : tensor<8x512x32xf32>) -> tensor<8x512x32xf32>
  return %r : tensor<8x512x32xf32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>

// Without a sum over rows nothing is gained: each product does best on its own.
// CHECK-LABEL: func.func @two_layers
// CHECK-NOT: scf.for
func.func @two_layers(%x: tensor<1024x64xf32>, %a: tensor<64x1024xf32>, %b: tensor<1024x64xf32>) -> tensor<1024x64xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<1024x1024xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %s = linalg.matmul ins(%x, %a : tensor<1024x64xf32>, tensor<64x1024xf32>) outs(%fs : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %p = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<1024x1024xf32>) outs(%es : tensor<1024x1024xf32>) {
  ^bb0(%y: f32, %o: f32):
    %0 = math.tanh %y : f32
    linalg.yield %0 : f32
  } -> tensor<1024x1024xf32>
  %e = tensor.empty() : tensor<1024x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1024x64xf32>) -> tensor<1024x64xf32>
  %r = linalg.matmul ins(%p, %b : tensor<1024x1024xf32>, tensor<1024x64xf32>) outs(%f : tensor<1024x64xf32>) -> tensor<1024x64xf32>
  return %r : tensor<1024x64xf32>
}

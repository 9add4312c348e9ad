// RUN: mlirml-opt %s --split-input-file --mlirml-skip-masked=processor=avx512,cores=1 | filecheck %s

#all = affine_map<(i, j) -> (i, j)>

// A product of which only the lower triangle is kept: blocks of 128 rows, and tiles of 128 columns up to the diagonal;
// those that the diagonal crosses are computed with the mask, those before without it, and the others are filled.
// CHECK-LABEL: func.func @lower
// CHECK-SAME: (%[[A:.*]]: tensor<512x64xf32>, %[[B:.*]]: tensor<64x512xf32>)
// CHECK: scf.for %[[T:.*]] = %c0 to %c4 step %c1 iter_args(%[[O:.*]] = %{{.*}}) -> (tensor<512x512xf32>)
// CHECK: %[[N:.*]] = arith.remui %[[T]], %c4
// CHECK: %[[I:.*]] = arith.muli %[[N]], %c128
// CHECK: %[[LIMITS:.*]]:5 = scf.for
// CHECK: %[[ROW:.*]] = arith.addi %[[I]], %{{.*}}
// CHECK: arith.addi %{{.*}}, %[[ROW]]
// CHECK: arith.minsi
// CHECK: arith.maxsi
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} -> (tensor<128x512xf32>)
// CHECK: tensor.extract_slice %[[A]][%[[I]], 0] [128, 64]
// CHECK: tensor.extract_slice %[[B]][0, %{{.*}}] [64, 128]
// CHECK: linalg.matmul {{.*}} -> tensor<128x128xf32>
// CHECK: %[[KEEP:.*]] = arith.cmpi sle
// CHECK: arith.select %[[KEEP]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} -> (tensor<128x512xf32>)
// CHECK: linalg.matmul
// CHECK: %[[TRUE:.*]] = arith.constant true
// CHECK: arith.select %[[TRUE]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} -> (tensor<128x512xf32>)
// CHECK: linalg.fill
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} -> (tensor<128x512xf32>)
// CHECK: linalg.fill
// CHECK: tensor.insert_slice %{{.*}} into %[[O]][%[[I]], 0] [128, 512]
func.func @lower(%a: tensor<512x64xf32>, %b: tensor<64x512xf32>) -> tensor<512x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %s = linalg.matmul ins(%a, %b : tensor<512x64xf32>, tensor<64x512xf32>) outs(%f : tensor<512x512xf32>) -> tensor<512x512xf32>
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%x: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %keep = arith.cmpi sle, %j, %i : index
    %0 = arith.select %keep, %x, %zero : f32
    linalg.yield %0 : f32
  } -> tensor<512x512xf32>
  return %r : tensor<512x512xf32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>

// A factor that is zero where it is masked: zero times what is not finite would be NaN, so that the largest element of
// the other factor decides at run time.
// CHECK-LABEL: func.func @factor
// CHECK-SAME: (%[[A:.*]]: tensor<512x512xf32>, %[[B:.*]]: tensor<512x64xf32>, %[[LENGTH:.*]]: tensor<i64>)
// CHECK: %[[LARGEST:.*]] = linalg.generic {{.*}} ins(%[[B]] : tensor<512x64xf32>)
// CHECK: math.absf
// CHECK: arith.maximumf
// CHECK: %[[FINITE:.*]] = arith.cmpf olt
// CHECK: %[[GUARD:.*]] = arith.andi %{{.*}}, %[[FINITE]]
// CHECK: scf.for
// CHECK: %[[N:.*]] = tensor.extract %[[LENGTH]][]
// CHECK: %[[LOW:.*]] = arith.select %[[GUARD]], %{{.*}}, %c0
// CHECK: %[[HIGH:.*]] = arith.select %[[GUARD]], %{{.*}}, %c512
// CHECK: linalg.matmul {{.*}} outs(%{{.*}} : tensor<128x64xf32>)
func.func @factor(%a: tensor<512x512xf32>, %b: tensor<512x64xf32>, %length: tensor<i64>) -> tensor<512x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %m = linalg.generic {indexing_maps = [#all, affine_map<(i, j) -> ()>, #all], iterator_types = ["parallel", "parallel"]}
      ins(%a, %length : tensor<512x512xf32>, tensor<i64>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%x: f32, %n: i64, %o: f32):
    %j = linalg.index 1 : index
    %c = arith.index_cast %j : index to i64
    %keep = arith.cmpi slt, %c, %n : i64
    %0 = arith.select %keep, %x, %zero : f32
    linalg.yield %0 : f32
  } -> tensor<512x512xf32>
  %er = tensor.empty() : tensor<512x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%er : tensor<512x64xf32>) -> tensor<512x64xf32>
  %r = linalg.matmul ins(%m, %b : tensor<512x512xf32>, tensor<512x64xf32>) outs(%f : tensor<512x64xf32>) -> tensor<512x64xf32>
  return %r : tensor<512x64xf32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>

// A mask in memory is no comparison, and what it excludes is not known.
// CHECK-LABEL: func.func @in_memory
// CHECK-NOT: scf.for
func.func @in_memory(%a: tensor<512x64xf32>, %b: tensor<64x512xf32>, %mask: tensor<512x512xi1>) -> tensor<512x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %s = linalg.matmul ins(%a, %b : tensor<512x64xf32>, tensor<64x512xf32>) outs(%f : tensor<512x512xf32>) -> tensor<512x512xf32>
  %r = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%s, %mask : tensor<512x512xf32>, tensor<512x512xi1>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%x: f32, %keep: i1, %o: f32):
    %0 = arith.select %keep, %x, %zero : f32
    linalg.yield %0 : f32
  } -> tensor<512x512xf32>
  return %r : tensor<512x512xf32>
}

// RUN: mlirml-opt %s --split-input-file --mlirml-block-examples=processor=avx2,l2=8K --canonicalize | filecheck %s

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>
#nk = affine_map<(n, i, k) -> (n, k)>
#ik = affine_map<(n, i, k) -> (i, k)>
#ni = affine_map<(n, i, k) -> (n, i)>

// A sum over 101 examples of what a contraction and elementwise operations make of each: eight at a time, the examples
// last, and five at the end.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<101x5xf64>
// CHECK-NOT: tensor<101x16xf64>
// CHECK: %[[SUM:.*]] = scf.for %[[I:.*]] = %c0 to %c96 step %c8
// CHECK: tensor.extract_slice %[[X]][%[[I]], 0] [8, 5]
// CHECK: linalg.transpose
// CHECK: linalg.contract {{.*}} -> tensor<16x8xf64>
// CHECK: math.tanh
// CHECK: } -> tensor<16xf64>
// CHECK: tensor.extract_slice %[[X]][96, 0] [5, 5]
// CHECK: linalg.contract {{.*}} -> tensor<16x5xf64>
// CHECK: linalg.generic {{.*}} outs(%[[SUM]] : tensor<16xf64>)
func.func @main(%x: tensor<101x5xf64>, %w: tensor<16x5xf64>, %b: tensor<16xf64>) -> tensor<16xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<101x16xf64>
  %f = linalg.fill ins(%zero : f64) outs(%e : tensor<101x16xf64>) -> tensor<101x16xf64>
  %h = linalg.contract indexing_maps = [#nk, #ik, #ni]
      ins(%x, %w : tensor<101x5xf64>, tensor<16x5xf64>) outs(%f : tensor<101x16xf64>) -> tensor<101x16xf64>
  %t = linalg.generic {indexing_maps = [#ij, #j, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%h, %b : tensor<101x16xf64>, tensor<16xf64>) outs(%e : tensor<101x16xf64>) {
  ^bb0(%p: f64, %q: f64, %o: f64):
    %0 = arith.addf %p, %q : f64
    %1 = math.tanh %0 : f64
    linalg.yield %1 : f64
  } -> tensor<101x16xf64>
  %u = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%h, %t : tensor<101x16xf64>, tensor<101x16xf64>) outs(%e : tensor<101x16xf64>) {
  ^bb0(%p: f64, %q: f64, %o: f64):
    %0 = arith.mulf %p, %q : f64
    linalg.yield %0 : f64
  } -> tensor<101x16xf64>
  %v = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%u, %t : tensor<101x16xf64>, tensor<101x16xf64>) outs(%e : tensor<101x16xf64>) {
  ^bb0(%p: f64, %q: f64, %o: f64):
    %0 = arith.subf %p, %q : f64
    linalg.yield %0 : f64
  } -> tensor<101x16xf64>
  %es = tensor.empty() : tensor<16xf64>
  %zeros = linalg.fill ins(%zero : f64) outs(%es : tensor<16xf64>) -> tensor<16xf64>
  %s = linalg.generic {indexing_maps = [#ij, #j], iterator_types = ["reduction", "parallel"]}
      ins(%v : tensor<101x16xf64>) outs(%zeros : tensor<16xf64>) {
  ^bb0(%p: f64, %o: f64):
    %0 = arith.addf %p, %o : f64
    linalg.yield %0 : f64
  } -> tensor<16xf64>
  return %s : tensor<16xf64>
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
#j = affine_map<(i, j) -> (j)>
#nk = affine_map<(n, i, k) -> (n, k)>
#ik = affine_map<(n, i, k) -> (i, k)>
#ni = affine_map<(n, i, k) -> (n, i)>

// Where every example needs the sum over all of them first, what comes behind that stays as it is: too little is left.
// CHECK-LABEL: func.func @main
// CHECK-NOT: scf.for
func.func @main(%x: tensor<101x5xf64>, %w: tensor<16x5xf64>) -> (tensor<16xf64>, tensor<101x16xf64>) {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<101x16xf64>
  %f = linalg.fill ins(%zero : f64) outs(%e : tensor<101x16xf64>) -> tensor<101x16xf64>
  %h = linalg.contract indexing_maps = [#nk, #ik, #ni]
      ins(%x, %w : tensor<101x5xf64>, tensor<16x5xf64>) outs(%f : tensor<101x16xf64>) -> tensor<101x16xf64>
  %es = tensor.empty() : tensor<16xf64>
  %zeros = linalg.fill ins(%zero : f64) outs(%es : tensor<16xf64>) -> tensor<16xf64>
  %s = linalg.generic {indexing_maps = [#ij, #j], iterator_types = ["reduction", "parallel"]}
      ins(%h : tensor<101x16xf64>) outs(%zeros : tensor<16xf64>) {
  ^bb0(%p: f64, %o: f64):
    %0 = arith.addf %p, %o : f64
    linalg.yield %0 : f64
  } -> tensor<16xf64>
  %t = linalg.generic {indexing_maps = [#ij, #j, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%h, %s : tensor<101x16xf64>, tensor<16xf64>) outs(%e : tensor<101x16xf64>) {
  ^bb0(%p: f64, %q: f64, %o: f64):
    %0 = arith.divf %p, %q : f64
    linalg.yield %0 : f64
  } -> tensor<101x16xf64>
  return %s, %t : tensor<16xf64>, tensor<101x16xf64>
}

// -----

#kdn = affine_map<(n, k, d) -> (n, k, d)>
#nd = affine_map<(n, k, d) -> (n, d)>
#kd = affine_map<(n, k, d) -> (k, d)>
#n = affine_map<(n, k, d) -> (n)>
#left = affine_map<(n, k, i, j) -> (k, i, j)>
#right = affine_map<(n, k, i, j) -> (n, k, j)>
#out = affine_map<(n, k, i, j) -> (n, k, i)>

// Contractions of a batch of three go a matrix at a time, until a sum over the batch is needed and behind it. What is
// cheap to compute, the differences, is computed in both loops; the first product is kept for the second.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<96x8xf64>
// CHECK: scf.for %{{.*}} = %c0 to %c96 step %c[[BLOCK:[0-9]+]]
// CHECK: %[[FIRST:.*]]:2 = scf.for %[[K:.*]] = %c0 to %c3 step %c1 {{.*}} -> (tensor<[[BLOCK]]xf64>, tensor<3x8x[[BLOCK]]xf64>)
// CHECK: arith.subf
// CHECK: linalg.contract {{.*}} -> tensor<1x8x[[BLOCK]]xf64>
// CHECK: scf.yield
// CHECK: scf.for %{{.*}} = %c0 to %c3 step %c1 iter_args(%[[SUM:.*]] = %{{.*}}) -> (tensor<3x8x8xf64>)
// CHECK: arith.subf
// CHECK: tensor.extract_slice %[[FIRST]]#1
// CHECK: arith.mulf
// CHECK: %[[OLD:.*]] = tensor.extract_slice %[[SUM]]
// CHECK: %[[NEW:.*]] = linalg.contract {{.*}} outs(%[[OLD]] : tensor<1x8x8xf64>)
// CHECK: tensor.insert_slice %[[NEW]] into %[[SUM]]
func.func @main(%x: tensor<96x8xf64>, %m: tensor<3x8xf64>, %l: tensor<3x8x8xf64>) -> tensor<3x8x8xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<96x3x8xf64>
  %f = linalg.fill ins(%zero : f64) outs(%e : tensor<96x3x8xf64>) -> tensor<96x3x8xf64>
  %c = linalg.generic {indexing_maps = [#nd, #kd, #kdn], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %m : tensor<96x8xf64>, tensor<3x8xf64>) outs(%e : tensor<96x3x8xf64>) {
  ^bb0(%p: f64, %q: f64, %o: f64):
    %0 = arith.subf %p, %q : f64
    linalg.yield %0 : f64
  } -> tensor<96x3x8xf64>
  %h = linalg.contract indexing_maps = [#left, #right, #out]
      ins(%l, %c : tensor<3x8x8xf64>, tensor<96x3x8xf64>) outs(%f : tensor<96x3x8xf64>) -> tensor<96x3x8xf64>
  %en = tensor.empty() : tensor<96xf64>
  %fn = linalg.fill ins(%zero : f64) outs(%en : tensor<96xf64>) -> tensor<96xf64>
  %s = linalg.generic {indexing_maps = [#kdn, #n], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%h : tensor<96x3x8xf64>) outs(%fn : tensor<96xf64>) {
  ^bb0(%p: f64, %o: f64):
    %0 = math.exp %p : f64
    %1 = arith.addf %0, %o : f64
    linalg.yield %1 : f64
  } -> tensor<96xf64>
  %g = linalg.generic {indexing_maps = [#kdn, #n, #kdn], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%h, %s : tensor<96x3x8xf64>, tensor<96xf64>) outs(%e : tensor<96x3x8xf64>) {
  ^bb0(%p: f64, %q: f64, %o: f64):
    %0 = arith.mulf %p, %q : f64
    linalg.yield %0 : f64
  } -> tensor<96x3x8xf64>
  %el = tensor.empty() : tensor<3x8x8xf64>
  %fl = linalg.fill ins(%zero : f64) outs(%el : tensor<3x8x8xf64>) -> tensor<3x8x8xf64>
  %d = linalg.contract indexing_maps = [#out, #right, #left]
      ins(%g, %c : tensor<96x3x8xf64>, tensor<96x3x8xf64>) outs(%fl : tensor<3x8x8xf64>) -> tensor<3x8x8xf64>
  return %d : tensor<3x8x8xf64>
}

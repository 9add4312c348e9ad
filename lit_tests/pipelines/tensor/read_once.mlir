// RUN: mlirml-opt %s --split-input-file --mlirml-read-once=processor=avx2,l2=64K | filecheck %s

// A product with the rows of the first one: blocks of rows, and those that are left.
// CHECK: func.func private @mlirml_threads() -> i64
// CHECK-LABEL: func.func @chain
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<300x300xf64>, %[[X:[a-z0-9]+]]: tensor<300xf64>
// CHECK: %[[T:.*]] = {{.*}}call @mlirml_threads
// CHECK: %[[ONE:.*]] = arith.cmpi sle, %[[T]]
// CHECK: %[[R:.*]] = scf.if %[[ONE]] -> (tensor<300xf64>) {
// CHECK: %[[S:.*]] = scf.for %[[I:.*]] = %{{.*}} iter_args(%[[Z:.*]] = %{{.*}}) -> (tensor<300xf64>) {
// CHECK: %[[B:.*]] = tensor.extract_slice %[[A]][%[[I]], 0] [16, 300] [1, 1]
// CHECK: %[[Y:.*]] = linalg.matvec ins(%[[B]], %[[X]]
// CHECK: %[[N:.*]] = linalg.vecmat ins(%[[Y]], %[[B]] : {{.*}}) outs(%[[Z]]
// CHECK: scf.yield %[[N]]
// CHECK: %[[B2:.*]] = tensor.extract_slice %[[A]][288, 0] [12, 300] [1, 1]
// CHECK: %[[Y2:.*]] = linalg.matvec ins(%[[B2]], %[[X]]
// CHECK: linalg.vecmat ins(%[[Y2]], %[[B2]] : {{.*}}) outs(%[[S]]
// CHECK: } else {
// CHECK: linalg.matvec ins(%[[A]], %[[X]]
// CHECK: linalg.vecmat
// CHECK: }
// CHECK: return %[[R]]
func.func @chain(%a: tensor<300x300xf64>, %x: tensor<300xf64>) -> tensor<300xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<300xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<300xf64>) -> tensor<300xf64>
  %y = linalg.matvec ins(%a, %x : tensor<300x300xf64>, tensor<300xf64>) outs(%z : tensor<300xf64>) -> tensor<300xf64>
  %r = linalg.vecmat ins(%y, %a : tensor<300xf64>, tensor<300x300xf64>) outs(%z : tensor<300xf64>) -> tensor<300xf64>
  return %r : tensor<300xf64>
}

// -----

#v = affine_map<(i) -> (i)>
#n = affine_map<(i) -> ()>

// What is between the products is computed by blocks, a sum too; an operation on the first result moves behind the loop.
// CHECK-LABEL: func.func @between
// CHECK: %[[R:.*]]:3 = scf.if
// CHECK: scf.for {{.*}} -> (tensor<f64>, tensor<300xf64>, tensor<304xf64>)
// CHECK: linalg.matvec
// CHECK: %[[E:.*]]:2 = linalg.generic {{.*}} iterator_types = ["reduction"]
// CHECK: linalg.vecmat ins(%[[E]]#1
// CHECK: tensor.insert_slice
// CHECK: } else {
// CHECK: }
// CHECK: math.exp
func.func @between(%a: tensor<304x300xf64>, %x: tensor<300xf64>, %b: tensor<304xf64>) -> (tensor<f64>, tensor<300xf64>, tensor<304xf64>) {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<304xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<304xf64>) -> tensor<304xf64>
  %y = linalg.matvec ins(%a, %x : tensor<304x300xf64>, tensor<300xf64>) outs(%z : tensor<304xf64>) -> tensor<304xf64>
  %other = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%y : tensor<304xf64>) outs(%e : tensor<304xf64>) {
  ^bb0(%p: f64, %out: f64):
    %0 = math.exp %p : f64
    linalg.yield %0 : f64
  } -> tensor<304xf64>
  %one = tensor.empty() : tensor<f64>
  %start = linalg.fill ins(%zero : f64) outs(%one : tensor<f64>) -> tensor<f64>
  %both:2 = linalg.generic {indexing_maps = [#v, #v, #n, #v], iterator_types = ["reduction"]}
      ins(%y, %b : tensor<304xf64>, tensor<304xf64>) outs(%start, %e : tensor<f64>, tensor<304xf64>) {
  ^bb0(%p: f64, %q: f64, %total: f64, %out: f64):
    %0 = arith.subf %p, %q : f64
    %1 = arith.mulf %0, %0 : f64
    %2 = arith.addf %1, %total : f64
    linalg.yield %2, %0 : f64, f64
  } -> (tensor<f64>, tensor<304xf64>)
  %e2 = tensor.empty() : tensor<300xf64>
  %z2 = linalg.fill ins(%zero : f64) outs(%e2 : tensor<300xf64>) -> tensor<300xf64>
  %r = linalg.vecmat ins(%both#1, %a : tensor<304xf64>, tensor<304x300xf64>) outs(%z2 : tensor<300xf64>) -> tensor<300xf64>
  return %both#0, %r, %other : tensor<f64>, tensor<300xf64>, tensor<304xf64>
}

// -----

// The second product needs all of the first one; and a matrix that is small.
// CHECK-LABEL: func.func @apart
// CHECK-NOT: scf.for
func.func @apart(%a: tensor<300x300xf64>, %x: tensor<300xf64>, %b: tensor<30x30xf64>, %w: tensor<30xf64>) -> (tensor<300xf64>, tensor<30xf64>) {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<300xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<300xf64>) -> tensor<300xf64>
  %y = linalg.matvec ins(%a, %x : tensor<300x300xf64>, tensor<300xf64>) outs(%z : tensor<300xf64>) -> tensor<300xf64>
  %r = linalg.matvec ins(%a, %y : tensor<300x300xf64>, tensor<300xf64>) outs(%z : tensor<300xf64>) -> tensor<300xf64>
  %e2 = tensor.empty() : tensor<30xf64>
  %z2 = linalg.fill ins(%zero : f64) outs(%e2 : tensor<30xf64>) -> tensor<30xf64>
  %y2 = linalg.matvec ins(%b, %w : tensor<30x30xf64>, tensor<30xf64>) outs(%z2 : tensor<30xf64>) -> tensor<30xf64>
  %r2 = linalg.vecmat ins(%y2, %b : tensor<30xf64>, tensor<30x30xf64>) outs(%z2 : tensor<30xf64>) -> tensor<30xf64>
  return %r, %r2 : tensor<300xf64>, tensor<30xf64>
}

// -----

// Of products that do not depend on each other, that of the rows comes first in a block.
// CHECK-LABEL: func.func @rows_first
// CHECK: scf.if
// CHECK: scf.for
// CHECK: %[[B:.*]] = tensor.extract_slice %{{.*}} [16, 300] [1, 1]
// CHECK: linalg.matvec ins(%[[B]]
// CHECK: linalg.vecmat
// CHECK: } else {
// CHECK: linalg.vecmat
// CHECK: linalg.matvec
func.func @rows_first(%a: tensor<304x300xf64>, %x: tensor<304xf64>, %y: tensor<300xf64>) -> (tensor<300xf64>, tensor<304xf64>) {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<300xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<300xf64>) -> tensor<300xf64>
  %e2 = tensor.empty() : tensor<304xf64>
  %z2 = linalg.fill ins(%zero : f64) outs(%e2 : tensor<304xf64>) -> tensor<304xf64>
  %p = linalg.vecmat ins(%x, %a : tensor<304xf64>, tensor<304x300xf64>) outs(%z : tensor<300xf64>) -> tensor<300xf64>
  %q = linalg.matvec ins(%a, %y : tensor<304x300xf64>, tensor<300xf64>) outs(%z2 : tensor<304xf64>) -> tensor<304xf64>
  return %p, %q : tensor<300xf64>, tensor<304xf64>
}

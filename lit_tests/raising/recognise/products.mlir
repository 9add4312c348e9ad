// RUN: mlirml-opt %s --mlirml-recognise --canonicalize --split-input-file | filecheck %s

// Sums of products are contractions, in whatever order the body and the loops stand.
// CHECK-LABEL: func.func @matmul
// CHECK-SAME: %[[A:[^:]*]]: tensor<4x5xf32>, %[[B:[^:]*]]: tensor<5x6xf32>, %[[C:[^:]*]]: tensor<4x6xf32>
// CHECK-NEXT: %[[R:.*]] = linalg.matmul ins(%[[A]], %[[B]] : tensor<4x5xf32>, tensor<5x6xf32>) outs(%[[C]] : tensor<4x6xf32>)
// CHECK-NEXT: return %[[R]]
func.func @matmul(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(k, j, i) -> (k, j)>, affine_map<(k, j, i) -> (i, k)>, affine_map<(k, j, i) -> (i, j)>], iterator_types = ["reduction", "parallel", "parallel"]} ins(%b, %a : tensor<5x6xf32>, tensor<4x5xf32>) outs(%c : tensor<4x6xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %0, %out : f32
    linalg.yield %1 : f32
  } -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// A generic that writes one number is a fill, and sums start from it.
// CHECK-LABEL: func.func @matvec
// CHECK-SAME: %[[A:[^:]*]]: tensor<5x4xf32>, %[[X:[^:]*]]: tensor<5xf32>, %[[Y:[^:]*]]: tensor<4xf32>
// CHECK: %[[ZERO:.*]] = arith.constant 0.0
// CHECK: %[[Z:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[Y]] : tensor<4xf32>)
// CHECK: linalg.vecmat ins(%[[X]], %[[A]] : tensor<5xf32>, tensor<5x4xf32>) outs(%[[Z]] : tensor<4xf32>)
func.func @matvec(%a: tensor<5x4xf32>, %x: tensor<5xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%y : tensor<4xf32>) {
  ^bb0(%out: f32):
    linalg.yield %zero : f32
  } -> tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, k) -> (k, i)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%a, %x : tensor<5x4xf32>, tensor<5xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// Batches in any number and order; integers; an operand that is read twice.
// CHECK-DAG: #[[X:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d2, d0, d3)>
// CHECK-DAG: #[[Y:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d0, d1)>
// CHECK-DAG: #[[Z:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: func.func @batches
// CHECK: linalg.contract indexing_maps = [#[[X]], #[[Y]], #[[Z]]] ins({{.*}} : tensor<3x4x2x5xi32>, tensor<5x2x3xi32>)
// CHECK-LABEL: func.func @gram
// CHECK-SAME: %[[A:[^:]*]]: tensor<4x5xf64>
// CHECK: linalg.contract {{.*}} ins(%[[A]], %[[A]] : tensor<4x5xf64>, tensor<4x5xf64>)
func.func @batches(%x: tensor<3x4x2x5xi32>, %y: tensor<5x2x3xi32>, %z: tensor<2x3x4xi32>) -> tensor<2x3x4xi32> {
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, i, k) -> (b, i, a, k)>, affine_map<(a, b, i, k) -> (k, a, b)>, affine_map<(a, b, i, k) -> (a, b, i)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %y : tensor<3x4x2x5xi32>, tensor<5x2x3xi32>) outs(%z : tensor<2x3x4xi32>) {
  ^bb0(%p: i32, %q: i32, %out: i32):
    %0 = arith.muli %p, %q : i32
    %1 = arith.addi %out, %0 : i32
    linalg.yield %1 : i32
  } -> tensor<2x3x4xi32>
  return %r : tensor<2x3x4xi32>
}
func.func @gram(%a: tensor<4x5xf64>, %c: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %a : tensor<4x5xf64>, tensor<4x5xf64>) outs(%c : tensor<4x4xf64>) {
  ^bb0(%p: f64, %q: f64, %out: f64):
    %0 = arith.mulf %p, %q : f64
    %1 = arith.addf %out, %0 : f64
    linalg.yield %1 : f64
  } -> tensor<4x4xf64>
  return %r : tensor<4x4xf64>
}

// -----

// Scale factors and signs go to the smaller operand.
// CHECK-LABEL: func.func @scaled
// CHECK-SAME: %[[A:[^:]*]]: tensor<4x5xf32>, %[[X:[^:]*]]: tensor<5xf32>, %[[ALPHA:[^:]*]]: tensor<f32>, %[[Y:[^:]*]]: tensor<4xf32>
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[ALPHA]], %[[X]] : tensor<f32>, tensor<5xf32>)
// CHECK: arith.mulf
// CHECK: arith.negf
// CHECK: linalg.matvec ins(%[[A]], %[[S]] : tensor<4x5xf32>, tensor<5xf32>) outs(%[[Y]] : tensor<4xf32>)
func.func @scaled(%a: tensor<4x5xf32>, %x: tensor<5xf32>, %alpha: tensor<f32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> ()>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%a, %x, %alpha : tensor<4x5xf32>, tensor<5xf32>, tensor<f32>) outs(%y : tensor<4xf32>) {
  ^bb0(%p: f32, %q: f32, %s: f32, %out: f32):
    %0 = arith.mulf %s, %p : f32
    %1 = arith.mulf %0, %q : f32
    %2 = arith.subf %out, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// Narrow operands are widened by the contraction itself.
// CHECK-LABEL: func.func @widened
// CHECK-SAME: %[[A:[^:]*]]: tensor<4x5xf32>, %[[B:[^:]*]]: tensor<5x6xf32>, %[[C:[^:]*]]: tensor<4x6xf64>
// CHECK-NEXT: linalg.matmul ins(%[[A]], %[[B]] : tensor<4x5xf32>, tensor<5x6xf32>) outs(%[[C]] : tensor<4x6xf64>)
func.func @widened(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>, %c: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf64>) {
  ^bb0(%x: f32, %y: f32, %out: f64):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.extf %0 : f32 to f64
    %2 = arith.addf %out, %1 : f64
    linalg.yield %2 : f64
  } -> tensor<4x6xf64>
  return %r : tensor<4x6xf64>
}

// -----

// A condition on the loops of the result keeps old values; another one zeroes an operand.
// CHECK-LABEL: func.func @lower
// CHECK: %[[P:.*]] = linalg.contract {{.*}} outs(%{{.*}} : tensor<4x4xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[P]] : tensor<4x4xf32>)
// CHECK: arith.cmpi sle
// CHECK: arith.select
// CHECK-LABEL: func.func @triangular
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<4x4xf32>)
// CHECK: arith.cmpi sgt
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK: linalg.contract {{.*}} ins(%[[T]], %{{.*}} : tensor<4x4xf32>, tensor<4x6xf32>)
func.func @lower(%a: tensor<4x7xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, k, j) -> (i, k)>, affine_map<(i, k, j) -> (j, k)>, affine_map<(i, k, j) -> (i, j)>], iterator_types = ["parallel", "reduction", "parallel"]} ins(%a, %a : tensor<4x7xf32>, tensor<4x7xf32>) outs(%c : tensor<4x4xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 2 : index
    %inside = arith.cmpi sle, %j, %i : index
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %out, %0 : f32
    %2 = arith.select %inside, %1, %out : f32
    linalg.yield %2 : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
func.func @triangular(%a: tensor<4x4xf32>, %b: tensor<4x6xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<4x4xf32>, tensor<4x6xf32>) outs(%c : tensor<4x6xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %i = linalg.index 0 : index
    %k = linalg.index 2 : index
    %inside = arith.cmpi sgt, %k, %i : index
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %out, %0 : f32
    %2 = arith.select %inside, %1, %out : f32
    linalg.yield %2 : f32
  } -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

// What only looks alike stays: a sum that is negated as it grows, an accumulator that is subtracted, a maximum in
// place of the sum, and truth values, whose sum is an exclusive or.
// CHECK-NOT: linalg.{{matmul|contract}}
// CHECK: return
func.func @alike(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>, %c: tensor<4x6xf32>, %p: tensor<4x5xi1>, %q: tensor<5x6xi1>, %s: tensor<4x6xi1>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xi1>) {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %m = arith.mulf %x, %y : f32
    %n = arith.addf %out, %m : f32
    %o = arith.negf %n : f32
    linalg.yield %o : f32
  } -> tensor<4x6xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %m = arith.mulf %x, %y : f32
    %n = arith.subf %m, %out : f32
    linalg.yield %n : f32
  } -> tensor<4x6xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %m = arith.mulf %x, %y : f32
    %n = arith.maximumf %out, %m : f32
    linalg.yield %n : f32
  } -> tensor<4x6xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%p, %q : tensor<4x5xi1>, tensor<5x6xi1>) outs(%s : tensor<4x6xi1>) {
  ^bb0(%x: i1, %y: i1, %out: i1):
    %m = arith.muli %x, %y : i1
    %n = arith.addi %out, %m : i1
    linalg.yield %n : i1
  } -> tensor<4x6xi1>
  return %0, %1, %2, %3 : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xi1>
}

// -----

// Elementwise products, squares, and sums whose operands would have to be computed in front stay generic.
// CHECK-NOT: linalg.{{matmul|contract|dot|matvec}}
// CHECK: return
func.func @stays(%a: tensor<4x5xf32>, %x: tensor<5xf32>, %y: tensor<4xf32>, %s: tensor<f32>) -> (tensor<4xf32>, tensor<f32>, tensor<4xf32>) {
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%y, %y : tensor<4xf32>, tensor<4xf32>) outs(%y : tensor<4xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %m = arith.mulf %p, %q : f32
    %n = arith.addf %out, %m : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : tensor<5xf32>) outs(%s : tensor<f32>) {
  ^bb0(%p: f32, %out: f32):
    %m = arith.mulf %p, %p : f32
    %n = arith.addf %out, %m : f32
    linalg.yield %n : f32
  } -> tensor<f32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%a, %x : tensor<4x5xf32>, tensor<5xf32>) outs(%y : tensor<4xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %e = math.exp %p : f32
    %m = arith.mulf %e, %q : f32
    %n = arith.addf %out, %m : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<f32>, tensor<4xf32>
}

// -----

// No operand depends on i: the product is computed once, and added where the condition holds.
// CHECK-LABEL: func.func @once
// CHECK: %[[P:.*]] = linalg.matvec ins(%{{.*}}, %{{.*}} : tensor<5x6xf32>, tensor<6xf32>) outs(%{{.*}} : tensor<5xf32>)
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}], iterator_types = ["parallel", "parallel"]} ins(%[[P]] : tensor<5xf32>)
// CHECK: arith.addf
// CHECK: arith.select
func.func @once(%a: tensor<5x6xf32>, %x: tensor<6xf32>, %c: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %x : tensor<5x6xf32>, tensor<6xf32>) outs(%c : tensor<4x5xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %m = arith.mulf %p, %q : f32
    %n = arith.addf %out, %m : f32
    %inside = arith.cmpi sge, %j, %i : index
    %r = arith.select %inside, %n, %out : f32
    linalg.yield %r : f32
  } -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

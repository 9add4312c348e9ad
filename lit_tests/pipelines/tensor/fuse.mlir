// RUN: mlirml-opt %s --split-input-file --mlirml-fuse | filecheck %s

#v = affine_map<(i) -> (i)>

// A producer with two users and its users are one loop, and the product is no result any more.
// CHECK-LABEL: func.func @chain_with_shared_value
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<8xf32>, tensor<8xf32>)
// CHECK: %[[T:.*]] = arith.mulf
// CHECK: %[[U:.*]] = math.tanh %[[T]]
// CHECK: arith.addf %[[T]], %[[U]]
// CHECK-NOT: linalg.generic
// CHECK: return %[[R]]
func.func @chain_with_shared_value(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %e0 = tensor.empty() : tensor<8xf32>
  %t = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<8xf32>, tensor<8xf32>) outs(%e0 : tensor<8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.mulf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %u = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%t : tensor<8xf32>) outs(%e1 : tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %0 = math.tanh %x : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %e2 = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
      ins(%t, %u : tensor<8xf32>, tensor<8xf32>) outs(%e2 : tensor<8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// The exponential is returned and summed up: one loop with two results.
// CHECK-LABEL: func.func @reduction_joins_its_producer
// CHECK: %[[F:.*]] = linalg.fill
// CHECK: %[[R:.*]]:2 = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]}
// CHECK-SAME: ins(%arg0 : tensor<4x8xf32>) outs(%{{.*}}, %[[F]] : tensor<4x8xf32>, tensor<4xf32>)
// CHECK: %[[E:.*]] = math.exp
// CHECK: %[[S:.*]] = arith.addf
// CHECK: linalg.yield %[[E]], %[[S]]
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @reduction_joins_its_producer(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4x8xf32>
  %e = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e0 : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#m, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<4x8xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %e, %s : tensor<4x8xf32>, tensor<4xf32>
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
#v = affine_map<(i) -> (i)>

// The row is read 4 times: a scaling is cheap enough to be computed 4 times, a tanh is not.
// CHECK-LABEL: func.func @only_cheap_producers_are_computed_again
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]}
// CHECK-NEXT: ^bb0
// CHECK-NEXT: math.tanh
// CHECK-NEXT: linalg.yield
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]}
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.addf
// CHECK-NOT: linalg.generic
func.func @only_cheap_producers_are_computed_again(%x: tensor<4x8xf32>, %r: tensor<8xf32>) -> tensor<4x8xf32> {
  %two = arith.constant 2.0 : f32
  %e0 = tensor.empty() : tensor<8xf32>
  %scaled = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%r : tensor<8xf32>) outs(%e0 : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.mulf %a, %two : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %bent = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%r : tensor<8xf32>) outs(%e1 : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.tanh %a : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %e2 = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#m, #column, #column, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %scaled, %bent : tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) outs(%e2 : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    %1 = arith.addf %0, %c : f32
    linalg.yield %1 : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// The quotient needs the whole sum, so it cannot be in the loop that makes the sum.
// CHECK-LABEL: func.func @nothing_joins_across_a_reduction
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]}
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]}
// CHECK: arith.divf
func.func @nothing_joins_across_a_reduction(%x: tensor<4x8xf32>, %init: tensor<4xf32>) -> tensor<4x8xf32> {
  %s = linalg.generic {indexing_maps = [#m, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#m, #row, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<4x8xf32>, tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

#v = affine_map<(i) -> (i)>

// Unused and repeated inputs go, a filled tensor becomes its scalar.
// CHECK-LABEL: func.func @operands_are_pruned
// CHECK: linalg.generic {{.*}} ins(%arg0 : tensor<8xf32>)
// CHECK: arith.mulf %[[X:.*]], %[[X]]
// CHECK: arith.addf %{{.*}}, %cst
func.func @operands_are_pruned(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %cst = arith.constant 3.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%cst : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#v, #v, #v, #v, #v], iterator_types = ["parallel"]}
      ins(%a, %b, %a, %f : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32, %c: f32, %o: f32):
    %0 = arith.mulf %x, %z : f32
    %1 = arith.addf %0, %c : f32
    linalg.yield %1 : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#c = affine_map<(i, j) -> (j)>
#v = affine_map<(i) -> (i)>

// The negation is computed where it is read, and it reads the sum: the two readers of %a stay apart, as the second
// would see half of the sum.
// CHECK-LABEL: func.func @sum_behind_a_cheap_producer
// CHECK: %[[S:.*]] = linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]} ins(%arg0 : tensor<4x8xf32>)
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]} ins(%arg0, %[[S]] :
// CHECK-NOT: linalg.generic
func.func @sum_behind_a_cheap_producer(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e0 : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#m, #c], iterator_types = ["reduction", "parallel"]}
      ins(%a : tensor<4x8xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %0 = arith.addf %x, %o : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %neg = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%sum : tensor<8xf32>) outs(%e1 : tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %0 = arith.negf %x : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %e2 = tensor.empty() : tensor<4x8xf32>
  %r = linalg.generic {indexing_maps = [#m, #c, #m], iterator_types = ["parallel", "parallel"]}
      ins(%a, %neg : tensor<4x8xf32>, tensor<8xf32>) outs(%e2 : tensor<4x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i, j) -> (i)>

// The search for a place keeps its loops for itself, although both operations read %a.
// CHECK-LABEL: func.func @argmax_beside_a_sum
// CHECK: linalg.generic {{.*}} ins(%arg0 : tensor<4x8xi64>) outs({{.*}} : tensor<4xi64>) {
// CHECK: linalg.generic {{.*}} ins(%arg0 : tensor<4x8xi64>) outs({{.*}} : tensor<4xi64>, tensor<4xi64>) {
// CHECK-NOT: linalg.generic
func.func @argmax_beside_a_sum(%a: tensor<4x8xi64>, %s: tensor<4xi64>, %v: tensor<4xi64>, %p: tensor<4xi64>)
    -> (tensor<4xi64>, tensor<4xi64>) {
  %sum = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<4x8xi64>) outs(%s : tensor<4xi64>) {
  ^bb0(%x: i64, %o: i64):
    %0 = arith.addi %x, %o : i64
    linalg.yield %0 : i64
  } -> tensor<4xi64>
  %max:2 = linalg.generic {indexing_maps = [#m, #r, #r], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<4x8xi64>) outs(%v, %p : tensor<4xi64>, tensor<4xi64>) {
  ^bb0(%x: i64, %best: i64, %place: i64):
    %0 = arith.cmpi sgt, %x, %best : i64
    %1 = linalg.index 1 : index
    %2 = arith.index_cast %1 : index to i64
    %3 = arith.select %0, %x, %best : i64
    %4 = arith.select %0, %2, %place : i64
    linalg.yield %3, %4 : i64, i64
  } -> (tensor<4xi64>, tensor<4xi64>)
  return %sum, %max#1 : tensor<4xi64>, tensor<4xi64>
}

// -----

#v = affine_map<(i) -> (i)>

// The negation has to be in memory for the slice, so its reader behind the slice reads it there: to compute it again,
// the sum would have to be in memory too.
// CHECK-LABEL: func.func @stored_value
// CHECK: %[[N:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<8xf32>, tensor<8xf32>) outs({{.*}} : tensor<8xf32>) {
// CHECK: arith.addf
// CHECK: arith.negf
// CHECK: %[[I:.*]] = tensor.insert_slice %[[N]]
// CHECK: %[[S:.*]] = tensor.extract_slice %[[I]]
// CHECK: linalg.generic {{.*}} ins(%[[N]], %[[S]] :
func.func @stored_value(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<10xf32>) -> (tensor<10xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %neg = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%sum : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %0 = arith.negf %x : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %i = tensor.insert_slice %neg into %c[1] [8] [1] : tensor<8xf32> into tensor<10xf32>
  %s = tensor.extract_slice %i[0] [8] [1] : tensor<10xf32> to tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
      ins(%neg, %s : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.mulf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  return %i, %r : tensor<10xf32>, tensor<8xf32>
}

// -----

// What a window slides over is not computed again at each of its places.
// CHECK-LABEL: func.func @window
// CHECK: linalg.generic
// CHECK: arith.negf
// CHECK: linalg.generic
// CHECK: arith.maximumf
#element = affine_map<(i) -> (i)>
#slide = affine_map<(i, k) -> (i * 2 + k)>
#tap = affine_map<(i, k) -> (k)>
#place = affine_map<(i, k) -> (i)>
func.func @window(%x: tensor<9xf32>, %out: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<9xf32>
  %n = linalg.generic {indexing_maps = [#element, #element], iterator_types = ["parallel"]}
      ins(%x : tensor<9xf32>) outs(%e : tensor<9xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  } -> tensor<9xf32>
  %shape = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [#slide, #tap, #place], iterator_types = ["parallel", "reduction"]}
      ins(%n, %shape : tensor<9xf32>, tensor<3xf32>) outs(%out : tensor<4xf32>) {
  ^bb0(%a: f32, %s: f32, %acc: f32):
    %0 = arith.maximumf %acc, %a : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// Sums over the same pairs share what they compute of a pair, though no operand has both loops.
// CHECK-LABEL: func.func @pairs
// CHECK: %[[SUMS:.*]]:2 = linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "reduction"]
// CHECK: math.sqrt
// CHECK: return %[[SUMS]]#0, %[[SUMS]]#1
func.func @pairs(%x: tensor<50xf64>, %y: tensor<50xf64>) -> (tensor<50xf64>, tensor<50xf64>) {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<50xf64>
  %0 = linalg.fill ins(%zero : f64) outs(%e : tensor<50xf64>) -> tensor<50xf64>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x, %y : tensor<50xf64>, tensor<50xf64>) outs(%0 : tensor<50xf64>) {
  ^bb0(%a: f64, %b: f64, %s: f64):
    %d = arith.subf %a, %b : f64
    %r = math.sqrt %d : f64
    %t = arith.addf %s, %r : f64
    linalg.yield %t : f64
  } -> tensor<50xf64>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%y, %x : tensor<50xf64>, tensor<50xf64>) outs(%0 : tensor<50xf64>) {
  ^bb0(%b: f64, %a: f64, %s: f64):
    %d = arith.subf %a, %b : f64
    %r = math.sqrt %d : f64
    %q = arith.mulf %r, %b : f64
    %t = arith.addf %s, %q : f64
    linalg.yield %t : f64
  } -> tensor<50xf64>
  return %1, %2 : tensor<50xf64>, tensor<50xf64>
}

// -----

// One operand of two is another: they stay apart.
// CHECK-LABEL: func.func @other_pairs
// CHECK: linalg.generic
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
func.func @other_pairs(%x: tensor<50xf64>, %y: tensor<50xf64>, %z: tensor<50xf64>) -> (tensor<50xf64>, tensor<50xf64>) {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<50xf64>
  %0 = linalg.fill ins(%zero : f64) outs(%e : tensor<50xf64>) -> tensor<50xf64>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x, %y : tensor<50xf64>, tensor<50xf64>) outs(%0 : tensor<50xf64>) {
  ^bb0(%a: f64, %b: f64, %s: f64):
    %d = arith.mulf %a, %b : f64
    %t = arith.addf %s, %d : f64
    linalg.yield %t : f64
  } -> tensor<50xf64>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x, %z : tensor<50xf64>, tensor<50xf64>) outs(%0 : tensor<50xf64>) {
  ^bb0(%a: f64, %b: f64, %s: f64):
    %d = arith.mulf %a, %b : f64
    %t = arith.addf %s, %d : f64
    linalg.yield %t : f64
  } -> tensor<50xf64>
  return %1, %2 : tensor<50xf64>, tensor<50xf64>
}

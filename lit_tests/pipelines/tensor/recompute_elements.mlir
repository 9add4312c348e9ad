// RUN: mlirml-opt %s --split-input-file --mlirml-recompute-elements='least=256' | filecheck %s

#m = affine_map<(i, j) -> (i, j)>

// What a derivative reads of the function in front of a contraction is computed again from %h, which it reads, too.
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = linalg.generic
// CHECK: math.tanh
// CHECK: } -> tensor<8x8xf64>
// CHECK: linalg.matmul ins(%[[P]],
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<8x8xf64>, tensor<8x8xf64>, tensor<8x8xf64>)
// CHECK: math.tanh
func.func @main(%h: tensor<8x8xf64>, %w: tensor<8x8xf64>, %out: tensor<8x8xf64>) -> tensor<8x8xf64> {
  %e = tensor.empty() : tensor<8x8xf64>
  %p:2 = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%h : tensor<8x8xf64>) outs(%e, %e : tensor<8x8xf64>, tensor<8x8xf64>) {
  ^bb0(%x: f64, %o: f64, %q: f64):
    %0 = math.tanh %x : f64
    %1 = arith.mulf %0, %x : f64
    linalg.yield %0, %1 : f64, f64
  } -> (tensor<8x8xf64>, tensor<8x8xf64>)
  %z = linalg.matmul ins(%p#1, %w : tensor<8x8xf64>, tensor<8x8xf64>) outs(%out : tensor<8x8xf64>) -> tensor<8x8xf64>
  %d = linalg.generic {indexing_maps = [#m, #m, #m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%z, %h, %p#0 : tensor<8x8xf64>, tensor<8x8xf64>, tensor<8x8xf64>) outs(%e : tensor<8x8xf64>) {
  ^bb0(%x: f64, %y: f64, %t: f64, %o: f64):
    %0 = arith.mulf %x, %t : f64
    %1 = arith.addf %0, %y : f64
    linalg.yield %1 : f64
  } -> tensor<8x8xf64>
  return %d : tensor<8x8xf64>
}

// -----

#m = affine_map<(i, j) -> (i, j)>

// Of two values that one number gives, that number is kept; nothing else reads what it is computed from.
// CHECK-LABEL: func.func @main
// CHECK: math.log
// CHECK: %[[P:.*]] = linalg.generic {{.*}} outs(%{{[0-9]+}} : tensor<8x8xf64>)
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK-NEXT: linalg.yield %[[SUM]]
// CHECK: linalg.matmul
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[P]] : tensor<8x8xf64>, tensor<8x8xf64>)
// CHECK: math.sin
// CHECK: math.cos
func.func @main(%w: tensor<8x8xf64>, %out: tensor<8x8xf64>) -> tensor<8x8xf64> {
  %e = tensor.empty() : tensor<8x8xf64>
  %a:2 = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<8x8xf64>) outs(%e, %e : tensor<8x8xf64>, tensor<8x8xf64>) {
  ^bb0(%x: f64, %o: f64, %q: f64):
    %0 = math.exp %x : f64
    %1 = math.log %x : f64
    linalg.yield %0, %1 : f64, f64
  } -> (tensor<8x8xf64>, tensor<8x8xf64>)
  %p:2 = linalg.generic {indexing_maps = [#m, #m, #m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%a#0, %a#1 : tensor<8x8xf64>, tensor<8x8xf64>) outs(%e, %e : tensor<8x8xf64>, tensor<8x8xf64>) {
  ^bb0(%x: f64, %y: f64, %o: f64, %q: f64):
    %0 = arith.addf %x, %y : f64
    %1 = math.sin %0 : f64
    %2 = math.cos %0 : f64
    linalg.yield %1, %2 : f64, f64
  } -> (tensor<8x8xf64>, tensor<8x8xf64>)
  %z = linalg.matmul ins(%w, %w : tensor<8x8xf64>, tensor<8x8xf64>) outs(%out : tensor<8x8xf64>) -> tensor<8x8xf64>
  %d = linalg.generic {indexing_maps = [#m, #m, #m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%z, %p#0, %p#1 : tensor<8x8xf64>, tensor<8x8xf64>, tensor<8x8xf64>) outs(%e : tensor<8x8xf64>) {
  ^bb0(%x: f64, %s: f64, %c: f64, %o: f64):
    %0 = arith.mulf %x, %s : f64
    %1 = arith.addf %0, %c : f64
    linalg.yield %1 : f64
  } -> tensor<8x8xf64>
  return %d : tensor<8x8xf64>
}

// -----

#m = affine_map<(i, j) -> (i, j)>

// Without a contraction between them the value is kept: computing it again would cost more.
// CHECK-LABEL: func.func @main
// CHECK: math.tanh
// CHECK-NOT: math.tanh
func.func @main(%h: tensor<8x8xf64>, %w: tensor<8x8xf64>) -> (tensor<8x8xf64>, tensor<8x8xf64>) {
  %e = tensor.empty() : tensor<8x8xf64>
  %z = linalg.matmul ins(%h, %w : tensor<8x8xf64>, tensor<8x8xf64>) outs(%e : tensor<8x8xf64>) -> tensor<8x8xf64>
  %p = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%z : tensor<8x8xf64>) outs(%e : tensor<8x8xf64>) {
  ^bb0(%x: f64, %o: f64):
    %0 = math.tanh %x : f64
    linalg.yield %0 : f64
  } -> tensor<8x8xf64>
  %d = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%z, %p : tensor<8x8xf64>, tensor<8x8xf64>) outs(%e : tensor<8x8xf64>) {
  ^bb0(%x: f64, %t: f64, %o: f64):
    %0 = arith.mulf %x, %t : f64
    linalg.yield %0 : f64
  } -> tensor<8x8xf64>
  return %z, %d : tensor<8x8xf64>, tensor<8x8xf64>
}

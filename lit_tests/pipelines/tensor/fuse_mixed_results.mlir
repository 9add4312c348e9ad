// RUN: mlirml-opt %s --mlirml-fuse | filecheck %s

#vector = affine_map<(d0) -> (d0)>
#scalar = affine_map<(d0) -> ()>

// What fusion has made of an elementwise operation and a reduction stays a reduction when fusion runs once more.
// CHECK-LABEL: func.func @twice
// CHECK: linalg.generic {{{.*}}iterator_types = ["reduction"]}
// CHECK-NOT: linalg.generic
func.func @twice(%x: tensor<8xi64>, %y: tensor<8xi1>, %z: tensor<i1>) -> (tensor<8xi1>, tensor<i1>) {
  %0:2 = linalg.generic {indexing_maps = [#vector, #vector, #scalar], iterator_types = ["reduction"]}
      ins(%x : tensor<8xi64>) outs(%y, %z : tensor<8xi1>, tensor<i1>) {
  ^bb0(%in: i64, %o: i1, %sum: i1):
    %zero = arith.constant 0 : i64
    %1 = arith.cmpi eq, %in, %zero : i64
    %2 = arith.ori %1, %sum : i1
    linalg.yield %1, %2 : i1, i1
  } -> (tensor<8xi1>, tensor<i1>)
  return %0#0, %0#1 : tensor<8xi1>, tensor<i1>
}

// Two loops, each with an extreme of its keys, become one where a third reads both.
// CHECK-LABEL: func.func @both
// CHECK: linalg.generic {{{.*}}iterator_types = ["reduction"]}
// CHECK: arith.maxui
// CHECK: arith.maxui
// CHECK-NOT: linalg.generic
func.func @both(%keys: tensor<64xi64>, %others: tensor<64xi64>, %start: tensor<i64>, %table: tensor<8xf64>)
    -> (tensor<i64>, tensor<i64>, tensor<64xf64>) {
  %e = tensor.empty() : tensor<64xf64>
  %most = linalg.generic {indexing_maps = [#vector, #scalar], iterator_types = ["reduction"]}
      ins(%keys : tensor<64xi64>) outs(%start : tensor<i64>) {
  ^bb0(%x: i64, %o: i64):
    %r = arith.maxui %x, %o : i64
    linalg.yield %r : i64
  } -> tensor<i64>
  %a = linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]}
      ins(%keys : tensor<64xi64>) outs(%e : tensor<64xf64>) {
  ^bb0(%x: i64, %o: f64):
    %p = arith.index_cast %x : i64 to index
    %r = tensor.extract %table[%p] : tensor<8xf64>
    linalg.yield %r : f64
  } -> tensor<64xf64>
  %more = linalg.generic {indexing_maps = [#vector, #scalar], iterator_types = ["reduction"]}
      ins(%others : tensor<64xi64>) outs(%start : tensor<i64>) {
  ^bb0(%x: i64, %o: i64):
    %r = arith.maxui %x, %o : i64
    linalg.yield %r : i64
  } -> tensor<i64>
  %b = linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]}
      ins(%others : tensor<64xi64>) outs(%e : tensor<64xf64>) {
  ^bb0(%x: i64, %o: f64):
    %p = arith.index_cast %x : i64 to index
    %r = tensor.extract %table[%p] : tensor<8xf64>
    linalg.yield %r : f64
  } -> tensor<64xf64>
  %c = linalg.generic {indexing_maps = [#vector, #vector, #vector], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<64xf64>, tensor<64xf64>) outs(%e : tensor<64xf64>) {
  ^bb0(%x: f64, %y: f64, %o: f64):
    %r = arith.mulf %x, %y : f64
    linalg.yield %r : f64
  } -> tensor<64xf64>
  return %most, %more, %c : tensor<i64>, tensor<i64>, tensor<64xf64>
}

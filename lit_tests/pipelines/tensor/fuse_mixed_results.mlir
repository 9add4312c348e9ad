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

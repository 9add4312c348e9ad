// RUN: mlirml-opt %s --split-input-file '--mlirml-jam-updates=factor=2 least=0' | filecheck %s

#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>
#ij = affine_map<(i, j) -> (i, j)>

// Two updates at once: the second row and column are those of the matrix, after the first update; one is left.
// CHECK-LABEL: func.func @paths
// CHECK: %[[R:.*]] = scf.for %[[K:.*]] = %c0{{.*}} to %c40{{.*}} step %c2{{.*}} iter_args(%[[P:.*]] = %{{.*}})
// CHECK: %[[ROW:.*]] = tensor.extract_slice %[[P]][%[[K]], 0] [1, 41]
// CHECK: %[[COLUMN:.*]] = tensor.extract_slice %[[P]][0, %[[K]]] [41, 1]
// CHECK: %[[NEXT:.*]] = arith.addi %[[K]]
// CHECK: tensor.extract_slice %[[P]][%[[NEXT]], 0] [1, 41]
// CHECK: tensor.extract_slice %[[P]][0, %[[NEXT]]] [41, 1]
// CHECK: tensor.extract %[[COLUMN]][%[[NEXT]]]
// CHECK: %[[ROW2:.*]] = linalg.generic
// CHECK: tensor.extract %[[ROW]][%[[NEXT]]]
// CHECK: %[[COLUMN2:.*]] = linalg.generic
// CHECK: linalg.generic {{.*}} ins(%[[P]], %[[COLUMN]], %[[ROW]], %[[COLUMN2]], %[[ROW2]]
// CHECK: arith.addi
// CHECK-NEXT: %[[V:.*]] = arith.minsi
// CHECK-NEXT: arith.addi
// CHECK-NEXT: arith.minsi %[[V]]
// CHECK: scf.for %{{.*}} = %c40{{.*}} to %c41{{.*}} step %c1{{.*}} iter_args(%{{.*}} = %[[R]])
func.func @paths(%p: tensor<41x41xi32>) -> tensor<41x41xi32> {
  %c0 = arith.constant 0 : index
  %c41 = arith.constant 41 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %k = %c0 to %c41 step %c1 iter_args(%q = %p) -> (tensor<41x41xi32>) {
    %column = tensor.extract_slice %q[0, %k] [41, 1] [1, 1] : tensor<41x41xi32> to tensor<41xi32>
    %row = tensor.extract_slice %q[%k, 0] [1, 41] [1, 1] : tensor<41x41xi32> to tensor<41xi32>
    %e = tensor.empty() : tensor<41x41xi32>
    %new = linalg.generic {indexing_maps = [#i, #j, #ij, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%column, %row, %q : tensor<41xi32>, tensor<41xi32>, tensor<41x41xi32>) outs(%e : tensor<41x41xi32>) {
    ^bb0(%a: i32, %b: i32, %c: i32, %out: i32):
      %s = arith.addi %a, %b : i32
      %m = arith.minsi %c, %s : i32
      linalg.yield %m : i32
    } -> tensor<41x41xi32>
    scf.yield %new : tensor<41x41xi32>
  }
  return %r : tensor<41x41xi32>
}

// -----

#j = affine_map<(i, j) -> (j)>
#ij = affine_map<(i, j) -> (i, j)>

// A row that is not that of the iteration.
// CHECK-LABEL: func.func @other
// CHECK: step %c1
// CHECK-NOT: step %c2
func.func @other(%p: tensor<41x41xi32>) -> tensor<41x41xi32> {
  %c0 = arith.constant 0 : index
  %c40 = arith.constant 40 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %k = %c0 to %c40 step %c1 iter_args(%q = %p) -> (tensor<41x41xi32>) {
    %n = arith.addi %k, %c1 : index
    %row = tensor.extract_slice %q[%n, 0] [1, 41] [1, 1] : tensor<41x41xi32> to tensor<41xi32>
    %e = tensor.empty() : tensor<41x41xi32>
    %new = linalg.generic {indexing_maps = [#j, #ij, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%row, %q : tensor<41xi32>, tensor<41x41xi32>) outs(%e : tensor<41x41xi32>) {
    ^bb0(%b: i32, %c: i32, %out: i32):
      %m = arith.minsi %c, %b : i32
      linalg.yield %m : i32
    } -> tensor<41x41xi32>
    scf.yield %new : tensor<41x41xi32>
  }
  return %r : tensor<41x41xi32>
}

// -----

// Nothing but a yield.
// CHECK-LABEL: func.func @constant
// CHECK: scf.yield
func.func @constant(%p: tensor<41x41xi32>, %x: tensor<41x41xi32>) -> tensor<41x41xi32> {
  %c0 = arith.constant 0 : index
  %c40 = arith.constant 40 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %k = %c0 to %c40 step %c1 iter_args(%q = %p) -> (tensor<41x41xi32>) {
    scf.yield %x : tensor<41x41xi32>
  }
  return %r : tensor<41x41xi32>
}

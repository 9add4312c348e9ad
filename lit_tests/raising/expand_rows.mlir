// RUN: mlirml-opt %s --mlirml-expand-rows --split-input-file | filecheck %s

#d = affine_map<(d) -> (d)>
#n = affine_map<(d) -> ()>

// A row that is added to a row of the result: its elements are stored where they are.
// CHECK-LABEL: func.func @stored
// CHECK-SAME:  %[[V:.*]]: tensor<9x32xf64>, %[[W:.*]]: tensor<9xf64>, %[[OUT:.*]]: tensor<4x32xf64>, %[[I:.*]]: index
// CHECK:       scf.for %[[J:.*]] = %c0 to %c9 step %c1 iter_args(%[[X:.*]] = %[[OUT]])
// CHECK-NOT:   linalg
// CHECK:       scf.for %[[D:.*]] = %c0 to %c32 step %c1 iter_args(%[[Y:.*]] = %[[X]])
// CHECK-DAG:   tensor.extract %[[Y]][%[[I]], %[[D]]]
// CHECK-DAG:   tensor.extract %[[V]][%[[J]], %[[D]]]
// CHECK:       tensor.insert %{{.*}} into %[[Y]][%[[I]], %[[D]]]
// CHECK-NOT:   mlirml.batched
func.func @stored(%v: tensor<9x32xf64>, %w: tensor<9xf64>, %out: tensor<4x32xf64>, %i: index) -> tensor<4x32xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %e = tensor.empty() : tensor<32xf64>
  %r = scf.for %j = %c0 to %c9 step %c1 iter_args(%x = %out) -> (tensor<4x32xf64>) {
    %s = tensor.extract %w[%j] : tensor<9xf64>
    %t = tensor.from_elements %s : tensor<f64>
    %a = tensor.extract_slice %v[%j, 0] [1, 32] [1, 1] : tensor<9x32xf64> to tensor<32xf64>
    %p = linalg.generic {indexing_maps = [#n, #d, #d], iterator_types = ["parallel"]}
        ins(%t, %a : tensor<f64>, tensor<32xf64>) outs(%e : tensor<32xf64>) {
    ^bb0(%k: f64, %l: f64, %o: f64):
      %m = arith.mulf %k, %l : f64
      linalg.yield %m : f64
    } -> tensor<32xf64>
    %b = tensor.extract_slice %x[%i, 0] [1, 32] [1, 1] : tensor<4x32xf64> to tensor<32xf64>
    %q = linalg.generic {indexing_maps = [#d, #d, #d], iterator_types = ["parallel"]}
        ins(%b, %p : tensor<32xf64>, tensor<32xf64>) outs(%e : tensor<32xf64>) {
    ^bb0(%k: f64, %l: f64, %o: f64):
      %m = arith.addf %k, %l : f64
      linalg.yield %m : f64
    } -> tensor<32xf64>
    %y = tensor.insert_slice %q into %x[%i, 0] [1, 32] [1, 1] : tensor<32xf64> into tensor<4x32xf64>
    scf.yield %y : tensor<4x32xf64>
  } {mlirml.batched}
  return %r : tensor<4x32xf64>
}

// -----

#d = affine_map<(d) -> (d)>

// A row that a loop carries, where a condition holds.
// CHECK-LABEL: func.func @carried
// CHECK:       scf.for %{{.*}} iter_args(%[[X:.*]] = %{{.*}}) -> (tensor<32xf64>)
// CHECK:       scf.if
// CHECK:       scf.for %{{.*}} iter_args(%{{.*}} = %[[X]])
// CHECK-NOT:   linalg
// CHECK:       } else {
// CHECK-NEXT:  scf.yield %[[X]]
func.func @carried(%v: tensor<9x32xf64>, %m: tensor<9xi1>, %start: tensor<32xf64>) -> tensor<32xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %e = tensor.empty() : tensor<32xf64>
  %r = scf.for %j = %c0 to %c9 step %c1 iter_args(%x = %start) -> (tensor<32xf64>) {
    %c = tensor.extract %m[%j] : tensor<9xi1>
    %y = scf.if %c -> (tensor<32xf64>) {
      %a = tensor.extract_slice %v[%j, 0] [1, 32] [1, 1] : tensor<9x32xf64> to tensor<32xf64>
      %q = linalg.generic {indexing_maps = [#d, #d, #d], iterator_types = ["parallel"]}
          ins(%x, %a : tensor<32xf64>, tensor<32xf64>) outs(%e : tensor<32xf64>) {
      ^bb0(%k: f64, %l: f64, %o: f64):
        %p = arith.addf %k, %l : f64
        linalg.yield %p : f64
      } -> tensor<32xf64>
      scf.yield %q : tensor<32xf64>
    } else {
      scf.yield %x : tensor<32xf64>
    }
    scf.yield %y : tensor<32xf64>
  } {mlirml.batched}
  return %r : tensor<32xf64>
}

// -----

#d = affine_map<(d) -> (d)>

// Other elements of the row are needed than the one that is stored.
// CHECK-LABEL: func.func @moved
// CHECK:       linalg.generic
func.func @moved(%start: tensor<4x32xf64>) -> tensor<4x32xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<31xf64>
  %r = scf.for %j = %c0 to %c4 step %c1 iter_args(%x = %start) -> (tensor<4x32xf64>) {
    %a = tensor.extract_slice %x[%j, 0] [1, 31] [1, 1] : tensor<4x32xf64> to tensor<31xf64>
    %q = linalg.generic {indexing_maps = [#d, #d], iterator_types = ["parallel"]}
        ins(%a : tensor<31xf64>) outs(%e : tensor<31xf64>) {
    ^bb0(%k: f64, %o: f64):
      %p = math.exp %k : f64
      linalg.yield %p : f64
    } -> tensor<31xf64>
    %y = tensor.insert_slice %q into %x[%j, 1] [1, 31] [1, 1] : tensor<31xf64> into tensor<4x32xf64>
    scf.yield %y : tensor<4x32xf64>
  } {mlirml.batched}
  return %r : tensor<4x32xf64>
}

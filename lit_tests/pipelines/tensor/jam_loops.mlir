// RUN: mlirml-opt %s --split-input-file --mlirml-jam-loops | filecheck %s

#id = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>

// CHECK-LABEL: func.func @sums
// CHECK-SAME: (%[[X:.*]]: tensor<20000xf64>, %[[OUT:.*]]: tensor<10xf64>)
// CHECK: %[[R:.*]] = scf.for %[[I:.*]] = %c0{{.*}} to %c8{{.*}} step %c4{{.*}} iter_args(%[[T0:.*]] = %[[OUT]])
// CHECK: linalg.generic {{.*}} ins(%[[X]] : tensor<20000xf64>)
// CHECK: %[[T1:.*]] = tensor.insert %{{.*}} into %[[T0]][%[[I]]]
// CHECK: linalg.generic {{.*}} ins(%[[X]] : tensor<20000xf64>)
// CHECK: %[[T2:.*]] = tensor.insert %{{.*}} into %[[T1]]
// CHECK: linalg.generic {{.*}} ins(%[[X]] : tensor<20000xf64>)
// CHECK: %[[T3:.*]] = tensor.insert %{{.*}} into %[[T2]]
// CHECK: linalg.generic {{.*}} ins(%[[X]] : tensor<20000xf64>)
// CHECK: %[[T4:.*]] = tensor.insert %{{.*}} into %[[T3]]
// CHECK: scf.yield %[[T4]]
// CHECK: scf.for %{{.*}} = %c8{{.*}} to %c10{{.*}} step %c1{{.*}} iter_args(%{{.*}} = %[[R]])
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @sums(%x: tensor<20000xf64>, %out0: tensor<10xf64>) -> tensor<10xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %zero = arith.constant dense<0.0> : tensor<f64>
  %r = scf.for %i = %c0 to %c10 step %c1 iter_args(%out = %out0) -> (tensor<10xf64>) {
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f64
    %s = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%x : tensor<20000xf64>) outs(%zero : tensor<f64>) {
    ^bb0(%in: f64, %sum: f64):
      %p = arith.mulf %in, %f : f64
      %t = arith.addf %sum, %p : f64
      linalg.yield %t : f64
    } -> tensor<f64>
    %e = tensor.extract %s[] : tensor<f64>
    %new = tensor.insert %e into %out[%i] : tensor<10xf64>
    scf.yield %new : tensor<10xf64>
  }
  return %r : tensor<10xf64>
}

// -----

#id = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>

// An iteration reads what the one before has stored.
// CHECK-LABEL: func.func @recurrence
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
func.func @recurrence(%x: tensor<20000xf64>, %out0: tensor<10xf64>) -> tensor<10xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %zero = arith.constant dense<0.0> : tensor<f64>
  %r = scf.for %i = %c0 to %c10 step %c1 iter_args(%out = %out0) -> (tensor<10xf64>) {
    %f = tensor.extract %out[%c0] : tensor<10xf64>
    %s = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]} ins(%x : tensor<20000xf64>) outs(%zero : tensor<f64>) {
    ^bb0(%in: f64, %sum: f64):
      %p = arith.mulf %in, %f : f64
      %t = arith.addf %sum, %p : f64
      linalg.yield %t : f64
    } -> tensor<f64>
    %e = tensor.extract %s[] : tensor<f64>
    %new = tensor.insert %e into %out[%i] : tensor<10xf64>
    scf.yield %new : tensor<10xf64>
  }
  return %r : tensor<10xf64>
}

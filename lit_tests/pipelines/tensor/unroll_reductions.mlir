// RUN: mlirml-opt %s --split-input-file --mlirml-unroll-reductions --canonicalize | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[A:.*]]: tensor<2xf64>, %[[X:.*]]: tensor<100xf64>, %[[Y0:.*]]: tensor<100xf64>)
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[Y:.*]] = %[[Y0]])
// CHECK-NOT: linalg.generic
// CHECK: %[[S0:.*]] = tensor.extract %[[X]][%[[I]]]
// CHECK: %[[A0:.*]] = tensor.extract %[[A]][%c0]
// CHECK: %[[Y1:.*]] = tensor.extract %[[Y]]
// CHECK: %[[P0:.*]] = arith.mulf %[[A0]], %[[Y1]]
// CHECK: %[[S1:.*]] = arith.addf %[[S0]], %[[P0]]
// CHECK: %[[A1:.*]] = tensor.extract %[[A]][%c1]
// CHECK: %[[Y2:.*]] = tensor.extract %[[Y]]
// CHECK: %[[P1:.*]] = arith.mulf %[[A1]], %[[Y2]]
// CHECK: %[[S2:.*]] = arith.addf %[[S1]], %[[P1]]
// CHECK: tensor.insert %[[S2]] into %[[Y]][%[[I]]]
func.func @main(%a: tensor<2xf64>, %x: tensor<100xf64>, %y0: tensor<100xf64>) -> tensor<100xf64> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c100 = arith.constant 100 : index
  %r = scf.for %i = %c2 to %c100 step %c1 iter_args(%y = %y0) -> (tensor<100xf64>) {
    %x0 = tensor.extract %x[%i] : tensor<100xf64>
    %init = tensor.from_elements %x0 : tensor<f64>
    %s = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%a : tensor<2xf64>) outs(%init : tensor<f64>) {
    ^bb0(%in: f64, %out: f64):
      %k = linalg.index 0 : index
      %k1 = arith.addi %k, %c1 : index
      %j = arith.subi %i, %k1 : index
      %e = tensor.extract %y[%j] : tensor<100xf64>
      %p = arith.mulf %in, %e : f64
      %t = arith.addf %out, %p : f64
      linalg.yield %t : f64
    } -> tensor<f64>
    %new = tensor.extract %s[] : tensor<f64>
    %y1 = tensor.insert %new into %y[%i] : tensor<100xf64>
    scf.yield %y1 : tensor<100xf64>
  }
  return %r : tensor<100xf64>
}

// -----

// A reduction outside of loops, or of many elements, stays.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: linalg.generic
func.func @main(%a: tensor<2xf64>, %b: tensor<99xf64>, %init: tensor<f64>) -> tensor<f64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %s = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%a : tensor<2xf64>) outs(%init : tensor<f64>) {
  ^bb0(%in: f64, %out: f64):
    %t = arith.addf %out, %in : f64
    linalg.yield %t : f64
  } -> tensor<f64>
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%carried = %s) -> (tensor<f64>) {
    %u = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%b : tensor<99xf64>) outs(%carried : tensor<f64>) {
    ^bb0(%in: f64, %out: f64):
      %t = arith.mulf %out, %in : f64
      linalg.yield %t : f64
    } -> tensor<f64>
    scf.yield %u : tensor<f64>
  }
  return %r : tensor<f64>
}

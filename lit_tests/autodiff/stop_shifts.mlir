// RUN: mlirml-opt %s --split-input-file --mlirml-stop-shifts | filecheck %s

// log(sum(exp(x - m))) + m does not depend on m.
// CHECK-LABEL: func.func @main
// CHECK: %[[M:.*]] = linalg.generic
// CHECK: arith.maximumf
// CHECK: %[[STOPPED:.*]] = "mlirml.stop_gradient"(%[[M]])
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[STOPPED]] : tensor<4x3xf64>, tensor<4xf64>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[STOPPED]] : tensor<4xf64>, tensor<4xf64>)
#row = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<4x3xf64>) -> tensor<4xf64> {
  %x0 = "mlirml.independent"(%x) {group = 0 : i64} : (tensor<4x3xf64>) -> tensor<4x3xf64>
  %low = arith.constant 0xFFF0000000000000 : f64
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<4xf64>
  %lows = linalg.fill ins(%low : f64) outs(%e : tensor<4xf64>) -> tensor<4xf64>
  %zeros = linalg.fill ins(%zero : f64) outs(%e : tensor<4xf64>) -> tensor<4xf64>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x0 : tensor<4x3xf64>) outs(%lows : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64):
    %0 = arith.maximumf %a, %b : f64
    linalg.yield %0 : f64
  } -> tensor<4xf64>
  %s = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x0, %m : tensor<4x3xf64>, tensor<4xf64>) outs(%zeros : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %0 = arith.subf %a, %b : f64
    %1 = math.exp %0 : f64
    %2 = arith.addf %1, %c : f64
    linalg.yield %2 : f64
  } -> tensor<4xf64>
  %y = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]}
      ins(%s, %m : tensor<4xf64>, tensor<4xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %0 = math.log %a : f64
    %1 = arith.addf %0, %b : f64
    linalg.yield %1 : f64
  } -> tensor<4xf64>
  "mlirml.cotangent"(%y, %lows) {group = 0 : i64} : (tensor<4xf64>, tensor<4xf64>) -> ()
  return %y : tensor<4xf64>
}

// -----

// Without the last sum, log(sum(exp(x - m))) does.
// CHECK-LABEL: func.func @main
// CHECK-NOT: mlirml.stop_gradient
#row = affine_map<(d0) -> ()>
#all = affine_map<(d0) -> (d0)>
#none = affine_map<() -> ()>
func.func @main(%x: tensor<4xf64>) -> tensor<f64> {
  %x0 = "mlirml.independent"(%x) {group = 0 : i64} : (tensor<4xf64>) -> tensor<4xf64>
  %low = arith.constant 0xFFF0000000000000 : f64
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<f64>
  %lows = linalg.fill ins(%low : f64) outs(%e : tensor<f64>) -> tensor<f64>
  %zeros = linalg.fill ins(%zero : f64) outs(%e : tensor<f64>) -> tensor<f64>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["reduction"]}
      ins(%x0 : tensor<4xf64>) outs(%lows : tensor<f64>) {
  ^bb0(%a: f64, %b: f64):
    %0 = arith.maximumf %a, %b : f64
    linalg.yield %0 : f64
  } -> tensor<f64>
  %s = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["reduction"]}
      ins(%x0, %m : tensor<4xf64>, tensor<f64>) outs(%zeros : tensor<f64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %0 = arith.subf %a, %b : f64
    %1 = math.exp %0 : f64
    %2 = arith.addf %1, %c : f64
    linalg.yield %2 : f64
  } -> tensor<f64>
  %y = linalg.generic {indexing_maps = [#none, #none], iterator_types = []}
      ins(%s : tensor<f64>) outs(%e : tensor<f64>) {
  ^bb0(%a: f64, %c: f64):
    %0 = math.log %a : f64
    linalg.yield %0 : f64
  } -> tensor<f64>
  "mlirml.cotangent"(%y, %lows) {group = 0 : i64} : (tensor<f64>, tensor<f64>) -> ()
  return %y : tensor<f64>
}

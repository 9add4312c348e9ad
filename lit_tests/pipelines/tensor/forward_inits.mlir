// RUN: mlirml-opt %s --split-input-file --mlirml-forward-inits | filecheck %s

#v = affine_map<(i) -> (i)>
#n = affine_map<(i) -> ()>

// The first result is its init, so that the check holds; the second one is a sum that reads it.
// CHECK-LABEL: func.func @check
// CHECK-NOT: cf.assert
// CHECK: %[[R:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<f64>) {
// CHECK: return %[[R]]
func.func @check(%x: tensor<25xf64>) -> tensor<f64> {
  %true = arith.constant dense<true> : tensor<i1>
  %zero = arith.constant dense<0.0> : tensor<f64>
  %r:2 = linalg.generic {indexing_maps = [#v, #n, #n], iterator_types = ["reduction"]} ins(%x : tensor<25xf64>) outs(%true, %zero : tensor<i1>, tensor<f64>) {
  ^bb0(%in: f64, %all: i1, %total: f64):
    %f = arith.uitofp %all : i1 to f64
    %0 = arith.mulf %in, %f : f64
    %sum = arith.addf %0, %total : f64
    linalg.yield %all, %sum : i1, f64
  } -> (tensor<i1>, tensor<f64>)
  %holds = tensor.extract %r#0[] : tensor<i1>
  cf.assert %holds, "the masks differ"
  return %r#1 : tensor<f64>
}

// -----

#v = affine_map<(i) -> (i)>

// Nothing is left of an operation without other results, and an exchange of results is none.
// CHECK-LABEL: func.func @others
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<25xf64>, %[[Y:[a-z0-9]+]]: tensor<25xf64>
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return %[[X]], %{{.*}}#0, %{{.*}}#1
func.func @others(%x: tensor<25xf64>, %y: tensor<25xf64>) -> (tensor<25xf64>, tensor<25xf64>, tensor<25xf64>) {
  %r = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%y : tensor<25xf64>) outs(%x : tensor<25xf64>) {
  ^bb0(%in: f64, %out: f64):
    linalg.yield %out : f64
  } -> tensor<25xf64>
  %s:2 = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} outs(%x, %y : tensor<25xf64>, tensor<25xf64>) {
  ^bb0(%a: f64, %b: f64):
    %0 = arith.negf %b : f64
    linalg.yield %0, %a : f64, f64
  } -> (tensor<25xf64>, tensor<25xf64>)
  return %r, %s#0, %s#1 : tensor<25xf64>, tensor<25xf64>, tensor<25xf64>
}

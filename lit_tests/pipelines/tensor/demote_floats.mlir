// RUN: mlirml-opt %s --mlirml-demote-floats | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>, %[[S:.*]]: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NOT: f64
// CHECK: arith.constant dense<[1.000000e+00, 1.000000e-01, 0x7F800000, -2.000000e+00]> : tensor<4xf32>
// CHECK: arith.constant 5.000000e-01 : f32
// CHECK: linalg.generic
// CHECK-NOT: arith.extf
// CHECK: arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NOT: arith.truncf
// CHECK: linalg.yield %{{.*}} : f32
func.func @main(%x: tensor<4xf32>, %s: tensor<f64>) -> (tensor<4xf64>, tensor<4xf32>) {
  %c = arith.constant dense<[1.0, 0.1, 1.0e300, -2.0]> : tensor<4xf64>
  %h = arith.constant 0.5 : f64
  %e = tensor.empty() : tensor<4xf32>
  %n = tensor.extract %s[] : tensor<f64>
  %r = linalg.generic {
    indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
    iterator_types = ["parallel"]
  } ins(%x, %c : tensor<4xf32>, tensor<4xf64>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f64, %out: f32):
    %w = arith.extf %a : f32 to f64
    %p = arith.mulf %w, %b : f64
    %q = arith.mulf %p, %h : f64
    %t = arith.addf %q, %n : f64
    %z = arith.truncf %t : f64 to f32
    linalg.yield %z : f32
  } -> tensor<4xf32>
  return %c, %r : tensor<4xf64>, tensor<4xf32>
}

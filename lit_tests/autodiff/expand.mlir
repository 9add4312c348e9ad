// RUN: mlirml-opt %s --split-input-file --mlirml-expand --canonicalize | filecheck %s

#v = affine_map<(i) -> (i)>

// A gradient for each of many examples: the inner request, the gradient, is expanded first.
// CHECK-LABEL: func.func @main
// CHECK-NOT: "mlirml.
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel"]
// CHECK: math.cos
// CHECK: arith.mulf
// CHECK-NOT: "mlirml.
func.func @main(%xs: tensor<8x4xf64>, %ct: tensor<4xf64>) -> tensor<8x4xf64> {
  %x = "mlirml.unbatch"(%xs) {group = 0 : i64} : (tensor<8x4xf64>) -> tensor<4xf64>
  %x0 = "mlirml.independent"(%x) {group = 1 : i64} : (tensor<4xf64>) -> tensor<4xf64>
  %e = tensor.empty() : tensor<4xf64>
  %y = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%x0 : tensor<4xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%a: f64, %o: f64):
    %s = math.sin %a : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  "mlirml.cotangent"(%y, %ct) {group = 1 : i64} : (tensor<4xf64>, tensor<4xf64>) -> ()
  %g = "mlirml.vjp"(%x0) {group = 1 : i64} : (tensor<4xf64>) -> tensor<4xf64>
  %b = "mlirml.vmap"(%g) {group = 0 : i64, size = 8 : i64} : (tensor<4xf64>) -> tensor<8x4xf64>
  return %b : tensor<8x4xf64>
}

// -----

// What nobody differentiates goes through `stop_gradient` as it is.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: return %arg0
func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
  %y = "mlirml.stop_gradient"(%x) : (tensor<4xf64>) -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// A function whose user gives its derivative, x * x with a rule of three times the tangent: the rule is transposed, and
// what it makes of the tangent where nobody asks is not left.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: f64, %[[CT:.*]]: f64
// CHECK-DAG: %[[Y:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-DAG: %[[G:.*]] = arith.mulf %[[CT]], %{{.*}}
// CHECK-NOT: arith.mulf
// CHECK: return %[[Y]], %[[G]]
func.func @main(%x: f64, %ct: f64) -> (f64, f64) {
  %three = arith.constant 3.0 : f64
  %x0 = "mlirml.independent"(%x) {group = 0 : i64} : (f64) -> f64
  %p = "mlirml.custom_primal"(%x0) {group = 1 : i64, depth = 1 : i64} : (f64) -> f64
  %t = "mlirml.custom_tangent"(%p) {group = 1 : i64, depth = 1 : i64} : (f64) -> f64
  %y = arith.mulf %p, %p : f64
  %dy = arith.mulf %t, %three : f64
  %r = "mlirml.custom_result"(%y, %dy) {group = 1 : i64, depth = 1 : i64} : (f64, f64) -> f64
  "mlirml.cotangent"(%r, %ct) {group = 0 : i64} : (f64, f64) -> ()
  %g = "mlirml.vjp"(%x0) {group = 0 : i64} : (f64) -> f64
  return %r, %g : f64, f64
}

// -----

// A number that a body reads from outside is differentiated too.
// CHECK-LABEL: func.func @number_from_outside
// CHECK: %[[C:.*]] = math.cos
// CHECK: arith.mulf %{{.*}}, %[[C]]
// CHECK-NOT: mlirml.
func.func @number_from_outside(%x: tensor<f64>, %one: tensor<3xf64>) -> tensor<f64> {
  %0 = "mlirml.independent"(%x) {group = 0 : i64} : (tensor<f64>) -> tensor<f64>
  %number = tensor.extract %0[] : tensor<f64>
  %sine = math.sin %number : f64
  %empty = tensor.empty() : tensor<3xf64>
  %y = linalg.generic {
    indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]
  } outs(%empty : tensor<3xf64>) {
  ^bb0(%out: f64):
    linalg.yield %sine : f64
  } -> tensor<3xf64>
  "mlirml.cotangent"(%y, %one) {group = 0 : i64} : (tensor<3xf64>, tensor<3xf64>) -> ()
  %g = "mlirml.vjp"(%0) {group = 0 : i64} : (tensor<f64>) -> tensor<f64>
  return %g : tensor<f64>
}

// -----

// What a product starts from, and a condition, come in front of its derivative.
// CHECK-LABEL: func.func @main
// CHECK-NOT: "mlirml.
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : f64
// CHECK-NEXT: arith.mulf
// CHECK-NOT: "mlirml.
func.func @main(%x: tensor<4xf64>, %s: tensor<f64>, %ct: tensor<f64>) -> (tensor<4xf64>, tensor<f64>) {
  %x0 = "mlirml.independent"(%x) {group = 0 : i64} : (tensor<4xf64>) -> tensor<4xf64>
  %s0 = "mlirml.independent"(%s) {group = 0 : i64} : (tensor<f64>) -> tensor<f64>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x0 : tensor<4xf64>) outs(%s0 : tensor<f64>) {
  ^bb0(%a: f64, %o: f64):
    %zero = arith.constant 0.0 : f64
    %c = arith.cmpf ogt, %a, %zero : f64
    %p = arith.mulf %o, %a : f64
    %r = arith.select %c, %p, %o : f64
    linalg.yield %r : f64
  } -> tensor<f64>
  "mlirml.cotangent"(%y, %ct) {group = 0 : i64} : (tensor<f64>, tensor<f64>) -> ()
  %gx = "mlirml.vjp"(%x0) {group = 0 : i64} : (tensor<4xf64>) -> tensor<4xf64>
  %gs = "mlirml.vjp"(%s0) {group = 0 : i64} : (tensor<f64>) -> tensor<f64>
  return %gx, %gs : tensor<4xf64>, tensor<f64>
}

// -----

// The change of a number that fills a tensor fills one.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%{{.*}}: tensor<f64>, %[[T:.*]]: tensor<f64>)
// CHECK: %[[CHANGE:.*]] = tensor.extract %[[T]][] : tensor<f64>
// CHECK: %[[FILLED:.*]] = linalg.fill ins(%[[CHANGE]] : f64)
// CHECK: return %[[FILLED]]
func.func @main(%x: tensor<f64>, %t: tensor<f64>) -> tensor<4xf64> {
  %0 = "mlirml.dual"(%x, %t) {group = 0 : i64} : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %s = tensor.extract %0[] : tensor<f64>
  %e = tensor.empty() : tensor<4xf64>
  %y = linalg.fill ins(%s : f64) outs(%e : tensor<4xf64>) -> tensor<4xf64>
  %d = "mlirml.jvp"(%y) {group = 0 : i64} : (tensor<4xf64>) -> tensor<4xf64>
  return %d : tensor<4xf64>
}

// -----

// Nothing is used of a gradient: its checks stay.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<f64>, %[[C:.*]]: i1)
// CHECK-NOT: mlirml.
// CHECK: cf.assert %[[C]]
// CHECK: return %[[X]]
func.func @main(%x: tensor<f64>, %c: i1) -> tensor<f64> {
  %0 = "mlirml.independent"(%x) {group = 0 : i64} : (tensor<f64>) -> tensor<f64>
  cf.assert %c, "a check"
  "mlirml.cotangent"(%0, %x) {group = 0 : i64, call = 0 : i64} : (tensor<f64>, tensor<f64>) -> ()
  return %x : tensor<f64>
}

// -----

// An argument whose tangent is zero is a constant: there is one product for the tangent of the product, not two.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[A:.*]]: tensor<4x4xf64>, %[[B:.*]]: tensor<4x4xf64>, %[[T:.*]]: tensor<4x4xf64>
// CHECK: linalg.matmul ins(%[[T]], %[[B]]
// CHECK-NOT: linalg.matmul
// CHECK: return
func.func @main(%a: tensor<4x4xf64>, %b: tensor<4x4xf64>, %t: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<4x4xf64>
  %zeros = linalg.fill ins(%zero : f64) outs(%e : tensor<4x4xf64>) -> tensor<4x4xf64>
  %a0 = "mlirml.dual"(%a, %t) {group = 0 : i64} : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  %b0 = "mlirml.dual"(%b, %zeros) {group = 0 : i64} : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  %c = linalg.matmul ins(%a0, %b0 : tensor<4x4xf64>, tensor<4x4xf64>) outs(%zeros : tensor<4x4xf64>) -> tensor<4x4xf64>
  %d = "mlirml.jvp"(%c) {group = 0 : i64} : (tensor<4x4xf64>) -> tensor<4x4xf64>
  return %d : tensor<4x4xf64>
}

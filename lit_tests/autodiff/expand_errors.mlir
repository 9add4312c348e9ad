// RUN: not mlirml-opt %s --mlirml-expand 2>&1 | filecheck %s

// An operation that no front end writes has no rule; the error says why, at its place.
// CHECK: mlirml.NoDerivativeError: `tensor.concat` has no derivative: there is another way to write it
// CHECK-NEXT: --> {{.*}}expand_errors.mlir:8:8
func.func @main(%x: tensor<4xf64>, %ct: tensor<8xf64>) -> tensor<4xf64> {
  %x0 = "mlirml.independent"(%x) {group = 0 : i64} : (tensor<4xf64>) -> tensor<4xf64>
  %y = tensor.concat dim(0) %x0, %x0 : (tensor<4xf64>, tensor<4xf64>) -> tensor<8xf64>
  "mlirml.cotangent"(%y, %ct) {group = 0 : i64} : (tensor<8xf64>, tensor<8xf64>) -> ()
  %g = "mlirml.vjp"(%x0) {group = 0 : i64} : (tensor<4xf64>) -> tensor<4xf64>
  return %g : tensor<4xf64>
}

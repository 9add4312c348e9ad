// RUN: mlirml-opt %s --split-input-file --mlirml-form-dispatches | filecheck %s

// A product and what reads it are two kernels; the fill is part of the first.
// CHECK-LABEL: func.func @main
// CHECK:       %[[P:.*]] = scf.execute_region -> tensor<4x3xf32> no_inline {
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<4x3xf32>
// CHECK:         %[[F:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[E]]
// CHECK:         %[[M:.*]] = linalg.matmul ins(%arg0, %arg1 {{.*}} outs(%[[F]]
// CHECK:         scf.yield %[[M]]
// CHECK:       } {mlirml.dispatch = "device"}
// CHECK:       %[[R:.*]] = scf.execute_region -> tensor<4x3xf32> no_inline {
// CHECK:         linalg.exp ins(%[[P]]
// CHECK:       } {mlirml.dispatch = "device"}
// CHECK:       return %[[R]]
func.func @main(%x: tensor<4x5xf32>, %w: tensor<5x3xf32>) -> tensor<4x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>
  %p = linalg.matmul ins(%x, %w : tensor<4x5xf32>, tensor<5x3xf32>) outs(%f : tensor<4x3xf32>) -> tensor<4x3xf32>
  %r = linalg.exp ins(%p : tensor<4x3xf32>) outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// A loop stays on the host, and its body is dispatched. The array that it starts from is a kernel too.
// CHECK-LABEL: func.func @main
// CHECK:       %[[INIT:.*]] = scf.execute_region
// CHECK:         linalg.fill
// CHECK:       } {mlirml.dispatch = "device"}
// CHECK:       scf.for {{.*}} iter_args(%[[X:.*]] = %[[INIT]])
// CHECK:         %[[Y:.*]] = scf.execute_region
// CHECK:           linalg.exp ins(%[[X]]
// CHECK:         scf.yield %[[Y]]
func.func @main(%n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %f) -> (tensor<8xf32>) {
    %y = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

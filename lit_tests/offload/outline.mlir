// RUN: mlirml-opt %s --split-input-file --mlirml-form-dispatches --mlirml-outline | filecheck %s

// The scalar constant goes into the kernel; the empty tensor is what the kernel writes.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: tensor<4x5xf32>, %[[W:.*]]: tensor<5x3xf32>)
// CHECK:       %[[E:.*]] = tensor.empty() : tensor<4x3xf32>
// CHECK:       %[[P:.*]] = call @k0_matmul(%[[X]], %[[W]], %[[E]]) {mlirml.kernel}
// CHECK:       return %[[P]]
// CHECK:       func.func private @k0_matmul(%[[A:.*]]: tensor<4x5xf32>, %[[B:.*]]: tensor<5x3xf32>, %[[OUT:.*]]: tensor<4x3xf32>) -> tensor<4x3xf32> attributes {mlirml.kernel} {
// CHECK:         %[[Z:.*]] = arith.constant 0.000000e+00 : f32
// CHECK:         %[[F:.*]] = linalg.fill ins(%[[Z]] : f32) outs(%[[OUT]]
// CHECK:         %[[M:.*]] = linalg.matmul ins(%[[A]], %[[B]] {{.*}} outs(%[[F]]
// CHECK:         return %[[M]]
func.func @main(%x: tensor<4x5xf32>, %w: tensor<5x3xf32>) -> tensor<4x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>
  %p = linalg.matmul ins(%x, %w : tensor<4x5xf32>, tensor<5x3xf32>) outs(%f : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %p : tensor<4x3xf32>
}

// -----

// What is accumulated into a tensor from outside is written there. A number from outside is an argument.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: tensor<8xf32>, %[[Y:.*]]: tensor<8xf32>, %[[S:.*]]: f32)
// CHECK:       call @k0_mulf_addf(%[[X]], %[[S]], %[[Y]])
// CHECK:       func.func private @k0_mulf_addf(%{{.*}}: tensor<8xf32>, %{{.*}}: f32, %[[OUT:.*]]: tensor<8xf32>)
// CHECK:         linalg.generic {{.*}} outs(%[[OUT]]
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>, %s: f32) -> tensor<8xf32> {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%y : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.mulf %a, %s : f32
    %n = arith.addf %m, %o : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// Two iterations of an unrolled loop: equal dispatches call one function.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: tensor<8xf32>)
// CHECK:       %[[P:.*]] = call @k0_mulf(%[[X]], %{{.*}})
// CHECK:       call @k0_mulf(%[[P]], %{{.*}})
// CHECK:       call @k2_addf(
// CHECK:       func.func private @k0_mulf(
// CHECK-NOT:   func.func private @k1_
// CHECK:       func.func private @k2_addf(
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.mulf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%p : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.mulf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%q : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// RUN: mlirml-opt %s --split-input-file --mlirml-bufferize | filecheck %s

#v = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<8xf32>, %[[OUT:.*]]: memref<8xf32>)
// CHECK-SAME: mlirml.inputs = [tensor<8xf32>], mlirml.outputs = [tensor<8xf32>]
// CHECK-NEXT: linalg.generic {{.*}} ins(%[[X]] : memref<8xf32>) outs(%[[OUT]] : memref<8xf32>)
// CHECK-NOT: memref.copy
// CHECK: return
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<8xf32>, %[[A:.*]]: memref<8xf32>, %[[B:.*]]: memref<8xf32>)
// CHECK-NEXT: memref.copy %[[X]], %[[A]]
// CHECK-NEXT: memref.copy %[[X]], %[[B]]
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  return %x, %x : tensor<8xf32>, tensor<8xf32>
}

// -----

// CHECK: memref.global "private" constant @[[G:.*]] : memref<3xf32> = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]>
// CHECK-LABEL: func.func @main
// CHECK: %[[C:.*]] = memref.get_global @[[G]]
// CHECK: memref.copy %[[C]]
func.func @main() -> tensor<3xf32> {
  %c = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  return %c : tensor<3xf32>
}

// -----

// Padding is a fill and a store into the middle: what is padded is computed there at once.
// CHECK-LABEL: func.func @main
// CHECK: linalg.fill ins(%{{.*}} : f32) outs(%[[OUT:.*]] : memref<6xf32>)
// CHECK: %[[MIDDLE:.*]] = memref.subview %[[OUT]][1] [4] [1]
// CHECK: linalg.generic {{.*}} outs(%[[MIDDLE]]
// CHECK-NOT: memref.copy
#w = affine_map<(i) -> (i)>
func.func @main(%x: tensor<4xf32>) -> tensor<6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %n = linalg.generic {indexing_maps = [#w, #w], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %p = tensor.pad %n low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<4xf32> to tensor<6xf32>
  return %p : tensor<6xf32>
}

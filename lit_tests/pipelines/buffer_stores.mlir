// RUN: mlirml-opt %s --mlirml-buffer-stores=shortest=2 | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[T:.*]]: tensor<8xf32>, %[[A:.*]]: f32, %[[S:.*]]: tensor<2xf32>)
// CHECK: %[[M:.*]] = memref.alloc() {{.*}} : memref<8xf32>
// CHECK: bufferization.materialize_in_destination %[[T]] in restrict writable %[[M]]
// CHECK: memref.store %[[A]], %[[M]][%c0]
// CHECK: %[[B:.*]] = memref.load %[[M]][%c0]
// CHECK: %[[R:.*]] = bufferization.to_buffer %[[S]] read_only
// CHECK: %[[V:.*]] = memref.subview %[[M]][4] [2] [1]
// CHECK: memref.copy %[[R]], %[[V]]
// CHECK: %[[N:.*]] = bufferization.to_tensor %[[M]] restrict writable
// CHECK: return %[[N]], %[[B]]
func.func @main(%t0: tensor<8xf32>, %a: f32, %s: tensor<2xf32>) -> (tensor<8xf32>, f32) {
  %c0 = arith.constant 0 : index
  %t1 = tensor.insert %a into %t0[%c0] : tensor<8xf32>
  %b = tensor.extract %t1[%c0] : tensor<8xf32>
  %t2 = tensor.insert_slice %s into %t1[4] [2] [1] : tensor<2xf32> into tensor<8xf32>
  return %t2, %b : tensor<8xf32>, f32
}

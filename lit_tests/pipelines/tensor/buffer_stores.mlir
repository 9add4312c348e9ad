// RUN: mlirml-opt %s --mlirml-buffer-stores=shortest=2 --split-input-file | filecheck %s

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

// -----

// What is stored alone is computed in the buffer, where the stores fill an empty tensor without overlap.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<3xf32>, %[[Y:.*]]: tensor<1x3xf32>)
// CHECK: %[[M:.*]] = memref.alloc() {{.*}} : memref<2x3xf32>
// CHECK: %[[V:.*]] = memref.subview %[[M]][1, 0] [1, 3] [1, 1] : memref<2x3xf32> to memref<3xf32, strided<[1], offset: 3>>
// CHECK: %[[D:.*]] = bufferization.to_tensor %[[V]] restrict writable
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<3xf32>) outs(%[[D]] : tensor<3xf32>)
// CHECK: bufferization.materialize_in_destination %[[R]] in restrict writable %[[V]]
// CHECK: %[[B:.*]] = bufferization.to_buffer %[[Y]] read_only
// CHECK: memref.copy %[[B]]
// CHECK: %[[N:.*]] = bufferization.to_tensor %[[M]] restrict writable
// CHECK-NEXT: return %[[N]]
func.func @main(%x: tensor<3xf32>, %y: tensor<1x3xf32>) -> tensor<2x3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<3xf32>) outs(%e : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<3xf32>
  %row = tensor.expand_shape %r [[0, 1]] output_shape [1, 3] : tensor<3xf32> into tensor<1x3xf32>
  %all = tensor.empty() : tensor<2x3xf32>
  %t1 = tensor.insert_slice %y into %all[0, 0] [1, 3] [1, 1] : tensor<1x3xf32> into tensor<2x3xf32>
  %t2 = tensor.insert_slice %row into %t1[1, 0] [1, 3] [1, 1] : tensor<1x3xf32> into tensor<2x3xf32>
  return %t2 : tensor<2x3xf32>
}

// -----

// Stores in branches belong to the chain, of which both branches yield a version.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[T:.*]]: tensor<8xf32>, %[[A:.*]]: f32, %[[P:.*]]: i1)
// CHECK: %[[M:.*]] = memref.alloc() {{.*}} : memref<8xf32>
// CHECK: bufferization.materialize_in_destination %[[T]] in restrict writable %[[M]]
// CHECK: memref.store %[[A]], %[[M]][%c0]
// CHECK: scf.if %[[P]] {
// CHECK-NEXT: %[[B:.*]] = memref.load %[[M]][%c0]
// CHECK-NEXT: memref.store %[[B]], %[[M]][%c1]
// CHECK-NEXT: }
// CHECK: memref.store %[[A]], %[[M]][%c2]
// CHECK: %[[N:.*]] = bufferization.to_tensor %[[M]] restrict writable
// CHECK: return %[[N]]
func.func @main(%t0: tensor<8xf32>, %a: f32, %p: i1) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t1 = tensor.insert %a into %t0[%c0] : tensor<8xf32>
  %t2 = scf.if %p -> (tensor<8xf32>) {
    %b = tensor.extract %t1[%c0] : tensor<8xf32>
    %t = tensor.insert %b into %t1[%c1] : tensor<8xf32>
    scf.yield %t : tensor<8xf32>
  } else {
    scf.yield %t1 : tensor<8xf32>
  }
  %t3 = tensor.insert %a into %t2[%c2] : tensor<8xf32>
  return %t3 : tensor<8xf32>
}

// RUN: mlirml-opt %s --mlirml-schedule-kernels | filecheck %s

// A scatter goes through its positions in order; the elements of what it stores are spread over threads.
// CHECK-LABEL: gpu.func @k0_scatter(
// CHECK: %[[T:.*]] = gpu.thread_id
// CHECK: scf.for
// CHECK: memref.load %{{.*}} : memref<8xindex>
// CHECK: memref.store
func.func private @k0_scatter(%v: tensor<8x4xf32>, %i: tensor<8xindex>, %out: tensor<16x4xf32>) -> tensor<16x4xf32>
    attributes {mlirml.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %k = %c0 to %c8 step %c1 iter_args(%t = %out) -> (tensor<16x4xf32>) {
    %p = tensor.extract %i[%k] : tensor<8xindex>
    %new = tensor.extract_slice %v[%k, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
    %u = tensor.insert_slice %new into %t[%p, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    scf.yield %u : tensor<16x4xf32>
  } {mlirml.scatter = "set"}
  return %r : tensor<16x4xf32>
}

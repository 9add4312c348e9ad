// RUN: mlirml-opt %s --mlirml-schedule-kernels | filecheck %s
// RUN: mlirml-opt %s "--mlirml-schedule-kernels=deterministic=false device=gpu,atomics=f32" | filecheck %s --check-prefix=ATOMIC
// RUN: mlirml-opt %s "--mlirml-schedule-kernels=deterministic=true device=gpu,atomics=f32" | filecheck %s --check-prefix=ORDER

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

// A long row is cut into pieces: what each has, what is in front of each, and the results.
// CHECK-LABEL: gpu.func @k1_cumsum_pieces(
// CHECK-LABEL: gpu.func @k1_cumsum_2_starts(
// CHECK-LABEL: gpu.func @k1_cumsum_3_scan(
// CHECK: memref.alloc() : memref<256xf32, #gpu.address_space<workgroup>>
// CHECK: scf.for
// CHECK: gpu.barrier
// CHECK: memref.store %{{.*}} : memref<20000xf32>
func.func private @k1_cumsum(%x: tensor<20000xf32>, %out: tensor<20000xf32>) -> tensor<20000xf32>
    attributes {mlirml.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 20000 : index
  %e = tensor.empty() : tensor<20000xf32>
  %first = tensor.extract %x[%c0] : tensor<20000xf32>
  %begun = tensor.insert %first into %e[%c0] : tensor<20000xf32>
  %r:2 = scf.for %i = %c1 to %n step %c1 iter_args(%s = %first, %t = %begun) -> (f32, tensor<20000xf32>) {
    %a = tensor.extract %x[%i] : tensor<20000xf32>
    %b = arith.addf %s, %a : f32
    %u = tensor.insert %b into %t[%i] : tensor<20000xf32>
    scf.yield %b, %u : f32, tensor<20000xf32>
  } {mlirml.scan}
  return %r#1 : tensor<20000xf32>
}

// Many updates are sorted by where they go; where the order need not be kept, they are atomic operations.
// CHECK-LABEL: gpu.func @k2_many_keys(
// CHECK-LABEL: gpu.func @k2_many_2_sort(
// CHECK-LABEL: gpu.func @k2_many_3_exchange(
// CHECK-LABEL: gpu.func @k2_many_4_merge(
// CHECK-LABEL: gpu.func @k2_many_5_scatter(
// CHECK: scf.while
// ATOMIC-LABEL: gpu.func @k2_many_scatter(
// ATOMIC: memref.atomic_rmw addf
func.func private @k2_many(%v: tensor<800xf32>, %i: tensor<800xindex>, %out: tensor<16xf32>) -> tensor<16xf32>
    attributes {mlirml.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 800 : index
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%t = %out) -> (tensor<16xf32>) {
    %p = tensor.extract %i[%k] : tensor<800xindex>
    %new = tensor.extract %v[%k] : tensor<800xf32>
    %old = tensor.extract %t[%p] : tensor<16xf32>
    %sum = arith.addf %old, %new : f32
    %u = tensor.insert %sum into %t[%p] : tensor<16xf32>
    scf.yield %u : tensor<16xf32>
  } {mlirml.scatter = "add"}
  return %r : tensor<16xf32>
}

// Extrema are atomic even where results have to be those of the loop; of a difference, what is added is negated.
// ORDER-LABEL: gpu.func @k2_many_5_scatter(
// ORDER-LABEL: gpu.func @k3_extrema_scatter(
// ORDER: memref.atomic_rmw maximumf
// ATOMIC-LABEL: gpu.func @k4_differences_scatter(
// ATOMIC: %[[NEGATED:.*]] = arith.subf %{{.*}}, %{{.*}} : f32
// ATOMIC: memref.atomic_rmw addf %[[NEGATED]]
func.func private @k3_extrema(%v: tensor<800xf32>, %i: tensor<800xindex>, %out: tensor<16xf32>) -> tensor<16xf32>
    attributes {mlirml.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 800 : index
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%t = %out) -> (tensor<16xf32>) {
    %p = tensor.extract %i[%k] : tensor<800xindex>
    %new = tensor.extract %v[%k] : tensor<800xf32>
    %old = tensor.extract %t[%p] : tensor<16xf32>
    %most = arith.maximumf %old, %new : f32
    %u = tensor.insert %most into %t[%p] : tensor<16xf32>
    scf.yield %u : tensor<16xf32>
  } {mlirml.scatter = "maximum"}
  return %r : tensor<16xf32>
}
func.func private @k4_differences(%v: tensor<800xf32>, %i: tensor<800xindex>, %out: tensor<16xf32>) -> tensor<16xf32>
    attributes {mlirml.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 800 : index
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%t = %out) -> (tensor<16xf32>) {
    %p = tensor.extract %i[%k] : tensor<800xindex>
    %new = tensor.extract %v[%k] : tensor<800xf32>
    %old = tensor.extract %t[%p] : tensor<16xf32>
    %left = arith.subf %old, %new : f32
    %u = tensor.insert %left into %t[%p] : tensor<16xf32>
    scf.yield %u : tensor<16xf32>
  } {mlirml.scatter = "subtract"}
  return %r : tensor<16xf32>
}

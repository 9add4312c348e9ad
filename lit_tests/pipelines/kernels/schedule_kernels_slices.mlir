// RUN: mlirml-opt %s --mlirml-schedule-kernels | filecheck %s

#id = affine_map<(d0) -> (d0)>
#rows = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// The kernels stand in front of what launches them.
// CHECK-LABEL: gpu.func @k3_length_slice(
// CHECK-SAME: %[[K:[a-z0-9]+]]: index
// CHECK: %[[IN:.*]] = arith.cmpi slt, %{{.*}}, %[[K]]
// CHECK: scf.if %[[IN]]
// CHECK: memref.load
// CHECK: memref.store

// CHECK-LABEL: gpu.func @k4_sums_reduce(
// CHECK: %[[FROM:.*]] = arith.remui %thread_id_x, %c32
// CHECK: scf.for %{{.*}} = %[[FROM]] to %{{.*}} step %c32
// CHECK: gpu.barrier
// CHECK: memref.store

// CHECK-LABEL: gpu.func @k5_whole_elementwise(
// CHECK: memref.load %{{.*}} : memref<?xf32>
// CHECK: math.exp

// A slice is stored in place: a thread for each of its elements, and nothing else is written.
// CHECK-LABEL: func.func private @k0_store__launch(
// CHECK-NOT: memref.alloc
// CHECK: gpu.launch_func @kernels::@k0_store_slice blocks in (%c1{{.*}}) threads in (%c8
func.func private @k0_store(%x: tensor<8xf32>, %i: index, %out: tensor<64xf32>) -> tensor<64xf32>
    attributes {mlirml.kernel} {
  %r = tensor.insert_slice %x into %out[%i] [8] [1] : tensor<8xf32> into tensor<64xf32>
  return %r : tensor<64xf32>
}

// What reads neighbours of the elements that it stores is computed into other memory first.
// CHECK-LABEL: func.func private @k1_shift__launch(
// CHECK: memref.alloc() {{.*}} : memref<63xf32>
// CHECK: gpu.launch_func @kernels::@k1_shift_elementwise
// CHECK: gpu.launch_func @kernels::@k1_shift_2_slice
func.func private @k1_shift(%out: tensor<64xf32>) -> tensor<64xf32> attributes {mlirml.kernel} {
  %s = tensor.extract_slice %out[0] [63] [1] : tensor<64xf32> to tensor<63xf32>
  %r = tensor.insert_slice %s into %out[1] [63] [1] : tensor<63xf32> into tensor<64xf32>
  return %r : tensor<64xf32>
}

// What reads only the elements that it stores is not.
// CHECK-LABEL: func.func private @k2_scale__launch(
// CHECK-NOT: memref.alloc
// CHECK: gpu.launch_func @kernels::@k2_scale_slice
// CHECK-NOT: gpu.launch_func
// CHECK: return
func.func private @k2_scale(%i: index, %out: tensor<64xf32>) -> tensor<64xf32> attributes {mlirml.kernel} {
  %s = tensor.extract_slice %out[%i] [8] [1] : tensor<64xf32> to tensor<8xf32>
  %e = tensor.empty() : tensor<8xf32>
  %d = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%s : tensor<8xf32>)
      outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %a, %a : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %r = tensor.insert_slice %d into %out[%i] [8] [1] : tensor<8xf32> into tensor<64xf32>
  return %r : tensor<64xf32>
}

// The host computes the grid for a slice of unknown length, and the kernel takes its length.
// CHECK-LABEL: func.func private @k3_length__launch(
// CHECK-SAME: %[[N:[a-z0-9]+]]: index, %[[OUT:[a-z0-9]+]]: memref<64xf32>
// CHECK: %[[OVER:.*]] = arith.addi %[[N]], %c255
// CHECK: %[[BLOCKS:.*]] = arith.divui %[[OVER]], %c256
// CHECK: %[[LEAST:.*]] = arith.minui %[[BLOCKS]], %c65535
// CHECK: %[[WIDTH:.*]] = arith.maxui %[[LEAST]], %c1
// CHECK: gpu.launch_func @kernels::@k3_length_slice blocks in (%[[WIDTH]], %{{.*}}, %{{.*}}) threads in (%c256
func.func private @k3_length(%x: tensor<64xf32>, %n: index, %out: tensor<64xf32>) -> tensor<64xf32>
    attributes {mlirml.kernel} {
  %s = tensor.extract_slice %x[0] [%n] [1] : tensor<64xf32> to tensor<?xf32>
  %r = tensor.insert_slice %s into %out[0] [%n] [1] : tensor<?xf32> into tensor<64xf32>
  return %r : tensor<64xf32>
}

// Rows of unknown length are summed by groups of threads, as far as they reach.
// CHECK-LABEL: func.func private @k4_sums__launch(
// CHECK: gpu.launch_func @kernels::@k4_sums_reduce
func.func private @k4_sums(%x: tensor<64x64xf32>, %n: index, %out: tensor<64xf32>) -> tensor<64xf32>
    attributes {mlirml.kernel} {
  %s = tensor.extract_slice %x[0, 0] [%n, %n] [1, 1] : tensor<64x64xf32> to tensor<?x?xf32>
  %o = tensor.extract_slice %out[0] [%n] [1] : tensor<64xf32> to tensor<?xf32>
  %d = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<?x?xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<?xf32>
  %r = tensor.insert_slice %d into %out[0] [%n] [1] : tensor<?xf32> into tensor<64xf32>
  return %r : tensor<64xf32>
}

// Tensors may be of unknown sizes altogether: the host asks them.
// CHECK-LABEL: func.func private @k5_whole__launch(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<?x?xf32>, %[[OUT:[a-z0-9]+]]: memref<?x?xf32>
// CHECK-DAG: memref.dim %[[OUT]], %c0
// CHECK-DAG: memref.dim %[[OUT]], %c1
// CHECK: gpu.launch_func @kernels::@k5_whole_elementwise
func.func private @k5_whole(%x: tensor<?x?xf32>, %out: tensor<?x?xf32>) -> tensor<?x?xf32>
    attributes {mlirml.kernel} {
  %r = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x?xf32>) outs(%out : tensor<?x?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

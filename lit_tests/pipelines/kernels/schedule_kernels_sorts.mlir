// RUN: mlirml-opt %s --mlirml-schedule-kernels | filecheck %s

// Rows that fit into a block are sorted in its shared memory; several of them share a block.
// CHECK-LABEL: gpu.func @k0_sort_keys(
// CHECK-LABEL: gpu.func @k0_sort_2(
// CHECK: memref.alloc() : memref<256xf32, #gpu.address_space<workgroup>>
// CHECK: scf.while
// CHECK: gpu.barrier
// CHECK-LABEL: gpu.func @k0_sort_3_sorted(

// A longer row is merged from what blocks have sorted, in steps that the host counts.
// CHECK-LABEL: gpu.func @k1_order_keys(
// CHECK-LABEL: gpu.func @k1_order_2_sort(
// CHECK-LABEL: gpu.func @k1_order_3_exchange(
// CHECK-SAME: %{{.*}}: index, %{{.*}}: index, %{{.*}}: memref<2048xi32>
// CHECK-LABEL: gpu.func @k1_order_4_merge(
// CHECK-LABEL: gpu.func @k1_order_5_sorted(
// CHECK: arith.extui %{{.*}} : i32 to i64

// CHECK-LABEL: func.func private @k0_sort__launch(
func.func private @k0_sort(%x: tensor<4x50xf32>, %out: tensor<4x50xf32>) -> tensor<4x50xf32>
    attributes {mlirml.kernel} {
  %r = "mlirml.sort"(%x, %out) {descending = false, kind = "f32"}
      : (tensor<4x50xf32>, tensor<4x50xf32>) -> tensor<4x50xf32>
  return %r : tensor<4x50xf32>
}

// CHECK-LABEL: func.func private @k1_order__launch(
// CHECK-COUNT-3: gpu.launch_func @kernels::@k1_order_3_exchange
func.func private @k1_order(%x: tensor<1x1500xi32>, %out: tensor<1x8xi64>) -> tensor<1x8xi64>
    attributes {mlirml.kernel} {
  %r = "mlirml.argsort"(%x, %out) {descending = true, kind = "i32"}
      : (tensor<1x1500xi32>, tensor<1x8xi64>) -> tensor<1x8xi64>
  return %r : tensor<1x8xi64>
}

// RUN: mlirml-opt %s --split-input-file --mlirml-plan-transfers | filecheck %s

// The host reads one element: it alone is copied. Whole buffers are copied by the device.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: memref<4x8xf32>, %[[Y:.*]]: memref<4x8xf32>, %[[I:.*]]: index)
// CHECK:       gpu.memcpy %[[Y]], %[[X]] : memref<4x8xf32>, memref<4x8xf32>
// CHECK:       %[[H:.*]] = memref.alloc() {{.*}}mlirml.host{{.*}} : memref<f32>
// CHECK:       %[[PART:.*]] = memref.subview %[[X]][%[[I]], %[[I]]] [1, 1] [1, 1]
// CHECK:       gpu.memcpy %[[H]], %[[PART]]
// CHECK:       %[[V:.*]] = memref.load %[[H]][]
// CHECK:       return %[[V]]
func.func @main(%x: memref<4x8xf32>, %y: memref<4x8xf32>, %i: index) -> f32 {
  memref.copy %x, %y : memref<4x8xf32> to memref<4x8xf32>
  %v = memref.load %x[%i, %i] : memref<4x8xf32>
  return %v : f32
}

// -----

// A sort is the host's: its array comes, and goes back sorted.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: memref<8xf32>, %[[Y:.*]]: memref<8xf32>)
// CHECK:       %[[A:.*]] = memref.alloc() {{.*}}mlirml.host
// CHECK:       gpu.memcpy %[[A]], %[[X]]
// CHECK-NEXT:  %[[B:.*]] = memref.alloc() {{.*}}mlirml.host
// CHECK-NEXT:  "mlirml.sort"(%[[A]], %[[B]])
// CHECK:       gpu.memcpy %[[Y]], %[[B]]
// CHECK-NOT:   gpu.memcpy
func.func @main(%x: memref<8xf32>, %y: memref<8xf32>) {
  "mlirml.sort"(%x, %y) : (memref<8xf32>, memref<8xf32>) -> ()
  return
}

// -----

// A number that the host has stays there, and the device gets a copy for its kernel.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[S:.*]]: memref<f32>, %[[X:.*]]: memref<8xf32>)
// CHECK:       memref.load %[[S]][]
// CHECK:       %[[D:.*]] = memref.alloc() {alignment = 64 : i64} : memref<f32>
// CHECK:       gpu.memcpy %[[D]], %[[S]]
// CHECK:       gpu.launch_func {{.*}} args(%[[D]] : memref<f32>, %[[X]] : memref<8xf32>)
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k0(%s: memref<f32>, %x: memref<8xf32>) kernel { gpu.return }
  }
  func.func @main(%s: memref<f32>, %x: memref<8xf32>) -> f32 attributes {mlirml.host_inputs = array<i64: 0>} {
    %c1 = arith.constant 1 : index
    %v = memref.load %s[] : memref<f32>
    gpu.launch_func @kernels::@k0 blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%s : memref<f32>, %x : memref<8xf32>)
    return %v : f32
  }
}

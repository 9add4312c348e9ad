// RUN: mlirml-opt %s --mlirml-link-kernels | filecheck %s

// A call becomes the launches, with what they share; nothing is left of the function.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: memref<8xf32>, %[[Y:.*]]: memref<8xf32>)
// CHECK:       %[[T:.*]] = memref.alloc() : memref<8xf32>
// CHECK:       gpu.launch_func @kernels::@k0_a {{.*}} args(%[[X]] : memref<8xf32>, %[[T]] : memref<8xf32>)
// CHECK:       gpu.launch_func @kernels::@k0_b {{.*}} args(%[[T]] : memref<8xf32>, %[[Y]] : memref<8xf32>)
// CHECK-NEXT:  return
// CHECK-NOT:   __launch
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k0_a(%x: memref<8xf32>, %y: memref<8xf32>) kernel { gpu.return }
    gpu.func @k0_b(%x: memref<8xf32>, %y: memref<8xf32>) kernel { gpu.return }
  }
  func.func private @k0__launch(%x: memref<8xf32>, %out: memref<8xf32>) {
    %c1 = arith.constant 1 : index
    %t = memref.alloc() : memref<8xf32>
    gpu.launch_func @kernels::@k0_a blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<8xf32>, %t : memref<8xf32>)
    gpu.launch_func @kernels::@k0_b blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%t : memref<8xf32>, %out : memref<8xf32>)
    return
  }
  func.func @main(%x: memref<8xf32>, %y: memref<8xf32>) {
    func.call @k0__launch(%x, %y) {mlirml.kernel} : (memref<8xf32>, memref<8xf32>) -> ()
    return
  }
}

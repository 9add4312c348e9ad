// RUN: mlirml-opt %s --split-input-file --mlirml-swap-buffers | filecheck %s

// Two rounds a step, on the two arrays in turn; the round that is left copies.
// CHECK-LABEL: func.func @main(%arg0: memref<8xf32>, %arg1: memref<8xf32>)
// CHECK:       %[[NEW:.*]] = memref.alloc() : memref<8xf32>
// CHECK:       %[[END:.*]] = arith.addi %c0, %c4
// CHECK:       scf.for %{{.*}} = %c0 to %[[END]] step %c2
// CHECK:         gpu.launch_func @kernels::@k0 {{.*}} args(%arg1 : memref<8xf32>, %[[NEW]] : memref<8xf32>)
// CHECK-NOT:     gpu.memcpy
// CHECK:         gpu.launch_func @kernels::@k0 {{.*}} args(%[[NEW]] : memref<8xf32>, %arg1 : memref<8xf32>)
// CHECK-NOT:     gpu.memcpy
// CHECK:       }
// CHECK-NEXT:  gpu.launch_func @kernels::@k0 {{.*}} args(%arg1 : memref<8xf32>, %[[NEW]] : memref<8xf32>)
// CHECK-NEXT:  gpu.memcpy %arg1, %[[NEW]]
// CHECK-NEXT:  return
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k0(%x: memref<8xf32>, %y: memref<8xf32>) kernel { gpu.return }
  }
  func.func @main(%x: memref<8xf32>, %out: memref<8xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    gpu.memcpy %out, %x : memref<8xf32>, memref<8xf32>
    scf.for %i = %c0 to %c5 step %c1 {
      %new = memref.alloc() : memref<8xf32>
      gpu.launch_func @kernels::@k0 blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : memref<8xf32>, %new : memref<8xf32>)
      gpu.memcpy %out, %new : memref<8xf32>, memref<8xf32>
    }
    return
  }
}

// -----

// A number of rounds that is known at run time only: what is left runs in the loop as it was.
// CHECK-LABEL: func.func @main(%arg0: memref<8xf32>, %arg1: index)
// CHECK:       %[[REST:.*]] = arith.remsi
// CHECK:       scf.for %{{.*}} = %c0 to %[[MIDDLE:.*]] step %c2
// CHECK-NOT:     gpu.memcpy
// CHECK:       scf.for %{{.*}} = %[[MIDDLE]] to %arg1 step %c1
// CHECK:         gpu.memcpy
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k0(%x: memref<8xf32>, %y: memref<8xf32>) kernel { gpu.return }
  }
  func.func @main(%out: memref<8xf32>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      %new = memref.alloc() : memref<8xf32>
      gpu.launch_func @kernels::@k0 blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : memref<8xf32>, %new : memref<8xf32>)
      gpu.memcpy %out, %new : memref<8xf32>, memref<8xf32>
    }
    return
  }
}

// -----

// A view from outside of the loop would not follow the array to the other buffer.
// CHECK-LABEL: func.func @main
// CHECK:       scf.for
// CHECK:         memref.alloc
// CHECK:         gpu.memcpy
// CHECK-NOT:   scf.for
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k0(%x: memref<8xf32>, %y: memref<2x4xf32>) kernel { gpu.return }
  }
  func.func @main(%out: memref<2x4xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %flat = memref.collapse_shape %out [[0, 1]] : memref<2x4xf32> into memref<8xf32>
    scf.for %i = %c0 to %c4 step %c1 {
      %new = memref.alloc() : memref<2x4xf32>
      gpu.launch_func @kernels::@k0 blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%flat : memref<8xf32>, %new : memref<2x4xf32>)
      gpu.memcpy %out, %new : memref<2x4xf32>, memref<2x4xf32>
    }
    return
  }
}

// -----

// A copy into a view of what is made in the same iteration stays; the array that it is a view of changes places.
// CHECK-LABEL: func.func @main
// CHECK:       %[[NEW:.*]] = memref.alloc() : memref<2x4xf32>
// CHECK:       scf.for
// CHECK:         %[[FLAT:.*]] = memref.collapse_shape %[[NEW]]
// CHECK:         gpu.memcpy %[[FLAT]]
// CHECK-NOT:     gpu.memcpy %arg0
// CHECK:         %[[OUT:.*]] = memref.collapse_shape %arg0
// CHECK:         gpu.memcpy %[[OUT]]
// CHECK-NOT:     gpu.memcpy
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k0(%x: memref<2x4xf32>, %y: memref<8xf32>) kernel { gpu.return }
  }
  func.func @main(%out: memref<2x4xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c4 step %c1 {
      %new = memref.alloc() : memref<2x4xf32>
      %row = memref.alloc() : memref<8xf32>
      %flat = memref.collapse_shape %new [[0, 1]] : memref<2x4xf32> into memref<8xf32>
      gpu.launch_func @kernels::@k0 blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : memref<2x4xf32>, %row : memref<8xf32>)
      gpu.memcpy %flat, %row : memref<8xf32>, memref<8xf32>
      gpu.memcpy %out, %new : memref<2x4xf32>, memref<2x4xf32>
    }
    return
  }
}

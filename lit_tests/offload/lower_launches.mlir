// RUN: mlirml-opt %s --mlirml-lower-launches | filecheck %s

// The table of the call comes last: the stream, then the kernels in their order.
// CHECK:       func.func @main(%[[X:.*]]: memref<8xf32>, %[[Y:.*]]: memref<8xf32>, %[[I:.*]]: index, %[[TABLE:.*]]: memref<2xi64>)
// CHECK-SAME:  mlirml.kernels = [{accesses = array<i64: 128, 0>, arguments = array<i64: 0, 4>, launches = 1 : i64, name = "k0", place = "{{.*}}"}]
// CHECK:       %[[STREAM:.*]] = llvm.inttoptr
// CHECK:       memref.extract_aligned_pointer_as_index %[[X]]
// CHECK:       %[[WORD:.*]] = memref.load %[[TABLE]][%c1
// CHECK:       %[[KERNEL:.*]] = llvm.inttoptr %[[WORD]]
// CHECK:       llvm.call @mgpuLaunchKernel(%[[KERNEL]], {{.*}}, %[[STREAM]],
// CHECK:       %[[SIZE:.*]] = arith.constant 32 : i64
// CHECK:       llvm.call @mgpuMemcpy(%{{.*}}, %{{.*}}, %[[SIZE]], %[[STREAM]])
// CHECK-NOT:   gpu.memcpy
// CHECK:       llvm.func @mgpuLaunchKernel(!llvm.ptr, i64, i64, i64, i64, i64, i64, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64)
// CHECK:       llvm.func @mgpuMemcpy(!llvm.ptr, !llvm.ptr, i64, !llvm.ptr)
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k0(%x: memref<8xf32>, %i: index) kernel { gpu.return }
  }
  func.func @main(%x: memref<8xf32>, %y: memref<8xf32>, %i: index) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@k0 blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<8xf32>, %i : index)
    gpu.memcpy %y, %x : memref<8xf32>, memref<8xf32>
    return
  }
}

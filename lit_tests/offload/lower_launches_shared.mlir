// RUN: mlirml-opt %s --mlirml-lower-launches | filecheck %s

// A kernel that shares more than 48 KiB asks for it when it is launched.
// CHECK:       func.func @main
// CHECK:       %[[BYTES:.*]] = arith.constant 65536 : i32
// CHECK:       llvm.call @mgpuLaunchKernel({{.*}}, %[[BYTES]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}})
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k0(%x: memref<8xf32>) kernel {
      %shared = memref.alloc() : memref<16384xf32, #gpu.address_space<workgroup>>
      gpu.return
    }
  }
  func.func @main(%x: memref<8xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@k0 blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<8xf32>)
    return
  }
}

// RUN: mlirml-opt %s --mlirml-embed-spirv | filecheck %s

// The converted module replaces the functions that it was made of.
// CHECK: gpu.module @kernels
// CHECK-NOT: gpu.func
// CHECK: spirv.module @__spv__kernels
// CHECK-NOT: spirv.module
module attributes {gpu.container_module} {
  spirv.module @__spv__kernels Logical GLSL450 {
  }
  gpu.module @kernels {
    gpu.func @k() kernel {
      gpu.return
    }
  }
}

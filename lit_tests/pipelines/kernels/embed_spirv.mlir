// RUN: mlirml-opt %s --mlirml-embed-spirv | filecheck %s

// The converted module replaces the functions that it was made of, as bytes that begin with SPIR-V's number.
// CHECK: gpu.binary @kernels [#gpu.object<#spirv.target_env<{{.*}}, "\03\02#\07
// CHECK-NOT: spirv.module
#env = #spirv.target_env<#spirv.vce<v1.3, [Shader], [SPV_KHR_storage_buffer_storage_class]>, #spirv.resource_limits<>>
module attributes {gpu.container_module} {
  spirv.module @__spv__kernels Logical GLSL450 requires #spirv.vce<v1.3, [Shader], []> {
    spirv.func @k() "None" {
      spirv.Return
    }
    spirv.EntryPoint "GLCompute" @k
  }
  gpu.module @kernels [#env] {
    gpu.func @k() kernel {
      gpu.return
    }
  }
}

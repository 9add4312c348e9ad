// RUN: mlirml-opt %s --mlirml-prepare-spirv | filecheck %s

// Buffers of bf16 hold bits, vectors are read one by one, no constant is infinite, a sum that is summed again is hidden.
// CHECK: gpu.module @kernels [#spirv.target_env<#spirv.vce<v1.3, [Shader], [SPV_KHR_storage_buffer_storage_class]>
// CHECK: gpu.func @k(%[[X:.*]]: memref<8xi16>, %[[Y:.*]]: memref<8xf32>)
// CHECK-SAME: spirv.entry_point_abi = #spirv.entry_point_abi<workgroup_size = [8, 1, 1]>
// CHECK: memref.alloc() : memref<8xf32, #spirv.storage_class<Workgroup>>
// CHECK: %[[BITS:.*]] = arith.ori %{{.*}}, %{{.*}} : i32
// CHECK: %[[INF:.*]] = arith.bitcast %[[BITS]] : i32 to f32
// CHECK: memref.load %[[X]][%{{.*}}] : memref<8xi16>
// CHECK: arith.addf %{{.*}}, %[[INF]]
// CHECK: %[[SUM:.*]] = arith.ori
// CHECK: %[[KEPT:.*]] = arith.bitcast %[[SUM]] : i32 to f32
// CHECK: %[[D:.*]] = arith.subf %[[KEPT]]
// One side of `d - d` is hidden.
// CHECK: %[[BITS_OF_D:.*]] = arith.ori
// CHECK: %[[ONE:.*]] = arith.bitcast %[[BITS_OF_D]] : i32 to f32
// CHECK: arith.ori
// CHECK: %[[OTHER:.*]] = arith.bitcast %{{.*}} : i32 to f32
// CHECK: arith.subf %[[ONE]], %[[OTHER]]
// Constant vectors are stored one by one.
// CHECK: %[[THREE:.*]] = arith.constant 16448 : i16
// CHECK: memref.store %[[THREE]], %[[X]]
// CHECK: builtin.unrealized_conversion_cast %{{.*}} : memref<8xbf16> to memref<8xi16>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%x: memref<8xbf16>, %y: memref<8xf32>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
      %c0 = arith.constant 0 : index
      %shared = memref.alloc() : memref<8xf32, #gpu.address_space<workgroup>>
      %low = arith.constant 0xFF800000 : f32
      %v = vector.load %x[%c0] : memref<8xbf16>, vector<2xbf16>
      %a = vector.extract %v[1] : bf16 from vector<2xbf16>
      %bits = arith.bitcast %a : bf16 to i16
      %wide = arith.extui %bits : i16 to i32
      %f = arith.bitcast %wide : i32 to f32
      %s = arith.addf %f, %low : f32
      %d = arith.subf %s, %f : f32
      memref.store %d, %shared[%c0] : memref<8xf32, #gpu.address_space<workgroup>>
      %none = arith.subf %d, %d : f32
      memref.store %none, %y[%c0] : memref<8xf32>
      %threes = arith.constant dense<3.0> : vector<2xbf16>
      vector.store %threes, %x[%c0] : memref<8xbf16>, vector<2xbf16>
      gpu.return
    }
  }
  func.func @launch(%x: memref<8xbf16>, %y: memref<8xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<8xbf16>, %y : memref<8xf32>)
    return
  }
}

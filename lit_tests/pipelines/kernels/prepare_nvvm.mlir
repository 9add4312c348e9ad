// RUN: mlirml-opt %s --mlirml-prepare-nvvm | filecheck %s

// Shared arrays become variables of the module, functions that are instructions become intrinsics.
// CHECK: memref.global "private" @k.shared0 : memref<8xf32, #gpu.address_space<workgroup>> {alignment = 16 : i64}
// CHECK: gpu.func @k
// CHECK: memref.get_global @k.shared0
// CHECK: llvm.call_intrinsic "llvm.fma.f32"
// CHECK-NOT: memref.alloc
gpu.module @kernels {
  gpu.func @k(%x: memref<8xf32>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %t = gpu.thread_id x
    %shared = memref.alloc() : memref<8xf32, #gpu.address_space<workgroup>>
    %a = memref.load %x[%t] : memref<8xf32>
    %f = math.fma %a, %a, %a : f32
    memref.store %f, %shared[%t] : memref<8xf32, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// More than 48 KiB are parts of a global without a size, which the launch asks for.
// CHECK-LABEL: gpu.module @large
// CHECK: memref.global @shared_at_launch : memref<0xi8, #gpu.address_space<workgroup>> {alignment = 16 : i64}
// CHECK: gpu.func @k
// CHECK: %[[ALL:.*]] = memref.get_global @shared_at_launch
// CHECK: memref.view %[[ALL]][%c0{{.*}}][] : {{.*}} to memref<7xf32,
// CHECK: memref.view %[[ALL]][%c32{{.*}}][] : {{.*}} to memref<16384xf32,
// CHECK-NOT: memref.alloc
gpu.module @large {
  gpu.func @k(%x: memref<8xf32>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %t = gpu.thread_id x
    %small = memref.alloc() : memref<7xf32, #gpu.address_space<workgroup>>
    %shared = memref.alloc() : memref<16384xf32, #gpu.address_space<workgroup>>
    %a = memref.load %small[%t] : memref<7xf32, #gpu.address_space<workgroup>>
    memref.store %a, %shared[%t] : memref<16384xf32, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// Memory of unknown size is passed by its address.
// CHECK-LABEL: gpu.module @unknown
// CHECK: gpu.func @k(%{{.*}}: memref<1073741824xf32>) kernel
gpu.module @unknown {
  gpu.func @k(%x: memref<?xf32>) kernel {
    gpu.return
  }
}

// What is lowered already is left alone.
// CHECK-LABEL: gpu.module @lowered
// CHECK: llvm.func @k(%{{.*}}: !llvm.ptr)
gpu.module @lowered {
  llvm.func @k(%x: !llvm.ptr) {
    llvm.return
  }
}

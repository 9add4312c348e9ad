// RUN: mlirml-opt %s --mlirml-lower-nvgpu | filecheck %s

// Asynchronous copies and ldmatrix get addresses, whose constant parts stay apart; groups of copies stay.
// CHECK-LABEL: gpu.func @copies
// CHECK: %[[TO:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}] {{.*}} : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16
// CHECK: %[[NEXT:.*]] = llvm.getelementptr %[[TO]][512] {{.*}} : (!llvm.ptr<3>) -> !llvm.ptr<3>, f16
// CHECK: %[[FROM:.*]] = llvm.addrspacecast %{{.*}} : !llvm.ptr to !llvm.ptr<1>
// CHECK: nvvm.cp.async.shared.global %[[NEXT]], %[[FROM]], 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
// CHECK: %[[BYTES:.*]] = arith.muli %{{.*}}, %{{.*}} : i32
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %[[BYTES]] : !llvm.ptr<3>, !llvm.ptr<1>, i32
// CHECK: nvgpu.device_async_create_group
// CHECK: nvvm.ldmatrix %{{.*}} {{.*}}mma_layout<col>, num = 4
// CHECK-COUNT-4: vector.insert
gpu.module @kernels {
  gpu.func @copies(%x: memref<4096xf16>, %y: memref<4096xf16>, %s: memref<1024xf16, #gpu.address_space<workgroup>>,
                   %n: index) kernel {
    %c512 = arith.constant 512 : index
    %t = gpu.thread_id x
    %i = arith.addi %t, %c512 : index
    %a = nvgpu.device_async_copy %x[%t], %s[%i], 8 {bypassL1} : memref<4096xf16> to memref<1024xf16, #gpu.address_space<workgroup>>
    %b = nvgpu.device_async_copy %x[%t], %s[%t], 8, %n {bypassL1} : memref<4096xf16> to memref<1024xf16, #gpu.address_space<workgroup>>
    %g = nvgpu.device_async_create_group
    nvgpu.device_async_wait %g {numGroups = 0 : i32}
    %f = nvgpu.ldmatrix %s[%i] {numTiles = 4 : i32, transpose = true} : memref<1024xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
    %e = vector.extract %f[1, 0] : f16 from vector<4x2xf16>
    memref.store %e, %y[%t] : memref<4096xf16>
    gpu.return
  }
}

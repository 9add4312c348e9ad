// RUN: mlirml-opt %s --mlirml-relax-atomics | filecheck %s

// Threads of one device wait for no other memory, and not for the host.
// CHECK-LABEL: llvm.func @maximum
// CHECK: llvm.atomicrmw fmax %{{.*}}, %{{.*}} syncscope("device") monotonic : !llvm.ptr, f32
gpu.module @kernels {
  llvm.func @maximum(%p: !llvm.ptr, %v: f32) attributes {gpu.kernel, nvvm.kernel} {
    %old = llvm.atomicrmw fmax %p, %v acq_rel : !llvm.ptr, f32
    llvm.return
  }
}

// Host code is left as it is.
// CHECK-LABEL: llvm.func @host
// CHECK: llvm.atomicrmw add %{{.*}}, %{{.*}} acq_rel : !llvm.ptr, i32
llvm.func @host(%p: !llvm.ptr, %v: i32) {
  %old = llvm.atomicrmw add %p, %v acq_rel : !llvm.ptr, i32
  llvm.return
}

// RUN: mlirml-opt %s --mlirml-flush-denormals | filecheck %s

// A module of kernels has no entry, and is marked itself.
// CHECK: module {
module attributes {mlirml.flush_denormals} {
  // CHECK: llvm.func internal @kernel.parallel0.thunk
  // CHECK: stmxcsr
  // CHECK: llvm.call @kernel.parallel0
  // CHECK: ldmxcsr
  llvm.func internal @kernel.parallel0.thunk(%lo: i64, %hi: i64, %context: !llvm.ptr) {
    llvm.call @kernel.parallel0(%lo, %hi) : (i64, i64) -> ()
    llvm.return
  }
  // CHECK: llvm.func @kernel.parallel0
  // CHECK-NOT: mxcsr
  llvm.func @kernel.parallel0(%lo: i64, %hi: i64) {
    llvm.return
  }
}

// RUN: mlirml-opt %s --mlirml-flush-denormals=processor=neon | filecheck %s

// On AArch64 the mode is bit 24 of FPCR, which is read and written without memory.
// CHECK-LABEL: llvm.func @entry
// CHECK: %[[OLD:.*]] = llvm.call_intrinsic "llvm.aarch64.get.fpcr"() : () -> i64
// CHECK: %[[FLAG:.*]] = llvm.mlir.constant(16777216 : i64) : i64
// CHECK: %[[NEW:.*]] = llvm.or %[[OLD]], %[[FLAG]] : i64
// CHECK: llvm.call_intrinsic "llvm.aarch64.set.fpcr"(%[[NEW]]) : (i64) -> ()
// CHECK: llvm.call @main
// CHECK: llvm.call_intrinsic "llvm.aarch64.set.fpcr"(%[[OLD]]) : (i64) -> ()
// CHECK: llvm.return
llvm.func @main()
llvm.func @entry(%pointers: !llvm.ptr) attributes {mlirml.flush_denormals} {
  llvm.call @main() : () -> ()
  llvm.return
}

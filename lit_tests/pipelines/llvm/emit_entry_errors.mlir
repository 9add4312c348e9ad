// RUN: not mlirml-opt %s --mlirml-emit-entry 2>&1 | filecheck %s

// CHECK: mlirml.LoweringError: an argument or a result of @main has a size that is not known, and the entry takes a pointer for each
// CHECK-NEXT: --> {{.*}}emit_entry_errors.mlir:6:1
// CHECK: help: give arrays their sizes, as `tensor<8xf32>`
llvm.func @main(%x: !llvm.ptr, %size: i64) {
  llvm.return
}

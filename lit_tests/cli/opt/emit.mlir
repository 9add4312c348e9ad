// RUN: mlirml-opt %s --emit=llvm | filecheck %s --check-prefix=LLVM
// RUN: mlirml-opt %s --emit=asm | filecheck %s --check-prefix=ASM
// RUN: not mlirml-opt %S/output.mlir --emit=llvm 2>&1 | filecheck %s --check-prefix=ERROR

// LLVM: define void @entry(ptr %0)
// ASM: entry:
// ASM: ret
// ERROR: mlirml.LoweringError: operations without an LLVM form are left in the module: arith.addi, arith.constant, func.func, func.return
llvm.func @entry(%pointers: !llvm.ptr) {
  llvm.return
}

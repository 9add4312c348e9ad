// RUN: mlirml-opt %s --mlirml-verify-stage=stage=lower | filecheck %s
// RUN: not mlirml-opt %s --mlirml-verify-stage=stage=schedule 2>&1 | filecheck %s --check-prefix=ERROR

// CHECK-LABEL: llvm.func @entry
// ERROR: mlirml.LoweringError: `llvm.func` is not legal after stage schedule
// ERROR-NEXT: --> {{.*}}lower_stage.mlir:12:1
// ERROR-NEXT: |
// ERROR-NEXT: | llvm.func @entry(%pointers: !llvm.ptr) {
// ERROR-NEXT: | ^^^^
// ERROR-NEXT: = stage: schedule
// ERROR-NEXT: = note: pass: mlirml-verify-stage{stage=schedule}
llvm.func @entry(%pointers: !llvm.ptr) {
  llvm.return
}

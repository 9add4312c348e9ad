// RUN: rm -rf %t && mkdir -p %t
// RUN: not mlirml-opt %s --canonicalize --mlirml-verify-stage=stage=lower --dump-dir=%t 2> %t/first.txt
// RUN: filecheck %s < %t/first.txt
// RUN: filecheck %s --check-prefix=FILE < %t/reproducer.mlir
// RUN: not mlirml-opt --run-reproducer %t/reproducer.mlir 2>&1 | filecheck %s
// RUN: mlirml-opt --run-reproducer --print-pipeline %t/reproducer.mlir | filecheck %s --check-prefix=PIPELINE
// RUN: not mlirml-opt --run-reproducer %s 2>&1 | filecheck %s --check-prefix=NONE

// The module in the file is the one before the pass that failed: canonicalize has folded the sum.

// CHECK: mlirml.LoweringError: `func.func` is not legal after stage lower
// CHECK-NEXT: --> {{.*}}reproducer.mlir:25:1
// CHECK: = note: pass `convert-func-to-llvm` should have removed it
// CHECK-NEXT: = note: reproducer: mlirml-opt --run-reproducer {{.*}}reproducer.mlir

// FILE: // mlirml reproducer: `func.func` is not legal after stage lower
// FILE-NEXT: // pipeline: builtin.module(mlirml-verify-stage{stage=lower})
// FILE-NEXT: // stage: lower
// FILE-NEXT: // versions: mlirml {{.*}}, torch-mlir {{[0-9]+}}, llvmlite {{.*}}, Python 3.
// FILE: arith.constant 3 : i32

// PIPELINE: builtin.module(mlirml-verify-stage{stage=lower})

// NONE: mlirml.PipelineError: the input has no `// pipeline:` line to run
func.func @main() -> i32 {
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %three = arith.addi %one, %two : i32
  return %three : i32
}

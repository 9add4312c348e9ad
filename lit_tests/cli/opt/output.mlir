// RUN: mlirml-opt %s | filecheck %s
// RUN: mlirml-opt %s -o %t && filecheck %s < %t
// RUN: mlirml-opt %s --mlir-print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: mlirml-opt %s --mlir-print-debuginfo | filecheck %s --check-prefix=LOCATIONS
// RUN: mlirml-opt %s --canonicalize --cse --mlir-print-ir-after-all 2>&1 | filecheck %s --check-prefix=ALL
// RUN: mlirml-opt %s --canonicalize --cse --mlir-print-ir-after-change 2>&1 | filecheck %s --check-prefix=CHANGED
// RUN: mlirml-opt %s --canonicalize --timing 2>&1 | filecheck %s --check-prefix=TIMING
// RUN: rm -rf %t.dump && mlirml-opt %s --canonicalize --cse --dump-dir=%t.dump > %t && ls %t.dump | filecheck %s --check-prefix=DUMP
// RUN: not mlirml-opt %S/no_such_file.mlir 2>&1 | filecheck %s --check-prefix=FILE

// CHECK: %[[SUM:.*]] = arith.addi %arg0, %{{.*}} : i32
// GENERIC: "func.func"() <{function_type = (i32) -> i32, sym_name = "main"}> ({
// LOCATIONS: arith.addi {{.*}} : i32 loc(#loc{{[0-9]+}})
// LOCATIONS: loc("{{.*}}output.mlir":{{[0-9]+}}:10)
// ALL: // -----// IR Dump After canonicalize //----- //
// ALL: // -----// IR Dump After cse //----- //
// CHANGED: // -----// IR Dump After canonicalize //----- //
// CHANGED-NOT: After cse
// TIMING: ms   share  name
// TIMING-NEXT: {{[0-9.]+ +[0-9.]+}}%  canonicalize
// TIMING-NEXT: 100.0%  total
// DUMP: 000_input.mlir
// DUMP-NEXT: 001_canonicalize.mlir
// DUMP-NEXT: 002_cse.mlir
// FILE: mlirml-opt: {{.*}}no_such_file.mlir: No such file or directory
func.func @main(%a: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %sum = arith.addi %a, %zero : i32
  return %sum : i32
}

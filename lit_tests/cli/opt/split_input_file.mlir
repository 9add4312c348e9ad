// RUN: mlirml-opt %s --split-input-file --canonicalize | filecheck %s
// RUN: mlirml-opt - --split-input-file --canonicalize < %s | filecheck %s
// RUN: not mlirml-opt %S/Inputs/second_part_fails.mlir --split-input-file 2>&1 | filecheck %S/Inputs/second_part_fails.mlir

// CHECK-LABEL: func.func @same_name() -> i32
// CHECK-NEXT: arith.constant 3 : i32
func.func @same_name() -> i32 {
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %three = arith.addi %one, %two : i32
  return %three : i32
}

// CHECK: // -----
// -----

// CHECK-LABEL: func.func @same_name(
func.func @same_name(%a: i32) -> i32 {
  return %a : i32
}

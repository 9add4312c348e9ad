// RUN: mlirml-opt %s --split-input-file --verify-diagnostics
// RUN: not mlirml-opt %S/Inputs/wrong_expectations.mlir --verify-diagnostics 2>&1 | filecheck %S/Inputs/wrong_expectations.mlir

func.func @parse_error() {
  // expected-error@+1 {{use of undeclared SSA value name}}
  return %nothing : i32
}

// -----

func.func @verifier_error(%a: i32) {
  // expected-error@below {{'arith.addi' op expected 2 operands, but found 1}}
  %0 = "arith.addi"(%a) : (i32) -> i32
  return
}

// -----

func.func @regular_expression(%a: i32) {
  %0 = "arith.addi"(%a) : (i32) -> i32
  // expected-error-re@above {{'arith.{{[a-z]+}}' op expected {{[0-9]}} operands}}
  return
}

// -----

func.func @nothing_wrong(%a: i32) -> i32 {
  return %a : i32
}

// CHECK: wrong_expectations.mlir:5: unexpected error: use of undeclared SSA value name
// CHECK-NEXT: wrong_expectations.mlir:6: expected error "another message" was not reported
// CHECK-NEXT: wrong_expectations.mlir:7: expected remark "not said" was not reported
func.func @f() {
  return %nothing : i32
  // expected-error@-1 {{another message}}
  // expected-remark@-2 {{not said}}
}

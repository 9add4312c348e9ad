// CHECK: mlirml.ParseError: unregistered operation 'mlirml.nothing' found in dialect ('mlirml') that does not allow unknown operations
// CHECK-NEXT: --> {{.*}}unknown_op.mlir:4:3
func.func @an_unknown_op_of_our_dialect_is_refused() {
  "mlirml.nothing"() : () -> ()
  return
}

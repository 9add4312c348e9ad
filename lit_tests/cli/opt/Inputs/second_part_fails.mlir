// CHECK: mlirml.ParseError: 'func.return' op has 1 operands, but enclosing function (@second) returns 0
// CHECK-NEXT: --> {{.*}}second_part_fails.mlir:14:3
// CHECK-NEXT: |
// CHECK-NEXT: 14 |   return %a : i32
// CHECK: func.func @first
// CHECK-NOT: func.func @second
// CHECK: func.func @third
func.func @first() {
  return
}
// -----
func.func @second(%a: i32) {

  return %a : i32
}
// -----
func.func @third() {
  return
}

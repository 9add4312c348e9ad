// RUN: not mlirml-opt %s 2>&1 | filecheck %s --check-prefix=ERROR
// RUN: mlirml-opt %s --allow-unregistered-dialect | filecheck %s

// ERROR: mlirml.ParseError: operation being parsed with an unregistered dialect
// CHECK: "test.unknown"() : () -> ()
func.func @main() {
  "test.unknown"() : () -> ()
  return
}

// RUN: mlirml-opt %s --mlirml-lower-host-calls --split-input-file | filecheck %s

// CHECK-DAG: func.func private @mlirml_host_word(i64)
// CHECK-DAG: func.func private @mlirml_host_call(i64)
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: f64, %[[N:.*]]: i8, %[[A:.*]]: memref<4x8xf32>)
// CHECK: %[[F64:.*]] = arith.constant 11 : i64
// CHECK: %[[BITS:.*]] = arith.bitcast %[[X]] : f64 to i64
// CHECK: call @mlirml_host_word(%[[BITS]])
// CHECK: %[[WIDE:.*]] = arith.extui %[[N]] : i8 to i64
// CHECK: call @mlirml_host_word(%[[WIDE]])
// CHECK: arith.constant 2 : i64
// CHECK: arith.constant 4 : i64
// CHECK: arith.constant 8 : i64
// CHECK: memref.extract_aligned_pointer_as_index %[[A]]
// CHECK: %[[SIZE:.*]] = arith.constant 128 : i64
// CHECK: call @mlirml_host_bytes(%{{.*}}, %[[SIZE]])
// CHECK: %[[NUMBER:.*]] = arith.constant 256 : i64
// CHECK: call @mlirml_host_call(%[[NUMBER]])
func.func @main(%x: f64, %n: i8, %a: memref<4x8xf32>) {
  "mlirml.host_value"(%x) {kind = "f64"} : (f64) -> ()
  "mlirml.host_value"(%n) {kind = "i8"} : (i8) -> ()
  "mlirml.host_value"(%a) {kind = "f32"} : (memref<4x8xf32>) -> ()
  "mlirml.host_call"() {number = 256 : i64} : () -> ()
  return
}

// -----

// A result: its place is passed, and the call asks for it.

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[R:.*]]: memref<3xf32>)
// CHECK: memref.extract_aligned_pointer_as_index %[[R]]
// CHECK: %[[NUMBER:.*]] = arith.constant 257 : i64
// CHECK: call @mlirml_host_call(%[[NUMBER]])
func.func @main(%r: memref<3xf32>) {
  "mlirml.host_result"(%r) {kind = "f32", number = 257 : i64} : (memref<3xf32>) -> ()
  return
}

// RUN: mlirml-opt %s --split-input-file | filecheck %s
// RUN: mlirml-opt %s --split-input-file --mlir-print-op-generic | mlirml-opt - --split-input-file | filecheck %s
// RUN: not mlirml-opt %S/Inputs/unknown_op.mlir 2>&1 | filecheck %S/Inputs/unknown_op.mlir

// CHECK-LABEL: func.func @parallel_for_captures_values_of_any_type
// CHECK-SAME: (%[[A:.*]]: memref<8xf32>, %[[S:.*]]: f32, %[[N:.*]]: index)
// CHECK: call @body(%{{.*}}, %[[N]], %[[A]], %[[S]]) {mlirml.parallel_for = 64 : i64} : (index, index, memref<8xf32>, f32) -> ()
func.func @parallel_for_captures_values_of_any_type(%a: memref<8xf32>, %s: f32, %n: index) {
  %lower = arith.constant 0 : index
  call @body(%lower, %n, %a, %s) {mlirml.parallel_for = 64 : i64} : (index, index, memref<8xf32>, f32) -> ()
  return
}

func.func private @body(%lo: index, %hi: index, %a: memref<8xf32>, %s: f32) {
  return
}

// -----

// CHECK-LABEL: func.func @sorts_of_rows
// CHECK: "mlirml.sort"(%{{.*}}, %{{.*}}) {descending = false, kind = "f32"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK: "mlirml.argsort"(%{{.*}}, %{{.*}}) {descending = true, kind = "u8"} : (memref<4x8xi8>, memref<4x3xi64>) -> ()
func.func @sorts_of_rows(%x: tensor<4x8xf32>, %y: memref<4x8xi8>, %order: memref<4x3xi64>) -> tensor<4x8xf32> {
  %out = tensor.empty() : tensor<4x8xf32>
  %r = "mlirml.sort"(%x, %out) {descending = false, kind = "f32"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  "mlirml.argsort"(%y, %order) {descending = true, kind = "u8"} : (memref<4x8xi8>, memref<4x3xi64>) -> ()
  return %r : tensor<4x8xf32>
}

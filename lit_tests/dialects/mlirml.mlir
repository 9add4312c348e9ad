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

// RUN: mlirml-opt %s --mlirml-lower-compactions --split-input-file | filecheck %s
// RUN: not mlirml-opt %S/Inputs/compaction_of_another_shape.mlir --mlirml-lower-compactions 2>&1 | filecheck %S/Inputs/compaction_of_another_shape.mlir

// CHECK: func.func private @mlirml_compress(i64, i64, i64, i64, i64, i64, i64)
// CHECK: func.func private @mlirml_mask_counts(i64, i64, i64, i64)
// CHECK-LABEL: func.func @rows_under_a_mask
// CHECK-SAME: (%[[MASK:.*]]: memref<2x40xi1>, %[[X:.*]]: memref<2x40x3xf32>,
// CHECK: %[[ROWS:.*]] = arith.constant 2 : i64
// CHECK: %[[SIZE:.*]] = arith.constant 40 : i64
// CHECK: %[[P:.*]] = memref.extract_aligned_pointer_as_index %[[MASK]]
// CHECK: %[[M:.*]] = arith.index_cast %[[P]] : index to i64
// CHECK: call @mlirml_mask_counts(%[[M]], %{{.*}}, %[[ROWS]], %[[SIZE]])
// CHECK: %[[BYTES:.*]] = arith.constant 12 : i64
// CHECK: call @mlirml_compress(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[BYTES]])
func.func @rows_under_a_mask(%mask: memref<2x40xi1>, %x: memref<2x40x3xf32>, %counts: memref<2x2xi64>, %out: memref<2x40x3xf32>) {
  "mlirml.mask_counts"(%mask, %counts) {kind = "i64"} : (memref<2x40xi1>, memref<2x2xi64>) -> ()
  "mlirml.compress"(%mask, %counts, %x, %out) {kind = "f32"} : (memref<2x40xi1>, memref<2x2xi64>, memref<2x40x3xf32>, memref<2x40x3xf32>) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @positions_in_two_chunks
// CHECK: call @mlirml_positions(
func.func @positions_in_two_chunks(%mask: memref<1x20000xi1>, %counts: memref<1x3xi64>, %out: memref<1x20000xi64>) {
  "mlirml.positions"(%mask, %counts, %out) {kind = "i64"} : (memref<1x20000xi1>, memref<1x3xi64>, memref<1x20000xi64>) -> ()
  return
}

// RUN: mlirml-opt %s --mlirml-lower-sort --split-input-file | filecheck %s

// CHECK: func.func private @mlirml_sort
// CHECK-LABEL: func.func @rows_of_dynamic_size
// CHECK-SAME: (%[[X:.*]]: memref<?x8xf32>,
// CHECK: %[[ROWS:.*]] = memref.dim %[[X]]
// CHECK: %[[N:.*]] = arith.index_cast %[[ROWS]] : index to i64
// CHECK: call @mlirml_sort(%{{.*}}, %{{.*}}, %[[N]], %c8_i64
func.func @rows_of_dynamic_size(%x: memref<?x8xf32>, %out: memref<?x8xf32>) {
  "mlirml.sort"(%x, %out) {descending = false, kind = "f32"} : (memref<?x8xf32>, memref<?x8xf32>) -> ()
  return
}

// -----

// CHECK: func.func private @mlirml_argsort(i64, i64, i64, i64, i64, i64, i64, i64, i64)
// CHECK-LABEL: func.func @positions_of_the_three_largest
// CHECK-SAME: (%[[X:.*]]: memref<4x8xf32>, %[[OUT:.*]]: memref<4x3xi64>)
// CHECK-DAG: %[[ROWS:.*]] = arith.constant 4 : i64
// CHECK-DAG: %[[SIZE:.*]] = arith.constant 8 : i64
// CHECK-DAG: %[[COUNT:.*]] = arith.constant 3 : i64
// CHECK-DAG: %[[KIND:.*]] = arith.constant 1126 : i64
// CHECK-DAG: %[[DESCENDING:.*]] = arith.constant 1 : i64
// CHECK: %[[P:.*]] = memref.extract_aligned_pointer_as_index %[[X]]
// CHECK: %[[IN:.*]] = arith.index_cast %[[P]] : index to i64
// CHECK: %[[Q:.*]] = memref.extract_aligned_pointer_as_index %[[OUT]]
// CHECK: %[[TO:.*]] = arith.index_cast %[[Q]] : index to i64
// CHECK: call @mlirml_argsort(%[[IN]], %[[TO]], %[[ROWS]], %[[SIZE]], %[[COUNT]], %[[KIND]], %[[DESCENDING]], %{{.*}}, %{{.*}})
func.func @positions_of_the_three_largest(%x: memref<4x8xf32>, %out: memref<4x3xi64>) {
  "mlirml.argsort"(%x, %out) {descending = true, kind = "f32"} : (memref<4x8xf32>, memref<4x3xi64>) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @partition
// CHECK-DAG: %[[FIRST:.*]] = arith.constant 3 : i64
// CHECK-DAG: %[[LAST:.*]] = arith.constant 5 : i64
// CHECK: call @mlirml_sort({{.*}}, %[[FIRST]], %[[LAST]])
func.func @partition(%x: memref<4x9xf32>, %out: memref<4x9xf32>) {
  "mlirml.sort"(%x, %out) {descending = false, kind = "f32", kth = array<i64: 3, 5>}
    : (memref<4x9xf32>, memref<4x9xf32>) -> ()
  return
}

// -----

// CHECK: func.func private @mlirml_sort(i64, i64, i64, i64, i64, i64, i64, i64)
// CHECK-LABEL: func.func @two_sorts_share_the_declaration
// CHECK-COUNT-2: call @mlirml_sort(
// CHECK-NOT: private @mlirml_sort
func.func @two_sorts_share_the_declaration(%x: memref<4x8xi8>, %out: memref<4x8xi8>) {
  "mlirml.sort"(%x, %out) {descending = false, kind = "u8"} : (memref<4x8xi8>, memref<4x8xi8>) -> ()
  "mlirml.sort"(%x, %out) {descending = true, kind = "i8"} : (memref<4x8xi8>, memref<4x8xi8>) -> ()
  return
}

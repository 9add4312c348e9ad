// RUN: mlirml-opt %s --mlirml-lower-library-calls --split-input-file | filecheck %s

// CHECK: func.func private @mlirml_solve(i64, i64, i64, i64, i64, i64, i64, i64)
// CHECK-LABEL: func.func @three_right_sides
// CHECK-SAME: (%[[A:.*]]: memref<2x40x40xf64>, %[[B:.*]]: memref<2x40x3xf64>, %[[X:.*]]: memref<2x40x3xf64>)
// CHECK-DAG: %[[COUNT:.*]] = arith.constant 2 : i64
// CHECK-DAG: %[[SIZE:.*]] = arith.constant 40 : i64
// CHECK-DAG: %[[COLUMNS:.*]] = arith.constant 3 : i64
// CHECK-DAG: %[[MODE:.*]] = arith.constant 0 : i64
// CHECK-DAG: %[[KIND:.*]] = arith.constant 2150 : i64
// CHECK: %[[P:.*]] = memref.extract_aligned_pointer_as_index %[[A]]
// CHECK: %[[IN:.*]] = arith.index_cast %[[P]] : index to i64
// CHECK: %[[Q:.*]] = memref.extract_aligned_pointer_as_index %[[B]]
// CHECK: %[[RIGHT:.*]] = arith.index_cast %[[Q]] : index to i64
// CHECK: %[[R:.*]] = memref.extract_aligned_pointer_as_index %[[X]]
// CHECK: %[[OUT:.*]] = arith.index_cast %[[R]] : index to i64
// CHECK: call @mlirml_solve(%[[IN]], %[[RIGHT]], %[[OUT]], %[[COUNT]], %[[SIZE]], %[[COLUMNS]], %[[MODE]], %[[KIND]])
func.func @three_right_sides(%a: memref<2x40x40xf64>, %b: memref<2x40x3xf64>, %x: memref<2x40x3xf64>) {
  "mlirml.solve"(%a, %b, %x) {kind = "f64"} : (memref<2x40x40xf64>, memref<2x40x3xf64>, memref<2x40x3xf64>) -> ()
  return
}

// -----

// CHECK: func.func private @mlirml_lu_diagonal(i64, i64, i64, i64, i64, i64, i64)
// CHECK-LABEL: func.func @two_calls_share_the_declaration
// CHECK: arith.constant 4195 : i64
// CHECK-COUNT-2: call @mlirml_lu_diagonal(
// CHECK-NOT: private @mlirml_lu_diagonal
func.func @two_calls_share_the_declaration(%a: memref<1x40x40x2xf64>, %d: memref<1x41x2xf64>) {
  "mlirml.lu_diagonal"(%a, %d) {kind = "c128"} : (memref<1x40x40x2xf64>, memref<1x41x2xf64>) -> ()
  "mlirml.lu_diagonal"(%a, %d) {kind = "c128"} : (memref<1x40x40x2xf64>, memref<1x41x2xf64>) -> ()
  return
}

// -----

// A mode is passed on, and real matrices may have complex results.
// CHECK-LABEL: func.func @modes
// CHECK-DAG: %[[MODE:.*]] = arith.constant 1 : i64
// CHECK-DAG: %[[KIND:.*]] = arith.constant 1126 : i64
// CHECK: call @mlirml_eig({{.*}}, %[[MODE]], %[[KIND]])
// CHECK-SAME: (i64, i64, i64, i64, i64, i64, i64) -> ()
func.func @modes(%a: memref<2x3x3xf32>, %w: memref<2x13x2xf32>) {
  "mlirml.eig"(%a, %w) {kind = "f32", mode = 1 : i64} : (memref<2x3x3xf32>, memref<2x13x2xf32>) -> ()
  return
}

// -----

// A Fourier transform takes all sizes, with ones after them. Mode 129 is that of real numbers along axis 1.
// CHECK: func.func private @mlirml_fft(i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64)
// CHECK-LABEL: func.func @transform
// CHECK-DAG: %[[ROWS:.*]] = arith.constant 3 : i64
// CHECK-DAG: %[[POINTS:.*]] = arith.constant 8 : i64
// CHECK-DAG: %[[MODE:.*]] = arith.constant 129 : i64
// CHECK: call @mlirml_fft(%{{.*}}, %{{.*}}, %[[ROWS]], %[[POINTS]], {{.*}}, %[[MODE]], %{{.*}})
func.func @transform(%x: memref<3x8xf64>, %y: memref<3x5x2xf64>) {
  "mlirml.fft"(%x, %y) {kind = "f64", mode = 129 : i64} : (memref<3x8xf64>, memref<3x5x2xf64>) -> ()
  return
}

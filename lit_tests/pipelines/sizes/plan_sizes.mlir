// RUN: mlirml-opt %s --mlirml-plan-sizes | filecheck %s

// Temporaries of one size that do not live at the same time share a slice; others come after it.
// CHECK-LABEL: func.func @main(%arg0: memref<4xf32>, %arg1: memref<1xi64>, %arg2: memref<64xi8>)
// CHECK-SAME:    mlirml.workspace = 64 : i64
// CHECK-SAME:    mlirml.workspace_terms = [array<i64: 32, 0>, array<i64: 8, 0, 0>]
// CHECK:         %[[C64:.*]] = arith.constant 64 : index
// CHECK:         %[[A:.*]] = memref.view %arg2[%[[C64]]][%{{.*}}] : memref<64xi8> to memref<?x8xf32>
// CHECK:         %[[C:.*]] = memref.view %arg2[%[[C64]]][%{{.*}}] : memref<64xi8> to memref<?x8xf32>
// CHECK:         %[[AT:.*]] = arith.addi %[[C64]], %{{.*}} : index
// CHECK:         %[[B:.*]] = memref.view %arg2[%[[AT]]][%{{.*}}, %{{.*}}] : memref<64xi8> to memref<?x?xf64>
// CHECK-NOT:     memref.alloc
func.func @main(%x: memref<4xf32>, %sizes: memref<1xi64>, %workspace: memref<64xi8>)
    attributes {mlirml.inputs = [tensor<4xf32>, tensor<1xi64>], mlirml.outputs = [], mlirml.workspace = 64 : i64} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %wide = arith.constant 1.0 : f64
  %0 = memref.load %sizes[%c0] : memref<1xi64>
  %n = arith.index_cast %0 : i64 to index
  %a = memref.alloc(%n) : memref<?x8xf32>
  %b = memref.alloc(%n, %n) : memref<?x?xf64>
  memref.store %one, %a[%c0, %c0] : memref<?x8xf32>
  memref.store %wide, %b[%c0, %c0] : memref<?x?xf64>
  %c = memref.alloc(%n) : memref<?x8xf32>
  memref.store %one, %c[%c0, %c0] : memref<?x8xf32>
  memref.store %wide, %b[%c0, %c0] : memref<?x?xf64>
  return
}

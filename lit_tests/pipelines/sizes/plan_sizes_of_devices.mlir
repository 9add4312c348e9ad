// RUN: mlirml-opt %s --mlirml-plan-sizes=alignment=256 | filecheck %s

// Temporaries of a device begin at multiples of the alignment; those of the host are slices of a second argument.
// CHECK-LABEL: func.func @main(%arg0: memref<1xi64>, %arg1: memref<1xi8>, %arg2: memref<64xi8>)
// CHECK-SAME:    mlirml.host_workspace = 64 : i64, mlirml.host_workspace_terms = [array<i64: 4, 0>]
// CHECK-SAME:    mlirml.workspace = 0 : i64, mlirml.workspace_terms = [array<i64: 32, 0>, array<i64: 8, 0>]
// CHECK:         memref.view %arg2[%{{.*}}][%{{.*}}] : memref<64xi8> to memref<?xf32>
// CHECK:         memref.view %arg1[%{{.*}}][%{{.*}}] : memref<1xi8> to memref<?x8xf32>
// CHECK:         arith.constant -256 : index
// CHECK:         memref.view %arg1[%{{.*}}][%{{.*}}] : memref<1xi8> to memref<?xf64>
// CHECK-NOT:     memref.alloc
func.func @main(%sizes: memref<1xi64>, %workspace: memref<64xi8>)
    attributes {mlirml.inputs = [tensor<1xi64>], mlirml.outputs = [], mlirml.host_workspace = 64 : i64} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %wide = arith.constant 1.0 : f64
  %0 = memref.load %sizes[%c0] : memref<1xi64>
  %n = arith.index_cast %0 : i64 to index
  %a = memref.alloc(%n) : memref<?x8xf32>
  %b = memref.alloc(%n) : memref<?xf64>
  %h = memref.alloc(%n) {mlirml.host} : memref<?xf32>
  memref.store %one, %a[%c0, %c0] : memref<?x8xf32>
  memref.store %wide, %b[%c0] : memref<?xf64>
  memref.store %one, %h[%c0] : memref<?xf32>
  memref.store %one, %a[%c0, %c0] : memref<?x8xf32>
  memref.store %wide, %b[%c0] : memref<?xf64>
  return
}

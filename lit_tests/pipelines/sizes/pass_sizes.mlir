// RUN: mlirml-opt %s --mlirml-pass-sizes --split-input-file | filecheck %s

// CHECK-LABEL: func.func @main(%arg0: memref<1xi8>, %arg1: memref<2xi64>, %arg2: memref<1xi8>)
// CHECK-NOT:     mlirml.dims
// CHECK:         %[[L0:.*]] = memref.load %arg1[%c0] : memref<2xi64>
// CHECK:         %[[N:.*]] = arith.index_cast %[[L0]] : i64 to index
// CHECK:         %[[L1:.*]] = memref.load %arg1[%c1] : memref<2xi64>
// CHECK:         %[[M:.*]] = arith.index_cast %[[L1]] : i64 to index
// CHECK:         %[[X:.*]] = memref.view %arg0[%c0][%[[N]], %[[M]]] : memref<1xi8> to memref<?x?xf32>
// CHECK:         %[[Y:.*]] = memref.view %arg2[%c0][%[[N]]] : memref<1xi8> to memref<?x4xf32>
// CHECK:         scf.for %{{.*}} = %c0 to %[[M]] step %c1
func.func @main(%x: memref<?x?xf32>, %sizes: memref<2xi64>, %y: memref<?x4xf32>)
    attributes {mlirml.dims = array<i64: 0, 1, 0>, mlirml.inputs = [tensor<?x?xf32>, tensor<2xi64>], mlirml.outputs = [tensor<?x4xf32>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %x, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %m step %c1 {
    %a = memref.load %x[%c0, %i] : memref<?x?xf32>
    memref.store %a, %y[%c1, %c1] : memref<?x4xf32>
  }
  return
}

// -----

// CHECK-LABEL: func.func @main(%arg0: memref<4xf32>)
func.func @main(%x: memref<4xf32>) {
  return
}

// RUN: mlirml-opt %s --split-input-file --mlirml-lower-contract | filecheck %s

// Rows of out and of b are vectors; each element of a is for all lanes of one.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%[[A:.*]]: memref<3x2xf64>, %[[B:.*]]: memref<2x4xf64>, %[[OUT:.*]]: memref<3x4xf64>)
// CHECK-NOT: linalg.
// CHECK-DAG: %[[E:.*]] = memref.load %[[A]][%c0{{.*}}, %c0{{.*}}] : memref<3x2xf64>
// CHECK-DAG: %[[V:.*]] = vector.broadcast %[[E]] : f64 to vector<4xf64>
// CHECK-DAG: %[[R:.*]] = vector.load %[[B]][%c0{{.*}}, %c0{{.*}}] : memref<2x4xf64>, vector<4xf64>
// CHECK: vector.fma %[[V]], %[[R]], %{{.*}} : vector<4xf64>
// CHECK: vector.fma
// CHECK: vector.fma
// CHECK: vector.fma
// CHECK: vector.fma
// CHECK: vector.fma
// CHECK: vector.store %{{.*}}, %[[OUT]][%c2{{.*}}, %c0{{.*}}] : memref<3x4xf64>, vector<4xf64>
// CHECK-NOT: call
func.func @rows(%a: memref<3x2xf64>, %b: memref<2x4xf64>, %out: memref<3x4xf64>) {
  %zero = arith.constant 0.0 : f64
  linalg.fill ins(%zero : f64) outs(%out : memref<3x4xf64>)
  linalg.matmul {mlirml.schedule = {kernel = "small"}} ins(%a, %b : memref<3x2xf64>, memref<2x4xf64>) outs(%out : memref<3x4xf64>)
  return
}

// -----

// Rows of b are not contiguous, and the sums are added to what is in out: all is loaded first.
// CHECK-LABEL: func.func @elements
// CHECK-SAME: (%[[A:.*]]: memref<2x1xf32>, %[[B:.*]]: memref<1x2xf32, strided<[8, 2]>>, %[[OUT:.*]]: memref<2x2xf32>)
// CHECK-NOT: vector.
// CHECK: arith.mulf
// CHECK: %[[OLD:.*]] = memref.load %[[OUT]]
// CHECK-NOT: memref.store
// CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<contract>
// CHECK-COUNT-4: memref.store
// CHECK-NOT: memref.load
// CHECK: return
func.func @elements(%a: memref<2x1xf32>, %b: memref<1x2xf32, strided<[8, 2]>>, %out: memref<2x2xf32>) {
  linalg.matmul {mlirml.schedule = {kernel = "small"}} ins(%a, %b : memref<2x1xf32>, memref<1x2xf32, strided<[8, 2]>>) outs(%out : memref<2x2xf32>)
  return
}

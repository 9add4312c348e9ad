// RUN: mlirml-opt %s --split-input-file --mlirml-lower-loops | filecheck %s

// A copy of a slice of dynamic size is a loop up to that size.
// CHECK-LABEL: func.func @copy
// CHECK: %[[SIZE:.*]] = memref.dim %arg1, %{{.*}} : memref<?xf32>
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[SIZE]] step
// CHECK-NEXT: %[[X:.*]] = memref.load %arg0[%[[I]]] : memref<?xf32>
// CHECK-NEXT: memref.store %[[X]], %arg1[%[[I]]] : memref<?xf32>
func.func @copy(%x: memref<?xf32>, %y: memref<?xf32>) {
  memref.copy %x, %y : memref<?xf32> to memref<?xf32>
  return
}

// -----

#m = affine_map<(i, j) -> (i, j)>
// CHECK-LABEL: func.func @copy_of_rows
// CHECK: %[[ROWS:.*]] = memref.dim %arg1, %{{.*}} : memref<?x4xf32>
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[ROWS]] step
// CHECK: scf.for %[[J:.*]] = %{{.*}} to %c4
// CHECK-NEXT: memref.load %arg0[%[[I]], %[[J]]]
func.func @copy_of_rows(%x: memref<?x4xf32>, %y: memref<?x4xf32>) {
  linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<?x4xf32>) outs(%y : memref<?x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}

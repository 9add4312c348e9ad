// RUN: mlirml-opt %s --mlirml-lower-sized --canonicalize --split-input-file | filecheck %s
// RUN: mlirml-opt %s --mlirml-lower-sized="exact=true" --canonicalize --split-input-file | filecheck %s --check-prefix=EXACT

// Sums along contiguous rows are carried in a register.
// CHECK-LABEL: func.func @rows
// CHECK:         scf.for %[[I:.*]] = %c0 to %[[N:.*]] step %c1 {
// CHECK:           %[[FIRST:.*]] = memref.load %arg1[%[[I]]]
// CHECK:           %[[SUM:.*]] = scf.for %[[J:.*]] = %c0 to %c8 step %c1 iter_args(%{{.*}} = %[[FIRST]]) -> (f32)
// CHECK:             arith.addf {{.*}} fastmath<reassoc,contract>
// CHECK:           memref.store %[[SUM]], %arg1[%[[I]]]
// EXACT-LABEL: func.func @rows
// EXACT:         arith.addf %{{[^ ]*}}, %{{[^ ]*}} : f32
func.func @rows(%x: memref<?x8xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x8xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %total: f32):
    %sum = arith.addf %a, %total : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// Sums along columns are added up in memory, row by row.
// CHECK-LABEL: func.func @columns
// CHECK:         scf.for %[[I:.*]] = %c0 to %{{.*}} step %c1 {
// CHECK:           scf.for %[[J:.*]] = %c0 to %c8 step %c1 {
// CHECK:             memref.load %arg0[%[[I]], %[[J]]]
// CHECK:             memref.store %{{.*}}, %arg1[%[[J]]]
func.func @columns(%x: memref<?x8xf32>, %y: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<?x8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %total: f32):
    %sum = arith.addf %a, %total : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// CHECK-LABEL: func.func @copy
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             memref.store
// CHECK-NOT:     memref.copy
func.func @copy(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  memref.copy %x, %y : memref<?x?xf32> to memref<?x?xf32>
  return
}

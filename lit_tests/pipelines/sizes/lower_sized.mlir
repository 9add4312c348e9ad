// RUN: mlirml-opt %s --mlirml-lower-sized --canonicalize --split-input-file | filecheck %s

// Sums along contiguous rows are carried in a register, and combined with the inits. Chunks of rows run in parallel.
// CHECK-LABEL: func.func @rows
// CHECK:         %[[CHUNKS:.*]] = arith.ceildivsi %{{.*}}, %[[ROWS:.*]] : index
// CHECK:         scf.parallel (%[[C:.*]]) = (%c0) to (%[[CHUNKS]]) step (%c1) {
// CHECK:         %[[LOWER:.*]] = arith.muli %[[C]], %[[ROWS]]
// CHECK:         %[[UPPER:.*]] = arith.minsi
// CHECK:         scf.for %[[I:.*]] = %[[LOWER]] to %[[UPPER]] step %c1 {
// CHECK:           %[[SUM:.*]] = scf.for %[[J:.*]] = %c0 to %c8 step %c1 iter_args(%{{.*}} = %cst) -> (f32)
// CHECK:             arith.addf {{.*}} fastmath<reassoc>
// CHECK:           %[[FIRST:.*]] = memref.load %arg1[%[[I]]]
// CHECK:           %[[TOTAL:.*]] = arith.addf %[[FIRST]], %[[SUM]] : f32
// CHECK:           memref.store %[[TOTAL]], %arg1[%[[I]]]
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

// Sums along columns are added up in memory, eight rows at a time.
// CHECK-LABEL: func.func @columns
// CHECK:         scf.for %{{.*}} = %c0 to %{{.*}} step %c8 {
// CHECK:           scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step %c1 {
// CHECK:             memref.load %arg1[%[[J]]]
// CHECK-COUNT-8:     arith.addf
// CHECK:             memref.store %{{.*}}, %arg1[%[[J]]]
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c1 {
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

// -----

// Operations on the same rows share the loop over them; an input that the innermost loop does not index is loaded before.
// CHECK-LABEL: func.func @together
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %c1 {
// CHECK:           scf.for {{.*}} iter_args
// CHECK:           memref.store %{{.*}}, %[[S:.*]][%[[I]]]
// CHECK:           %[[SUM:.*]] = memref.load %[[S]][%[[I]]]
// CHECK:           scf.for
// CHECK:             arith.divf %{{.*}}, %[[SUM]]
// CHECK:         return
func.func @together(%bytes: memref<1xi8>, %more: memref<1xi8>, %zero: index, %n: index) {
  %x = memref.view %bytes[%zero][%n] : memref<1xi8> to memref<?x8xf32>
  %y = memref.view %more[%zero][%n] : memref<1xi8> to memref<?x8xf32>
  %s = memref.alloc(%n) : memref<?xf32>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x8xf32>) outs(%s : memref<?xf32>) {
  ^bb0(%a: f32, %total: f32):
    %sum = arith.addf %a, %total : f32
    linalg.yield %sum : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : memref<?x8xf32>, memref<?xf32>) outs(%y : memref<?x8xf32>) {
  ^bb0(%a: f32, %sum: f32, %out: f32):
    %q = arith.divf %a, %sum : f32
    linalg.yield %q : f32
  }
  return
}

// -----

// An array that is read in another order than it is stored in keeps the loops apart.
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-4: scf.for
func.func @apart(%bytes: memref<1xi8>, %more: memref<1xi8>, %zero: index, %n: index) {
  %x = memref.view %bytes[%zero][%n, %n] : memref<1xi8> to memref<?x?xf32>
  %y = memref.view %more[%zero][%n, %n] : memref<1xi8> to memref<?x?xf32>
  %t = memref.alloc(%n, %n) : memref<?x?xf32>
  linalg.exp ins(%x : memref<?x?xf32>) outs(%t : memref<?x?xf32>)
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%t : memref<?x?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

// A transposed operand that is copied: squares of vectors in tiles, or the elements of a tile smaller than a square.
// CHECK-LABEL: func.func @transposed
// CHECK:         scf.parallel
// CHECK:           scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c256
// CHECK:             scf.for %{{.*}} = %c0 to %{{.*}} step %c64
// CHECK:               scf.if
// CHECK:                 scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c8
// CHECK-COUNT-8:           vector.load %arg0{{.*}} vector<8xf32>
// CHECK:                   vector.shuffle
// CHECK-COUNT-8:           vector.store
// CHECK:               } else {
// CHECK:                   memref.load %arg0
// CHECK:                   memref.store %{{.*}}, %arg1
func.func @transposed(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

// One that is computed with goes through a buffer.
// CHECK-LABEL: func.func @added
// CHECK:         scf.parallel
// CHECK:           %[[B:.*]] = memref.alloca() {alignment = 64 : i64} : memref<256x64xf32>
// CHECK:           vector.store %{{.*}}, %[[B]]
// CHECK:           %[[X:.*]] = memref.load %[[B]]
// CHECK:           %[[Y:.*]] = memref.load %arg1
// CHECK:           arith.addf %[[X]], %[[Y]]
func.func @added(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %z: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : memref<?x?xf32>, memref<?x?xf32>) outs(%z : memref<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// The index of a maximum: that of each block, and its first index if the block has a greater one.
// CHECK-LABEL: func.func @position
// CHECK:         scf.for %{{.*}} = %c0 to %{{.*}} step %c1024 iter_args(%{{.*}} = %{{.*}}, %[[INDEX:.*]] = %{{.*}}) -> (f32, i64)
// CHECK:           %[[M:.*]]:2 = scf.for {{.*}} -> (f32, i1)
// CHECK:             arith.maximumf {{.*}} fastmath<nnan,nsz>
// CHECK:           scf.if %{{.*}} -> (i64) {
// CHECK:             scf.for {{.*}} -> (i32)
// CHECK:               arith.cmpf oeq
// CHECK:               arith.minsi
// CHECK:           } else {
// CHECK:             scf.yield %[[INDEX]] : i64
func.func @position(%x: memref<?x?xf32>, %best: memref<?xf32>, %index: memref<?xi64>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x?xf32>) outs(%best, %index : memref<?xf32>, memref<?xi64>) {
  ^bb0(%a: f32, %m: f32, %n: i64):
    %greater = arith.cmpf ogt, %a, %m : f32
    %nan = arith.cmpf uno, %a, %a : f32
    %number = arith.cmpf ord, %m, %m : f32
    %first = arith.andi %nan, %number : i1
    %better = arith.ori %greater, %first : i1
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %value = arith.select %better, %a, %m : f32
    %at = arith.select %better, %k, %n : i64
    linalg.yield %value, %at : f32, i64
  }
  return
}

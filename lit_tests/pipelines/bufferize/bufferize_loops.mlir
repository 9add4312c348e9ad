// RUN: mlirml-opt %s --split-input-file --mlirml-bufferize | filecheck %s

#map = affine_map<(d0) -> (d0)>

// A scan: the carry and the rows of ys are computed where they are returned; nothing is allocated or copied in a round.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<8xf32>, %[[XS:.*]]: memref<5x8xf32>, %[[C:.*]]: memref<8xf32>, %[[YS:.*]]: memref<5x8xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]] : memref<8xf32>) outs(%[[C]] : memref<8xf32>)
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: scf.for %[[I:.*]] = {{.*}} {
// CHECK-DAG: %[[Y:.*]] = memref.subview %[[YS]][%[[I]], 0]
// CHECK-DAG: %[[R:.*]] = memref.subview %[[XS]][%[[I]], 0]
// CHECK: linalg.generic {{.*}} ins(%[[C]], %[[R]] : {{.*}}) outs(%[[C]], %[[Y]] :
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: return
func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<5x8xf32>) -> (tensor<8xf32>, tensor<5x8xf32>) {
  %cst = arith.constant 2.000000e+00 : f32
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %c1 = arith.constant 1 : index
  %0 = tensor.empty() : tensor<5x8xf32>
  %1:2 = scf.for %arg2 = %c0 to %c5 step %c1 iter_args(%arg3 = %arg0, %arg4 = %0) -> (tensor<8xf32>, tensor<5x8xf32>) {
    %extracted_slice = tensor.extract_slice %arg1[%arg2, 0] [1, 8] [1, 1] : tensor<5x8xf32> to tensor<8xf32>
    %2 = tensor.empty() : tensor<8xf32>
    %3:2 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel"]} ins(%arg3, %extracted_slice : tensor<8xf32>, tensor<8xf32>) outs(%2, %2 : tensor<8xf32>, tensor<8xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32, %out_1: f32):
      %4 = arith.addf %in, %in_0 : f32
      %5 = math.tanh %4 : f32
      %6 = arith.mulf %5, %cst : f32
      linalg.yield %5, %6 : f32, f32
    } -> (tensor<8xf32>, tensor<8xf32>)
    %inserted_slice = tensor.insert_slice %3#1 into %arg4[%arg2, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<5x8xf32>
    scf.yield %3#0, %inserted_slice : tensor<8xf32>, tensor<5x8xf32>
  }
  return %1#0, %1#1 : tensor<8xf32>, tensor<5x8xf32>
}

// -----

#map = affine_map<() -> ()>
#map1 = affine_map<(d0) -> (d0)>

// A branch in a loop: one side writes over the carry, the other leaves it alone.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%{{.*}}: memref<8xf32>, %{{.*}}: memref<i64>, %[[C:.*]]: memref<8xf32>)
// CHECK: scf.for
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: linalg.generic {{.*}} ins(%[[C]] : memref<8xf32>) outs(%[[C]] : memref<8xf32>)
// CHECK-NOT: else
// CHECK-NOT: memref.copy
// CHECK: return
func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<i64>) -> tensor<8xf32> {
  %cst = arith.constant 2.000000e+00 : f32
  %cst_0 = arith.constant 0.000000e+00 : f32
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %extracted = tensor.extract %arg1[] : tensor<i64>
  %0 = arith.index_cast %extracted : i64 to index
  %1 = scf.for %arg2 = %c0 to %0 step %c1 iter_args(%arg3 = %arg0) -> (tensor<8xf32>) {
    %extracted_slice = tensor.extract_slice %arg3[0] [1] [1] : tensor<8xf32> to tensor<f32>
    %2 = tensor.empty() : tensor<i1>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = []} ins(%extracted_slice : tensor<f32>) outs(%2 : tensor<i1>) {
    ^bb0(%in: f32, %out: i1):
      %5 = arith.cmpf ogt, %in, %cst_0 : f32
      linalg.yield %5 : i1
    } -> tensor<i1>
    %extracted_1 = tensor.extract %3[] : tensor<i1>
    %4 = scf.if %extracted_1 -> (tensor<8xf32>) {
      %5 = tensor.empty() : tensor<8xf32>
      %6 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%arg3 : tensor<8xf32>) outs(%5 : tensor<8xf32>) {
      ^bb0(%in: f32, %out: f32):
        %7 = arith.mulf %in, %cst : f32
        linalg.yield %7 : f32
      } -> tensor<8xf32>
      scf.yield %6 : tensor<8xf32>
    } else {
      scf.yield %arg3 : tensor<8xf32>
    }
    scf.yield %4 : tensor<8xf32>
  }
  return %1 : tensor<8xf32>
}

// -----

#map = affine_map<(d0) -> (d0)>

// What changes places needs one buffer and one copy.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[A:[a-z0-9]+]]: memref<8xf32>, %[[B:[a-z0-9]+]]: memref<8xf32>) attributes
// CHECK: scf.for
// CHECK: %[[T:.*]] = memref.alloc() {{.*}} : memref<8xf32>
// CHECK: linalg.generic {{.*}} ins(%[[A]], %[[B]] : {{.*}}) outs(%[[T]] : memref<8xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[B]] : memref<8xf32>) outs(%[[A]] : memref<8xf32>)
// CHECK: memref.copy %[[T]], %[[B]]
// CHECK-NOT: memref.copy
// CHECK: return
func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %arg2: tensor<i64>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %extracted = tensor.extract %arg2[] : tensor<i64>
  %0 = arith.index_cast %extracted : i64 to index
  %1:2 = scf.for %arg3 = %c0 to %0 step %c1 iter_args(%arg4 = %arg0, %arg5 = %arg1) -> (tensor<8xf32>, tensor<8xf32>) {
    %2 = tensor.empty() : tensor<8xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%arg4, %arg5 : tensor<8xf32>, tensor<8xf32>) outs(%2 : tensor<8xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %4 = arith.addf %in, %in_0 : f32
      linalg.yield %4 : f32
    } -> tensor<8xf32>
    scf.yield %arg5, %3 : tensor<8xf32>, tensor<8xf32>
  }
  return %1#0, %1#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

#map = affine_map<() -> ()>
#map1 = affine_map<(d0) -> (d0)>

// A while loop writes over its carry; a number stays a scalar.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%{{.*}}: memref<8xf32>, %[[C:.*]]: memref<8xf32>, %[[N:.*]]: memref<i64>)
// CHECK: scf.while (%{{.*}} = %{{.*}}) : (i64) -> i64 {
// CHECK: scf.condition
// CHECK: linalg.generic {{.*}} ins(%[[C]] : memref<8xf32>) outs(%[[C]] : memref<8xf32>)
// CHECK-NOT: memref.copy
// CHECK: scf.yield %{{.*}} : i64
// CHECK: return
func.func @main(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<i64>) {
  %c1_i64 = arith.constant 1 : i64
  %cst = arith.constant 2.000000e+00 : f32
  %cst_0 = arith.constant 9.000000e+00 : f32
  %c0_i64 = arith.constant 0 : i64
  %0:2 = scf.while (%arg1 = %arg0, %arg2 = %c0_i64) : (tensor<8xf32>, i64) -> (tensor<8xf32>, i64) {
    %extracted_slice = tensor.extract_slice %arg1[0] [1] [1] : tensor<8xf32> to tensor<f32>
    %1 = tensor.empty() : tensor<i1>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = []} ins(%extracted_slice : tensor<f32>) outs(%1 : tensor<i1>) {
    ^bb0(%in: f32, %out: i1):
      %3 = arith.cmpf olt, %in, %cst_0 : f32
      linalg.yield %3 : i1
    } -> tensor<i1>
    %extracted = tensor.extract %2[] : tensor<i1>
    scf.condition(%extracted) %arg1, %arg2 : tensor<8xf32>, i64
  } do {
  ^bb0(%arg1: tensor<8xf32>, %arg2: i64):
    %from_elements_1 = tensor.from_elements %arg2 : tensor<i64>
    %1 = tensor.empty() : tensor<8xf32>
    %2 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%arg1 : tensor<8xf32>) outs(%1 : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %5 = arith.mulf %in, %cst : f32
      linalg.yield %5 : f32
    } -> tensor<8xf32>
    %3 = tensor.empty() : tensor<i64>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = []} ins(%from_elements_1 : tensor<i64>) outs(%3 : tensor<i64>) {
    ^bb0(%in: i64, %out: i64):
      %5 = arith.addi %in, %c1_i64 : i64
      linalg.yield %5 : i64
    } -> tensor<i64>
    %extracted = tensor.extract %4[] : tensor<i64>
    scf.yield %2, %extracted : tensor<8xf32>, i64
  }
  %from_elements = tensor.from_elements %0#1 : tensor<i64>
  return %0#0, %from_elements : tensor<8xf32>, tensor<i64>
}

// -----

// Stores of elements in branches go into the array that the loop carries.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%{{.*}}: memref<8xf32>, %[[OUT:.*]]: memref<8xf32>)
// CHECK-NOT: memref.alloc
// CHECK: scf.for
// CHECK: scf.if
// CHECK-NEXT: memref.store %{{.*}}, %[[OUT]]
// CHECK-NOT: memref.copy
// CHECK: return
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> attributes {mlirml.writebacks = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%x = %a) -> (tensor<8xf32>) {
    %e = tensor.extract %x[%i] : tensor<8xf32>
    %p = arith.cmpf olt, %e, %zero : f32
    %b = scf.if %p -> (tensor<8xf32>) {
      %y = tensor.insert %zero into %x[%i] : tensor<8xf32>
      scf.yield %y : tensor<8xf32>
    } else {
      scf.yield %x : tensor<8xf32>
    }
    scf.yield %b : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// Two arguments that change places: one of them is copied.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%{{.*}}: memref<6xf64>, %{{.*}}: memref<6xf64>, %[[A:.*]]: memref<6xf64>, %[[B:.*]]: memref<6xf64>)
// CHECK: %[[T:.*]] = memref.alloc
// CHECK: linalg.generic {{.*}} ins(%[[A]] : memref<6xf64>) outs(%[[T]] : memref<6xf64>)
// CHECK: memref.copy %[[T]], %[[B]]
func.func @main(%a: tensor<6xf64>, %b: tensor<6xf64>) -> (tensor<6xf64>, tensor<6xf64>) attributes {mlirml.writebacks = array<i64: 0, 0, 1, 1>} {
  %c3 = arith.constant 3 : index
  %x = tensor.extract %b[%c3] : tensor<6xf64>
  %y = tensor.extract %a[%c3] : tensor<6xf64>
  %new = tensor.insert %x into %a[%c3] : tensor<6xf64>
  %other = tensor.insert %y into %b[%c3] : tensor<6xf64>
  return %other, %new : tensor<6xf64>, tensor<6xf64>
}

// -----

#map = affine_map<(d0) -> (d0)>

// Two stores to row i, and in between a read of a row that is not known: the rows are copied, not the tensor.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK-NOT: memref<6x8xf64> to memref<6x8xf64>
// CHECK-NOT: memref.alloc(){{.*}} memref<6x8xf64>
// CHECK: return
func.func @main(%x: tensor<6x8xf64>, %rows: tensor<6xindex>) -> tensor<6x8xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %start = tensor.empty() : tensor<6x8xf64>
  %zero = arith.constant 0.0 : f64
  %filled = linalg.fill ins(%zero : f64) outs(%start : tensor<6x8xf64>) -> tensor<6x8xf64>
  %r = scf.for %i = %c0 to %c6 step %c1 iter_args(%d = %filled) -> (tensor<6x8xf64>) {
    %j = tensor.extract %rows[%i] : tensor<6xindex>
    %a = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<6x8xf64> to tensor<8xf64>
    %e = tensor.empty() : tensor<8xf64>
    %s = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%a : tensor<8xf64>) outs(%e : tensor<8xf64>) {
    ^bb0(%in: f64, %out: f64):
      %0 = arith.negf %in : f64
      linalg.yield %0 : f64
    } -> tensor<8xf64>
    %t = tensor.insert_slice %s into %d[%i, 0] [1, 8] [1, 1] : tensor<8xf64> into tensor<6x8xf64>
    %other = tensor.extract_slice %t[%j, 0] [1, 8] [1, 1] : tensor<6x8xf64> to tensor<8xf64>
    %p = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
        ins(%s, %other : tensor<8xf64>, tensor<8xf64>) outs(%e : tensor<8xf64>) {
    ^bb0(%in: f64, %in_0: f64, %out: f64):
      %0 = arith.mulf %in, %in_0 : f64
      linalg.yield %0 : f64
    } -> tensor<8xf64>
    %u = tensor.insert_slice %p into %d[%i, 0] [1, 8] [1, 1] : tensor<8xf64> into tensor<6x8xf64>
    scf.yield %u : tensor<6x8xf64>
  }
  return %r : tensor<6x8xf64>
}

// -----

// What a loop computes while it reads the carried array is not computed in its buffer, but copied there.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%{{.*}}: memref<9xf64>, %[[OUT:.*]]: memref<9xf64>)
// CHECK: scf.for
// CHECK: scf.for
// CHECK: %[[P:.*]] = memref.load %[[OUT]]
// CHECK: memref.store %[[P]], %[[NEW:.*]][
// CHECK: linalg.generic {{.*}} ins(%[[NEW]] : memref<9xf64>) outs(%[[OUT]] : memref<9xf64>)
func.func @main(%x: tensor<9xf64>) -> tensor<9xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %t = %c0 to %c3 step %c1 iter_args(%old = %x) -> (tensor<9xf64>) {
    %e = tensor.empty() : tensor<9xf64>
    %stop = arith.subi %c8, %t : index
    %new = scf.for %k = %c0 to %stop step %c1 iter_args(%to = %e) -> (tensor<9xf64>) {
      %n = arith.addi %k, %c1 : index
      %p = tensor.extract %old[%n] : tensor<9xf64>
      %stored = tensor.insert %p into %to[%k] : tensor<9xf64>
      scf.yield %stored : tensor<9xf64>
    }
    scf.yield %new : tensor<9xf64>
  }
  return %r : tensor<9xf64>
}

// -----

// An inner loop that reads the carried array as it was before it stores into it reads a copy, and stores in place.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%{{.*}}: memref<9xf64>, %[[OUT:.*]]: memref<9xf64>)
// CHECK: scf.for
// CHECK: linalg.generic {{.*}} ins(%[[OUT]] : memref<9xf64>) outs(%[[OLD:.*]] : memref<9xf64>)
// CHECK: scf.for
// CHECK: %[[P:.*]] = memref.load %[[OLD]]
// CHECK: memref.store %[[P]], %[[OUT]][
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @main(%x: tensor<9xf64>) -> tensor<9xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %t = %c0 to %c3 step %c1 iter_args(%old = %x) -> (tensor<9xf64>) {
    %new = scf.for %k = %c0 to %c8 step %c1 iter_args(%to = %old) -> (tensor<9xf64>) {
      %n = arith.subi %c8, %k : index
      %p = tensor.extract %old[%n] : tensor<9xf64>
      %stored = tensor.insert %p into %to[%k] : tensor<9xf64>
      scf.yield %stored : tensor<9xf64>
    }
    scf.yield %new : tensor<9xf64>
  }
  return %r : tensor<9xf64>
}

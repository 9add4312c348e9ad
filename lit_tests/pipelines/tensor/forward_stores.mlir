// RUN: mlirml-opt %s --split-input-file --mlirml-forward-stores --canonicalize | filecheck %s

#map = affine_map<(d0) -> (d0)>

// Two stores to a row, with reads of the row before, of an element of the row and of a part of it in between: only the
// second store is left, and the reads are of what the first one stored or of the carried tensor.
// CHECK-LABEL: func.func @rows
// CHECK: scf.for %[[I:[a-z0-9]+]] = {{.*}} iter_args(%[[D:[a-z0-9]+]] = 
// CHECK: %[[S:.*]] = linalg.generic
// CHECK: %[[J:.*]] = arith.subi %[[I]], %{{.*}}
// CHECK: %[[BEFORE:.*]] = tensor.extract_slice %[[D]][%[[J]], 0] [1, 8] [1, 1]
// CHECK: %[[ELEMENT:.*]] = tensor.extract %[[S]][%{{.*}}] : tensor<8xf64>
// CHECK: %[[PART:.*]] = tensor.extract_slice %[[S]][2] [4] [1] : tensor<8xf64> to tensor<4xf64>
// CHECK: %[[R:.*]] = linalg.generic
// CHECK: tensor.insert_slice %[[R]] into %[[D]][%[[I]], 0] [1, 8] [1, 1]
// CHECK-NOT: tensor.insert_slice
// CHECK: return
func.func @rows(%x: tensor<6x8xf64>, %y: tensor<6x8xf64>) -> (tensor<6x8xf64>, tensor<4xf64>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c6 = arith.constant 6 : index
  %first = tensor.empty() : tensor<4xf64>
  %r:2 = scf.for %i = %c1 to %c6 step %c1 iter_args(%d = %y, %p = %first) -> (tensor<6x8xf64>, tensor<4xf64>) {
    %a = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<6x8xf64> to tensor<8xf64>
    %e = tensor.empty() : tensor<8xf64>
    %s = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%a : tensor<8xf64>) outs(%e : tensor<8xf64>) {
    ^bb0(%in: f64, %out: f64):
      %0 = arith.negf %in : f64
      linalg.yield %0 : f64
    } -> tensor<8xf64>
    %t = tensor.insert_slice %s into %d[%i, 0] [1, 8] [1, 1] : tensor<8xf64> into tensor<6x8xf64>
    %j = arith.subi %i, %c1 : index
    %before = tensor.extract_slice %t[%j, 0] [1, 8] [1, 1] : tensor<6x8xf64> to tensor<8xf64>
    %element = tensor.extract %t[%i, %c2] : tensor<6x8xf64>
    %part = tensor.extract_slice %t[%i, 2] [1, 4] [1, 1] : tensor<6x8xf64> to tensor<4xf64>
    %b = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%before : tensor<8xf64>) outs(%e : tensor<8xf64>) {
    ^bb0(%in: f64, %out: f64):
      %0 = arith.mulf %in, %element : f64
      linalg.yield %0 : f64
    } -> tensor<8xf64>
    %u = tensor.insert_slice %b into %d[%i, 0] [1, 8] [1, 1] : tensor<8xf64> into tensor<6x8xf64>
    scf.yield %u, %part : tensor<6x8xf64>, tensor<4xf64>
  }
  return %r#0, %r#1 : tensor<6x8xf64>, tensor<4xf64>
}

// -----

// It is not known which row is read: the store stays.
// CHECK-LABEL: func.func @unknown_row
// CHECK: %[[T:.*]] = tensor.insert_slice
// CHECK: tensor.extract_slice %[[T]]
func.func @unknown_row(%d: tensor<6x8xf64>, %s: tensor<8xf64>, %i: index, %j: index) -> tensor<8xf64> {
  %t = tensor.insert_slice %s into %d[%i, 0] [1, 8] [1, 1] : tensor<8xf64> into tensor<6x8xf64>
  %r = tensor.extract_slice %t[%j, 0] [1, 8] [1, 1] : tensor<6x8xf64> to tensor<8xf64>
  return %r : tensor<8xf64>
}

// -----

// Half of what is read was stored.
// CHECK-LABEL: func.func @overlap
// CHECK: %[[T:.*]] = tensor.insert_slice
// CHECK: tensor.extract_slice %[[T]]
func.func @overlap(%d: tensor<8xf64>, %s: tensor<4xf64>, %i: index) -> tensor<4xf64> {
  %c2 = arith.constant 2 : index
  %t = tensor.insert_slice %s into %d[%i] [4] [1] : tensor<4xf64> into tensor<8xf64>
  %j = arith.addi %i, %c2 : index
  %r = tensor.extract_slice %t[%j] [4] [1] : tensor<8xf64> to tensor<4xf64>
  return %r : tensor<4xf64>
}

// -----

// The stored tensor is needed as a whole, too.
// CHECK-LABEL: func.func @returned
// CHECK: %[[T:.*]] = tensor.insert_slice
// CHECK: tensor.extract %[[T]]
func.func @returned(%d: tensor<8xf64>, %s: tensor<4xf64>) -> (tensor<8xf64>, f64) {
  %c6 = arith.constant 6 : index
  %t = tensor.insert_slice %s into %d[1] [4] [1] : tensor<4xf64> into tensor<8xf64>
  %r = tensor.extract %t[%c6] : tensor<8xf64>
  return %t, %r : tensor<8xf64>, f64
}

// -----

// The slice keeps its lengths and steps, from where it begins in the source.
// CHECK-LABEL: func.func @inside
// CHECK-SAME: %[[S:[a-z0-9]+]]: tensor<5x6xf64>
// CHECK: %[[R:.*]] = tensor.extract_slice %[[S]][1, 2] [2, 2] [2, 1] : tensor<5x6xf64> to tensor<2x2xf64>
// CHECK: return %[[R]]
func.func @inside(%d: tensor<8x8xf64>, %s: tensor<5x6xf64>) -> tensor<2x2xf64> {
  %t = tensor.insert_slice %s into %d[2, 1] [5, 6] [1, 1] : tensor<5x6xf64> into tensor<8x8xf64>
  %r = tensor.extract_slice %t[3, 3] [2, 2] [2, 1] : tensor<8x8xf64> to tensor<2x2xf64>
  return %r : tensor<2x2xf64>
}

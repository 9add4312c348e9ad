// RUN: mlirml-opt %s --split-input-file --mlirml-batch --canonicalize | filecheck %s

// Contractions stay contractions, with a wider map for what differs between examples.
// CHECK-DAG: #[[X:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[M:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[Y:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @main
// CHECK: linalg.contract indexing_maps = [#[[M]], #[[X]], #[[Y]]]
// CHECK-SAME: -> tensor<8x4xf32>
func.func @main(%xs: tensor<8x3xf32>, %m: tensor<4x3xf32>) -> tensor<8x4xf32> {
  %x = "mlirml.unbatch"(%xs) {group = 0 : i64} : (tensor<8x3xf32>) -> tensor<3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.matvec ins(%m, %x : tensor<4x3xf32>, tensor<3xf32>) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %b = "mlirml.vmap"(%y) {group = 0 : i64, size = 8 : i64} : (tensor<4xf32>) -> tensor<8x4xf32>
  return %b : tensor<8x4xf32>
}

// -----

// A loop whose number of rounds is each example's own goes on for the longest, and those that ended keep what they have.
// CHECK-LABEL: func.func @main
// CHECK: arith.maxsi
// CHECK: scf.for
// CHECK: arith.cmpi slt
// CHECK: arith.select
func.func @main(%ns: tensor<8xindex>, %x: f32) -> tensor<8xf32> {
  %n = "mlirml.unbatch"(%ns) {group = 0 : i64} : (tensor<8xindex>) -> index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%c = %x) -> (f32) {
    %0 = arith.mulf %c, %c : f32
    scf.yield %0 : f32
  }
  %b = "mlirml.vmap"(%y) {group = 0 : i64, size = 8 : i64} : (f32) -> tensor<8xf32>
  return %b : tensor<8xf32>
}

// -----

// A result that is the same for all examples is repeated.
// CHECK-LABEL: func.func @main
// CHECK: linalg.generic {{.*}} ins(%arg1 : tensor<4xf32>)
// CHECK-SAME: tensor<8x4xf32>
func.func @main(%xs: tensor<8xf32>, %y: tensor<4xf32>) -> tensor<8x4xf32> {
  %x = "mlirml.unbatch"(%xs) {group = 0 : i64} : (tensor<8xf32>) -> f32
  %b = "mlirml.vmap"(%y) {group = 0 : i64, size = 8 : i64} : (tensor<4xf32>) -> tensor<8x4xf32>
  return %b : tensor<8x4xf32>
}

// -----

// Nothing is used of the batch: its checks are made for each example.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[CS:.*]]: tensor<8xi1>
// CHECK: "reduction"
// CHECK-NOT: mlirml.
// CHECK: cf.assert
func.func @main(%cs: tensor<8xi1>, %x: f32) -> f32 {
  %c = "mlirml.unbatch"(%cs) {group = 0 : i64} : (tensor<8xi1>) -> i1
  cf.assert %c, "a check"
  return %x : f32
}

// -----

// A branch of checks alone, which all examples take or none, has no `else`.
// CHECK-LABEL: func.func @main
// CHECK: scf.if
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<8xi1>)
// CHECK: cf.assert
// CHECK-NOT: else
func.func @main(%cs: tensor<8xi1>, %taken: i1, %x: f32) -> tensor<8xf32> {
  %c = "mlirml.unbatch"(%cs) {group = 0 : i64} : (tensor<8xi1>) -> i1
  scf.if %taken {
    cf.assert %c, "no"
  }
  %b = "mlirml.vmap"(%x) {group = 0 : i64, size = 8 : i64} : (f32) -> tensor<8xf32>
  return %b : tensor<8xf32>
}

// RUN: mlirml-opt %s --split-input-file --mlirml-autodiff --canonicalize | filecheck %s

// The transpose of a contraction is a contraction; an outer product is a generic, which fuses.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<3xf64>, %[[M0:.*]]: tensor<4x3xf64>, %[[CT:.*]]: tensor<4xf64>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
// CHECK: arith.mulf
// CHECK: linalg.contract {{.*}} ins(%[[CT]], %[[M0]] : tensor<4xf64>, tensor<4x3xf64>)
// CHECK-SAME: -> tensor<3xf64>
func.func @main(%x: tensor<3xf64>, %m: tensor<4x3xf64>, %ct: tensor<4xf64>) -> (tensor<3xf64>, tensor<4x3xf64>) {
  %x0 = "mlirml.independent"(%x) {group = 0 : i64} : (tensor<3xf64>) -> tensor<3xf64>
  %m0 = "mlirml.independent"(%m) {group = 0 : i64} : (tensor<4x3xf64>) -> tensor<4x3xf64>
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<4xf64>
  %f = linalg.fill ins(%zero : f64) outs(%e : tensor<4xf64>) -> tensor<4xf64>
  %y = linalg.matvec ins(%m0, %x0 : tensor<4x3xf64>, tensor<3xf64>) outs(%f : tensor<4xf64>) -> tensor<4xf64>
  "mlirml.cotangent"(%y, %ct) {group = 0 : i64} : (tensor<4xf64>, tensor<4xf64>) -> ()
  %gx = "mlirml.vjp"(%x0) {group = 0 : i64} : (tensor<3xf64>) -> tensor<3xf64>
  %gm = "mlirml.vjp"(%m0) {group = 0 : i64} : (tensor<4x3xf64>) -> tensor<4x3xf64>
  return %gx, %gm : tensor<3xf64>, tensor<4x3xf64>
}

// -----

// A loop that is linear in what it carries keeps nothing: no tensor of all rounds appears.
// CHECK-LABEL: func.func @main
// CHECK-NOT: tensor<100x
// CHECK: scf.for
// CHECK-NOT: tensor<100x
// CHECK: return
func.func @main(%x: f64, %a: f64, %ct: f64) -> f64 {
  %x0 = "mlirml.independent"(%x) {group = 0 : i64} : (f64) -> f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 100 : index
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%c = %x0) -> (f64) {
    %0 = arith.mulf %c, %a : f64
    scf.yield %0 : f64
  }
  "mlirml.cotangent"(%y, %ct) {group = 0 : i64} : (f64, f64) -> ()
  %g = "mlirml.vjp"(%x0) {group = 0 : i64} : (f64) -> f64
  return %g : f64
}

// -----

// One that is not keeps what its derivative reads.
// CHECK-LABEL: func.func @main
// CHECK: tensor.empty() : tensor<100xf64>
// CHECK: scf.for
// CHECK: tensor.insert
// CHECK: scf.for
// CHECK: tensor.extract
// CHECK: math.cos
func.func @main(%x: f64, %ct: f64) -> f64 {
  %x0 = "mlirml.independent"(%x) {group = 0 : i64} : (f64) -> f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 100 : index
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%c = %x0) -> (f64) {
    %0 = math.sin %c : f64
    scf.yield %0 : f64
  }
  "mlirml.cotangent"(%y, %ct) {group = 0 : i64} : (f64, f64) -> ()
  %g = "mlirml.vjp"(%x0) {group = 0 : i64} : (f64) -> f64
  return %g : f64
}

// -----

// Forward mode: the change of the result next to the result.
// CHECK-LABEL: func.func @main
// CHECK: %[[Y:.*]] = math.exp %[[X:.*]] : f64
// CHECK: %[[D:.*]] = arith.mulf %{{.*}}, %[[Y]] : f64
// CHECK: return %[[Y]], %[[D]]
func.func @main(%x: f64, %t: f64) -> (f64, f64) {
  %x0 = "mlirml.dual"(%x, %t) {group = 0 : i64} : (f64, f64) -> f64
  %y = math.exp %x0 : f64
  %d = "mlirml.jvp"(%y) {group = 0 : i64} : (f64) -> f64
  return %y, %d : f64, f64
}

// -----

// A request for a batch is left to its own pass.
// CHECK-LABEL: func.func @main
// CHECK: mlirml.vmap
func.func @main(%xs: tensor<8xf64>) -> tensor<8xf64> {
  %x = "mlirml.unbatch"(%xs) {group = 0 : i64} : (tensor<8xf64>) -> f64
  %y = math.exp %x : f64
  %b = "mlirml.vmap"(%y) {group = 0 : i64, size = 8 : i64} : (f64) -> tensor<8xf64>
  return %b : tensor<8xf64>
}

// -----

// What comes back for rows that each round reads for itself is stored, and nothing has to be zero before.
// CHECK-LABEL: func.func @main
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<100x3xf64>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[SUM:.*]] = %[[EMPTY]])
// CHECK-NOT: tensor.extract_slice %[[SUM]]
// CHECK: tensor.insert_slice %{{.*}} into %[[SUM]][
func.func @main(%x: tensor<3xf64>, %rows: tensor<100x3xf64>, %ct: tensor<3xf64>) -> tensor<100x3xf64> {
  %r0 = "mlirml.independent"(%rows) {group = 0 : i64} : (tensor<100x3xf64>) -> tensor<100x3xf64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 100 : index
  %last = arith.constant 99 : index
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%c = %x) -> (tensor<3xf64>) {
    %k = arith.subi %last, %i : index
    %row = tensor.extract_slice %r0[%k, 0] [1, 3] [1, 1] : tensor<100x3xf64> to tensor<3xf64>
    %0 = linalg.mul ins(%c, %row : tensor<3xf64>, tensor<3xf64>) outs(%c : tensor<3xf64>) -> tensor<3xf64>
    scf.yield %0 : tensor<3xf64>
  }
  "mlirml.cotangent"(%y, %ct) {group = 0 : i64} : (tensor<3xf64>, tensor<3xf64>) -> ()
  %g = "mlirml.vjp"(%r0) {group = 0 : i64} : (tensor<100x3xf64>) -> tensor<100x3xf64>
  return %g : tensor<100x3xf64>
}

// -----

// The rounds leave the last row out: its gradient is zero.
// CHECK-LABEL: func.func @main
// CHECK: %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<101x3xf64>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[SUM:.*]] = %[[ZEROS]])
// CHECK-NOT: tensor.extract_slice %[[SUM]]
// CHECK: tensor.insert_slice %{{.*}} into %[[SUM]][
func.func @main(%x: tensor<3xf64>, %rows: tensor<101x3xf64>, %ct: tensor<3xf64>) -> tensor<101x3xf64> {
  %r0 = "mlirml.independent"(%rows) {group = 0 : i64} : (tensor<101x3xf64>) -> tensor<101x3xf64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 100 : index
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%c = %x) -> (tensor<3xf64>) {
    %row = tensor.extract_slice %r0[%i, 0] [1, 3] [1, 1] : tensor<101x3xf64> to tensor<3xf64>
    %0 = linalg.mul ins(%c, %row : tensor<3xf64>, tensor<3xf64>) outs(%c : tensor<3xf64>) -> tensor<3xf64>
    scf.yield %0 : tensor<3xf64>
  }
  "mlirml.cotangent"(%y, %ct) {group = 0 : i64} : (tensor<3xf64>, tensor<3xf64>) -> ()
  %g = "mlirml.vjp"(%r0) {group = 0 : i64} : (tensor<101x3xf64>) -> tensor<101x3xf64>
  return %g : tensor<101x3xf64>
}

// -----

// Another read of the rows: what comes back for one of them is added to what came before.
// CHECK-LABEL: func.func @main
// CHECK: %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<100x3xf64>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[SUM:.*]] = %[[ZEROS]])
// CHECK: tensor.extract_slice %[[SUM]]
func.func @main(%x: tensor<3xf64>, %rows: tensor<100x3xf64>, %ct: tensor<3xf64>) -> tensor<100x3xf64> {
  %r0 = "mlirml.independent"(%rows) {group = 0 : i64} : (tensor<100x3xf64>) -> tensor<100x3xf64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 100 : index
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%c = %x) -> (tensor<3xf64>) {
    %row = tensor.extract_slice %r0[%i, 0] [1, 3] [1, 1] : tensor<100x3xf64> to tensor<3xf64>
    %first = tensor.extract_slice %r0[0, 0] [1, 3] [1, 1] : tensor<100x3xf64> to tensor<3xf64>
    %0 = linalg.mul ins(%c, %row : tensor<3xf64>, tensor<3xf64>) outs(%c : tensor<3xf64>) -> tensor<3xf64>
    %1 = linalg.mul ins(%0, %first : tensor<3xf64>, tensor<3xf64>) outs(%c : tensor<3xf64>) -> tensor<3xf64>
    scf.yield %1 : tensor<3xf64>
  }
  "mlirml.cotangent"(%y, %ct) {group = 0 : i64} : (tensor<3xf64>, tensor<3xf64>) -> ()
  %g = "mlirml.vjp"(%r0) {group = 0 : i64} : (tensor<100x3xf64>) -> tensor<100x3xf64>
  return %g : tensor<100x3xf64>
}

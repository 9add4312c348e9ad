// RUN: mlirml-opt %s --mlirml-batch-dots --split-input-file | filecheck %s

// The products of all rows are computed before the outermost loop.
// CHECK-LABEL: func.func @matrix
// CHECK-SAME:  %[[A:.*]]: tensor<8x32xf64>, %[[B:.*]]: tensor<9x32xf64>
// CHECK:       %[[C:.*]] = linalg.contract {{.*}} ins(%[[A]], %[[B]] {{.*}} -> tensor<8x9xf64>
// CHECK:       scf.for %[[I:.*]] = %c0 to %c8
// CHECK:       scf.for %[[J:.*]] = %c0 to %c9
// CHECK-NOT:   linalg.dot
// CHECK:       tensor.extract %[[C]][%[[I]], %[[J]]]
func.func @matrix(%a: tensor<8x32xf64>, %b: tensor<9x32xf64>) -> f64 {
  %zero = arith.constant dense<0.0> : tensor<f64>
  %start = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%x = %start) -> (f64) {
    %s = scf.for %j = %c0 to %c9 step %c1 iter_args(%y = %x) -> (f64) {
      %p = tensor.extract_slice %a[%i, 0] [1, 32] [1, 1] : tensor<8x32xf64> to tensor<32xf64>
      %q = tensor.extract_slice %b[%j, 0] [1, 32] [1, 1] : tensor<9x32xf64> to tensor<32xf64>
      %d = linalg.dot ins(%p, %q : tensor<32xf64>, tensor<32xf64>) outs(%zero : tensor<f64>) -> tensor<f64>
      %e = tensor.extract %d[] : tensor<f64>
      %f = arith.maximumf %y, %e : f64
      scf.yield %f : f64
    }
    scf.yield %s : f64
  }
  return %r : f64
}

// -----

// Under a condition there must be several equal dots, which become one product; the conditions are marked.
// CHECK-LABEL: func.func @conditions
// CHECK:       linalg.contract
// CHECK-NOT:   linalg.contract
// CHECK:       scf.for
// CHECK-NOT:   linalg.dot
// CHECK:       } {mlirml.taken = 0 : i64}
// CHECK:       scf.for
// CHECK:       } {mlirml.taken = 0 : i64}
func.func @conditions(%a: tensor<32xf64>, %b: tensor<9x32xf64>, %m: tensor<9xi1>) -> (f64, f64) {
  %zero = arith.constant dense<0.0> : tensor<f64>
  %start = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %j = %c0 to %c9 step %c1 iter_args(%y = %start) -> (f64) {
    %c = tensor.extract %m[%j] : tensor<9xi1>
    %s = scf.if %c -> (f64) {
      %q = tensor.extract_slice %b[%j, 0] [1, 32] [1, 1] : tensor<9x32xf64> to tensor<32xf64>
      %d = linalg.dot ins(%a, %q : tensor<32xf64>, tensor<32xf64>) outs(%zero : tensor<f64>) -> tensor<f64>
      %e = tensor.extract %d[] : tensor<f64>
      %f = arith.maximumf %y, %e : f64
      scf.yield %f : f64
    } else {
      scf.yield %y : f64
    }
    scf.yield %s : f64
  }
  %t = scf.for %j = %c0 to %c9 step %c1 iter_args(%y = %start) -> (f64) {
    %c = tensor.extract %m[%j] : tensor<9xi1>
    %s = scf.if %c -> (f64) {
      %q = tensor.extract_slice %b[%j, 0] [1, 32] [1, 1] : tensor<9x32xf64> to tensor<32xf64>
      %d = linalg.dot ins(%a, %q : tensor<32xf64>, tensor<32xf64>) outs(%zero : tensor<f64>) -> tensor<f64>
      %e = tensor.extract %d[] : tensor<f64>
      %f = arith.addf %y, %e : f64
      scf.yield %f : f64
    } else {
      scf.yield %y : f64
    }
    scf.yield %s : f64
  }
  return %r, %t : f64, f64
}

// -----

// One dot under a condition may be needed for few rows only.
// CHECK-LABEL: func.func @rare
// CHECK-NOT:   linalg.contract
// CHECK:       linalg.dot
func.func @rare(%a: tensor<32xf64>, %b: tensor<9x32xf64>, %m: tensor<9xi1>) -> f64 {
  %zero = arith.constant dense<0.0> : tensor<f64>
  %start = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %j = %c0 to %c9 step %c1 iter_args(%y = %start) -> (f64) {
    %c = tensor.extract %m[%j] : tensor<9xi1>
    %s = scf.if %c -> (f64) {
      %q = tensor.extract_slice %b[%j, 0] [1, 32] [1, 1] : tensor<9x32xf64> to tensor<32xf64>
      %d = linalg.dot ins(%a, %q : tensor<32xf64>, tensor<32xf64>) outs(%zero : tensor<f64>) -> tensor<f64>
      %e = tensor.extract %d[] : tensor<f64>
      %f = arith.maximumf %y, %e : f64
      scf.yield %f : f64
    } else {
      scf.yield %y : f64
    }
    scf.yield %s : f64
  }
  return %r : f64
}

// -----

// The array changes in the loop.
// CHECK-LABEL: func.func @stored
// CHECK-NOT:   linalg.contract
// CHECK:       linalg.dot
func.func @stored(%a: tensor<32xf64>, %b: tensor<9x32xf64>) -> tensor<9x32xf64> {
  %zero = arith.constant dense<0.0> : tensor<f64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %j = %c0 to %c9 step %c1 iter_args(%y = %b) -> (tensor<9x32xf64>) {
    %q = tensor.extract_slice %y[%j, 0] [1, 32] [1, 1] : tensor<9x32xf64> to tensor<32xf64>
    %d = linalg.dot ins(%a, %q : tensor<32xf64>, tensor<32xf64>) outs(%zero : tensor<f64>) -> tensor<f64>
    %e = tensor.extract %d[] : tensor<f64>
    %f = tensor.insert %e into %y[%c0, %j] : tensor<9x32xf64>
    scf.yield %f : tensor<9x32xf64>
  }
  return %r : tensor<9x32xf64>
}

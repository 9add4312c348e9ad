// RUN: mlirml-opt %s --split-input-file --mlirml-expand-scalars --canonicalize --cse | filecheck %s

// The exponentials of 512 iterations are computed at once; the last 4 iterations stay as they were.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<1028xf64>
// CHECK: %[[S:.*]] = scf.for %[[C:.*]] = %{{.*}} to %c1024 step %c512 iter_args
// CHECK: tensor.extract_slice %[[X]][%[[C]]] [512] [1]
// CHECK: %[[T:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: scf.for %[[K:[a-z0-9]+]] = %c0 to %c512 step %c1 iter_args
// CHECK-NEXT: %[[E:.*]] = tensor.extract %[[T]][%[[K]]]
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf %{{.*}}, %[[E]]
// CHECK: scf.for %{{.*}} = %c1024 to %c1028 step %c1 iter_args(%{{.*}} = %[[S]])
// CHECK: math.exp
func.func @main(%x: tensor<1028xf64>, %first: tensor<f64>) -> tensor<f64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1028 : index
  %half = arith.constant 0.5 : f64
  %s0 = tensor.extract %first[] : tensor<f64>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %s0) -> (f64) {
    %a = tensor.extract %x[%i] : tensor<1028xf64>
    %e = math.exp %a : f64
    %p = arith.mulf %s, %half : f64
    %t = arith.addf %p, %e : f64
    scf.yield %t : f64
  }
  %result = tensor.from_elements %r : tensor<f64>
  return %result : tensor<f64>
}

// -----

// What depends on the inner loop alone is computed before the outer one.
// CHECK-LABEL: func.func @main(
// CHECK: %[[T:.*]] = linalg.generic
// CHECK-SAME: iterator_types = ["parallel"]
// CHECK: arith.minui
// CHECK: -> tensor<63xi64>
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: scf.for %[[K:[a-z0-9]+]] =
// CHECK-NEXT: %[[E:.*]] = tensor.extract %[[T]][%[[K]]]
// CHECK-NEXT: %[[P:.*]] = arith.index_cast %[[E]]
// CHECK-NEXT: tensor.extract %{{.*}}[%[[I]], %[[P]]]
// CHECK-NOT: arith.minui
func.func @main(%x: tensor<100x16xf32>, %keys: tensor<63xi64>) -> tensor<100x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 100 : index
  %m = arith.constant 63 : index
  %c15 = arith.constant 15 : index
  %c16 = arith.constant 16 : index
  %half = arith.constant 0.5 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<100x16xf32>) {
    %q = scf.for %k = %c0 to %m step %c1 iter_args(%b = %a) -> (tensor<100x16xf32>) {
      %key = tensor.extract %keys[%k] : tensor<63xi64>
      %index = arith.index_cast %key : i64 to index
      %negative = arith.cmpi slt, %index, %c0 : index
      %from_end = arith.addi %index, %c16 : index
      %position = arith.select %negative, %from_end, %index : index
      %clamped = arith.minui %position, %c15 : index
      %old = tensor.extract %b[%i, %clamped] : tensor<100x16xf32>
      %new = arith.mulf %old, %half : f32
      %d = tensor.insert %new into %b[%i, %clamped] : tensor<100x16xf32>
      scf.yield %d : tensor<100x16xf32>
    }
    scf.yield %q : tensor<100x16xf32>
  }
  return %r : tensor<100x16xf32>
}

// -----

// Cheap arithmetic stays in the loop, and so does what depends on the iteration before.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: linalg.generic
// CHECK: scf.for
// CHECK: math.exp
// CHECK-NOT: scf.for
func.func @main(%x: tensor<1024xf64>, %first: tensor<f64>) -> tensor<f64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1024 : index
  %s0 = tensor.extract %first[] : tensor<f64>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %s0) -> (f64) {
    %a = tensor.extract %x[%i] : tensor<1024xf64>
    %b = arith.addf %a, %a : f64
    %e = math.exp %s : f64
    %t = arith.addf %b, %e : f64
    scf.yield %t : f64
  }
  %result = tensor.from_elements %r : tensor<f64>
  return %result : tensor<f64>
}

// RUN: mlirml-opt %s --mlirml-promote-elements --split-input-file | filecheck %s

// The element is carried as a number by the innermost loop; other loops carry the array.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[A:.*]]: tensor<4x5xf32>, %[[C:.*]]: tensor<4x6xf32>)
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[C0:.*]] = %[[C]])
// CHECK: scf.for %[[J:.*]] = {{.*}} iter_args(%[[C1:.*]] = %[[C0]])
// CHECK-NEXT: %[[FIRST:.*]] = tensor.extract %[[C1]][%[[I]], %[[J]]]
// CHECK-NEXT: %[[LAST:.*]] = scf.for %[[K:.*]] = %c0 to %c5 step %c1 iter_args(%[[S:.*]] = %[[FIRST]]) -> (f32)
// CHECK-NEXT: %[[X:.*]] = tensor.extract %[[A]][%[[I]], %[[K]]]
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[S]], %[[X]]
// CHECK-NEXT: scf.yield %[[SUM]]
// CHECK: tensor.insert %[[LAST]] into %[[C1]][%[[I]], %[[J]]]
func.func @main(%a: tensor<4x5xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%y0 = %c) -> (tensor<4x6xf32>) {
    %r0 = scf.for %j = %c0 to %c6 step %c1 iter_args(%y1 = %y0) -> (tensor<4x6xf32>) {
      %r1 = scf.for %k = %c0 to %c5 step %c1 iter_args(%y2 = %y1) -> (tensor<4x6xf32>) {
        %s = tensor.extract %y2[%i, %j] : tensor<4x6xf32>
        %x = tensor.extract %a[%i, %k] : tensor<4x5xf32>
        %t = arith.addf %s, %x : f32
        %y3 = tensor.insert %t into %y2[%i, %j] : tensor<4x6xf32>
        scf.yield %y3 : tensor<4x6xf32>
      }
      scf.yield %r1 : tensor<4x6xf32>
    }
    scf.yield %r0 : tensor<4x6xf32>
  }
  return %r : tensor<4x6xf32>
}

// -----

// Row i of a triangular solution: what is read, x[j] with j < i, is not x[i]. The first row has no round.
// CHECK-LABEL: func.func @main
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[X0:.*]] = %{{.*}}) -> (tensor<5xf64>)
// CHECK-NEXT: %[[FIRST:.*]] = tensor.extract %[[X0]][%[[I]]]
// CHECK-NEXT: scf.for %[[J:.*]] = %c0 to %[[I]] step %c1 iter_args(%[[S:.*]] = %[[FIRST]]) -> (f64)
// CHECK: tensor.extract %[[X0]][%[[J]]]
func.func @main(%l: tensor<5x5xf64>, %x: tensor<5xf64>) -> tensor<5xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%x0 = %x) -> (tensor<5xf64>) {
    %r0 = scf.for %j = %c0 to %i step %c1 iter_args(%x1 = %x0) -> (tensor<5xf64>) {
      %s = tensor.extract %x1[%i] : tensor<5xf64>
      %a = tensor.extract %l[%i, %j] : tensor<5x5xf64>
      %b = tensor.extract %x1[%j] : tensor<5xf64>
      %c = arith.mulf %a, %b : f64
      %d = arith.subf %s, %c : f64
      %x2 = tensor.insert %d into %x1[%i] : tensor<5xf64>
      scf.yield %x2 : tensor<5xf64>
    }
    scf.yield %r0 : tensor<5xf64>
  }
  return %r : tensor<5xf64>
}

// -----

// A place that may be out of bounds is 0 where the loop has no round, and stores elsewhere stay.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<8xi64>, %{{.*}}: tensor<2xindex>)
// CHECK: %[[RUNS:.*]] = arith.cmpi slt, %{{.*}}, %c7
// CHECK: %[[AT:.*]] = arith.select %[[RUNS]], %{{.*}}, %c0
// CHECK: %[[FIRST:.*]] = tensor.extract %[[X]][%[[AT]]]
// CHECK: %[[R:.*]]:2 = scf.for %[[J:[a-z0-9]+]] = %{{.*}} to %c7 step %c1 iter_args(%{{.*}} = %[[X]], %{{.*}} = %[[FIRST]]) -> (tensor<8xi64>, i64)
// CHECK: tensor.insert
// CHECK: scf.yield
// CHECK: tensor.insert %[[R]]#1 into %[[R]]#0[%[[AT]]]
func.func @main(%x: tensor<8xi64>, %n: tensor<2xindex>) -> tensor<8xi64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c15 = arith.constant 15 : index
  %any = tensor.extract %n[%c0] : tensor<2xindex>
  %lower = arith.andi %any, %c15 : index
  %r = scf.for %j = %lower to %c7 step %c1 iter_args(%x1 = %x) -> (tensor<8xi64>) {
    %next = arith.addi %j, %c1 : index
    %s = tensor.extract %x1[%lower] : tensor<8xi64>
    %x2 = tensor.insert %s into %x1[%next] : tensor<8xi64>
    %t = arith.addi %s, %s : i64
    %x3 = tensor.insert %t into %x2[%lower] : tensor<8xi64>
    scf.yield %x3 : tensor<8xi64>
  }
  return %r : tensor<8xi64>
}

// -----

// x[j] may be x[i], and a store under a condition is none in every round.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK: scf.for {{.*}} -> (tensor<5xf64>)
// CHECK: scf.if
// CHECK: scf.for {{.*}} -> (tensor<5xf64>)
func.func @main(%x: tensor<5xf64>) -> tensor<5xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%x0 = %x) -> (tensor<5xf64>) {
    %r0 = scf.for %j = %c0 to %c5 step %c1 iter_args(%x1 = %x0) -> (tensor<5xf64>) {
      %small = arith.cmpi slt, %j, %i : index
      %x3 = scf.if %small -> (tensor<5xf64>) {
        %s = tensor.extract %x1[%i] : tensor<5xf64>
        %t = arith.addf %s, %s : f64
        %x2 = tensor.insert %t into %x1[%i] : tensor<5xf64>
        scf.yield %x2 : tensor<5xf64>
      } else {
        scf.yield %x1 : tensor<5xf64>
      }
      scf.yield %x3 : tensor<5xf64>
    }
    %r1 = scf.for %j = %c0 to %c5 step %c1 iter_args(%x1 = %r0) -> (tensor<5xf64>) {
      %s = tensor.extract %x1[%j] : tensor<5xf64>
      %t = arith.addf %s, %s : f64
      %x2 = tensor.insert %t into %x1[%i] : tensor<5xf64>
      scf.yield %x2 : tensor<5xf64>
    }
    scf.yield %r1 : tensor<5xf64>
  }
  return %r : tensor<5xf64>
}

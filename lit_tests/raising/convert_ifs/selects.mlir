// RUN: mlirml-opt %s --mlirml-convert-ifs --split-input-file | filecheck %s

// A padded read: the index is 0 where it would be out of bounds, and the old element is stored again.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<6xf32>, %[[Y:.*]]: tensor<8xf32>)
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[Y0:.*]] = %[[Y]])
// CHECK-DAG: %[[K:.*]] = arith.subi %[[I]], %c1
// CHECK-DAG: %[[LOW:.*]] = arith.cmpi sge, %[[K]], %c0
// CHECK-DAG: %[[HIGH:.*]] = arith.cmpi slt, %[[K]], %c6
// CHECK: %[[C:.*]] = arith.andi %[[LOW]], %[[HIGH]]
// CHECK-NEXT: %[[K1:.*]] = arith.select %[[C]], %[[K]], %c0
// CHECK-NEXT: %[[A:.*]] = tensor.extract %[[X]][%[[K1]]]
// CHECK-NEXT: %[[OLD:.*]] = tensor.extract %[[Y0]][%[[I]]]
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[OLD]], %[[A]]
// CHECK-NEXT: %[[NEW:.*]] = arith.select %[[C]], %[[SUM]], %[[OLD]]
// CHECK-NEXT: %[[Y1:.*]] = tensor.insert %[[NEW]] into %[[Y0]][%[[I]]]
// CHECK-NEXT: scf.yield %[[Y1]]
func.func @main(%x: tensor<6xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %result = scf.for %i = %c0 to %c8 step %c1 iter_args(%y0 = %y) -> (tensor<8xf32>) {
    %k = arith.subi %i, %c1 : index
    %low = arith.cmpi sge, %k, %c0 : index
    %high = arith.cmpi slt, %k, %c6 : index
    %inside = arith.andi %low, %high : i1
    %y1 = scf.if %inside -> (tensor<8xf32>) {
      %a = tensor.extract %x[%k] : tensor<6xf32>
      %old = tensor.extract %y0[%i] : tensor<8xf32>
      %sum = arith.addf %old, %a : f32
      %new = tensor.insert %sum into %y0[%i] : tensor<8xf32>
      scf.yield %new : tensor<8xf32>
    } else {
      scf.yield %y0 : tensor<8xf32>
    }
    scf.yield %y1 : tensor<8xf32>
  }
  return %result : tensor<8xf32>
}

// -----

// Both branches store at one place: one store, no read. Numbers are selected too.
// CHECK-LABEL: func.func @main
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[Y:[a-z0-9]+]] = %{{[a-z0-9]+}}, %[[S:.*]] = %{{.*}})
// CHECK-NEXT: %[[A:.*]] = tensor.extract %[[Y]][%[[I]]]
// CHECK-NEXT: %[[C:.*]] = arith.cmpf ogt, %[[A]], %[[S]]
// CHECK-NEXT: %[[SQ:.*]] = arith.mulf %[[A]], %[[A]]
// CHECK-NEXT: %[[AT:.*]] = arith.addi %[[I]], %c1
// CHECK-NEXT: %[[V:.*]] = arith.select %[[C]], %[[SQ]], %[[S]]
// CHECK-NEXT: tensor.insert %[[V]] into %[[Y]][%[[AT]]]
// CHECK-NEXT: arith.select %[[C]], %[[A]], %[[S]]
// CHECK-NOT: scf.if
func.func @main(%y: tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %zero = arith.constant 0.0 : f32
  %result:2 = scf.for %i = %c0 to %c7 step %c1 iter_args(%y0 = %y, %s = %zero) -> (tensor<8xf32>, f32) {
    %a = tensor.extract %y0[%i] : tensor<8xf32>
    %c = arith.cmpf ogt, %a, %s : f32
    %y1:2 = scf.if %c -> (tensor<8xf32>, f32) {
      %square = arith.mulf %a, %a : f32
      %k = arith.addi %i, %c1 : index
      %new = tensor.insert %square into %y0[%k] : tensor<8xf32>
      scf.yield %new, %a : tensor<8xf32>, f32
    } else {
      %k = arith.addi %i, %c1 : index
      %new = tensor.insert %s into %y0[%k] : tensor<8xf32>
      scf.yield %new, %s : tensor<8xf32>, f32
    }
    scf.yield %y1#0, %y1#1 : tensor<8xf32>, f32
  }
  %t = tensor.from_elements %result#1 : tensor<f32>
  return %result#0, %t : tensor<8xf32>, tensor<f32>
}

// -----

// A division that may trap and a loop stay under their conditions; the one that the product guards does not.
// CHECK-LABEL: func.func @main
// CHECK: scf.if
// CHECK: arith.divsi
// CHECK: scf.if
// CHECK: scf.for
// CHECK-NOT: scf.if
func.func @main(%x: tensor<8xi64>) -> tensor<8xi64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %minus = arith.constant -1 : i64
  %least = arith.constant -9223372036854775808 : i64
  %result = scf.for %i = %c0 to %c8 step %c1 iter_args(%y = %x) -> (tensor<8xi64>) {
    %a = tensor.extract %y[%i] : tensor<8xi64>
    %c = arith.cmpi sgt, %a, %zero : i64
    %y1 = scf.if %c -> (tensor<8xi64>) {
      %b = arith.divsi %one, %a : i64
      %new = tensor.insert %b into %y[%i] : tensor<8xi64>
      scf.yield %new : tensor<8xi64>
    } else {
      scf.yield %y : tensor<8xi64>
    }
    %even = arith.cmpi slt, %a, %one : i64
    %y2 = scf.if %even -> (tensor<8xi64>) {
      %new = scf.for %j = %c0 to %i step %c1 iter_args(%y3 = %y1) -> (tensor<8xi64>) {
        %newer = tensor.insert %a into %y3[%j] : tensor<8xi64>
        scf.yield %newer : tensor<8xi64>
      }
      scf.yield %new : tensor<8xi64>
    } else {
      scf.yield %y1 : tensor<8xi64>
    }
    %y4 = scf.if %c -> (tensor<8xi64>) {
      %p = arith.cmpi eq, %a, %zero : i64
      %q = arith.cmpi eq, %one, %least : i64
      %r = arith.cmpi eq, %a, %minus : i64
      %s = arith.andi %q, %r : i1
      %t = arith.ori %p, %s : i1
      %d = arith.select %t, %one, %a : i64
      %b = arith.divsi %one, %d : i64
      %new = tensor.insert %b into %y2[%i] : tensor<8xi64>
      scf.yield %new : tensor<8xi64>
    } else {
      scf.yield %y2 : tensor<8xi64>
    }
    scf.yield %y4 : tensor<8xi64>
  }
  return %result : tensor<8xi64>
}

// -----

// A check holds where its branch is not taken.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK: %[[C:.*]] = arith.cmpf ogt
// CHECK: %[[NOT:.*]] = arith.xori %[[C]], %true
// CHECK: %[[HOLDS:.*]] = arith.ori %[[NOT]], %{{.*}} : i1
// CHECK: cf.assert %[[HOLDS]], "" {mlirml.check = 0 : i64}
func.func @main(%x: tensor<8xf32>, %at: tensor<8xi64>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %result = scf.for %i = %c0 to %c8 step %c1 iter_args(%y = %x) -> (tensor<8xf32>) {
    %a = tensor.extract %y[%i] : tensor<8xf32>
    %k = tensor.extract %at[%i] : tensor<8xi64>
    %n = arith.index_cast %k : i64 to index
    %c = arith.cmpf ogt, %a, %zero : f32
    %y1 = scf.if %c -> (tensor<8xf32>) {
      %low = arith.cmpi slt, %n, %c8 : index
      cf.assert %low, "" {mlirml.check = 0 : i64}
      %m = arith.andi %n, %c1 : index
      %new = tensor.insert %a into %y[%m] : tensor<8xf32>
      scf.yield %new : tensor<8xf32>
    } else {
      scf.yield %y : tensor<8xf32>
    }
    scf.yield %y1 : tensor<8xf32>
  }
  return %result : tensor<8xf32>
}

// -----

// The guard of a padded row goes into the loop over the row; a loop of few rounds more is no reason not to.
// CHECK-LABEL: func.func @main
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: %[[C:.*]] = arith.cmpi sge
// CHECK-NOT: scf.if
// CHECK: scf.for %[[J:.*]] = %c0 to %c4 step %c1 iter_args(%[[Y:.*]] = %{{.*}}) -> (tensor<8x4xf32>)
// CHECK-NEXT: %[[K1:.*]] = arith.select %[[C]], %{{.*}}, %c0
// CHECK-NEXT: %[[A:.*]] = tensor.extract %{{.*}}[%[[K1]], %[[J]]]
// CHECK-NEXT: %[[OLD:.*]] = tensor.extract %[[Y]][%[[I]], %[[J]]]
// CHECK-NEXT: %[[NEW:.*]] = arith.select %[[C]], %[[A]], %[[OLD]]
// CHECK-NEXT: tensor.insert %[[NEW]] into %[[Y]][%[[I]], %[[J]]]
// CHECK: scf.if
// CHECK-NEXT: scf.for
func.func @main(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %result = scf.for %i = %c0 to %c8 step %c1 iter_args(%y0 = %y) -> (tensor<8x4xf32>) {
    %k = arith.subi %i, %c1 : index
    %inside = arith.cmpi sge, %k, %c0 : index
    %y1 = scf.if %inside -> (tensor<8x4xf32>) {
      %row = scf.for %j = %c0 to %c4 step %c1 iter_args(%y2 = %y0) -> (tensor<8x4xf32>) {
        %a = tensor.extract %x[%k, %j] : tensor<8x4xf32>
        %y3 = tensor.insert %a into %y2[%i, %j] : tensor<8x4xf32>
        scf.yield %y3 : tensor<8x4xf32>
      }
      scf.yield %row : tensor<8x4xf32>
    } else {
      scf.yield %y0 : tensor<8x4xf32>
    }
    %last = arith.cmpi sgt, %k, %c5 : index
    %y4 = scf.if %last -> (tensor<8x4xf32>) {
      %row = scf.for %j = %c0 to %c4 step %c1 iter_args(%y2 = %y1) -> (tensor<8x4xf32>) {
        %y3 = tensor.insert %zero into %y2[%i, %j] : tensor<8x4xf32>
        scf.yield %y3 : tensor<8x4xf32>
      }
      scf.yield %row : tensor<8x4xf32>
    } else {
      scf.yield %y1 : tensor<8x4xf32>
    }
    scf.yield %y4 : tensor<8x4xf32>
  }
  return %result : tensor<8x4xf32>
}

// RUN: mlirml-opt %s --mlirml-promote-scalars --split-input-file | filecheck %s

#s = affine_map<() -> ()>
#v = affine_map<(d0) -> (d0)>
#n = affine_map<(d0) -> ()>

// Elements are read, computed and stored as scalars, at plain indices.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<4x4xf32>, %[[Y:.*]]: tensor<4xf32>)
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[Y0:.*]] = %[[Y]])
// CHECK-NEXT: %[[A:.*]] = tensor.extract %[[X]][%[[I]], %c2]
// CHECK-NEXT: %[[R:.*]] = math.sqrt %[[A]] : f32
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[I]], %c1
// CHECK-NEXT: %[[Y1:.*]] = tensor.insert %[[R]] into %[[Y0]][%[[NEXT]]]
// CHECK-NEXT: scf.yield %[[Y1]]
func.func @main(%x: tensor<4x4xf32>, %y0: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant dense<1> : tensor<i64>
  %result = scf.for %i = %c0 to %c3 step %c1 iter_args(%y = %y0) -> (tensor<4xf32>) {
    %n = arith.index_cast %i : index to i64
    %p = arith.index_castui %n : i64 to index
    %e = tensor.empty() : tensor<f32>
    %s = tensor.extract_slice %x[%p, 2] [1, 1] [1, 1] : tensor<4x4xf32> to tensor<f32>
    %r = linalg.generic {indexing_maps = [#s, #s], iterator_types = []} ins(%s : tensor<f32>) outs(%e : tensor<f32>) {
    ^bb0(%a: f32, %out: f32):
      %0 = math.sqrt %a : f32
      linalg.yield %0 : f32
    } -> tensor<f32>
    %t = tensor.from_elements %n : tensor<i64>
    %f = tensor.empty() : tensor<i64>
    %m = linalg.generic {indexing_maps = [#s, #s, #s], iterator_types = []}
        ins(%t, %one : tensor<i64>, tensor<i64>) outs(%f : tensor<i64>) {
    ^bb0(%a: i64, %b: i64, %out: i64):
      %0 = arith.addi %a, %b : i64
      linalg.yield %0 : i64
    } -> tensor<i64>
    %k = tensor.extract %m[] : tensor<i64>
    %q = arith.index_castui %k : i64 to index
    %y1 = tensor.insert_slice %r into %y[%q] [1] [1] : tensor<f32> into tensor<4xf32>
    scf.yield %y1 : tensor<4xf32>
  }
  return %result : tensor<4xf32>
}

// -----

// A tensor of rank 0 that a loop carries becomes a number, outside of it a tensor again.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<8xf64>, %[[S:.*]]: tensor<f64>)
// CHECK: %[[S0:.*]] = tensor.extract %[[S]][]
// CHECK: %[[SUM:.*]] = scf.for %[[I:.*]] = {{.*}} iter_args(%[[S1:.*]] = %[[S0]]) -> (f64)
// CHECK-NEXT: %[[A:.*]] = tensor.extract %[[X]][%[[I]]]
// CHECK-NEXT: %[[S2:.*]] = arith.addf %[[S1]], %[[A]]
// CHECK-NEXT: scf.yield %[[S2]]
// CHECK: %[[RESULT:.*]] = tensor.from_elements %[[SUM]] : tensor<f64>
// CHECK: return %[[RESULT]]
#s = affine_map<() -> ()>
func.func @main(%x: tensor<8xf64>, %s: tensor<f64>) -> tensor<f64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %sum = scf.for %i = %c0 to %c8 step %c1 iter_args(%s1 = %s) -> (tensor<f64>) {
    %a = tensor.extract_slice %x[%i] [1] [1] : tensor<8xf64> to tensor<f64>
    %s2 = linalg.generic {indexing_maps = [#s, #s], iterator_types = []} ins(%a : tensor<f64>) outs(%s1 : tensor<f64>) {
    ^bb0(%p: f64, %q: f64):
      %0 = arith.addf %q, %p : f64
      linalg.yield %0 : f64
    } -> tensor<f64>
    scf.yield %s2 : tensor<f64>
  }
  return %sum : tensor<f64>
}

// -----

// Rows are read and stored where they are, but not read behind a store into the array.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<4x6x8xf32>)
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[X0:.*]] = %[[X]])
// CHECK-NEXT: tensor.extract %[[X0]][%[[I]], %c3, %[[I]]]
// CHECK-NEXT: tensor.extract %[[X0]][%[[I]], %c5, %c1]
// CHECK: %[[X1:.*]] = tensor.insert %{{.*}} into %[[X0]][%[[I]], %c3, %c5]
// CHECK-NEXT: %[[ROW:.*]] = tensor.extract_slice %[[X1]][0, 0, 0]
// CHECK-NEXT: %[[X2:.*]] = tensor.insert %{{.*}} into %[[X1]]
// CHECK-NEXT: tensor.extract %[[ROW]][%[[I]]]
func.func @main(%x: tensor<4x6x8xf32>) -> tensor<4x6x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %result = scf.for %i = %c0 to %c4 step %c1 iter_args(%x0 = %x) -> (tensor<4x6x8xf32>) {
    %row = tensor.extract_slice %x0[%i, 3, 0] [1, 1, 8] [1, 1, 1] : tensor<4x6x8xf32> to tensor<8xf32>
    %a = tensor.extract %row[%i] : tensor<8xf32>
    %plane = tensor.extract_slice %x0[%i, 1, 1] [1, 3, 4] [1, 2, 1] : tensor<4x6x8xf32> to tensor<3x4xf32>
    %b = tensor.extract %plane[%c2, %c0] : tensor<3x4xf32>
    %s = arith.addf %a, %b : f32
    %new = tensor.insert %s into %row[%c5] : tensor<8xf32>
    %x1 = tensor.insert_slice %new into %x0[%i, 3, 0] [1, 1, 8] [1, 1, 1] : tensor<8xf32> into tensor<4x6x8xf32>
    %old = tensor.extract_slice %x1[0, 0, 0] [1, 1, 8] [1, 1, 1] : tensor<4x6x8xf32> to tensor<8xf32>
    %x2 = tensor.insert %b into %x1[%c0, %c0, %c1] : tensor<4x6x8xf32>
    %c = tensor.extract %old[%i] : tensor<8xf32>
    %x3 = tensor.insert %c into %x2[%c1, %c0, %c1] : tensor<4x6x8xf32>
    scf.yield %x3 : tensor<4x6x8xf32>
  }
  return %result : tensor<4x6x8xf32>
}

// -----

// A number that only an operation on arrays reads stays a tensor, and narrow integers wrap as they did.
// CHECK-LABEL: func.func @main
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: linalg.generic {{.*}}iterator_types = []
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel"]
// CHECK: %[[SMALL:.*]] = arith.index_cast %[[I]] : index to i8
// CHECK: %[[AT:.*]] = arith.index_cast %[[SMALL]] : i8 to index
// CHECK: arith.cmpi slt, %[[AT]]
#s = affine_map<() -> ()>
#v = affine_map<(d0) -> (d0)>
#n = affine_map<(d0) -> ()>
func.func @main(%x: tensor<8xf32>, %a: tensor<f32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c200 = arith.constant 200 : index
  %f = arith.constant 0.0 : f32
  %result = scf.for %i = %c0 to %c200 step %c1 iter_args(%y = %x) -> (tensor<8xf32>) {
    %e = tensor.empty() : tensor<f32>
    %r = linalg.generic {indexing_maps = [#s, #s], iterator_types = []} ins(%a : tensor<f32>) outs(%e : tensor<f32>) {
    ^bb0(%p: f32, %out: f32):
      %0 = math.exp %p : f32
      linalg.yield %0 : f32
    } -> tensor<f32>
    %t = tensor.empty() : tensor<8xf32>
    %z = linalg.generic {indexing_maps = [#v, #n, #v], iterator_types = ["parallel"]}
        ins(%y, %r : tensor<8xf32>, tensor<f32>) outs(%t : tensor<8xf32>) {
    ^bb0(%p: f32, %q: f32, %out: f32):
      %0 = arith.mulf %p, %q : f32
      linalg.yield %0 : f32
    } -> tensor<8xf32>
    %small = arith.index_cast %i : index to i8
    %at = arith.index_cast %small : i8 to index
    %negative = arith.cmpi slt, %at, %c0 : index
    %z1 = scf.if %negative -> (tensor<8xf32>) {
      %0 = tensor.insert %f into %z[%c0] : tensor<8xf32>
      scf.yield %0 : tensor<8xf32>
    } else {
      scf.yield %z : tensor<8xf32>
    }
    scf.yield %z1 : tensor<8xf32>
  }
  return %result : tensor<8xf32>
}

// -----

// What the bounds of the loop decide is decided: the sign of an index, a clamp, the guards of a remainder.
// CHECK-LABEL: func.func @main
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK-NEXT: %[[R:.*]] = arith.remsi %[[I]], %c3
// CHECK-NEXT: tensor.extract %{{.*}}[%[[I]], %[[R]]]
func.func @main(%x: tensor<8x3xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %result = scf.for %i = %c0 to %c8 step %c1 iter_args(%y0 = %y) -> (tensor<8xf32>) {
    %negative = arith.cmpi slt, %i, %c0 : index
    %wrapped = arith.addi %i, %c8 : index
    %place = arith.select %negative, %wrapped, %i : index
    %clamped = arith.minui %place, %c7 : index
    %q = arith.divsi %place, %c3 : index
    %p = arith.muli %q, %c3 : index
    %r = arith.subi %place, %p : index
    %signs = arith.xori %r, %c3 : index
    %differ = arith.cmpi slt, %signs, %c0 : index
    %rest = arith.cmpi ne, %r, %c0 : index
    %adjust = arith.andi %differ, %rest : i1
    %t = arith.addi %r, %c3 : index
    %s = arith.select %adjust, %t, %r : index
    %a = tensor.extract %x[%clamped, %s] : tensor<8x3xf32>
    %y1 = tensor.insert %a into %y0[%place] : tensor<8xf32>
    scf.yield %y1 : tensor<8xf32>
  }
  return %result : tensor<8xf32>
}

// -----

// Where a branch is taken, its condition holds: no clamp and no wrapped index is left in it.
// CHECK-LABEL: func.func @main
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: %[[K:.*]] = arith.subi %[[I]], %c2
// CHECK: scf.if
// CHECK-NOT: cf.assert
// CHECK: tensor.extract %{{.*}}[%[[K]]]
// CHECK: else
// CHECK: arith.select
func.func @main(%x: tensor<6xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %c12 = arith.constant 12 : index
  %zero = arith.constant 0.0 : f32
  %result = scf.for %i = %c0 to %c8 step %c1 iter_args(%y0 = %y) -> (tensor<8xf32>) {
    %k = arith.subi %i, %c2 : index
    %not_low = arith.cmpi sge, %k, %c0 : index
    %not_high = arith.cmpi sle, %k, %c5 : index
    %inside = arith.andi %not_low, %not_high : i1
    %a = scf.if %inside -> (f32) {
      %k6 = arith.addi %i, %c4 : index
      %holds = arith.cmpi ult, %k6, %c12 : index
      cf.assert %holds, "" {mlirml.check = 0 : i64}
      %negative = arith.cmpi slt, %k, %c0 : index
      %place = arith.select %negative, %k6, %k : index
      %clamped = arith.minui %place, %c5 : index
      %0 = tensor.extract %x[%clamped] : tensor<6xf32>
      scf.yield %0 : f32
    } else {
      %k6 = arith.addi %i, %c4 : index
      %holds = arith.cmpi ult, %k6, %c12 : index
      cf.assert %holds, "" {mlirml.check = 0 : i64}
      %negative = arith.cmpi slt, %k, %c0 : index
      %place = arith.select %negative, %k6, %k : index
      %clamped = arith.minui %place, %c5 : index
      %0 = tensor.extract %x[%clamped] : tensor<6xf32>
      scf.yield %0 : f32
    }
    %y1 = tensor.insert %a into %y0[%i] : tensor<8xf32>
    scf.yield %y1 : tensor<8xf32>
  }
  return %result : tensor<8xf32>
}

// -----

// An index that goes up by one in each round of a nest is an index of its loops.
// CHECK-LABEL: func.func @main
// CHECK: arith.constant dense<15> : tensor<i64>
// CHECK: scf.for %[[I:[a-z0-9]+]] = {{.*}} iter_args(%{{[a-z0-9]+}} = %{{[a-z0-9]+}}) -> (tensor<15xf32>)
// CHECK: %[[ROW:.*]] = arith.muli %[[I]], %c5
// CHECK: scf.for %[[J:[a-z0-9]+]] = {{.*}} iter_args(%{{[a-z0-9]+}} = %{{[a-z0-9]+}}) -> (tensor<15xf32>)
// CHECK: %[[P:.*]] = arith.addi %[[J]], %[[ROW]]
// CHECK: tensor.extract %{{.*}}[%[[P]]]
func.func @main(%x: tensor<15xf32>, %y: tensor<15xf32>) -> (tensor<15xf32>, tensor<i64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%y0 = %y, %n = %zero) -> (tensor<15xf32>, i64) {
    %r0:2 = scf.for %j = %c0 to %c5 step %c1 iter_args(%y1 = %y0, %m = %n) -> (tensor<15xf32>, i64) {
      %p = arith.index_cast %m : i64 to index
      %a = tensor.extract %x[%p] : tensor<15xf32>
      %y2 = tensor.insert %a into %y1[%p] : tensor<15xf32>
      %m1 = arith.addi %m, %one : i64
      scf.yield %y2, %m1 : tensor<15xf32>, i64
    }
    scf.yield %r0#0, %r0#1 : tensor<15xf32>, i64
  }
  %t = tensor.from_elements %r#1 : tensor<i64>
  return %r#0, %t : tensor<15xf32>, tensor<i64>
}

// -----

// Each iteration keeps what the loop carries from 0 to 65535, as the init is: the shift moves zeros in.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK: arith.shrui
func.func @main(%x: tensor<8xi64>) -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1 : i64
  %zero = arith.constant 0 : i64
  %init = arith.constant 65535 : i64
  %polynomial = arith.constant 33800 : i64
  %result = scf.for %i = %c0 to %c8 step %c1 iter_args(%crc = %init) -> (i64) {
    %bits = tensor.extract %x[%i] : tensor<8xi64>
    %mixed = arith.xori %bits, %crc : i64
    %low = arith.andi %mixed, %one : i64
    %odd = arith.cmpi ne, %low, %zero : i64
    %half = arith.shrsi %crc, %one : i64
    %next = scf.if %odd -> (i64) {
      %other = arith.xori %half, %polynomial : i64
      scf.yield %other : i64
    } else {
      scf.yield %half : i64
    }
    scf.yield %next : i64
  }
  return %result : i64
}

// -----

// An element of an array that an iteration transposes is read from that array.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<40x30xf32>)
// CHECK: scf.for %[[I:.*]] = %c0 to
// CHECK: tensor.extract %[[X]][%c2, %[[I]]]
func.func @main(%x: tensor<40x30xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c30 = arith.constant 30 : index
  %zero = arith.constant 0.0 : f32
  %result = scf.for %i = %c0 to %c30 step %c1 iter_args(%total = %zero) -> (f32) {
    %e = tensor.empty() : tensor<30x40xf32>
    %t = linalg.transpose ins(%x : tensor<40x30xf32>) outs(%e : tensor<30x40xf32>) permutation = [1, 0]
    %a = tensor.extract %t[%i, %c2] : tensor<30x40xf32>
    %sum = arith.addf %total, %a : f32
    scf.yield %sum : f32
  }
  return %result : f32
}

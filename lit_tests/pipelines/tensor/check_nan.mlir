// RUN: mlirml-opt %s --mlirml-check-nan --split-input-file | filecheck %s

// A structured operation is checked by its result, against the operand that it reads; what it writes into holds nothing.

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<4xf64>)
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK: %[[MADE:.*]] = linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[Y]]
// CHECK: arith.cmpf uno
// CHECK: %[[HAD:.*]] = linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[X]]
// CHECK: cf.assert %{{.*}}, "a NaN is made of numbers that are none" {mlirml.check = {{[0-9]+}} : i64}
// CHECK-NOT: cf.assert
func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
  %e = tensor.empty() : tensor<4xf64>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf64>) outs(%e : tensor<4xf64>) {
  ^bb0(%a: f64, %o: f64):
    %b = math.log %a : f64
    linalg.yield %b : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// Numbers in a loop; what is known of %s outside holds inside.

// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK: %[[T:.*]] = arith.divf
// CHECK: arith.cmpf uno, %[[T]], %[[T]]
// CHECK: cf.assert
func.func @main(%s: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%a = %s) -> (f64) {
    %t = arith.divf %a, %s : f64
    scf.yield %t : f64
  }
  return %r : f64
}

// -----

// A NaN that the user wrote, and integers.

// CHECK-LABEL: func.func @main
// CHECK-NOT: cf.assert
func.func @main(%n: i64, %x: tensor<4xf64>, %c: i1) -> (i64, f64) {
  %m = arith.addi %n, %n : i64
  %nan = arith.constant 0x7FF8000000000000 : f64
  %z = arith.constant 1.0 : f64
  %s = arith.select %c, %nan, %z : f64
  return %m, %s : i64, f64
}

// -----

// A factorization reads all of its operands but the last one.

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[A:.*]]: tensor<1x40x40xf64>)
// CHECK: %[[Y:.*]] = "mlirml.inverse"
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "reduction", "reduction"]} ins(%[[Y]]
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "reduction", "reduction"]} ins(%[[A]]
// CHECK: cf.assert
// CHECK-NOT: linalg.generic
func.func @main(%a: tensor<1x40x40xf64>) -> tensor<1x40x40xf64> {
  %e = tensor.empty() : tensor<1x40x40xf64>
  %y = "mlirml.inverse"(%a, %e) {kind = "f64"} : (tensor<1x40x40xf64>, tensor<1x40x40xf64>) -> tensor<1x40x40xf64>
  return %y : tensor<1x40x40xf64>
}

// RUN: mlirml-opt %s --mlirml-hoist-checks | filecheck %s

// CHECK-LABEL: func.func @gather
// CHECK: %[[MOST:.*]] = scf.for {{.*}} -> (i64) {
// CHECK: arith.maxui
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[MOST]], %{{.*}} : i64
// CHECK: cf.assert %[[INSIDE]], "out of bounds" {mlirml.check = 4 : i64, mlirml.check_base = 0 : i64}
// CHECK: scf.for
// CHECK-NOT: cf.assert
// CHECK: return
func.func @gather(%x: tensor<5xf32>, %keys: tensor<8xi64>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c5 = arith.constant 5 : i64
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%out = %y) -> (tensor<8xf32>) {
    %key = tensor.extract %keys[%i] : tensor<8xi64>
    %inside = arith.cmpi ult, %key, %c5 : i64
    cf.assert %inside, "out of bounds" {mlirml.check = 4 : i64, mlirml.check_base = 0 : i64}
    %cast = arith.index_cast %key : i64 to index
    %place = arith.minui %cast, %c4 : index
    %a = tensor.extract %x[%place] : tensor<5xf32>
    %new = tensor.insert %a into %out[%i] : tensor<8xf32>
    scf.yield %new : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// A sum at positions that data decide must run in order, and keeps its check.
// CHECK-LABEL: func.func @histogram
// CHECK-NOT: arith.maxui
// CHECK: scf.for
// CHECK: cf.assert
func.func @histogram(%keys: tensor<8xi64>, %y: tensor<5xf32>) -> tensor<5xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c5 = arith.constant 5 : i64
  %one = arith.constant 1.0 : f32
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%out = %y) -> (tensor<5xf32>) {
    %key = tensor.extract %keys[%i] : tensor<8xi64>
    %inside = arith.cmpi ult, %key, %c5 : i64
    cf.assert %inside, "out of bounds" {mlirml.check = 4 : i64, mlirml.check_base = 0 : i64}
    %cast = arith.index_cast %key : i64 to index
    %place = arith.minui %cast, %c4 : index
    %new = tensor.insert %one into %out[%place] : tensor<5xf32>
    scf.yield %new : tensor<5xf32>
  }
  return %r : tensor<5xf32>
}

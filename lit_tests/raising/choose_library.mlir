// RUN: mlirml-opt %s --mlirml-choose-library=lapack=true --remarks 2> %t | filecheck %s --check-prefixes=CHECK,LAPACK
// RUN: filecheck %s --check-prefix=REMARK < %t
// RUN: mlirml-opt %s --mlirml-choose-library | filecheck %s --check-prefixes=CHECK,OWN

// REMARK: choose_library.mlir:19:10: remark: recognised: LAPACK's getrf, getri

// CHECK-LABEL: func.func @inverse
// CHECK-NOT: scf.if
// CHECK-NOT: mlirml.library
// LAPACK: %[[INIT:.*]] = tensor.empty()
// LAPACK: %[[R:.*]] = "mlirml.inverse"(%{{.*}}, %[[INIT]]) {kind = "f64"}
// OWN: %[[R:.*]] = scf.for
// OWN-NOT: mlirml.inverse
// CHECK: return %[[R]]
func.func @inverse(%a: tensor<1x40x40xf64>, %n: index) -> tensor<1x40x40xf64> {
  %has = arith.constant {mlirml.library = "lapack"} false
  %x = scf.if %has -> (tensor<1x40x40xf64>) {
    %init = tensor.empty() : tensor<1x40x40xf64>
    %i = "mlirml.inverse"(%a, %init) {kind = "f64"} : (tensor<1x40x40xf64>, tensor<1x40x40xf64>) -> tensor<1x40x40xf64>
    scf.yield %i : tensor<1x40x40xf64>
  } else {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %l = scf.for %k = %c0 to %n step %c1 iter_args(%r = %a) -> (tensor<1x40x40xf64>) {
      %f = tensor.extract %r[%c0, %c0, %k] : tensor<1x40x40xf64>
      %s = tensor.insert %f into %r[%c0, %k, %c0] : tensor<1x40x40xf64>
      scf.yield %s : tensor<1x40x40xf64>
    }
    scf.yield %l : tensor<1x40x40xf64>
  }
  return %x : tensor<1x40x40xf64>
}

// A branch on anything else stays.
// CHECK-LABEL: func.func @other_branch
// CHECK: scf.if
// CHECK: mlirml.cholesky
func.func @other_branch(%a: tensor<1x40x40xf32>, %c: i1) -> tensor<1x40x40xf32> {
  %x = scf.if %c -> (tensor<1x40x40xf32>) {
    %init = tensor.empty() : tensor<1x40x40xf32>
    %i = "mlirml.cholesky"(%a, %init) {kind = "f32"} : (tensor<1x40x40xf32>, tensor<1x40x40xf32>) -> tensor<1x40x40xf32>
    scf.yield %i : tensor<1x40x40xf32>
  } else {
    scf.yield %a : tensor<1x40x40xf32>
  }
  return %x : tensor<1x40x40xf32>
}

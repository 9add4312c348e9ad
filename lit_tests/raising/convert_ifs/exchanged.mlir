// RUN: mlirml-opt %s --mlirml-convert-ifs | filecheck %s
// Elements change places where only the program knows: rounds that store what was there would wait for each other.
// CHECK-LABEL: func.func @exchanged
// CHECK: scf.if
// CHECK: tensor.insert
// CHECK: tensor.insert
func.func @exchanged(%x: tensor<8xf32>, %mask: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%y = %x) -> (tensor<8xf32>) {
    %l = arith.xori %i, %mask : index
    %c = arith.cmpi sgt, %l, %i : index
    %s = scf.if %c -> (tensor<8xf32>) {
      %a = tensor.extract %y[%i] : tensor<8xf32>
      %b = tensor.extract %y[%l] : tensor<8xf32>
      %0 = tensor.insert %b into %y[%i] : tensor<8xf32>
      %1 = tensor.insert %a into %0[%l] : tensor<8xf32>
      scf.yield %1 : tensor<8xf32>
    } else {
      scf.yield %y : tensor<8xf32>
    }
    scf.yield %s : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// RUN: mlirml-opt %s --mlirml-convert-ifs --remarks --verify-diagnostics

func.func @main(%x: tensor<8xi64>, %c: i1) -> tensor<8xi64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1 : i64
  %result = scf.for %i = %c0 to %c8 step %c1 iter_args(%y = %x) -> (tensor<8xi64>) {
    %a = tensor.extract %y[%i] : tensor<8xi64>
    // expected-remark@+1 {{not raised: the `if` stays, because it divides integers, by zero perhaps where it is not taken}}
    %y1 = scf.if %c -> (tensor<8xi64>) {
      %b = arith.divsi %one, %a : i64
      %new = tensor.insert %b into %y[%i] : tensor<8xi64>
      scf.yield %new : tensor<8xi64>
    } else {
      scf.yield %y : tensor<8xi64>
    }
    // expected-remark@+1 {{not raised: the `if` stays, because its branches give different arrays}}
    %y2 = scf.if %c -> (tensor<8xi64>) {
      scf.yield %x : tensor<8xi64>
    } else {
      scf.yield %y1 : tensor<8xi64>
    }
    scf.yield %y2 : tensor<8xi64>
  }
  return %result : tensor<8xi64>
}

// RUN: mlirml-opt %s --mlirml-report-dependences --remarks --verify-diagnostics

func.func @main(%A: tensor<9x9xf32>, %B: tensor<9xf32>, %n: index) -> (tensor<9x9xf32>, tensor<9xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0:2 = scf.for %i = %c1 to %n step %c1 iter_args(%A0 = %A, %B0 = %B) -> (tensor<9x9xf32>, tensor<9xf32>) {
    %above = arith.subi %i, %c1 : index
    %1 = scf.for %j = %c1 to %i step %c1 iter_args(%A1 = %A0) -> (tensor<9x9xf32>) {
      %a = tensor.extract %A1[%above, %j] : tensor<9x9xf32>
      %b = arith.addf %a, %a : f32
      // expected-remark@+1 {{flow dependence on line 12, carried by loop 1 of 2}}
      %A2 = tensor.insert %b into %A1[%i, %j] : tensor<9x9xf32>
      scf.yield %A2 : tensor<9x9xf32>
    }
    // Row i was stored in the same round, as far as it is below the diagonal.
    %x = tensor.extract %1[%i, %c1] : tensor<9x9xf32>
    // An even place is never an odd one: isl knows that no round reads what another stores.
    %even = arith.muli %i, %c2 : index
    %odd = arith.addi %even, %c1 : index
    %y = tensor.extract %B0[%odd] : tensor<9xf32>
    %z = arith.addf %x, %y : f32
    // expected-remark@+1 {{flow dependence on line 12, within an iteration of loop 1}}
    %B1 = tensor.insert %z into %B0[%even] : tensor<9xf32>
    scf.yield %1, %B1 : tensor<9x9xf32>, tensor<9xf32>
  }
  return %0#0, %0#1 : tensor<9x9xf32>, tensor<9xf32>
}

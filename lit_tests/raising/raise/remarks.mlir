// RUN: mlirml-opt %s --mlirml-raise --remarks 2>&1 | filecheck %s
// RUN: mlirml-opt %s --mlirml-raise --remarks 2>&1 | grep -c "func.call is in it" | filecheck %s --check-prefix=ONCE

// Each statement says what became of its loops: raised to what, or why it stays.
// CHECK-DAG: remarks.mlir:21:{{.*}} not raised: loop 1 of 1 stays: later iterations need what it stores
// CHECK-DAG: remarks.mlir:23:{{.*}} raised: 1 loop to one linalg.generic (parallel)
// CHECK-DAG: remarks.mlir:26:{{.*}} not raised: func.call is in it
// CHECK-DAG: remarks.mlir:34:{{.*}} not raised: a loop with an unknown trip count is in it
// CHECK-DAG: remarks.mlir:35:{{.*}} not raised: its trip count is known only when it ends
// ONCE: {{^}}1{{$}}
func.func private @unknown(index)

func.func @main(%A: tensor<8xf32>, %B: tensor<8xf32>, %N: tensor<8xindex>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %0:2 = scf.for %i = %c1 to %c8 step %c1 iter_args(%A0 = %A, %B0 = %B) -> (tensor<8xf32>, tensor<8xf32>) {
    %p = arith.subi %i, %c1 : index
    %a = tensor.extract %A0[%p] : tensor<8xf32>
    %s = arith.mulf %a, %a : f32
    %A1 = tensor.insert %s into %A0[%i] : tensor<8xf32>
    %b = math.exp %s : f32
    %B1 = tensor.insert %b into %B0[%i] : tensor<8xf32>
    scf.yield %A1, %B1 : tensor<8xf32>, tensor<8xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %n = tensor.extract %N[%i] : tensor<8xindex>
    func.call @unknown(%n) : (index) -> ()
  }
  // Nothing is said of a loop without elements of arrays, which is none that could be raised.
  scf.for %i = %c0 to %c8 step %c1 {
    func.call @unknown(%i) : (index) -> ()
  }
  %1 = scf.for %i = %c0 to %c8 step %c1 iter_args(%N0 = %N) -> (tensor<8xindex>) {
    %2 = scf.while (%k = %i) : (index) -> (index) {
      %n = tensor.extract %N[%k] : tensor<8xindex>
      %more = arith.cmpi sgt, %n, %c0 : index
      scf.condition(%more) %n : index
    } do {
    ^bb0(%n: index):
      scf.yield %n : index
    }
    %N1 = tensor.insert %2 into %N0[%i] : tensor<8xindex>
    scf.yield %N1 : tensor<8xindex>
  }
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}

// RUN: mlirml-opt %s --mlirml-distribute-loops --cse --split-input-file | filecheck %s

// The recurrence keeps a loop of its own; what only reads its results has another one, whose rounds are independent.
// CHECK-LABEL: func.func @recurrence
// CHECK-SAME: (%[[A:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>)
// CHECK: %[[FIRST:.*]] = scf.for %{{.*}} iter_args(%[[A0:.*]] = %[[A]]) -> (tensor<8xf32>)
// CHECK-NOT: math.exp
// CHECK: tensor.insert %{{.*}} into %[[A0]]
// CHECK: }
// CHECK: %[[SECOND:.*]] = scf.for %{{.*}} iter_args(%[[B0:.*]] = %[[B]]) -> (tensor<8xf32>)
// CHECK: tensor.extract %[[FIRST]]
// CHECK: math.exp
// CHECK: } {mlirml.parallel}
// CHECK: return %[[FIRST]], %[[SECOND]]
func.func @recurrence(%A: tensor<8xf32>, %B: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
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
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Statements that need each other's results from round to round stay together.
// CHECK-LABEL: func.func @cycle
// CHECK: scf.for {{.*}} -> (tensor<8xf32>, tensor<8xf32>)
// CHECK-NOT: scf.for
func.func @cycle(%A: tensor<8xf32>, %B: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %0:2 = scf.for %i = %c1 to %c8 step %c1 iter_args(%A0 = %A, %B0 = %B) -> (tensor<8xf32>, tensor<8xf32>) {
    %p = arith.subi %i, %c1 : index
    %b = tensor.extract %B0[%p] : tensor<8xf32>
    %s = arith.mulf %b, %b : f32
    %A1 = tensor.insert %s into %A0[%i] : tensor<8xf32>
    %a = tensor.extract %A1[%i] : tensor<8xf32>
    %t = arith.addf %a, %a : f32
    %B1 = tensor.insert %t into %B0[%i] : tensor<8xf32>
    scf.yield %A1, %B1 : tensor<8xf32>, tensor<8xf32>
  }
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}

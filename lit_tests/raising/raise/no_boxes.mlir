// RUN: mlirml-opt %s --mlirml-raise=forms=box --split-input-file | filecheck %s

// A triangle is no box: the form "triangle".
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: scf.for
// CHECK-NOT: linalg.generic
func.func @main(%A: tensor<4xf32>, %C: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%C0 = %C) -> (tensor<4x4xf32>) {
    %end = arith.addi %i, %c1 : index
    %1 = scf.for %j = %c0 to %end step %c1 iter_args(%C1 = %C0) -> (tensor<4x4xf32>) {
      %c = tensor.extract %C1[%i, %j] : tensor<4x4xf32>
      %a = tensor.extract %A[%i] : tensor<4xf32>
      %b = tensor.extract %A[%j] : tensor<4xf32>
      %m = arith.mulf %a, %b : f32
      %s = arith.addf %c, %m : f32
      %C2 = tensor.insert %s into %C1[%i, %j] : tensor<4x4xf32>
      scf.yield %C2 : tensor<4x4xf32>
    }
    scf.yield %1 : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}

// -----

// The outer loop carries the rows: the form "inner".
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: scf.for
// CHECK-NOT: linalg.generic
func.func @main(%A: tensor<6x8xf32>, %B: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %0 = scf.for %i = %c1 to %c6 step %c1 iter_args(%A0 = %A) -> (tensor<6x8xf32>) {
    %p = arith.subi %i, %c1 : index
    %1 = scf.for %j = %c0 to %c8 step %c1 iter_args(%A1 = %A0) -> (tensor<6x8xf32>) {
      %a = tensor.extract %A1[%p, %j] : tensor<6x8xf32>
      %b = tensor.extract %B[%i, %j] : tensor<6x8xf32>
      %s = arith.addf %a, %b : f32
      %A2 = tensor.insert %s into %A1[%i, %j] : tensor<6x8xf32>
      scf.yield %A2 : tensor<6x8xf32>
    }
    scf.yield %1 : tensor<6x8xf32>
  }
  return %0 : tensor<6x8xf32>
}

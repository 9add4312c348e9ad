// RUN: mlirml-opt %s --mlirml-raise=forms=triangle --canonicalize --split-input-file | filecheck %s

// A triangle is a box in which what is outside keeps its old elements.
// CHECK-LABEL: func.func @main
// CHECK-NOT: scf.for
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
// CHECK-SAME: ins(%arg1, %arg0, %arg0, %arg1 :
// CHECK: ^bb0({{.*}}, %[[OUT:.*]]: f32, %{{.*}}: f32):
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK: %[[IN:.*]] = arith.cmpi sge
// CHECK: arith.select %[[IN]], %[[SUM]], %[[OUT]]
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

// A box is left to the form "box".
// CHECK-LABEL: func.func @main
// CHECK-COUNT-3: scf.for
// CHECK-NOT: linalg.generic
func.func @main(%A: tensor<4x5xf32>, %B: tensor<5x6xf32>, %C: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%C0 = %C) -> (tensor<4x6xf32>) {
    %1 = scf.for %j = %c0 to %c6 step %c1 iter_args(%C1 = %C0) -> (tensor<4x6xf32>) {
      %2 = scf.for %k = %c0 to %c5 step %c1 iter_args(%C2 = %C1) -> (tensor<4x6xf32>) {
        %c = tensor.extract %C2[%i, %j] : tensor<4x6xf32>
        %a = tensor.extract %A[%i, %k] : tensor<4x5xf32>
        %b = tensor.extract %B[%k, %j] : tensor<5x6xf32>
        %m = arith.mulf %a, %b : f32
        %s = arith.addf %c, %m : f32
        %C3 = tensor.insert %s into %C2[%i, %j] : tensor<4x6xf32>
        scf.yield %C3 : tensor<4x6xf32>
      }
      scf.yield %2 : tensor<4x6xf32>
    }
    scf.yield %1 : tensor<4x6xf32>
  }
  return %0 : tensor<4x6xf32>
}

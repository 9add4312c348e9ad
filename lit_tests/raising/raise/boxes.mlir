// RUN: mlirml-opt %s --mlirml-raise=forms=box --canonicalize --split-input-file | filecheck %s

// The loops that walk along the result are parallel, the one that does not is a reduction.
// CHECK-LABEL: func.func @main
// CHECK-NOT: scf.for
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK-SAME: ins(%{{.*}}, %{{.*}} : tensor<4x5xf32>, tensor<5x6xf32>) outs(%{{.*}} : tensor<4x6xf32>)
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

// -----

// What needs the round before stays in the loop; what only reads the results is raised.
// CHECK-LABEL: func.func @recurrence
// CHECK: %[[A:.*]] = scf.for
// CHECK-NOT: math.exp
// CHECK: }
// CHECK: %[[S:.*]] = tensor.extract_slice %[[A]][1] [7] [1]
// CHECK: linalg.generic {{.*}} ins(%[[S]] : tensor<7xf32>)
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

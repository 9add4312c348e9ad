// RUN: mlirml-opt %s --mlirml-raise=forms=triangle --canonicalize --cse --split-input-file | filecheck %s

// Each row needs the one before: the loop over them stays, and the rows of a triangle are restricted to slices.
// CHECK-LABEL: func.func @main
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[C:.*]] = %arg1)
// CHECK-NOT: scf.for
// CHECK: %[[N:.*]] = arith.maxsi %[[I]], %c0
// CHECK: tensor.extract_slice %[[C]][%{{.*}}, 0] [1, %[[N]]] [1, 1] : tensor<6x6xf32> to tensor<?xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]
// CHECK: tensor.insert_slice %{{.*}} into %[[C]][%[[I]], 0] [1, %[[N]]] [1, 1] : tensor<?xf32> into tensor<6x6xf32>
func.func @main(%A: tensor<6xf32>, %C: tensor<6x6xf32>) -> tensor<6x6xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %0 = scf.for %i = %c1 to %c6 step %c1 iter_args(%C0 = %C) -> (tensor<6x6xf32>) {
    %p = arith.subi %i, %c1 : index
    %1 = scf.for %j = %c0 to %i step %c1 iter_args(%C1 = %C0) -> (tensor<6x6xf32>) {
      %c = tensor.extract %C1[%p, %j] : tensor<6x6xf32>
      %a = tensor.extract %A[%j] : tensor<6xf32>
      %s = arith.addf %a, %c : f32
      %C2 = tensor.insert %s into %C1[%i, %j] : tensor<6x6xf32>
      scf.yield %C2 : tensor<6x6xf32>
    }
    scf.yield %1 : tensor<6x6xf32>
  }
  return %0 : tensor<6x6xf32>
}

// -----

// A[i, i:] * 2 into B[i:, i], as slices are captured: the loops begin at i, so that the slices are of whole dimensions.
// CHECK-LABEL: func.func @main
// CHECK-NOT: scf.for
// CHECK: linalg.generic {{.*}} ins(%arg0, %{{.*}} : tensor<6x6xf32>, tensor<6x6xf32>)
// CHECK: arith.mulf
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
// CHECK-NOT: scf.for
// CHECK: return
func.func @main(%A: tensor<6x6xf32>, %B: tensor<6x6xf32>) -> tensor<6x6xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %two = arith.constant 2.0 : f32
  %0 = scf.for %i = %c0 to %c6 step %c1 iter_args(%B0 = %B) -> (tensor<6x6xf32>) {
    %n = arith.subi %c6, %i : index
    %e = tensor.empty() : tensor<6xf32>
    %t = scf.for %j = %c0 to %n step %c1 iter_args(%t0 = %e) -> (tensor<6xf32>) {
      %p = arith.addi %i, %j : index
      %a = tensor.extract %A[%i, %p] : tensor<6x6xf32>
      %m = arith.mulf %a, %two : f32
      %t1 = tensor.insert %m into %t0[%j] : tensor<6xf32>
      scf.yield %t1 : tensor<6xf32>
    }
    %1 = scf.for %j = %c0 to %n step %c1 iter_args(%B1 = %B0) -> (tensor<6x6xf32>) {
      %p = arith.addi %i, %j : index
      %b = tensor.extract %t[%j] : tensor<6xf32>
      %B2 = tensor.insert %b into %B1[%p, %i] : tensor<6x6xf32>
      scf.yield %B2 : tensor<6x6xf32>
    }
    scf.yield %1 : tensor<6x6xf32>
  }
  return %0 : tensor<6x6xf32>
}

// -----

// A[j, k] * x[k] for k < i has no zeros in the place of what is left out: the loop over i stays.
// CHECK-LABEL: func.func @main
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args
// CHECK: tensor.extract_slice %arg0[0, 0] [6, %{{.*}}] [1, 1] : tensor<6x6xf32> to tensor<6x?xf32>
// CHECK: linalg.generic {{.*}} attrs = {mlirml.order = array<i64: 0, 0>}
func.func @main(%A: tensor<6x6xf32>, %x: tensor<6xf32>, %C: tensor<6x6xf32>) -> tensor<6x6xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %0 = scf.for %i = %c0 to %c6 step %c1 iter_args(%C0 = %C) -> (tensor<6x6xf32>) {
    %1 = scf.for %j = %c0 to %c6 step %c1 iter_args(%C1 = %C0) -> (tensor<6x6xf32>) {
      %2 = scf.for %k = %c0 to %i step %c1 iter_args(%C2 = %C1) -> (tensor<6x6xf32>) {
        %c = tensor.extract %C2[%i, %j] : tensor<6x6xf32>
        %a = tensor.extract %A[%j, %k] : tensor<6x6xf32>
        %b = tensor.extract %x[%k] : tensor<6xf32>
        %m = arith.mulf %a, %b : f32
        %s = arith.addf %c, %m : f32
        %C3 = tensor.insert %s into %C2[%i, %j] : tensor<6x6xf32>
        scf.yield %C3 : tensor<6x6xf32>
      }
      scf.yield %2 : tensor<6x6xf32>
    }
    scf.yield %1 : tensor<6x6xf32>
  }
  return %0 : tensor<6x6xf32>
}

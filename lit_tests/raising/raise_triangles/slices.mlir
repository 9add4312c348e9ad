// RUN: mlirml-opt %s --mlirml-raise-triangles --canonicalize --cse --split-input-file | filecheck %s

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

// RUN: mlirml-opt %s --mlirml-raise=forms=inner --canonicalize --split-input-file | filecheck %s
// RUN: mlirml-opt %s --mlirml-raise=forms=inner --split-input-file --remarks 2>&1 | filecheck %s --check-prefix=REMARKS

// REMARKS-DAG: inner_loops.mlir:27:{{.*}} raised: 1 loop to one linalg.generic (parallel)
// REMARKS-DAG: not raised: loop 1 of 3 stays: `forms` leaves out box
// REMARKS-DAG: not raised: loop 2 of 2 stays: `forms` leaves out triangle

// Each row needs the one before: the loop over them stays, around an operation on a row.
// CHECK-LABEL: func.func @main
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[A:.*]] = %arg0)
// CHECK-NOT: scf.for
// CHECK-DAG: tensor.extract_slice %[[A]][%{{.*}}, 0] [1, 8] [1, 1] : tensor<6x8xf32> to tensor<8xf32>
// CHECK-DAG: tensor.extract_slice %arg1[%[[I]], 0] [1, 8] [1, 1] : tensor<6x8xf32> to tensor<8xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]
// CHECK: tensor.insert_slice %{{.*}} into %[[A]][%[[I]], 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<6x8xf32>
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

// -----

// Nothing carries a row of a product: it is left to the form "box".
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

// -----

// Slices of changing length are another form: triangle.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: scf.for
// CHECK-NOT: linalg.generic
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

// RUN: mlirml-opt %s --split-input-file --mlirml-raise --canonicalize | filecheck %s

// CHECK-DAG: #[[IK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[KJ:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[IJ:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @product
// CHECK-NOT: scf.for
// CHECK: linalg.generic {indexing_maps = [#[[IK]], #[[KJ]], #[[IJ]]], iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK: ins(%{{.*}}, %{{.*}} : tensor<4x5xf32>, tensor<5x6xf32>) outs(%{{.*}} : tensor<4x6xf32>)
// CHECK: %[[M:.*]] = arith.mulf
// CHECK: arith.addf %{{.*}}, %[[M]]
func.func @product(%A: tensor<4x5xf32>, %B: tensor<5x6xf32>, %C: tensor<4x6xf32>) -> tensor<4x6xf32> {
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

// A number that a loop adds up becomes an array over the loops around.
// CHECK-LABEL: func.func @row_sums
// CHECK-NOT: scf.for
// CHECK: %[[Z:.*]] = linalg.generic {{.*}} iterator_types = ["parallel"]
// CHECK: %[[S:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x5xf32>) outs(%[[Z]] : tensor<4xf32>)
// CHECK: %[[R:.*]] = linalg.generic {{.*}} iterator_types = ["parallel"]} ins(%[[S]] : tensor<4xf32>)
// CHECK: math.sqrt
// CHECK: return %[[R]]
func.func @row_sums(%A: tensor<4x5xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0.0 : f32
  %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%x0 = %x) -> (tensor<4xf32>) {
    %1 = scf.for %j = %c0 to %c5 step %c1 iter_args(%s = %zero) -> (f32) {
      %a = tensor.extract %A[%i, %j] : tensor<4x5xf32>
      %t = arith.addf %s, %a : f32
      scf.yield %t : f32
    }
    %root = math.sqrt %1 : f32
    %x1 = tensor.insert %root into %x0[%i] : tensor<4xf32>
    scf.yield %x1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// A stencil from one array into another works on slices; what is not stored into stays.
// CHECK-LABEL: func.func @stencil
// CHECK-NOT: scf.for
// CHECK-DAG: tensor.extract_slice %arg0[0] [6] [1] : tensor<8xf32> to tensor<6xf32>
// CHECK-DAG: tensor.extract_slice %arg0[2] [6] [1] : tensor<8xf32> to tensor<6xf32>
// CHECK: %[[G:.*]] = linalg.generic
// CHECK: tensor.insert_slice %[[G]] into %arg1[1] [6] [1] : tensor<6xf32> into tensor<8xf32>
func.func @stencil(%A: tensor<8xf32>, %B: tensor<8xf32>) -> tensor<8xf32> {
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %0 = scf.for %i = %c1 to %c7 step %c1 iter_args(%B0 = %B) -> (tensor<8xf32>) {
    %p = arith.subi %i, %c1 : index
    %n = arith.addi %i, %c1 : index
    %a = tensor.extract %A[%p] : tensor<8xf32>
    %b = tensor.extract %A[%n] : tensor<8xf32>
    %s = arith.addf %a, %b : f32
    %B1 = tensor.insert %s into %B0[%i] : tensor<8xf32>
    scf.yield %B1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

// What needs the round before stays; what only reads the results leaves the loop.
// CHECK-LABEL: func.func @distributed
// CHECK: %[[A:.*]] = scf.for
// CHECK: tensor.insert
// CHECK-NOT: tensor.insert
// CHECK: }
// CHECK: %[[S:.*]] = tensor.extract_slice %[[A]][1] [7] [1]
// CHECK: linalg.generic {{.*}} ins(%[[S]] : tensor<7xf32>)
func.func @distributed(%A: tensor<8xf32>, %B: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
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

// A triangle is a box in which what is outside keeps its old elements.
// CHECK-LABEL: func.func @triangle
// CHECK-NOT: scf.for
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]
// CHECK-SAME: ins(%arg0, %arg0 : tensor<4x3xf32>, tensor<4x3xf32>) outs(%arg1 : tensor<4x4xf32>)
// CHECK: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %[[OUT:.*]]: f32):
// CHECK: %[[SUM:.*]] = arith.addf %[[OUT]]
// CHECK: %[[IN:.*]] = arith.cmpi sge
// CHECK: arith.select %[[IN]], %[[SUM]], %[[OUT]]
func.func @triangle(%A: tensor<4x3xf32>, %C: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%C0 = %C) -> (tensor<4x4xf32>) {
    %end = arith.addi %i, %c1 : index
    %1 = scf.for %j = %c0 to %end step %c1 iter_args(%C1 = %C0) -> (tensor<4x4xf32>) {
      %2 = scf.for %k = %c0 to %c3 step %c1 iter_args(%C2 = %C1) -> (tensor<4x4xf32>) {
        %c = tensor.extract %C2[%i, %j] : tensor<4x4xf32>
        %a = tensor.extract %A[%i, %k] : tensor<4x3xf32>
        %b = tensor.extract %A[%j, %k] : tensor<4x3xf32>
        %m = arith.mulf %a, %b : f32
        %s = arith.addf %c, %m : f32
        %C3 = tensor.insert %s into %C2[%i, %j] : tensor<4x4xf32>
        scf.yield %C3 : tensor<4x4xf32>
      }
      scf.yield %2 : tensor<4x4xf32>
    }
    scf.yield %1 : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}

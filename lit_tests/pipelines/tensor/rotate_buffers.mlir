// RUN: mlirml-opt %s --split-input-file --mlirml-rotate-buffers | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>, %[[Y:.*]]: tensor<8xf32>
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[A:.*]] = %[[X]], %[[B:.*]] = %[[Y]])
// CHECK: tensor.extract_slice %[[A]][2]
// CHECK: %[[NEW:.*]] = tensor.insert_slice {{.*}} into %[[B]][1]
// CHECK: tensor.extract_slice %[[NEW]][2]
// CHECK: %[[NEWER:.*]] = tensor.insert_slice {{.*}} into %[[A]][1]
// CHECK: scf.yield %[[NEWER]], %[[NEW]]
// The ninth round is left over.
// CHECK: tensor.extract_slice %[[R]]#0[2]
// CHECK: %[[LAST:.*]] = tensor.insert_slice {{.*}} into %[[R]]#1[1]
// CHECK: return %[[LAST]], %[[R]]#0
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%a = %x, %b = %y) -> (tensor<8xf32>, tensor<8xf32>) {
    %east = tensor.extract_slice %a[2] [6] [1] : tensor<8xf32> to tensor<6xf32>
    %new = tensor.insert_slice %east into %b[1] [6] [1] : tensor<6xf32> into tensor<8xf32>
    scf.yield %new, %a : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// A number of rounds that is not known: the loop itself runs what is left.
// CHECK-LABEL: func.func @main
// CHECK: %[[MAIN:.*]]:2 = scf.for
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[MAIN]]#0, %{{.*}} = %[[MAIN]]#1)
// CHECK-NOT: scf.for
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (tensor<8xf32>, tensor<8xf32>) {
    scf.yield %b, %a : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0 : tensor<8xf32>
}

// -----

// Arrays that stay where they are, and numbers that change places, cost nothing.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK: tensor.insert
// CHECK-NOT: tensor.insert
func.func @main(%x: tensor<8xf32>, %p: f32, %q: f32) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r:3 = scf.for %t = %c0 to %c9 step %c1 iter_args(%a = %x, %u = %p, %v = %q) -> (tensor<8xf32>, f32, f32) {
    %new = tensor.insert %u into %a[%t] : tensor<8xf32>
    scf.yield %new, %v, %u : tensor<8xf32>, f32, f32
  }
  return %r#0 : tensor<8xf32>
}

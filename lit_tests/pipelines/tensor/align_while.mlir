// RUN: mlirml-opt %s --split-input-file --mlirml-align-while | filecheck %s

// The number that only the condition reads stood in front of the array, which thus is first in one region, second in the other.

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[T:.*]]: tensor<8xf32>)
// CHECK: %[[R:.*]]:2 = scf.while (%[[X:.*]] = %[[T]], %[[I:.*]] = %{{.*}}, %[[STOP:.*]] = %false) : (tensor<8xf32>, index, i1) -> (tensor<8xf32>, index)
// CHECK: scf.condition(%{{.*}}) %[[X]], %[[I]] : tensor<8xf32>, index
// CHECK: ^bb0(%[[Y:.*]]: tensor<8xf32>, %[[J:.*]]: index):
// CHECK: %[[N:.*]] = tensor.insert %{{.*}} into %[[Y]][%[[J]]]
// CHECK: scf.yield %[[N]], %[[NEXT:.*]], %{{.*}} : tensor<8xf32>, index, i1
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @main(%t: tensor<8xf32>) -> (tensor<8xf32>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %false = arith.constant false
  %true = arith.constant true
  %r:2 = scf.while (%i = %c0, %stop = %false, %x = %t) : (index, i1, tensor<8xf32>) -> (index, tensor<8xf32>) {
    %inside = arith.cmpi slt, %i, %c8 : index
    %on = arith.xori %stop, %true : i1
    %go = arith.andi %inside, %on : i1
    scf.condition(%go) %i, %x : index, tensor<8xf32>
  } do {
  ^bb0(%i: index, %x: tensor<8xf32>):
    %old = tensor.extract %x[%i] : tensor<8xf32>
    %found = arith.cmpf olt, %old, %zero : f32
    %new = tensor.insert %zero into %x[%i] : tensor<8xf32>
    %next = arith.addi %i, %c1 : index
    scf.yield %next, %found, %new : index, i1, tensor<8xf32>
  }
  return %r#1, %r#0 : tensor<8xf32>, index
}

// -----

// What came before is read by the condition alone: it is passed on with the rest, to a body that does not read it.

// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]]:2 = scf.while (%[[X:.*]] = %{{.*}}, %[[OLD:.*]] = %{{.*}}) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK: scf.condition(%{{.*}}) %[[X]], %[[OLD]] : tensor<8xf32>, tensor<8xf32>
// CHECK: ^bb0(%[[Y:.*]]: tensor<8xf32>, %{{.*}}: tensor<8xf32>):
// CHECK: scf.yield %{{.*}}, %[[Y]] : tensor<8xf32>, tensor<8xf32>
// CHECK: return %[[R]]#0
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %half = arith.constant 0.5 : f32
  %r = scf.while (%old = %a, %x = %b) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    %before = tensor.extract %old[%c0] : tensor<8xf32>
    %now = tensor.extract %x[%c0] : tensor<8xf32>
    %go = arith.cmpf une, %before, %now : f32
    scf.condition(%go) %x : tensor<8xf32>
  } do {
  ^bb0(%x: tensor<8xf32>):
    %e = tensor.empty() : tensor<8xf32>
    %y = linalg.fill ins(%half : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %x, %y : tensor<8xf32>, tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

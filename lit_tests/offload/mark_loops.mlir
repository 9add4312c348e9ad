// RUN: mlirml-opt %s --split-input-file --mlirml-mark-loops | filecheck %s

// A recurrence through memory is a kernel, if only of one thread.
// CHECK-LABEL: func.func @main
// CHECK:       scf.for
// CHECK:       } {mlirml.scatter}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c1 to %c8 step %c1 iter_args(%y = %x) -> (tensor<8xf32>) {
    %j = arith.subi %i, %c1 : index
    %old = tensor.extract %y[%j] : tensor<8xf32>
    %new = arith.mulf %old, %old : f32
    %s = tensor.insert %new into %y[%i] : tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// So are loops in loops, where the outer one does nothing with the tensor but hand it on.
// CHECK-LABEL: func.func @main
// CHECK:       scf.for
// CHECK:         scf.for
// CHECK:         }
// CHECK:       } {mlirml.scatter}
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c1 to %c8 step %c1 iter_args(%y = %x) -> (tensor<8x8xf32>) {
    %h = arith.subi %i, %c1 : index
    %q = scf.for %j = %c0 to %c8 step %c1 iter_args(%z = %y) -> (tensor<8x8xf32>) {
      %old = tensor.extract %z[%h, %j] : tensor<8x8xf32>
      %s = tensor.insert %old into %z[%i, %j] : tensor<8x8xf32>
      scf.yield %s : tensor<8x8xf32>
    }
    scf.yield %q : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}

// -----

// A number that is carried and stored makes a scan.
// CHECK-LABEL: func.func @main
// CHECK:       scf.for
// CHECK:       } {mlirml.scan}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%sum = %zero, %y = %e) -> (f32, tensor<8xf32>) {
    %a = tensor.extract %x[%i] : tensor<8xf32>
    %new = arith.addf %sum, %a : f32
    %s = tensor.insert %new into %y[%i] : tensor<8xf32>
    scf.yield %new, %s : f32, tensor<8xf32>
  }
  return %r#1 : tensor<8xf32>
}

// -----

// Not so where the number is used behind the loop, and where the bounds are not known.
// CHECK-LABEL: func.func @main
// CHECK-NOT:   mlirml.sca
func.func @main(%x: tensor<8xf32>, %n: index) -> (f32, tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%sum = %zero, %y = %e) -> (f32, tensor<8xf32>) {
    %a = tensor.extract %x[%i] : tensor<8xf32>
    %new = arith.addf %sum, %a : f32
    %s = tensor.insert %new into %y[%i] : tensor<8xf32>
    scf.yield %new, %s : f32, tensor<8xf32>
  }
  %q = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (tensor<8xf32>) {
    %s = tensor.insert %zero into %y[%i] : tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  }
  return %r#0, %r#1, %q : f32, tensor<8xf32>, tensor<8xf32>
}

// -----

// Where the outer loop stores too, the inner one alone is a kernel.
// CHECK-LABEL: func.func @main
// CHECK:       scf.for
// CHECK:         scf.for
// CHECK:         } {mlirml.scatter}
// CHECK-NOT:   mlirml.scatter
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %p = scf.for %i = %c0 to %c8 step %c1 iter_args(%y = %x) -> (tensor<8xf32>) {
    %t = tensor.insert %zero into %y[%i] : tensor<8xf32>
    %z = scf.for %j = %c0 to %c8 step %c1 iter_args(%w = %t) -> (tensor<8xf32>) {
      %old = tensor.extract %w[%i] : tensor<8xf32>
      %s = tensor.insert %old into %w[%j] : tensor<8xf32>
      scf.yield %s : tensor<8xf32>
    }
    scf.yield %z : tensor<8xf32>
  }
  return %p : tensor<8xf32>
}

// -----

// A number that is not what is stored, the sum of those before, stays a loop of the host.
// CHECK-LABEL: func.func @main
// CHECK-NOT:   mlirml.sca
func.func @main(%x: tensor<8xf32>, %e: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%sum = %zero, %y = %e) -> (f32, tensor<8xf32>) {
    %a = tensor.extract %x[%i] : tensor<8xf32>
    %new = arith.addf %sum, %a : f32
    %s = tensor.insert %sum into %y[%i] : tensor<8xf32>
    scf.yield %new, %s : f32, tensor<8xf32>
  }
  return %r#1 : tensor<8xf32>
}

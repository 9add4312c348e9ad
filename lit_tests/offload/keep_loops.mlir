// RUN: mlirml-opt %s --split-input-file --mlirml-keep-loops | filecheck %s

// A kernel for each of 1,000 elements, of a number that the host computes.
// CHECK-LABEL: func.func @main
// CHECK:       scf.for
// CHECK:       } {mlirml.why = "it is faster there than about 1,000 launches"}
func.func @main(%x: tensor<8xf32>, %s: tensor<1000xindex>) -> (tensor<8xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1000 = arith.constant 1000 : index
  %zero = arith.constant 0.0 : f32
  %r:2 = scf.for %i = %c0 to %c1000 step %c1 iter_args(%y = %x, %n = %zero) -> (tensor<8xf32>, f32) {
    %k = tensor.extract %s[%i] : tensor<1000xindex>
    %old = tensor.extract %y[%k] : tensor<8xf32>
    %new = arith.addf %old, %n : f32
    %t = tensor.insert %new into %y[%k] : tensor<8xf32>
    scf.yield %t, %new : tensor<8xf32>, f32
  }
  return %r#0, %r#1 : tensor<8xf32>, f32
}

// -----

// Few launches, of which the copies would take longer.
// CHECK-LABEL: func.func @main
// CHECK-NOT:   mlirml.why
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %r = scf.for %i = %c0 to %c100 step %c1 iter_args(%y = %x) -> (tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %t = linalg.exp ins(%y : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %t : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// Large kernels.
// CHECK-LABEL: func.func @main
// CHECK-NOT:   mlirml.why
func.func @main(%x: tensor<100000xf32>) -> tensor<100000xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1000 = arith.constant 1000 : index
  %r = scf.for %i = %c0 to %c1000 step %c1 iter_args(%y = %x) -> (tensor<100000xf32>) {
    %e = tensor.empty() : tensor<100000xf32>
    %t = linalg.exp ins(%y : tensor<100000xf32>) outs(%e : tensor<100000xf32>) -> tensor<100000xf32>
    scf.yield %t : tensor<100000xf32>
  }
  return %r : tensor<100000xf32>
}

// -----

// Large kernels in an outer loop; the loop inside of it has 500 small ones each time.
// CHECK-LABEL: func.func @main
// CHECK:       scf.for
// CHECK:         scf.for
// CHECK:         } {mlirml.why = "it is faster there than about 500 launches"}
// CHECK-NOT:     mlirml.why
func.func @main(%x: tensor<1000000xf32>, %s: tensor<8xf32>) -> (tensor<1000000xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c500 = arith.constant 500 : index
  %r:2 = scf.for %i = %c0 to %c500 step %c1 iter_args(%y = %x, %z = %s) -> (tensor<1000000xf32>, tensor<8xf32>) {
    %e = tensor.empty() : tensor<1000000xf32>
    %t = linalg.exp ins(%y : tensor<1000000xf32>) outs(%e : tensor<1000000xf32>) -> tensor<1000000xf32>
    %u = scf.for %j = %c0 to %c500 step %c1 iter_args(%w = %z) -> (tensor<8xf32>) {
      %f = tensor.empty() : tensor<8xf32>
      %v = linalg.exp ins(%w : tensor<8xf32>) outs(%f : tensor<8xf32>) -> tensor<8xf32>
      scf.yield %v : tensor<8xf32>
    }
    scf.yield %t, %u : tensor<1000000xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<1000000xf32>, tensor<8xf32>
}

// -----

// A tensor whose size is dynamic may be of any size.
// CHECK-LABEL: func.func @main
// CHECK-NOT:   mlirml.why
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1000 = arith.constant 1000 : index
  %r = scf.for %i = %c0 to %c1000 step %c1 iter_args(%y = %x) -> (tensor<?xf32>) {
    %t = linalg.exp ins(%y : tensor<?xf32>) outs(%y : tensor<?xf32>) -> tensor<?xf32>
    scf.yield %t : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

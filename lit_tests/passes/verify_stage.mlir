// RUN: mlirml-opt %s --split-input-file --verify-diagnostics --mlirml-verify-stage=stage=schedule

func.func @tensors_are_legal_until_schedule(%a: tensor<4xf32>, %b: tensor<4xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  // expected-error@+2 {{`tensor.empty` is not legal after stage schedule}}
  // expected-note@+1 {{pass `mlirml-bufferize` should have removed it}}
  %empty = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %dot = linalg.dot ins(%a, %b : tensor<4xf32>, tensor<4xf32>) outs(%init : tensor<f32>) -> tensor<f32>
  %value = tensor.extract %dot[] : tensor<f32>
  return %value : f32
}

// -----

func.func @contractions_have_their_own_pass(%a: memref<4x4xf32>, %c: memref<4x4xf32>) {
  // expected-error@+2 {{`linalg.matmul` is not legal after stage schedule}}
  // expected-note@+1 {{pass `mlirml-lower-contract` should have removed it}}
  linalg.matmul ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%c : memref<4x4xf32>)
  return
}

// -----

func.func @one_op_of_a_legal_dialect_can_be_illegal(%a: memref<4xf32>) {
  %lower = arith.constant 0 : index
  %upper = arith.constant 4 : index
  %step = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  // expected-error@+2 {{`scf.parallel` is not legal after stage schedule}}
  // expected-note@+1 {{pass `mlirml-outline-parallel` should have removed it}}
  scf.parallel (%i) = (%lower) to (%upper) step (%step) {
    memref.store %zero, %a[%i] : memref<4xf32>
    scf.reduce
  }
  return
}

// -----

func.func @loops_on_memrefs_are_legal(%a: memref<4xf32>) {
  %lower = arith.constant 0 : index
  %upper = arith.constant 4 : index
  %step = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %lower to %upper step %step {
    memref.store %zero, %a[%i] : memref<4xf32>
  }
  return
}

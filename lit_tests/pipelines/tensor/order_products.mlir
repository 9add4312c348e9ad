// RUN: mlirml-opt %s --split-input-file --mlirml-order-products | filecheck %s
// RUN: mlirml-opt %s --split-input-file --mlirml-order-products=exact | filecheck %s --check-prefix=EXACT
// RUN: mlirml-opt %s --split-input-file --mlirml-order-products --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// The chain of the docstring: 28 times fewer flops.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<2000x20xf32>, %[[B:[a-z0-9]+]]: tensor<20x2000xf32>, %[[C:[a-z0-9]+]]: tensor<2000x20xf32>, %[[D:[a-z0-9]+]]: tensor<20x500xf32>
// CHECK: %[[BC:.*]] = linalg.matmul ins(%[[B]], %[[C]] : {{.*}} -> tensor<20x20xf32>
// CHECK: %[[BCD:.*]] = linalg.matmul ins(%[[BC]], %[[D]] : {{.*}} -> tensor<20x500xf32>
// CHECK: %[[R:.*]] = linalg.matmul ins(%[[A]], %[[BCD]] : {{.*}} -> tensor<2000x500xf32>
// CHECK-NOT: linalg.matmul
// CHECK: return %[[R]]
// EXACT-LABEL: func.func @chain
// EXACT: linalg.matmul {{.*}} -> tensor<2000x2000xf32>
// REMARK: remark: rewritten: ((a @ b) @ c) @ d is computed as a @ ((b @ c) @ d): 360 Mflop become 42 Mflop
func.func @chain(%a: tensor<2000x20xf32>, %b: tensor<20x2000xf32>, %c: tensor<2000x20xf32>, %d: tensor<20x500xf32>) -> tensor<2000x500xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<2000x2000xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<2000x2000xf32>) -> tensor<2000x2000xf32>
  %1 = linalg.matmul ins(%a, %b : tensor<2000x20xf32>, tensor<20x2000xf32>) outs(%z0 : tensor<2000x2000xf32>) -> tensor<2000x2000xf32>
  %e1 = tensor.empty() : tensor<2000x20xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2000x20xf32>) -> tensor<2000x20xf32>
  %2 = linalg.matmul ins(%1, %c : tensor<2000x2000xf32>, tensor<2000x20xf32>) outs(%z1 : tensor<2000x20xf32>) -> tensor<2000x20xf32>
  %e2 = tensor.empty() : tensor<2000x500xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<2000x500xf32>) -> tensor<2000x500xf32>
  %3 = linalg.matmul ins(%2, %d : tensor<2000x20xf32>, tensor<20x500xf32>) outs(%z2 : tensor<2000x500xf32>) -> tensor<2000x500xf32>
  return %3 : tensor<2000x500xf32>
}

// -----

// A transpose between two products, of integers, which `exact` allows.
// CHECK-LABEL: func.func @transposed
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<90x4xi32>, %[[B:[a-z0-9]+]]: tensor<4x80xi32>, %[[C:[a-z0-9]+]]: tensor<90x3xi32>
// CHECK-NOT: linalg.transpose
// CHECK: %[[AC:.*]] = linalg.contract {{.*}} ins(%[[A]], %[[C]] : {{.*}} -> tensor<4x3xi32>
// CHECK: linalg.contract {{.*}} -> tensor<80x3xi32>
// EXACT-LABEL: func.func @transposed
// EXACT: linalg.contract {{.*}} -> tensor<4x3xi32>
func.func @transposed(%a: tensor<90x4xi32>, %b: tensor<4x80xi32>, %c: tensor<90x3xi32>) -> tensor<80x3xi32> {
  %zero = arith.constant 0 : i32
  %e0 = tensor.empty() : tensor<90x80xi32>
  %z0 = linalg.fill ins(%zero : i32) outs(%e0 : tensor<90x80xi32>) -> tensor<90x80xi32>
  %1 = linalg.matmul ins(%a, %b : tensor<90x4xi32>, tensor<4x80xi32>) outs(%z0 : tensor<90x80xi32>) -> tensor<90x80xi32>
  %e1 = tensor.empty() : tensor<80x90xi32>
  %t = linalg.transpose ins(%1 : tensor<90x80xi32>) outs(%e1 : tensor<80x90xi32>) permutation = [1, 0]
  %e2 = tensor.empty() : tensor<80x3xi32>
  %z2 = linalg.fill ins(%zero : i32) outs(%e2 : tensor<80x3xi32>) -> tensor<80x3xi32>
  %2 = linalg.matmul ins(%t, %c : tensor<80x90xi32>, tensor<90x3xi32>) outs(%z2 : tensor<80x3xi32>) -> tensor<80x3xi32>
  return %2 : tensor<80x3xi32>
}

// -----

// The first product is a result, too.
// CHECK-LABEL: func.func @used_elsewhere
// CHECK: linalg.matmul {{.*}} -> tensor<200x200xf32>
// CHECK: linalg.matvec {{.*}} -> tensor<200xf32>
func.func @used_elsewhere(%a: tensor<200x20xf32>, %b: tensor<20x200xf32>, %v: tensor<200xf32>) -> (tensor<200x200xf32>, tensor<200xf32>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<200x200xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<200x200xf32>) -> tensor<200x200xf32>
  %1 = linalg.matmul ins(%a, %b : tensor<200x20xf32>, tensor<20x200xf32>) outs(%z0 : tensor<200x200xf32>) -> tensor<200x200xf32>
  %e1 = tensor.empty() : tensor<200xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<200xf32>) -> tensor<200xf32>
  %2 = linalg.matvec ins(%1, %v : tensor<200x200xf32>, tensor<200xf32>) outs(%z1 : tensor<200xf32>) -> tensor<200xf32>
  return %1, %2 : tensor<200x200xf32>, tensor<200xf32>
}

// -----

// Two products with a matrix in 1000 iterations: their product is loop-invariant, and is hoisted after this.
// CHECK-LABEL: func.func @loop
// CHECK: scf.for
// CHECK: linalg.matmul {{.*}} -> tensor<64x64xf32>
// CHECK: linalg.vecmat {{.*}} -> tensor<64xf32>
func.func @loop(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %init: tensor<64xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1000 = arith.constant 1000 : index
  %r = scf.for %i = %c0 to %c1000 step %c1 iter_args(%x = %init) -> (tensor<64xf32>) {
    %e = tensor.empty() : tensor<64xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
    %1 = linalg.vecmat ins(%x, %a : tensor<64xf32>, tensor<64x64xf32>) outs(%z : tensor<64xf32>) -> tensor<64xf32>
    %2 = linalg.vecmat ins(%1, %b : tensor<64xf32>, tensor<64x64xf32>) outs(%z : tensor<64xf32>) -> tensor<64xf32>
    scf.yield %2 : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// -----

// The first product is added to something: it is a factor.
// CHECK-LABEL: func.func @added
// CHECK: linalg.matmul {{.*}} -> tensor<200x200xf32>
// CHECK: linalg.matvec {{.*}} -> tensor<200xf32>
func.func @added(%a: tensor<200x20xf32>, %b: tensor<20x200xf32>, %v: tensor<200xf32>, %init: tensor<200x200xf32>) -> tensor<200xf32> {
  %zero = arith.constant 0.0 : f32
  %1 = linalg.matmul ins(%a, %b : tensor<200x20xf32>, tensor<20x200xf32>) outs(%init : tensor<200x200xf32>) -> tensor<200x200xf32>
  %e1 = tensor.empty() : tensor<200xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<200xf32>) -> tensor<200xf32>
  %2 = linalg.matvec ins(%1, %v : tensor<200x200xf32>, tensor<200xf32>) outs(%z1 : tensor<200xf32>) -> tensor<200xf32>
  return %2 : tensor<200xf32>
}

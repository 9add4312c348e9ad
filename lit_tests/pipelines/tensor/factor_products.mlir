// RUN: mlirml-opt %s --split-input-file --mlirml-factor-products | filecheck %s
// RUN: mlirml-opt %s --split-input-file --mlirml-factor-products=exact | filecheck %s --check-prefix=EXACT
// RUN: mlirml-opt %s --split-input-file --mlirml-factor-products --remarks 2>&1 | filecheck %s --check-prefix=REMARK

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @sum
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<90x80xf32>, %[[B:[a-z0-9]+]]: tensor<80x70xf32>, %[[C:[a-z0-9]+]]: tensor<80x70xf32>
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[B]], %[[C]] : {{.*}} {
// CHECK: arith.addf
// CHECK: %[[R:.*]] = linalg.matmul ins(%[[A]], %[[S]] : {{.*}} -> tensor<90x70xf32>
// CHECK-NEXT: return %[[R]]
// EXACT-LABEL: func.func @sum
// EXACT-COUNT-2: linalg.matmul
// REMARK: remark: rewritten: `a @ b + a @ c` has one factor in common, and is one product: 2.02 Mflop become 1.01 Mflop
func.func @sum(%a: tensor<90x80xf32>, %b: tensor<80x70xf32>, %c: tensor<80x70xf32>) -> tensor<90x70xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<90x70xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<90x70xf32>) -> tensor<90x70xf32>
  %p = linalg.matmul ins(%a, %b : tensor<90x80xf32>, tensor<80x70xf32>) outs(%z : tensor<90x70xf32>) -> tensor<90x70xf32>
  %q = linalg.matmul ins(%a, %c : tensor<90x80xf32>, tensor<80x70xf32>) outs(%z : tensor<90x70xf32>) -> tensor<90x70xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %q : tensor<90x70xf32>, tensor<90x70xf32>) outs(%e : tensor<90x70xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<90x70xf32>
  return %s : tensor<90x70xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// The second factor in common, of integers.
// CHECK-LABEL: func.func @difference
// CHECK: arith.subi
// CHECK: linalg.matmul
// CHECK-NOT: linalg.matmul
// EXACT-LABEL: func.func @difference
// EXACT: arith.subi
// EXACT: linalg.matmul
// EXACT-NOT: linalg.matmul
func.func @difference(%a: tensor<90x80xi32>, %b: tensor<90x80xi32>, %c: tensor<80x70xi32>) -> tensor<90x70xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<90x70xi32>
  %z = linalg.fill ins(%zero : i32) outs(%e : tensor<90x70xi32>) -> tensor<90x70xi32>
  %p = linalg.matmul ins(%a, %c : tensor<90x80xi32>, tensor<80x70xi32>) outs(%z : tensor<90x70xi32>) -> tensor<90x70xi32>
  %q = linalg.matmul ins(%b, %c : tensor<90x80xi32>, tensor<80x70xi32>) outs(%z : tensor<90x70xi32>) -> tensor<90x70xi32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %q : tensor<90x70xi32>, tensor<90x70xi32>) outs(%e : tensor<90x70xi32>) {
  ^bb0(%x: i32, %y: i32, %out: i32):
    %0 = arith.subi %x, %y : i32
    linalg.yield %0 : i32
  } -> tensor<90x70xi32>
  return %s : tensor<90x70xi32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// `a` is on the left once, and once on the right.
// EXACT-LABEL: func.func @other_sides
// CHECK-LABEL: func.func @other_sides
// CHECK-COUNT-2: linalg.matmul
func.func @other_sides(%a: tensor<80x80xf32>, %b: tensor<80x80xf32>) -> tensor<80x80xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<80x80xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<80x80xf32>) -> tensor<80x80xf32>
  %p = linalg.matmul ins(%a, %b : tensor<80x80xf32>, tensor<80x80xf32>) outs(%z : tensor<80x80xf32>) -> tensor<80x80xf32>
  %q = linalg.matmul ins(%b, %a : tensor<80x80xf32>, tensor<80x80xf32>) outs(%z : tensor<80x80xf32>) -> tensor<80x80xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %q : tensor<80x80xf32>, tensor<80x80xf32>) outs(%e : tensor<80x80xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<80x80xf32>
  return %s : tensor<80x80xf32>
}

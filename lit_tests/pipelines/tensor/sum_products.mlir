// RUN: mlirml-opt %s --split-input-file --mlirml-sum-products | filecheck %s
// RUN: mlirml-opt %s --split-input-file --mlirml-sum-products=exact | filecheck %s --check-prefix=EXACT

#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#all = affine_map<(i, j) -> (i, j)>
#number = affine_map<(i, j) -> ()>

// Weighted outer products of rows, from the third on; the count that the loop carries too stays in it.
// CHECK-LABEL: func.func @weighted
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<20x3xf32>, %[[B:[a-z0-9]+]]: tensor<20x4xf32>, %[[W:[a-z0-9]+]]: tensor<20xf32>
// CHECK-DAG: %[[P:.*]] = tensor.extract_slice %[[A]][2, 0] [18, 3] [1, 1]
// CHECK-DAG: %[[Q:.*]] = tensor.extract_slice %[[B]][2, 0] [18, 4] [1, 1]
// CHECK-DAG: %[[V:.*]] = tensor.extract_slice %[[W]][2] [18] [1]
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[V]], %[[Q]] : tensor<18xf32>, tensor<18x4xf32>)
// CHECK: %[[R:.*]] = linalg.contract {{.*}} ins(%[[P]], %[[S]] : tensor<18x3xf32>, tensor<18x4xf32>)
// CHECK: %[[C:.*]] = scf.for {{.*}} -> (f32)
// CHECK: return %[[R]], %[[C]]
// EXACT-LABEL: func.func @weighted
// EXACT-NOT: linalg.contract
func.func @weighted(%a: tensor<20x3xf32>, %b: tensor<20x4xf32>, %w: tensor<20xf32>) -> (tensor<3x4xf32>, f32) {
  %c2 = arith.constant 2 : index
  %c20 = arith.constant 20 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  %s:2 = scf.for %k = %c2 to %c20 step %c1 iter_args(%t = %z, %n = %zero) -> (tensor<3x4xf32>, f32) {
    %x = tensor.extract_slice %a[%k, 0] [1, 3] [1, 1] : tensor<20x3xf32> to tensor<3xf32>
    %y = tensor.extract_slice %b[%k, 0] [1, 4] [1, 1] : tensor<20x4xf32> to tensor<4xf32>
    %v = tensor.extract %w[%k] : tensor<20xf32>
    %f = tensor.from_elements %v : tensor<f32>
    %p = linalg.generic {indexing_maps = [#row, #column, #all], iterator_types = ["parallel", "parallel"]}
        ins(%x, %y : tensor<3xf32>, tensor<4xf32>) outs(%e : tensor<3x4xf32>) {
    ^bb0(%l: f32, %r: f32, %o: f32):
      %m = arith.mulf %l, %r : f32
      linalg.yield %m : f32
    } -> tensor<3x4xf32>
    %q = linalg.generic {indexing_maps = [#number, #all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%f, %p : tensor<f32>, tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) {
    ^bb0(%l: f32, %r: f32, %o: f32):
      %m = arith.mulf %l, %r : f32
      linalg.yield %m : f32
    } -> tensor<3x4xf32>
    %u = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%t, %q : tensor<3x4xf32>, tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) {
    ^bb0(%l: f32, %r: f32, %o: f32):
      %m = arith.addf %l, %r : f32
      linalg.yield %m : f32
    } -> tensor<3x4xf32>
    %next = math.sin %n : f32
    scf.yield %u, %next : tensor<3x4xf32>, f32
  }
  return %s#0, %s#1 : tensor<3x4xf32>, f32
}

// -----

#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#all = affine_map<(i, j) -> (i, j)>

// Integers are exact in any order; what is subtracted is subtracted after the loop.
// CHECK-LABEL: func.func @subtracted
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<9x3xi32>, %[[S:[a-z0-9]+]]: tensor<3x3xi32>
// CHECK: %[[P:.*]] = linalg.contract {{.*}} ins(%[[A]], %[[A]] :
// CHECK: linalg.generic {{.*}} ins(%[[S]], %[[P]] :
// CHECK: arith.subi
// CHECK-NOT: scf.for
// EXACT-LABEL: func.func @subtracted
// EXACT: linalg.contract
func.func @subtracted(%a: tensor<9x3xi32>, %s: tensor<3x3xi32>) -> tensor<3x3xi32> {
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<3x3xi32>
  %r = scf.for %k = %c0 to %c9 step %c1 iter_args(%t = %s) -> (tensor<3x3xi32>) {
    %x = tensor.extract_slice %a[%k, 0] [1, 3] [1, 1] : tensor<9x3xi32> to tensor<3xi32>
    %p = linalg.generic {indexing_maps = [#row, #column, #all], iterator_types = ["parallel", "parallel"]}
        ins(%x, %x : tensor<3xi32>, tensor<3xi32>) outs(%e : tensor<3x3xi32>) {
    ^bb0(%l: i32, %m: i32, %o: i32):
      %n = arith.muli %l, %m : i32
      linalg.yield %n : i32
    } -> tensor<3x3xi32>
    %u = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%t, %p : tensor<3x3xi32>, tensor<3x3xi32>) outs(%e : tensor<3x3xi32>) {
    ^bb0(%l: i32, %m: i32, %o: i32):
      %n = arith.subi %l, %m : i32
      linalg.yield %n : i32
    } -> tensor<3x3xi32>
    scf.yield %u : tensor<3x3xi32>
  }
  return %r : tensor<3x3xi32>
}

// -----

#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#all = affine_map<(i, j) -> (i, j)>

// The sums in between are read.
// CHECK-LABEL: func.func @read_in_between
// CHECK-NOT: linalg.contract
func.func @read_in_between(%a: tensor<9x3xf32>, %s: tensor<3x3xf32>) -> (tensor<3x3xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x3xf32>
  %r:2 = scf.for %k = %c0 to %c9 step %c1 iter_args(%t = %s, %n = %zero) -> (tensor<3x3xf32>, f32) {
    %x = tensor.extract_slice %a[%k, 0] [1, 3] [1, 1] : tensor<9x3xf32> to tensor<3xf32>
    %p = linalg.generic {indexing_maps = [#row, #column, #all], iterator_types = ["parallel", "parallel"]}
        ins(%x, %x : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3x3xf32>) {
    ^bb0(%l: f32, %m: f32, %o: f32):
      %q = arith.mulf %l, %m : f32
      linalg.yield %q : f32
    } -> tensor<3x3xf32>
    %u = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%t, %p : tensor<3x3xf32>, tensor<3x3xf32>) outs(%e : tensor<3x3xf32>) {
    ^bb0(%l: f32, %m: f32, %o: f32):
      %q = arith.addf %l, %m : f32
      linalg.yield %q : f32
    } -> tensor<3x3xf32>
    %first = tensor.extract %u[%c0, %c0] : tensor<3x3xf32>
    %next = arith.addf %n, %first : f32
    scf.yield %u, %next : tensor<3x3xf32>, f32
  }
  return %r#0, %r#1 : tensor<3x3xf32>, f32
}

// RUN: mlirml-opt %s --split-input-file "--mlirml-fuse-shifts=least=8" --canonicalize --cse | filecheck %s

#v = affine_map<(i) -> (i)>

// The gradient of differences: a tensor is put into zeros at two places, and both are added.

// CHECK-LABEL: func.func @differences
// CHECK-SAME: (%[[X:.*]]: tensor<99xf32>)
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<1xf32>)
// CHECK-DAG: %[[A:.*]] = tensor.extract_slice %[[X]][0] [98] [1]
// CHECK-DAG: %[[B:.*]] = tensor.extract_slice %[[X]][1] [98] [1]
// CHECK: linalg.generic {{.*}} ins({{.*}} : tensor<98xf32>, tensor<98xf32>) outs({{.*}} : tensor<98xf32>)
// CHECK: arith.mulf
// CHECK: arith.mulf
// CHECK: arith.subf
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<1xf32>)
// CHECK-NOT: linalg.generic
func.func @differences(%x: tensor<99xf32>) -> tensor<100xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<99xf32>
  %w = tensor.empty() : tensor<100xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%w : tensor<100xf32>) -> tensor<100xf32>
  %f = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%x : tensor<99xf32>) outs(%e : tensor<99xf32>) {
  ^bb0(%s: f32, %o: f32):
    %0 = arith.mulf %s, %s : f32
    linalg.yield %0 : f32
  } -> tensor<99xf32>
  %a = tensor.insert_slice %f into %zeros[1] [99] [1] : tensor<99xf32> into tensor<100xf32>
  %b = tensor.insert_slice %f into %zeros[0] [99] [1] : tensor<99xf32> into tensor<100xf32>
  %r = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<100xf32>, tensor<100xf32>) outs(%w : tensor<100xf32>) {
  ^bb0(%s: f32, %t: f32, %o: f32):
    %0 = arith.subf %s, %t : f32
    linalg.yield %0 : f32
  } -> tensor<100xf32>
  return %r : tensor<100xf32>
}

// -----

#m = affine_map<(i, j) -> (i, j)>
#c = affine_map<(i, j) -> (j)>

// A pad along one dimension, and a row of the result that something else needs, too.

// CHECK-LABEL: func.func @pad
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>, %[[Y:.*]]: tensor<8xf32>)
// CHECK-NOT: tensor.pad
// CHECK: linalg.generic {{.*}} ins(%[[Y]] : tensor<8xf32>) outs({{.*}} : tensor<1x8xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[Y]], %[[X]] : {{.*}} outs({{.*}} : tensor<4x8xf32>)
// CHECK-NOT: linalg.generic
func.func @pad(%x: tensor<4x8xf32>, %y: tensor<8xf32>) -> (tensor<5x8xf32>, tensor<8xf32>) {
  %two = arith.constant 2.0 : f32
  %w = tensor.empty() : tensor<5x8xf32>
  %p = tensor.pad %x low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %two : f32
  } : tensor<4x8xf32> to tensor<5x8xf32>
  %r = linalg.generic {indexing_maps = [#m, #c, #m], iterator_types = ["parallel", "parallel"]}
      ins(%p, %y : tensor<5x8xf32>, tensor<8xf32>) outs(%w : tensor<5x8xf32>) {
  ^bb0(%s: f32, %t: f32, %o: f32):
    %0 = arith.mulf %s, %t : f32
    linalg.yield %0 : f32
  } -> tensor<5x8xf32>
  %row = tensor.extract_slice %r[2, 0] [1, 8] [1, 1] : tensor<5x8xf32> to tensor<8xf32>
  return %r, %row : tensor<5x8xf32>, tensor<8xf32>
}

// -----

#v = affine_map<(i) -> (i)>

// Nothing is gained where only slices are read, and small tensors stay as they are.

// CHECK-LABEL: func.func @slices
// CHECK-COUNT-2: linalg.generic
func.func @slices(%x: tensor<99xf32>) -> tensor<98xf32> {
  %e = tensor.empty() : tensor<99xf32>
  %w = tensor.empty() : tensor<98xf32>
  %f = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%x : tensor<99xf32>) outs(%e : tensor<99xf32>) {
  ^bb0(%s: f32, %o: f32):
    %0 = math.tanh %s : f32
    linalg.yield %0 : f32
  } -> tensor<99xf32>
  %a = tensor.extract_slice %f[1] [98] [1] : tensor<99xf32> to tensor<98xf32>
  %b = tensor.extract_slice %f[0] [98] [1] : tensor<99xf32> to tensor<98xf32>
  %r = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<98xf32>, tensor<98xf32>) outs(%w : tensor<98xf32>) {
  ^bb0(%s: f32, %t: f32, %o: f32):
    %0 = arith.subf %s, %t : f32
    linalg.yield %0 : f32
  } -> tensor<98xf32>
  return %r : tensor<98xf32>
}

// -----

#w = affine_map<(i) -> (i)>

// Slices that are stored into a tensor that a loop carries are stored in place: what reads the old contents reads them
// where they are overwritten.

// CHECK-LABEL: func.func @in_place
// CHECK: scf.for {{.*}} iter_args(%[[U:.*]] = %{{.*}}) -> (tensor<20xf32>)
// CHECK: %[[FIRST:.*]] = tensor.insert_slice %{{.*}} into %[[U]][0] [10] [1]
// CHECK: %[[OLD:.*]] = tensor.extract_slice %[[FIRST]][10] [10] [1]
// CHECK: %[[F:.*]] = linalg.generic {{.*}} ins(%[[OLD]] : tensor<10xf32>)
// CHECK: %[[NEW:.*]] = tensor.insert_slice %[[F]] into %[[FIRST]][10] [10] [1]
// CHECK-NEXT: scf.yield %[[NEW]]
func.func @in_place(%x: tensor<20xf32>, %y: tensor<10xf32>, %n: index) -> tensor<20xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%u = %x) -> (tensor<20xf32>) {
    %first = tensor.insert_slice %y into %u[0] [10] [1] : tensor<10xf32> into tensor<20xf32>
    %old = tensor.extract_slice %first[10] [10] [1] : tensor<20xf32> to tensor<10xf32>
    %e = tensor.empty() : tensor<10xf32>
    %f = linalg.generic {indexing_maps = [#w, #w], iterator_types = ["parallel"]}
        ins(%old : tensor<10xf32>) outs(%e : tensor<10xf32>) {
    ^bb0(%s: f32, %o: f32):
      %0 = arith.mulf %s, %s : f32
      linalg.yield %0 : f32
    } -> tensor<10xf32>
    %new = tensor.insert_slice %f into %first[10] [10] [1] : tensor<10xf32> into tensor<20xf32>
    scf.yield %new : tensor<20xf32>
  }
  return %r : tensor<20xf32>
}

// -----

#w = affine_map<(i) -> (i)>

// Where neighbours are read, what is stored would go to a temporary: all of it is computed anew.

// CHECK-LABEL: func.func @neighbours
// CHECK: scf.for {{.*}} iter_args(%[[U:.*]] = %{{.*}}) -> (tensor<20xf32>)
// CHECK-NOT: tensor.insert_slice {{.*}} into %[[U]]
// CHECK: scf.yield
func.func @neighbours(%x: tensor<20xf32>, %y: tensor<1xf32>, %n: index) -> tensor<20xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%u = %x) -> (tensor<20xf32>) {
    %first = tensor.insert_slice %y into %u[0] [1] [1] : tensor<1xf32> into tensor<20xf32>
    %left = tensor.extract_slice %first[0] [19] [1] : tensor<20xf32> to tensor<19xf32>
    %e = tensor.empty() : tensor<19xf32>
    %f = linalg.generic {indexing_maps = [#w, #w], iterator_types = ["parallel"]}
        ins(%left : tensor<19xf32>) outs(%e : tensor<19xf32>) {
    ^bb0(%s: f32, %o: f32):
      %0 = arith.mulf %s, %s : f32
      linalg.yield %0 : f32
    } -> tensor<19xf32>
    %new = tensor.insert_slice %f into %first[1] [19] [1] : tensor<19xf32> into tensor<20xf32>
    scf.yield %new : tensor<20xf32>
  }
  return %r : tensor<20xf32>
}

// RUN: mlirml-opt %s --mlirml-free-sizes --split-input-file | filecheck %s

// A marked size becomes dynamic in types, empty tensors, reshapes and slices; products of marks become products.
// CHECK-LABEL: func.func @main(%arg0: tensor<?x4xf32>, %arg1: tensor<2xi64>) -> tensor<?x4xf32> attributes {mlirml.dims = array<i64: 0, 1>, mlirml.work_terms = [array<i64: 368, 1>]}
// CHECK-DAG:     %[[N:.*]] = arith.index_cast %{{.*}} : i64 to index
// CHECK:         tensor.collapse_shape %arg0 {{.*}} : tensor<?x4xf32> into tensor<?xf32>
// CHECK:         tensor.expand_shape %{{.*}} output_shape [%{{.*}}, 4] : tensor<?xf32> into tensor<?x4xf32>
// CHECK:         tensor.extract_slice %{{.*}}[1, 0] [%{{.*}}, 4] [1, 1] : tensor<?x4xf32> to tensor<?x4xf32>
// CHECK:         tensor.empty(%{{.*}}) : tensor<?x4xf32>
// CHECK:         linalg.exp {{.*}} -> tensor<?x4xf32>
func.func @main(%x: tensor<262147x4xf32>, %sizes: tensor<2xi64>) -> tensor<262146x4xf32>
    attributes {mlirml.marked_sizes = array<i64: 262147, 262146>} {
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<262147x4xf32> into tensor<1048588xf32>
  %rows = tensor.expand_shape %flat [[0, 1]] output_shape [262147, 4] : tensor<1048588xf32> into tensor<262147x4xf32>
  %rest = tensor.extract_slice %rows[1, 0] [262146, 4] [1, 1] : tensor<262147x4xf32> to tensor<262146x4xf32>
  %e = tensor.empty() : tensor<262146x4xf32>
  %y = linalg.exp ins(%rest : tensor<262146x4xf32>) outs(%e : tensor<262146x4xf32>) -> tensor<262146x4xf32>
  return %y : tensor<262146x4xf32>
}

// -----

// An index that is a marked size is the size, and an array of one value is filled.
// CHECK-LABEL: func.func @main(%arg0: tensor<?xf32>, %arg1: tensor<1xi64>) -> tensor<?xf32>
// CHECK:         %[[N:.*]] = arith.index_cast
// CHECK:         linalg.fill
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[N]] step %{{.*}} -> (tensor<?xf32>)
func.func @main(%x: tensor<300007xf32>, %sizes: tensor<1xi64>) -> tensor<300007xf32>
    attributes {mlirml.marked_sizes = array<i64: 300007>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 300007 : index
  %zeros = arith.constant dense<0.0> : tensor<300007xf32>
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%z = %zeros) -> (tensor<300007xf32>) {
    %a = tensor.extract %x[%i] : tensor<300007xf32>
    %s = tensor.insert %a into %z[%i] : tensor<300007xf32>
    scf.yield %s : tensor<300007xf32>
  }
  return %y : tensor<300007xf32>
}

// -----

// Without marked sizes nothing changes.
// CHECK-LABEL: func.func @main(%arg0: tensor<300007xf32>) -> tensor<300007xf32>
func.func @main(%x: tensor<300007xf32>) -> tensor<300007xf32> {
  return %x : tensor<300007xf32>
}

// -----

// A padded array is a filled one, into which the other is stored.
// CHECK-LABEL: func.func @main(%arg0: tensor<?xf32>, %arg1: tensor<2xi64>) -> tensor<?xf32>
// CHECK:         linalg.fill
// CHECK:         tensor.insert_slice %arg0 into %{{.*}}[1] [%{{.*}}] [1] : tensor<?xf32> into tensor<?xf32>
func.func @main(%x: tensor<300007xf32>, %sizes: tensor<2xi64>) -> tensor<300009xf32>
    attributes {mlirml.marked_sizes = array<i64: 300007, 300009>} {
  %zero = arith.constant 0.0 : f32
  %y = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<300007xf32> to tensor<300009xf32>
  return %y : tensor<300009xf32>
}

// RUN: mlirml-opt %s --mlirml-free-sizes --split-input-file --verify-diagnostics

func.func @main(%x: tensor<300007xf32>, %i: tensor<300007x1xindex>, %sizes: tensor<1xi64>) -> tensor<300007xf32>
    attributes {mlirml.marked_sizes = array<i64: 300007>} {
  %e = tensor.empty() : tensor<300007xf32>
  // expected-error @+1 {{needs static sizes: it is not made for dynamic ones}}
  %y = tensor.gather %x[%i] gather_dims([0]) : (tensor<300007xf32>, tensor<300007x1xindex>) -> tensor<300007xf32>
  return %y : tensor<300007xf32>
}

// -----

// Half of a mark is none: a folder may have made it.
func.func @main(%x: tensor<300007xf32>, %sizes: tensor<1xi64>) -> tensor<f32>
    attributes {mlirml.marked_sizes = array<i64: 300007>} {
  // expected-error @+1 {{an index may be computed from one}}
  %half = arith.constant 150003 : index
  %a = tensor.extract %x[%half] : tensor<300007xf32>
  %y = tensor.from_elements %a : tensor<f32>
  return %y : tensor<f32>
}

// -----

func.func @main(%x: tensor<300007xf32>, %sizes: tensor<1xi64>) -> tensor<f32>
    attributes {mlirml.marked_sizes = array<i64: 300007>} {
  // expected-error @+1 {{a number may be computed from one}}
  %n = arith.constant 300007.0 : f32
  %y = tensor.from_elements %n : tensor<f32>
  return %y : tensor<f32>
}

// -----

func.func @main(%x: tensor<300007xf32>, %sizes: tensor<1xi64>) -> tensor<f32>
    attributes {mlirml.marked_sizes = array<i64: 300007>} {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{needs static sizes: a size is a dynamic size plus 3}}
  %e = tensor.empty() : tensor<300010xf32>
  %a = tensor.extract %e[%c0] : tensor<300010xf32>
  %y = tensor.from_elements %a : tensor<f32>
  return %y : tensor<f32>
}

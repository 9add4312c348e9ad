// Affine maps and requests end with stage transform, dispatch regions with stage offload; buffers begin in schedule.
// RUN: mlirml-opt %s --mlirml-verify-stage=stage=capture | filecheck %s
// RUN: mlirml-opt %s --mlirml-verify-stage=stage=raise | filecheck %s
// RUN: mlirml-opt %s --verify-diagnostics --mlirml-verify-stage=stage=transform
// RUN: mlirml-opt %s --lower-affine --mlirml-verify-stage=stage=transform | filecheck %s
// RUN: mlirml-opt %s --lower-affine --mlirml-verify-stage=stage=optimize | filecheck %s
// RUN: mlirml-opt %s --lower-affine --mlirml-verify-stage=stage=offload | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%a: tensor<8xf32>, %i: index) -> f32 {
  // expected-error@+2 {{`affine.apply` is not legal after stage transform}}
  // expected-note@+1 {{pass `mlirml-lower-affine` should have removed it}}
  %j = affine.apply affine_map<(d0) -> (d0 * 2 + 1)>(%i)
  %x = tensor.extract %a[%j] : tensor<8xf32>
  return %x : f32
}

// RUN: mlirml-opt %s --target=webgpu --emit=wgsl | filecheck %s
// RUN: mlirml-opt %s --target=metal --emit=wgsl | filecheck %s

// CHECK: @compute @workgroup_size(
// CHECK-NEXT: fn k0_mulf
// CHECK: let [[X:v[0-9]+]] = buffer0_0[
// CHECK: [[X]] * [[X]]
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.mulf %a, %a : f32
    linalg.yield %m : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

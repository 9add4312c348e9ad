// RUN: mlirml-opt %s --split-input-file '--mlirml-form-dispatches=device=gpu,buffers=4' | filecheck %s

// Two results of three arrays are more than a kernel binds: each result is a kernel with what it is computed from.
#id = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func @main(
// CHECK-SAME:  %[[A:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>, %[[C:.*]]: tensor<8xf32>)
// CHECK:       %[[S:.*]] = scf.execute_region -> tensor<8xf32>
// CHECK:         linalg.generic {{.*}} ins(%[[A]], %[[B]] :
// CHECK:         arith.addf
// CHECK:       %[[P:.*]] = scf.execute_region -> tensor<8xf32>
// CHECK:         linalg.generic {{.*}} ins(%[[B]], %[[C]] :
// CHECK:         arith.mulf
// CHECK:       return %[[S]], %[[P]]
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %r:2 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b, %c : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) outs(%e, %e : tensor<8xf32>, tensor<8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32, %o: f32, %p: f32):
    %s = arith.addf %x, %y : f32
    %m = arith.mulf %y, %z : f32
    linalg.yield %s, %m : f32, f32
  } -> (tensor<8xf32>, tensor<8xf32>)
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Two results of one array are one kernel.
#id = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func @main(
// CHECK:       scf.execute_region
// CHECK:         linalg.generic
// CHECK-NOT:   scf.execute_region
func.func @main(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %r:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%a : tensor<8xf32>) outs(%e, %e : tensor<8xf32>, tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32, %p: f32):
    %s = arith.addf %x, %x : f32
    %m = arith.mulf %x, %x : f32
    linalg.yield %s, %m : f32, f32
  } -> (tensor<8xf32>, tensor<8xf32>)
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Numbers from outside take a buffer each, where a device binds a few: two results, two numbers for each kernel.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<f32>, tensor<f32>)
// CHECK-NOT:   linalg.generic
// CHECK:       return
#n = affine_map<() -> ()>
func.func @main(%a: f32, %b: f32, %c: f32, %d: f32) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {
  %e = tensor.empty() : tensor<f32>
  %r:4 = linalg.generic {indexing_maps = [#n, #n, #n, #n], iterator_types = []} outs(%e, %e, %e, %e : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {
  ^bb0(%p: f32, %q: f32, %r: f32, %s: f32):
    linalg.yield %a, %b, %c, %d : f32, f32, f32, f32
  } -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
}

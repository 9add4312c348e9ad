// RUN: mlirml-opt %s --mlirml-restore-unit-dims | filecheck %s

// Scores with a batch of one matrix keep this dim between the products, whose results are reduced and whose factors are
// computed.
// CHECK-DAG:   #[[A:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d0, d2)>
// CHECK-DAG:   #[[B:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d2, d1)>
// CHECK-DAG:   #[[C:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d0, d1)>
// CHECK-LABEL: func.func @main
// CHECK:       %[[K:.*]] = tensor.expand_shape %arg1 {{.*}} into tensor<1x16x96xf32>
// CHECK:       %[[S:.*]] = linalg.contract indexing_maps = [#[[A]], #[[B]], #[[C]]] ins(%arg0, %[[K]]
// CHECK-SAME:    -> tensor<1x64x96xf32>
// CHECK:       %[[P:.*]]:2 = linalg.generic {{.*}} ins(%[[S]] : tensor<1x64x96xf32>)
// CHECK-NOT:   tensor.collapse_shape %[[P]]
// CHECK:       %[[O:.*]] = linalg.contract {{.*}} ins(%[[P]]#0, %{{.*}} : tensor<1x64x96xf32>, tensor<1x96x8xf32>)
// CHECK:       %[[R:.*]] = tensor.collapse_shape %[[O]] {{.*}} into tensor<64x8xf32>
// CHECK:       return %[[R]]
#id = affine_map<(b, i, j) -> (b, i, j)>
#row = affine_map<(b, i, j) -> (b, i)>
func.func @main(%q: tensor<1x64x16xf32>, %k: tensor<16x96xf32>, %v: tensor<96x8xf32>)
    -> (tensor<64x8xf32>, tensor<1x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = tensor.collapse_shape %q [[0, 1], [2]] : tensor<1x64x16xf32> into tensor<64x16xf32>
  %e = tensor.empty() : tensor<64x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %s = linalg.matmul ins(%a, %k : tensor<64x16xf32>, tensor<16x96xf32>) outs(%f : tensor<64x96xf32>) -> tensor<64x96xf32>
  %x = tensor.expand_shape %s [[0, 1], [2]] output_shape [1, 64, 96] : tensor<64x96xf32> into tensor<1x64x96xf32>
  %ep = tensor.empty() : tensor<1x64x96xf32>
  %er = tensor.empty() : tensor<1x64xf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<1x64xf32>) -> tensor<1x64xf32>
  %p:2 = linalg.generic {indexing_maps = [#id, #id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<1x64x96xf32>) outs(%ep, %fr : tensor<1x64x96xf32>, tensor<1x64xf32>) {
  ^bb0(%in: f32, %out: f32, %total: f32):
    %y = math.exp %in : f32
    %t = arith.addf %total, %y : f32
    linalg.yield %y, %t : f32, f32
  } -> (tensor<1x64x96xf32>, tensor<1x64xf32>)
  %c = tensor.collapse_shape %p#0 [[0, 1], [2]] : tensor<1x64x96xf32> into tensor<64x96xf32>
  %eo = tensor.empty() : tensor<64x8xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x8xf32>) -> tensor<64x8xf32>
  %o = linalg.matmul ins(%c, %v : tensor<64x96xf32>, tensor<96x8xf32>) outs(%fo : tensor<64x8xf32>) -> tensor<64x8xf32>
  return %o, %p#1 : tensor<64x8xf32>, tensor<1x64xf32>
}

// RUN: mlirml-opt %s --mlirml-fuse=search=true | filecheck %s

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// A large array that is summed over rows and over columns: a quotient takes less time than its way to memory and back.
// CHECK-LABEL: func.func @two_sums
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<4096x1024xf32>, tensor<4096xf32>) outs(%{{.*}} : tensor<4096xf32>)
// CHECK: arith.divf
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<4096x1024xf32>, tensor<4096xf32>) outs(%{{.*}} : tensor<1024xf32>)
// CHECK: arith.divf
func.func @two_sums(%x: tensor<4096x1024xf32>, %s: tensor<4096xf32>) -> (tensor<4096xf32>, tensor<1024xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x1024xf32>
  %q = linalg.generic {indexing_maps = [#m, #row, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<4096x1024xf32>, tensor<4096xf32>) outs(%e : tensor<4096x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<4096x1024xf32>
  %er = tensor.empty() : tensor<4096xf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<4096xf32>) -> tensor<4096xf32>
  %r = linalg.generic {indexing_maps = [#m, #row], iterator_types = ["parallel", "reduction"]}
      ins(%q : tensor<4096x1024xf32>) outs(%fr : tensor<4096xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  } -> tensor<4096xf32>
  %ec = tensor.empty() : tensor<1024xf32>
  %fc = linalg.fill ins(%zero : f32) outs(%ec : tensor<1024xf32>) -> tensor<1024xf32>
  %c = linalg.generic {indexing_maps = [#m, #column], iterator_types = ["reduction", "parallel"]}
      ins(%q : tensor<4096x1024xf32>) outs(%fc : tensor<1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  } -> tensor<1024xf32>
  return %r, %c : tensor<4096xf32>, tensor<1024xf32>
}

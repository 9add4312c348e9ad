// RUN: mlirml-opt %s --split-input-file --mlirml-hoist | filecheck %s

#v = affine_map<(i) -> (i)>

// What costs something moves out with what it needs; what is cheap, and what reads the carry, stays.
// CHECK-LABEL: func.func @main
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<8xf32>) outs(%{{.*}} : tensor<8xf32>)
// CHECK: math.exp
// CHECK: %[[F:.*]] = linalg.fill
// CHECK: linalg.matmul ins(%{{.*}}) outs(%[[F]] : tensor<8x8xf32>)
// CHECK: scf.for
// CHECK: arith.addf
// CHECK: arith.mulf
// CHECK: scf.yield
func.func @main(%x: tensor<8xf32>, %a: tensor<8xf32>, %m: tensor<8x8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %x) -> (tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %exp = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
        ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%p: f32, %o: f32):
      %0 = math.exp %p : f32
      linalg.yield %0 : f32
    } -> tensor<8xf32>
    %cheap = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
        ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%p: f32, %o: f32):
      %0 = arith.addf %p, %p : f32
      linalg.yield %0 : f32
    } -> tensor<8xf32>
    %me = tensor.empty() : tensor<8x8xf32>
    %mz = linalg.fill ins(%zero : f32) outs(%me : tensor<8x8xf32>) -> tensor<8x8xf32>
    %mm = linalg.matmul ins(%m, %m : tensor<8x8xf32>, tensor<8x8xf32>) outs(%mz : tensor<8x8xf32>) -> tensor<8x8xf32>
    %row = tensor.extract_slice %mm[0, 0] [1, 8] [1, 1] : tensor<8x8xf32> to tensor<8xf32>
    %y = linalg.generic {indexing_maps = [#v, #v, #v, #v, #v], iterator_types = ["parallel"]}
        ins(%c, %exp, %cheap, %row : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
        outs(%e : tensor<8xf32>) {
    ^bb0(%p: f32, %q: f32, %s: f32, %t: f32, %o: f32):
      %0 = arith.mulf %p, %q : f32
      %1 = arith.addf %s, %t : f32
      %2 = arith.addf %0, %1 : f32
      linalg.yield %2 : f32
    } -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

#v = affine_map<(i) -> (i)>

// What reads at a computed place stays behind the check of it.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK: cf.assert
// CHECK: tensor.extract
// CHECK: math.exp
func.func @main(%x: tensor<8xf32>, %k: index, %ok: i1, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %x) -> (tensor<8xf32>) {
    cf.assert %ok, "out of bounds"
    %e = tensor.empty() : tensor<8xf32>
    %g = linalg.generic {indexing_maps = [#v], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
    ^bb0(%o: f32):
      %0 = tensor.extract %x[%k] : tensor<8xf32>
      %1 = math.exp %0 : f32
      linalg.yield %1 : f32
    } -> tensor<8xf32>
    scf.yield %g : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

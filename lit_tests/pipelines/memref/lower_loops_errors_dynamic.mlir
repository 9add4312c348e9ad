// RUN: not mlirml-opt %s --mlirml-lower-loops 2>&1 | filecheck %s

#m = affine_map<(i) -> (i)>

// CHECK: mlirml.LoweringError: no loops for `linalg.generic`: its extents are not constant
func.func @negated(%x: memref<?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel"]}
      ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  return
}

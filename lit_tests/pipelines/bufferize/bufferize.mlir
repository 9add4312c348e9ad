// RUN: mlirml-opt %s --split-input-file --mlirml-bufferize | filecheck %s

#v = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<8xf32>, %[[OUT:.*]]: memref<8xf32>)
// CHECK-SAME: mlirml.inputs = [tensor<8xf32>], mlirml.outputs = [tensor<8xf32>]
// CHECK-NEXT: linalg.generic {{.*}} ins(%[[X]] : memref<8xf32>) outs(%[[OUT]] : memref<8xf32>)
// CHECK-NOT: memref.copy
// CHECK: return
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<8xf32>, %[[A:.*]]: memref<8xf32>, %[[B:.*]]: memref<8xf32>)
// CHECK-DAG: memref.copy %[[X]], %[[A]]
// CHECK-DAG: memref.copy %[[X]], %[[B]]
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  return %x, %x : tensor<8xf32>, tensor<8xf32>
}

// -----

// CHECK: memref.global "private" constant @[[G:.*]] : memref<3xf32> = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]>
// CHECK-LABEL: func.func @main
// CHECK: %[[C:.*]] = memref.get_global @[[G]]
// CHECK: memref.copy %[[C]]
func.func @main() -> tensor<3xf32> {
  %c = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  return %c : tensor<3xf32>
}

// -----

// Padding is a fill and a store into the middle: what is padded is computed there at once.
// CHECK-LABEL: func.func @main
// CHECK: linalg.fill ins(%{{.*}} : f32) outs(%[[OUT:.*]] : memref<6xf32>)
// CHECK: %[[MIDDLE:.*]] = memref.subview %[[OUT]][1] [4] [1]
// CHECK: linalg.generic {{.*}} outs(%[[MIDDLE]]
// CHECK-NOT: memref.copy
#w = affine_map<(i) -> (i)>
func.func @main(%x: tensor<4xf32>) -> tensor<6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %n = linalg.generic {indexing_maps = [#w, #w], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %p = tensor.pad %n low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<4xf32> to tensor<6xf32>
  return %p : tensor<6xf32>
}

// -----

#v = affine_map<(i) -> (i)>

// The argument is read and written in the memory of the result that replaces it.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%{{.*}}: memref<8xf32>, %[[OUT:.*]]: memref<8xf32>)
// CHECK-SAME: mlirml.in_place = array<i64: 0>
// CHECK-NEXT: %[[PART:.*]] = memref.subview %[[OUT]][2] [4] [1]
// CHECK-NEXT: linalg.generic {{.*}} ins(%[[PART]] : {{.*}}) outs(%[[PART]] : {{.*}})
// CHECK-NOT: memref.copy
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> attributes {mlirml.writebacks = array<i64: 0, 0>} {
  %part = tensor.extract_slice %x[2] [4] [1] : tensor<8xf32> to tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%part : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %new = tensor.insert_slice %r into %x[2] [4] [1] : tensor<4xf32> into tensor<8xf32>
  return %new : tensor<8xf32>
}

// -----

#v = affine_map<(i) -> (i)>

// What is returned as it came is copied before it is written over.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%{{.*}}: memref<8xf32>, %[[OLD:.*]]: memref<8xf32>, %[[OUT:.*]]: memref<8xf32>)
// CHECK: memref.copy %[[OUT]], %[[OLD]]
// CHECK: linalg.generic {{.*}} ins(%[[OUT]] : {{.*}}) outs(%[[OUT]] : {{.*}})
// CHECK-NOT: memref.copy
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {mlirml.writebacks = array<i64: 1, 0>} {
  %e = tensor.empty() : tensor<8xf32>
  %new = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  return %x, %new : tensor<8xf32>, tensor<8xf32>
}

// -----

#v = affine_map<(i) -> (i)>

// A scatter: the array is copied once, into the result, where every round updates its row in place.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<16x4xf32>, %[[I:.*]]: memref<8xindex>, %[[V:.*]]: memref<8x4xf32>, %[[OUT:.*]]: memref<16x4xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]] : memref<16x4xf32>) outs(%[[OUT]] : memref<16x4xf32>)
// CHECK: scf.for %[[K:.*]] = %c0 to %c8 step %c1 {
// CHECK-NEXT: %[[AT:.*]] = memref.load %[[I]][%[[K]]]
// CHECK-NEXT: %[[NEW:.*]] = memref.subview %[[V]][%[[K]], 0] [1, 4] [1, 1]
// CHECK-NEXT: %[[ROW:.*]] = memref.subview %[[OUT]][%[[AT]], 0] [1, 4] [1, 1]
// CHECK-NEXT: linalg.generic {{.*}} ins(%[[ROW]], %[[NEW]] : {{.*}}) outs(%[[ROW]] : {{.*}})
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: return
func.func @main(%x: tensor<16x4xf32>, %i: tensor<8xindex>, %v: tensor<8x4xf32>) -> tensor<16x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %k = %c0 to %c8 step %c1 iter_args(%t = %x) -> (tensor<16x4xf32>) {
    %at = tensor.extract %i[%k] : tensor<8xindex>
    %new = tensor.extract_slice %v[%k, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
    %old = tensor.extract_slice %t[%at, 0] [1, 4] [1, 1] : tensor<16x4xf32> to tensor<4xf32>
    %e = tensor.empty() : tensor<4xf32>
    %sum = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
        ins(%old, %new : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.addf %a, %b : f32
      linalg.yield %0 : f32
    } -> tensor<4xf32>
    %u = tensor.insert_slice %sum into %t[%at, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    scf.yield %u : tensor<16x4xf32>
  } {mlirml.scatter = "add"}
  return %r : tensor<16x4xf32>
}

// -----

// Nested loops hand the same buffer on.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<9xf32>, %{{.*}}: memref<2x3xindex>, %{{.*}}: memref<2x3xf32>, %[[OUT:.*]]: memref<9xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]] : memref<9xf32>) outs(%[[OUT]] : memref<9xf32>)
// CHECK: scf.for
// CHECK-NEXT: scf.for
// CHECK: memref.store %{{.*}}, %[[OUT]][%{{.*}}]
// CHECK-NOT: memref.copy
// CHECK: return
func.func @main(%x: tensor<9xf32>, %i: tensor<2x3xindex>, %v: tensor<2x3xf32>) -> tensor<9xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %j = %c0 to %c2 step %c1 iter_args(%s = %x) -> (tensor<9xf32>) {
    %inner = scf.for %k = %c0 to %c3 step %c1 iter_args(%t = %s) -> (tensor<9xf32>) {
      %at = tensor.extract %i[%j, %k] : tensor<2x3xindex>
      %new = tensor.extract %v[%j, %k] : tensor<2x3xf32>
      %u = tensor.insert %new into %t[%at] : tensor<9xf32>
      scf.yield %u : tensor<9xf32>
    }
    scf.yield %inner : tensor<9xf32>
  } {mlirml.scatter = "set"}
  return %r : tensor<9xf32>
}

// -----

// Both parts of a complex result are computed where they lie in the result, by one operation.
#v = affine_map<(i) -> (i)>
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<8x2xf32>, %[[OUT:.*]]: memref<8x2xf32>)
// CHECK-DAG: %[[IM:.*]] = memref.subview %[[OUT]][0, 1] [8, 1] [1, 1] {{.*}} to memref<8xf32, strided<[2], offset: 1>>
// CHECK-DAG: %[[RE:.*]] = memref.subview %[[OUT]][0, 0] [8, 1] [1, 1] {{.*}} to memref<8xf32, strided<[2]>>
// CHECK: linalg.generic {{.*}} outs(%[[RE]], %[[IM]] :
// CHECK-NOT: memref.copy
// CHECK: return
func.func @main(%x: tensor<8x2xf32>) -> tensor<8x2xf32> {
  %re = tensor.extract_slice %x[0, 0] [8, 1] [1, 1] : tensor<8x2xf32> to tensor<8xf32>
  %im = tensor.extract_slice %x[0, 1] [8, 1] [1, 1] : tensor<8x2xf32> to tensor<8xf32>
  %e0 = tensor.empty() : tensor<8xf32>
  %e1 = tensor.empty() : tensor<8xf32>
  %z:2 = linalg.generic {indexing_maps = [#v, #v, #v, #v], iterator_types = ["parallel"]}
      ins(%re, %im : tensor<8xf32>, tensor<8xf32>) outs(%e0, %e1 : tensor<8xf32>, tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32, %p: f32):
    %s = arith.addf %a, %b : f32
    %d = arith.subf %a, %b : f32
    linalg.yield %s, %d : f32, f32
  } -> (tensor<8xf32>, tensor<8xf32>)
  %out = tensor.empty() : tensor<8x2xf32>
  %first = tensor.insert_slice %z#0 into %out[0, 0] [8, 1] [1, 1] : tensor<8xf32> into tensor<8x2xf32>
  %both = tensor.insert_slice %z#1 into %first[0, 1] [8, 1] [1, 1] : tensor<8xf32> into tensor<8x2xf32>
  return %both : tensor<8x2xf32>
}

// -----

// Sorts read their operand where it lies, and write straight into a result; nothing is copied.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<4x8xf32>, %[[Y:.*]]: memref<4x8xf32>, %[[ORDER:.*]]: memref<4x3xi64>, %[[OUT:.*]]: memref<4x8xf32>)
// CHECK: "mlirml.argsort"(%[[X]], %[[ORDER]]) {descending = true, kind = "f32"} : (memref<4x8xf32>, memref<4x3xi64>) -> ()
// CHECK: %[[T:.*]] = memref.alloc()
// CHECK: "mlirml.sort"(%[[Y]], %[[T]]) {descending = false, kind = "f32"} : (memref<4x8xf32>, memref<4x8xf32>) -> ()
// CHECK: linalg.generic {{.*}} ins(%[[T]] : memref<4x8xf32>) outs(%[[OUT]] : memref<4x8xf32>)
// CHECK-NOT: memref.copy
// CHECK: return
#m = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x3xi64>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x3xi64>
  %r = "mlirml.argsort"(%x, %e) {descending = true, kind = "f32"} : (tensor<4x8xf32>, tensor<4x3xi64>) -> tensor<4x3xi64>
  %f = tensor.empty() : tensor<4x8xf32>
  %s = "mlirml.sort"(%y, %f) {descending = false, kind = "f32"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %g = tensor.empty() : tensor<4x8xf32>
  %n = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<4x8xf32>) outs(%g : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %negated = arith.negf %a : f32
    linalg.yield %negated : f32
  } -> tensor<4x8xf32>
  return %r, %n : tensor<4x3xi64>, tensor<4x8xf32>
}

// -----

// What goes into a slice of %x is computed elsewhere, and only the last operation writes into the slice: had it the
// memory of %0, that would be computed into the slice while the neighbours are read.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK: %[[SUM:.*]] = memref.alloc() {{.*}} : memref<8xf32>
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: linalg.generic {{.*}} outs(%[[SUM]] : memref<8xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[SUM]] : memref<8xf32>)
func.func @main(%x: tensor<10xf32>) -> tensor<10xf32> attributes {mlirml.writebacks = array<i64: 0, 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %third = arith.constant 0.25 : f32
  %r = scf.for %t = %c0 to %c5 step %c1 iter_args(%u = %x) -> (tensor<10xf32>) {
    %l = tensor.extract_slice %u[0] [8] [1] : tensor<10xf32> to tensor<8xf32>
    %m = tensor.extract_slice %u[2] [8] [1] : tensor<10xf32> to tensor<8xf32>
    %e = tensor.empty() : tensor<8xf32>
    %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%l, %m : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
    } -> tensor<8xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%0 : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %s = arith.mulf %a, %third : f32
      linalg.yield %s : f32
    } -> tensor<8xf32>
    %2 = tensor.insert_slice %1 into %u[1] [8] [1] : tensor<8xf32> into tensor<10xf32>
    scf.yield %2 : tensor<10xf32>
  }
  return %r : tensor<10xf32>
}

// -----

#m = affine_map<(i, j) -> (i, j)>

// What is stored over and returned as well is copied where the stores go, and returned from memory of its own: the
// first result would be written before the parts of the second one are read in it.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<4x2xf32>, %[[NEW:.*]]: memref<4x2xf32>, %[[OLD:.*]]: memref<2x4xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]] : memref<4x2xf32>) outs(%[[Y:.*]] : memref<4x2xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[Y]] : memref<4x2xf32>) outs(%[[NEW]] : memref<4x2xf32>)
// CHECK: %[[ROW:.*]] = memref.subview %[[NEW]][0, 0] [1, 2] [1, 1]
// CHECK: linalg.fill {{.*}} outs(%[[ROW]] : {{.*}})
// CHECK: return
func.func @main(%x: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<2x4xf32>) {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %y = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x2xf32>) outs(%e : tensor<4x2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  } -> tensor<4x2xf32>
  %r = tensor.empty() : tensor<2xf32>
  %ones = linalg.fill ins(%one : f32) outs(%r : tensor<2xf32>) -> tensor<2xf32>
  %new = tensor.insert_slice %ones into %y[0, 0] [1, 2] [1, 1] : tensor<2xf32> into tensor<4x2xf32>
  %flat = tensor.collapse_shape %y [[0, 1]] : tensor<4x2xf32> into tensor<8xf32>
  %old = tensor.expand_shape %flat [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  return %new, %old : tensor<4x2xf32>, tensor<2x4xf32>
}

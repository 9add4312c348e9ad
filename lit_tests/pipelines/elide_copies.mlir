// RUN: mlirml-opt %s --split-input-file --mlirml-elide-copies | filecheck %s

#v = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func @concatenation
// CHECK-SAME: (%[[X:.*]]: memref<4xf32>, %[[OUT:.*]]: memref<8xf32>)
// CHECK-NOT: memref.alloc
// CHECK-DAG: %[[A:.*]] = memref.subview %[[OUT]][0] [4] [1]
// CHECK-DAG: %[[B:.*]] = memref.subview %[[OUT]][4] [4] [1]
// CHECK: linalg.generic {{.*}} outs(%[[A]], %[[B]] :
// CHECK-NOT: memref.copy
// CHECK: return
func.func @concatenation(%x: memref<4xf32>, %out: memref<8xf32>) {
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
      ins(%x : memref<4xf32>) outs(%a, %b : memref<4xf32>, memref<4xf32>) {
  ^bb0(%s: f32, %p: f32, %q: f32):
    %0 = arith.negf %s : f32
    %1 = math.exp %s : f32
    linalg.yield %0, %1 : f32, f32
  }
  %first = memref.subview %out[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  memref.copy %a, %first : memref<4xf32> to memref<4xf32, strided<[1]>>
  %second = memref.subview %out[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
  memref.copy %b, %second : memref<4xf32> to memref<4xf32, strided<[1], offset: 4>>
  return
}

// -----

#v = affine_map<(i) -> (i)>

// What is copied comes from the target, shifted: it may not be written while it is read.
// CHECK-LABEL: func.func @overlap
// CHECK: memref.alloc
// CHECK: memref.copy
// CHECK: memref.copy
func.func @overlap(%x: memref<8xf32>) {
  %a = memref.alloc() : memref<4xf32>
  %from = memref.subview %x[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  memref.copy %from, %a : memref<4xf32, strided<[1]>> to memref<4xf32>
  %to = memref.subview %x[1] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 1>>
  memref.copy %a, %to : memref<4xf32> to memref<4xf32, strided<[1], offset: 1>>
  return
}

// -----

#v = affine_map<(i) -> (i)>

// The buffer is read after the copy.
// CHECK-LABEL: func.func @read_later
// CHECK: memref.alloc
// CHECK: memref.copy
func.func @read_later(%x: memref<4xf32>, %out: memref<8xf32>, %y: memref<4xf32>) {
  %a = memref.alloc() : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  %part = memref.subview %out[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  memref.copy %a, %part : memref<4xf32> to memref<4xf32, strided<[1]>>
  linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%a : memref<4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%s: f32, %o: f32):
    %0 = arith.negf %s : f32
    linalg.yield %0 : f32
  }
  return
}

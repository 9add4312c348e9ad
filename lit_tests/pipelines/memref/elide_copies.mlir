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

// -----

#v = affine_map<(i) -> (i)>

// The row before is read where it is, as another one is written; and the row is computed where it belongs.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%[[X:.*]]: memref<8x4xf32>, %[[Y:.*]]: memref<8x4xf32>)
// CHECK: scf.for
// CHECK-NOT: memref.alloc
// CHECK-DAG: %[[OLD:.*]] = memref.subview %[[Y]][%[[K:.*]], 0] [1, 4] [1, 1]
// CHECK-DAG: %[[NEW:.*]] = memref.subview %[[Y]][%[[J:.*]], 0] [1, 4] [1, 1]
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[OLD]] : {{.*}} outs(%[[NEW]] :
// CHECK-NOT: memref.copy
// CHECK: return
func.func @rows(%x: memref<8x4xf32>, %y: memref<8x4xf32>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %j = %c1 to %c8 step %c1 {
    %k = arith.subi %j, %c1 : index
    %row = memref.subview %x[%j, 0] [1, 4] [1, 1] : memref<8x4xf32> to memref<4xf32, strided<[1], offset: ?>>
    %old = memref.subview %y[%k, 0] [1, 4] [1, 1] : memref<8x4xf32> to memref<4xf32, strided<[1], offset: ?>>
    %a = memref.alloc() : memref<4xf32>
    memref.copy %old, %a : memref<4xf32, strided<[1], offset: ?>> to memref<4xf32>
    %b = memref.alloc() : memref<4xf32>
    linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
        ins(%row, %a : memref<4xf32, strided<[1], offset: ?>>, memref<4xf32>) outs(%b : memref<4xf32>) {
    ^bb0(%p: f32, %q: f32, %out: f32):
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
    }
    %new = memref.subview %y[%j, 0] [1, 4] [1, 1] : memref<8x4xf32> to memref<4xf32, strided<[1], offset: ?>>
    memref.copy %b, %new : memref<4xf32> to memref<4xf32, strided<[1], offset: ?>>
  }
  return
}

// -----

#v = affine_map<(i) -> (i)>

// Row 8 - j may be row j: what is read must not have been overwritten.
// CHECK-LABEL: func.func @may_be_the_same_row
// CHECK: memref.copy
// CHECK: return
func.func @may_be_the_same_row(%x: memref<9x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %j = %c0 to %c8 step %c1 {
    %k = arith.subi %c8, %j : index
    %old = memref.subview %x[%k, 0] [1, 4] [1, 1] : memref<9x4xf32> to memref<4xf32, strided<[1], offset: ?>>
    %a = memref.alloc() : memref<4xf32>
    memref.copy %old, %a : memref<4xf32, strided<[1], offset: ?>> to memref<4xf32>
    %new = memref.subview %x[%j, 0] [1, 4] [1, 1] : memref<9x4xf32> to memref<4xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
        ins(%a : memref<4xf32>) outs(%new : memref<4xf32, strided<[1], offset: ?>>) {
    ^bb0(%p: f32, %out: f32):
      %s = arith.negf %p : f32
      linalg.yield %s : f32
    }
  }
  return
}

// -----

#v = affine_map<(i) -> (i)>

// Row j - 1 is overwritten between its copy and the reading of that.
// CHECK-LABEL: func.func @written_between
// CHECK: memref.copy
// CHECK: return
func.func @written_between(%x: memref<8x4xf32>, %y: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %j = %c1 to %c8 step %c1 {
    %k = arith.subi %j, %c1 : index
    %old = memref.subview %x[%k, 0] [1, 4] [1, 1] : memref<8x4xf32> to memref<4xf32, strided<[1], offset: ?>>
    %a = memref.alloc() : memref<4xf32>
    memref.copy %old, %a : memref<4xf32, strided<[1], offset: ?>> to memref<4xf32>
    linalg.fill ins(%zero : f32) outs(%old : memref<4xf32, strided<[1], offset: ?>>)
    linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
        ins(%a : memref<4xf32>) outs(%y : memref<4xf32>) {
    ^bb0(%p: f32, %out: f32):
      %s = arith.negf %p : f32
      linalg.yield %s : f32
    }
  }
  return
}

// RUN: mlirml-opt %s --split-input-file --mlirml-tile-rows=least-bytes=2048 | filecheck %s

#v = affine_map<(i) -> (i)>

// Tiles of 16 rows, whose lines of two arrays have 2048 bytes; four rows are left over.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<100x30xf64>, %[[Y:.*]]: memref<100x30xf64>)
// CHECK: scf.for %[[R:.*]] = %c0{{.*}} to %c96{{.*}} step %c16
// CHECK-NEXT: scf.for %[[J:.*]] = %c1 to %c30 step %c1
// CHECK: %[[A:.*]] = memref.subview %[[X]][%[[R]], %[[J]]] [16, 1] [1, 1]
// CHECK: %[[B:.*]] = memref.subview %[[Y]][%[[R]], %{{.*}}] [16, 1] [1, 1]
// CHECK: %[[C:.*]] = memref.subview %[[Y]][%[[R]], %[[J]]] [16, 1] [1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[A]], %[[B]] : {{.*}} outs(%[[C]] : memref<16xf64, strided<[30], offset: ?>>)
// CHECK: } {mlirml.parallel}
// CHECK: scf.for
// CHECK: memref.subview %[[X]][%c96{{.*}}, %{{.*}}] [4, 1] [1, 1]
// CHECK: return
func.func @main(%x: memref<100x30xf64>, %y: memref<100x30xf64>) {
  %c1 = arith.constant 1 : index
  %c30 = arith.constant 30 : index
  scf.for %j = %c1 to %c30 step %c1 {
    %k = arith.subi %j, %c1 : index
    %a = memref.subview %x[0, %j] [100, 1] [1, 1] : memref<100x30xf64> to memref<100xf64, strided<[30], offset: ?>>
    %b = memref.subview %y[0, %k] [100, 1] [1, 1] : memref<100x30xf64> to memref<100xf64, strided<[30], offset: ?>>
    %c = memref.subview %y[0, %j] [100, 1] [1, 1] : memref<100x30xf64> to memref<100xf64, strided<[30], offset: ?>>
    linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
        ins(%a, %b : memref<100xf64, strided<[30], offset: ?>>, memref<100xf64, strided<[30], offset: ?>>)
        outs(%c : memref<100xf64, strided<[30], offset: ?>>) {
    ^bb0(%p: f64, %q: f64, %out: f64):
      %s = arith.addf %p, %q : f64
      linalg.yield %s : f64
    }
  }
  return
}

// -----

#v = affine_map<(i) -> (i)>

// A buffer of the body has the rows of the tile, and so has a column from outside of the loop.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<128x30xf64>, %[[Y:.*]]: memref<128xf64>)
// CHECK: scf.for %[[R:.*]] = %c0{{.*}} to %c128{{.*}} step %c32
// CHECK-NEXT: %[[COLUMN:.*]] = memref.subview %[[Y]][%[[R]]] [32] [1]
// CHECK-NEXT: scf.for
// CHECK: %[[T:.*]] = memref.alloc() {{.*}} : memref<32xf64>
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[COLUMN]] : {{.*}} outs(%[[T]] : memref<32xf64>)
// CHECK: linalg.generic {{.*}} ins(%[[T]] : memref<32xf64>) outs(%[[COLUMN]] :
func.func @main(%x: memref<128x30xf64>, %y: memref<128xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c30 = arith.constant 30 : index
  scf.for %j = %c0 to %c30 step %c1 {
    %a = memref.subview %x[0, %j] [128, 1] [1, 1] : memref<128x30xf64> to memref<128xf64, strided<[30], offset: ?>>
    %t = memref.alloc() : memref<128xf64>
    linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
        ins(%a, %y : memref<128xf64, strided<[30], offset: ?>>, memref<128xf64>) outs(%t : memref<128xf64>) {
    ^bb0(%p: f64, %q: f64, %out: f64):
      %s = arith.addf %p, %q : f64
      linalg.yield %s : f64
    }
    linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
        ins(%t : memref<128xf64>) outs(%y : memref<128xf64>) {
    ^bb0(%p: f64, %out: f64):
      %s = arith.negf %p : f64
      linalg.yield %s : f64
    }
  }
  return
}

// -----

#v = affine_map<(i) -> (i)>

// Each row reads what the row before it has stored.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @main(%y: memref<101x30xf64>) {
  %c1 = arith.constant 1 : index
  %c30 = arith.constant 30 : index
  scf.for %j = %c1 to %c30 step %c1 {
    %k = arith.subi %j, %c1 : index
    %b = memref.subview %y[0, %k] [100, 1] [1, 1] : memref<101x30xf64> to memref<100xf64, strided<[30], offset: ?>>
    %c = memref.subview %y[1, %j] [100, 1] [1, 1] : memref<101x30xf64> to memref<100xf64, strided<[30], offset: ?>>
    linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
        ins(%b : memref<100xf64, strided<[30], offset: ?>>) outs(%c : memref<100xf64, strided<[30], offset: ?>>) {
    ^bb0(%p: f64, %out: f64):
      %s = arith.negf %p : f64
      linalg.yield %s : f64
    }
  }
  return
}

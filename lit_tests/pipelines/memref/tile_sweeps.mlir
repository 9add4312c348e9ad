// RUN: mlirml-opt %s --split-input-file --mlirml-tile-sweeps=least-bytes=0 | filecheck %s

// Two sweeps that read each other's neighbours: the second lags one row behind, and a round two.

// CHECK: func.func private @main.sweep0.1(%[[LO:.*]]: index, %[[HI:.*]]: index, %{{.*}}: memref<1024xf32> {llvm.noalias},
// CHECK: scf.for %[[I:.*]] = %[[LO]] to %[[HI]]
// CHECK: memref.load
// CHECK: memref.load
// CHECK: memref.store
// CHECK: func.func private @main.sweep0.2
// CHECK-LABEL: func.func @main(
// CHECK: scf.for %[[START:.*]] = %c0{{.*}} to %{{.*}} step %c16
// CHECK: %[[ROUNDS:.*]] = arith.minsi %{{.*}}, %c16
// CHECK: scf.for %[[PHASE:.*]] = %c0{{.*}} to %c2
// CHECK: scf.parallel (%[[CHUNK:.*]]) =
// CHECK: scf.for %[[PLACE:.*]] = %{{.*}} to %{{.*}} step
// CHECK: scf.for %[[T:.*]] = %c0{{.*}} to %[[ROUNDS]]
// CHECK: %[[AHEAD:.*]] = arith.muli %[[T]], %c2
// CHECK: %[[P:.*]] = arith.subi %[[PLACE]], %[[AHEAD]]
// CHECK: arith.addi %[[P]], %c-1
// CHECK: func.call @main.sweep0.1
// CHECK: arith.addi %[[P]], %c-2
// CHECK: func.call @main.sweep0.2
// CHECK: scf.reduce
// CHECK-NEXT: mlirml.grain = 1
// CHECK-NOT: linalg
func.func @main(%a: memref<1024xf32>, %b: memref<1024xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %a0 = memref.subview %a[0] [1022] [1] : memref<1024xf32> to memref<1022xf32, strided<[1]>>
    %a1 = memref.subview %a[1] [1022] [1] : memref<1024xf32> to memref<1022xf32, strided<[1], offset: 1>>
    %a2 = memref.subview %a[2] [1022] [1] : memref<1024xf32> to memref<1022xf32, strided<[1], offset: 2>>
    %b0 = memref.subview %b[0] [1022] [1] : memref<1024xf32> to memref<1022xf32, strided<[1]>>
    %b1 = memref.subview %b[1] [1022] [1] : memref<1024xf32> to memref<1022xf32, strided<[1], offset: 1>>
    %b2 = memref.subview %b[2] [1022] [1] : memref<1024xf32> to memref<1022xf32, strided<[1], offset: 2>>
    linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]
    } ins(%a0, %a2 : memref<1022xf32, strided<[1]>>, memref<1022xf32, strided<[1], offset: 2>>)
      outs(%b1 : memref<1022xf32, strided<[1], offset: 1>>) {
    ^bb0(%x: f32, %y: f32, %out: f32):
      %s = arith.addf %x, %y : f32
      linalg.yield %s : f32
    }
    linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]
    } ins(%b0, %b2 : memref<1022xf32, strided<[1]>>, memref<1022xf32, strided<[1], offset: 2>>)
      outs(%a1 : memref<1022xf32, strided<[1], offset: 1>>) {
    ^bb0(%x: f32, %y: f32, %out: f32):
      %s = arith.addf %x, %y : f32
      linalg.yield %s : f32
    }
  }
  return
}

// -----

// Every row reads the first one, which is stored too: nothing is tiled.

// CHECK-LABEL: func.func @main
// CHECK-NOT: scf.parallel
// CHECK: linalg.generic
func.func @main(%a: memref<64x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %row = memref.subview %a[0, 0] [1, 8] [1, 1] : memref<64x8xf32> to memref<8xf32, strided<[1]>>
    linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%row : memref<8xf32, strided<[1]>>) outs(%a : memref<64x8xf32>) {
    ^bb0(%x: f32, %out: f32):
      %s = arith.addf %x, %out : f32
      linalg.yield %s : f32
    }
  }
  return
}

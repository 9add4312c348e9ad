// RUN: mlirml-opt %s --mlirml-memory-to-value --split-input-file | filecheck %s

// A product of matrices, as front ends for C write it.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[A:.*]]: tensor<4x5xf64>, %[[B:.*]]: tensor<5x6xf64>, %[[C:.*]]: tensor<4x6xf64>) -> tensor<4x6xf64> attributes {mlirml.writebacks = array<i64: 0, 2>}
// CHECK: %[[R:.*]] = scf.for %[[I:.*]] = %c0 to %c4 step %c1 iter_args(%[[C0:.*]] = %[[C]]) -> (tensor<4x6xf64>)
// CHECK-NEXT: scf.for %[[J:.*]] = %c0 to %c6 step %c1 iter_args(%[[C1:.*]] = %[[C0]]) -> (tensor<4x6xf64>)
// CHECK-NEXT: %[[C2:.*]] = tensor.insert %cst into %[[C1]][%[[I]], %[[J]]]
// CHECK-NEXT: scf.for %[[K:.*]] = %c0 to %c5 step %c1 iter_args(%[[C3:.*]] = %[[C2]])
// CHECK-NEXT: tensor.extract %[[A]][%[[I]], %[[K]]]
// CHECK-NEXT: tensor.extract %[[B]][%[[K]], %[[J]]]
// CHECK: tensor.insert %{{.*}} into %[[C3]][%[[I]], %[[J]]]
// CHECK: return %[[R]]
func.func @main(%a: memref<4x5xf64>, %b: memref<5x6xf64>, %c: memref<4x6xf64>) {
  %zero = arith.constant 0.0 : f64
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 6 {
      affine.store %zero, %c[%i, %j] : memref<4x6xf64>
      affine.for %k = 0 to 5 {
        %x = affine.load %a[%i, %k] : memref<4x5xf64>
        %y = affine.load %b[%k, %j] : memref<5x6xf64>
        %0 = arith.mulf %x, %y : f64
        %z = affine.load %c[%i, %j] : memref<4x6xf64>
        %1 = arith.addf %z, %0 : f64
        affine.store %1, %c[%i, %j] : memref<4x6xf64>
      }
    }
  }
  return
}

// -----

// Bounds with several results, conditions, numbers that loops carry, memory of the function's own.
// CHECK-LABEL: func.func @main
// CHECK: %[[E:.*]] = tensor.empty() : tensor<8xf32>
// CHECK: %[[T:.*]] = linalg.fill ins(%{{.*}}) outs(%[[E]] :
// CHECK: scf.for %[[I:.*]] = %c1 to %c8 step %c2 iter_args(%{{.*}} = %{{.*}}, %[[T0:.*]] = %[[T]]) -> (f32, tensor<8xf32>)
// CHECK: %[[PLACE:.*]] = affine.apply {{.*}}(%[[I]])
// CHECK: %[[LAST:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: scf.for %{{.*}} = %c0 to %[[LAST]]
// CHECK: %[[APPLIED:.*]] = affine.apply
// CHECK: %[[C:.*]] = arith.cmpi sge, %[[APPLIED]], %c0
// CHECK: scf.if %[[C]] -> (tensor<8xf32>)
// CHECK-NOT: memref
#two = affine_map<(d0) -> (d0 + 2, 6)>
#set = affine_set<(d0, d1) : (d0 - d1 - 1 >= 0)>
func.func @main(%x: memref<8xf32>, %y: memref<8xf32>) -> f32 {
  %t = memref.alloca() : memref<8xf32>
  %f = arith.constant 0.5 : f32
  linalg.fill ins(%f : f32) outs(%t : memref<8xf32>)
  %s = affine.for %i = 1 to 8 step 2 iter_args(%s0 = %f) -> (f32) {
    %a = affine.load %x[%i - 1] : memref<8xf32>
    %s1 = arith.addf %s0, %a : f32
    affine.for %j = 0 to min #two(%i) {
      affine.if #set(%i, %j) {
        affine.store %s1, %t[%j] : memref<8xf32>
      }
    }
    affine.yield %s1 : f32
  }
  memref.copy %t, %y : memref<8xf32> to memref<8xf32>
  return %s : f32
}

// -----

// Views are slices, loops with rounds in any order keep that, and `scf` carries the arrays too.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>, %{{.*}}: tensor<4xi64>) -> (tensor<4x8xf32>, tensor<4xi64>)
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[X0:.*]] = %[[X]])
// CHECK: scf.for %[[J:.*]] = {{.*}}
// CHECK: tensor.insert %{{.*}} into %{{.*}}[%[[I]], %{{.*}}]
// CHECK: } {mlirml.parallel}
// CHECK: } {mlirml.parallel}
// CHECK: scf.while
// CHECK: tensor.extract_slice
// CHECK: linalg.exp
// CHECK: tensor.insert_slice
func.func @main(%x: memref<4x8xf32>, %n: memref<4xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1 : i64
  %limit = arith.constant 5 : i64
  scf.parallel (%i, %j) = (%c0, %c0) to (%c4, %c3) step (%c1, %c1) {
    %row = memref.subview %x[%i, 1] [1, 4] [1, 2] : memref<4x8xf32> to memref<4xf32, strided<[2], offset: ?>>
    %a = memref.load %x[%i, %j] : memref<4x8xf32>
    %b = arith.negf %a : f32
    %k = arith.addi %j, %c1 : index
    memref.store %b, %row[%k] : memref<4xf32, strided<[2], offset: ?>>
    scf.reduce
  }
  scf.while : () -> () {
    %k = memref.load %n[%c1] : memref<4xi64>
    %more = arith.cmpi slt, %k, %limit : i64
    scf.condition(%more)
  } do {
    %k = memref.load %n[%c1] : memref<4xi64>
    %next = arith.addi %k, %one : i64
    memref.store %next, %n[%c1] : memref<4xi64>
    scf.yield
  }
  %in = memref.subview %x[0, 0] [2, 8] [1, 1] : memref<4x8xf32> to memref<2x8xf32, strided<[8, 1]>>
  %t = memref.alloc() : memref<2x8xf32>
  linalg.exp ins(%in : memref<2x8xf32, strided<[8, 1]>>) outs(%t : memref<2x8xf32>)
  memref.copy %t, %in : memref<2x8xf32> to memref<2x8xf32, strided<[8, 1]>>
  memref.dealloc %t : memref<2x8xf32>
  return
}

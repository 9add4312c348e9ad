// RUN: mlirml-opt %s --split-input-file --mlirml-splice-loads=processor=avx512 | filecheck %s

// The last vector of a row is loaded; the others are lanes of it and of the one before. The rest overlaps.

// CHECK-LABEL: func.func @neighbours(
// CHECK-SAME:    %[[A:[^:]*]]: memref<21xf64>, %[[B:[^:]*]]: memref<21xf64>
// CHECK:         %[[FIRST:.*]] = vector.load %[[A]][%{{.*}}] : memref<21xf64>, vector<8xf64>
// CHECK:         %[[START:.*]] = vector.shuffle %[[FIRST]], %[[FIRST]] [0, 0, 0, 0, 0, 0, 0, 1]
// CHECK:         scf.for %[[I:.*]] = %c0{{.*}} to %c16{{.*}} step %c8{{.*}} iter_args(%[[BEFORE:.*]] = %[[START]])
// CHECK:           %[[LAST:.*]] = vector.load
// CHECK:           %[[MIDDLE:.*]] = vector.shuffle %[[BEFORE]], %[[LAST]] [7, 8, 9, 10, 11, 12, 13, 14]
// CHECK:           %[[LEFT:.*]] = vector.shuffle %[[BEFORE]], %[[LAST]] [6, 7, 8, 9, 10, 11, 12, 13]
// CHECK:           %[[SUM:.*]] = arith.addf %[[LEFT]], %[[MIDDLE]] : vector<8xf64>
// CHECK:           arith.addf %[[SUM]], %[[LAST]] : vector<8xf64>
// CHECK:           vector.store
// CHECK:           scf.yield %[[LAST]]
// CHECK:         vector.load %[[A]][%c11
// CHECK:         vector.store
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @neighbours(%a: memref<21xf64>, %b: memref<21xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c19 = arith.constant 19 : index
  scf.for %i = %c0 to %c19 step %c1 {
    %i1 = arith.addi %i, %c1 : index
    %i2 = arith.addi %i, %c2 : index
    %left = memref.load %a[%i] : memref<21xf64>
    %middle = memref.load %a[%i1] : memref<21xf64>
    %right = memref.load %a[%i2] : memref<21xf64>
    %0 = arith.addf %left, %middle : f64
    %1 = arith.addf %0, %right : f64
    memref.store %1, %b[%i1] : memref<21xf64>
  }
  return
}

// -----

// What is stored is loaded in the same iteration: the rest is a scalar loop.

// CHECK-LABEL: func.func @in_place(
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %[[WHOLE:[^ ]*]] step %c8
// CHECK:           vector.store
// CHECK:         scf.for %{{.*}} = %[[WHOLE]] to %c20
// CHECK:           memref.store
func.func @in_place(%a: memref<21xf64>, %b: memref<21xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  scf.for %i = %c0 to %c20 step %c1 {
    %i1 = arith.addi %i, %c1 : index
    %left = memref.load %a[%i] : memref<21xf64>
    %right = memref.load %a[%i1] : memref<21xf64>
    %old = memref.load %b[%i] : memref<21xf64>
    %0 = arith.subf %right, %left : f64
    %1 = arith.addf %old, %0 : f64
    memref.store %1, %b[%i] : memref<21xf64>
  }
  return
}

// -----

// Iterations that read what others store, and slices of one workspace, of which only separate ones are apart.

// CHECK-LABEL: func.func @others(
// CHECK-NOT:     vector
// CHECK:         scf.for
// CHECK-NOT:     vector
// CHECK:         scf.for
// CHECK:           vector.shuffle
func.func @others(%a: memref<21xf64>, %w: memref<320xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c160 = arith.constant 160 : index
  %c19 = arith.constant 19 : index
  %x = memref.view %w[%c0][] : memref<320xi8> to memref<20xf64>
  %y = memref.view %w[%c160][] : memref<320xi8> to memref<20xf64>
  %z = memref.view %w[%c8][] : memref<320xi8> to memref<20xf64>
  scf.for %i = %c0 to %c19 step %c1 {
    %i1 = arith.addi %i, %c1 : index
    %left = memref.load %a[%i] : memref<21xf64>
    %right = memref.load %a[%i1] : memref<21xf64>
    %0 = arith.subf %right, %left : f64
    memref.store %0, %a[%i] : memref<21xf64>
  }
  scf.for %i = %c0 to %c19 step %c1 {
    %i1 = arith.addi %i, %c1 : index
    %left = memref.load %x[%i] : memref<20xf64>
    %right = memref.load %x[%i1] : memref<20xf64>
    %0 = arith.subf %right, %left : f64
    memref.store %0, %z[%i] : memref<20xf64>
  }
  scf.for %i = %c0 to %c19 step %c1 {
    %i1 = arith.addi %i, %c1 : index
    %left = memref.load %x[%i] : memref<20xf64>
    %right = memref.load %x[%i1] : memref<20xf64>
    %0 = arith.subf %right, %left : f64
    memref.store %0, %y[%i] : memref<20xf64>
  }
  return
}

// RUN: mlirml-opt %s --split-input-file --mlirml-jam-recurrences=processor=avx2 | filecheck %s

// Rows are contiguous along the terms: vectors of four terms of each of eight rows, then the terms of the block itself.

// CHECK-LABEL: func.func @substitution(
// CHECK-SAME:    %[[L:[^:]*]]: memref<64x64xf64>, %[[X:[^:]*]]: memref<64xf64>
// CHECK:         %[[REST:.*]] = arith.remsi
// CHECK:         %[[WHOLE:.*]] = arith.subi %{{.*}}, %[[REST]]
// CHECK:         scf.for %[[J:.*]] = %{{.*}} to %[[WHOLE]] step %c8
// CHECK:           %{{.*}}:8 = scf.for %[[K:.*]] = %{{.*}} to %[[J]] step %c4
// CHECK:             vector.load %[[L]][%[[J]], %[[K]]] : memref<64x64xf64>, vector<4xf64>
// CHECK:             vector.load %[[X]][%[[K]]]
// CHECK:             arith.mulf {{.*}} fastmath<contract> : vector<4xf64>
// CHECK:             arith.addf {{.*}} fastmath<reassoc,contract> : vector<4xf64>
// CHECK-COUNT-8:   vector.reduction <add>
// CHECK-COUNT-8:   memref.store
// CHECK:         scf.for %{{.*}} = %[[WHOLE]] to %c64
// CHECK:           scf.for
// CHECK-NOT:       vector
// CHECK:         return
func.func @substitution(%l: memref<64x64xf64>, %x: memref<64xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f64
  scf.for %j = %c0 to %c64 step %c1 {
    %s = scf.for %k = %c0 to %j step %c1 iter_args(%total = %zero) -> (f64) {
      %a = memref.load %l[%j, %k] : memref<64x64xf64>
      %b = memref.load %x[%k] : memref<64xf64>
      %ab = arith.mulf %a, %b fastmath<contract> : f64
      %sum = arith.addf %total, %ab fastmath<reassoc,contract> : f64
      scf.yield %sum : f64
    }
    %old = memref.load %x[%j] : memref<64xf64>
    %new = arith.subf %old, %s : f64
    memref.store %new, %x[%j] : memref<64xf64>
  }
  return
}

// -----

// Columns are contiguous along the iterations: a vector has one term of eight columns.

// CHECK-LABEL: func.func @columns(
// CHECK-SAME:    %[[A:[^:]*]]: memref<64x64xi32>
// CHECK:         scf.for %[[I:.*]] = %c0
// CHECK:           scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step %c8
// CHECK:             %{{.*}}:4 = scf.for %[[K:.*]] = %{{.*}} to %[[J]] step %c4
// CHECK:               memref.load %[[A]][%[[I]], %[[K]]]
// CHECK:               vector.load %[[A]][%[[K]], %[[J]]] : memref<64x64xi32>, vector<8xi32>
// CHECK:               arith.maxsi {{.*}} : vector<8xi32>
// CHECK-COUNT-8:     vector.extract
func.func @columns(%a: memref<64x64xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    scf.for %j = %c0 to %i step %c1 {
      %old = memref.load %a[%i, %j] : memref<64x64xi32>
      %s = scf.for %k = %c0 to %j step %c1 iter_args(%best = %old) -> (i32) {
        %p = memref.load %a[%i, %k] : memref<64x64xi32>
        %q = memref.load %a[%k, %j] : memref<64x64xi32>
        %pq = arith.addi %p, %q : i32
        %new = arith.maxsi %best, %pq : i32
        scf.yield %new : i32
      }
      memref.store %s, %a[%i, %j] : memref<64x64xi32>
    }
  }
  return
}

// -----

// Not where a sum may not be reordered, where the jammed terms read what the block stores, where there is no recurrence.

// CHECK-LABEL: func.func @others(
// CHECK-NOT:     vector
// CHECK:         return
func.func @others(%l: memref<64x64xf64>, %x: memref<64xf64>, %y: memref<64xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f64
  scf.for %j = %c0 to %c63 step %c1 {
    %s = scf.for %k = %c0 to %j step %c1 iter_args(%total = %zero) -> (f64) {
      %b = memref.load %x[%k] : memref<64xf64>
      %sum = arith.addf %total, %b : f64
      scf.yield %sum : f64
    }
    memref.store %s, %x[%j] : memref<64xf64>
  }
  scf.for %j = %c0 to %c63 step %c1 {
    %s = scf.for %k = %c0 to %j step %c1 iter_args(%total = %zero) -> (f64) {
      %k1 = arith.addi %k, %c1 : index
      %b = memref.load %x[%k1] : memref<64xf64>
      %sum = arith.addf %total, %b fastmath<reassoc> : f64
      scf.yield %sum : f64
    }
    memref.store %s, %x[%j] : memref<64xf64>
  }
  scf.for %j = %c0 to %c63 step %c1 {
    %s = scf.for %k = %c0 to %j step %c1 iter_args(%total = %zero) -> (f64) {
      %b = memref.load %x[%k] : memref<64xf64>
      %sum = arith.addf %total, %b fastmath<reassoc> : f64
      scf.yield %sum : f64
    }
    memref.store %s, %y[%j] : memref<64xf64>
  }
  return
}

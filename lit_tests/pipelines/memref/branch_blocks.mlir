// RUN: mlirml-opt %s --split-input-file --mlirml-branch-blocks="block=8 probe=4" | filecheck %s

// The condition of a block decides between the loop as it was, and one without the function.

// CHECK-LABEL: func.func @elu(
// CHECK:         scf.for %[[START:.*]] = %c0{{.*}} to %{{.*}} step %c8
// CHECK:           %[[EARLY:.*]] = scf.for %{{.*}} = %[[START]] to %[[MIDDLE:.*]] step %c1{{.*}} iter_args(%[[BEFORE:.*]] = %false
// CHECK:             %[[POSITIVE:.*]] = arith.cmpf ogt
// CHECK:             %[[SELECTS:.*]] = arith.xori %[[POSITIVE]]
// CHECK:             arith.ori %[[BEFORE]], %[[SELECTS]]
// CHECK:           %[[ANY:.*]] = scf.if %[[EARLY]] -> (i1)
// CHECK:             scf.for %{{.*}} = %[[MIDDLE]] to
// CHECK:           scf.if %[[ANY]] {
// CHECK:             math.expm1
// CHECK:           } else {
// CHECK-NOT:         math.expm1
// CHECK:             %[[X:.*]] = memref.load
// CHECK:             memref.store %[[X]]
// CHECK:         scf.for %{{.*}} to %c20
// CHECK:           math.expm1
func.func @elu(%a: memref<20xf32>, %b: memref<20xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  scf.for %i = %c0 to %c20 step %c1 {
    %x = memref.load %a[%i] : memref<20xf32>
    %positive = arith.cmpf ogt, %x, %zero : f32
    %e = math.expm1 %x : f32
    %y = arith.select %positive, %x, %e : f32
    memref.store %y, %b[%i] : memref<20xf32>
  }
  return
}

// -----

// The next iteration compares the element that this one stores.

// CHECK-LABEL: func.func @carried(
// CHECK-NOT:     scf.if
func.func @carried(%a: memref<21xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  scf.for %i = %c0 to %c20 step %c1 {
    %next = arith.addi %i, %c1 : index
    %x = memref.load %a[%i] : memref<21xf32>
    %positive = arith.cmpf ogt, %x, %zero : f32
    %e = math.expm1 %x : f32
    %y = arith.select %positive, %x, %e : f32
    memref.store %y, %a[%next] : memref<21xf32>
  }
  return
}

// -----

// A condition that nearly always selects the function.

// CHECK-LABEL: func.func @likely(
// CHECK-NOT:     scf.if
func.func @likely(%a: memref<20xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  scf.for %i = %c0 to %c20 step %c1 {
    %x = memref.load %a[%i] : memref<20xf32>
    %is_zero = arith.cmpf oeq, %x, %zero : f32
    %s = math.sin %x : f32
    %q = arith.divf %s, %x : f32
    %y = arith.select %is_zero, %one, %q : f32
    memref.store %y, %a[%i] : memref<20xf32>
  }
  return
}

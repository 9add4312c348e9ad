// RUN: mlirml-opt %s --split-input-file --mlirml-outline-parallel | filecheck %s

// CHECK: func.func private @main.parallel0(%[[LO:.*]]: index, %[[HI:.*]]: index, %[[S:.*]]: f32, %[[X:.*]]: memref<64x64xf32> {llvm.noalias})
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[FLAT:.*]] = memref.collapse_shape %[[X]]
// CHECK: scf.for %[[I:.*]] = %[[LO]] to %[[HI]] step %[[C1]]
// CHECK-NEXT: memref.store %[[S]], %[[FLAT]][%[[I]]]
// CHECK: func.func @main
// CHECK: call @main.parallel0(%c0, %c4096, %arg1, %arg0) {mlirml.parallel_for = 1024 : i64}
func.func @main(%x: memref<64x64xf32>, %s: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4096 = arith.constant 4096 : index
  %flat = memref.collapse_shape %x [[0, 1]] : memref<64x64xf32> into memref<4096xf32>
  scf.parallel (%i) = (%c0) to (%c4096) step (%c1) {
    memref.store %s, %flat[%i] : memref<4096xf32>
    scf.reduce
  } {mlirml.grain = 1024 : i64}
  return
}

// -----

// A step becomes a factor, a loop inside is sequential, and a stack buffer is made once a chunk.
// CHECK: func.func private @f.parallel0(%[[LO:.*]]: index, %[[HI:.*]]: index, %{{.*}}: memref<4096xf32>)
// CHECK: memref.alloca
// CHECK: scf.for %[[T:.*]] = %[[LO]] to %[[HI]]
// CHECK: %[[O:.*]] = arith.muli %[[T]], %[[STEP:.*]] : index
// CHECK: scf.for
// CHECK-NOT: scf.parallel
// CHECK: func.func @f
// CHECK: arith.ceildivsi
// CHECK: call @f.parallel0({{.*}}) {mlirml.long_chunks, mlirml.parallel_for = 1 : i64}
func.func @f(%x: memref<4096xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c4096 = arith.constant 4096 : index
  scf.parallel (%i) = (%c0) to (%c4096) step (%c64) {
    %t = memref.alloca() : memref<1xf32>
    scf.parallel (%j) = (%c0) to (%c64) step (%c1) {
      %k = arith.addi %i, %j : index
      %v = memref.load %x[%k] : memref<4096xf32>
      memref.store %v, %t[%c0] : memref<1xf32>
      scf.reduce
    }
    scf.reduce
  } {mlirml.long_chunks}
  return
}

// -----

// A body that hands things on from round to round learns where the part starts and ends; other loops' are left alone.
// CHECK: func.func private @spans.parallel0(%[[LO:.*]]: index, %[[HI:.*]]: index
// CHECK: scf.for
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %[[LO]] : index
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %{{.*}}, %[[HI]] : index
// CHECK: arith.minsi %{{.*}}, %{{.*}} {mlirml.span = "start"} : index
// CHECK-NOT: mlirml.span
func.func @spans(%x: memref<64xi1>, %y: memref<64xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
    %start = arith.minsi %i, %c0 {mlirml.span = "start"} : index
    %end = arith.maxsi %i, %c64 {mlirml.span = "end"} : index
    %first = arith.cmpi eq, %i, %start : index
    %more = arith.cmpi slt, %i, %end : index
    %both = arith.andi %first, %more : i1
    memref.store %both, %x[%i] : memref<64xi1>
    scf.for %j = %c0 to %c64 step %c1 {
      %inner = arith.minsi %j, %c0 {mlirml.span = "start"} : index
      memref.store %inner, %y[%j] : memref<64xindex>
    }
    scf.reduce
  } {mlirml.grain = 4 : i64}
  return
}

// -----

// The address of an array of dynamic size is captured, and its shape is made anew.
// CHECK-LABEL: func.func private @rows_of_dynamic_size.parallel0
// CHECK-SAME:    memref<f32>
// CHECK:         %[[X:.*]] = memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [%{{.*}}, 8], strides: [8, 1] : memref<f32> to memref<?x8xf32>
// CHECK:         memref.store %{{.*}}, %[[X]]
// CHECK-LABEL: func.func @rows_of_dynamic_size
// CHECK:         memref.view %{{.*}}[%{{.*}}][] : memref<1xi8> to memref<f32>
func.func @rows_of_dynamic_size(%bytes: memref<1xi8>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %x = memref.view %bytes[%c0][%n] : memref<1xi8> to memref<?x8xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    memref.store %zero, %x[%i, %c0] : memref<?x8xf32>
    scf.reduce
  } {mlirml.grain = 1 : i64}
  return
}

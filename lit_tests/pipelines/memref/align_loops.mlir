// RUN: mlirml-opt %s --split-input-file --mlirml-align-loops=processor=avx512 | filecheck %s
// RUN: mlirml-opt %s --split-input-file --mlirml-align-loops=processor=avx2 | filecheck %s --check-prefix=NARROW

// The array of the caller may start anywhere: up to 15 elements before its first whole line, and after its last one.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<8192xf32>, %[[OUT:.*]]: memref<8192xf32>, %[[K:.*]]: f32)
// CHECK: %[[ADDRESS:.*]] = memref.extract_aligned_pointer_as_index %[[OUT]]
// CHECK: %[[HEAD:.*]] = arith.shrui
// CHECK: %[[SUM:.*]] = arith.addi %c0{{.*}}, %[[HEAD]]
// CHECK: %[[START:.*]] = arith.minsi %[[SUM]], %c8192
// CHECK: %[[END:.*]] = arith.addi %[[START]]
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %[[START]] step %c1
// CHECK: memref.store %{{.*}}, %[[OUT]][%[[I]]]
// CHECK: } {llvm.loop_annotation = {{.*}}}
// CHECK: scf.for %[[J:.*]] = %[[START]] to %[[END]] step %c1
// CHECK: memref.store %{{.*}}, %[[OUT]][%[[J]]]
// CHECK: scf.for %[[L:.*]] = %[[END]] to %c8192{{.*}} step %c1
// CHECK: memref.store %{{.*}}, %[[OUT]][%[[L]]]
// CHECK: } {llvm.loop_annotation = {{.*}}}
// NARROW-LABEL: func.func @main
// NARROW-NOT: extract_aligned_pointer
func.func @main(%x: memref<8192xf32>, %out: memref<8192xf32>, %k: f32)
    attributes {mlirml.inputs = [tensor<8192xf32>], mlirml.in_place = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8192 = arith.constant 8192 : index
  scf.for %i = %c0 to %c8192 step %c1 {
    %a = memref.load %x[%i] : memref<8192xf32>
    %b = arith.mulf %a, %k : f32
    memref.store %b, %out[%i] : memref<8192xf32>
  }
  return
}

// -----

// Rows start at another address each; what varies with the row is outside of the loop.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<64x8192xf64>, %[[OUT:.*]]: memref<64x8192xf64>)
// CHECK: scf.for %[[I:.*]] = %c0
// CHECK: memref.extract_aligned_pointer_as_index %[[OUT]]
// CHECK-COUNT-3: scf.for
func.func @main(%x: memref<64x8192xf64>, %out: memref<64x8192xf64>)
    attributes {mlirml.inputs = [tensor<64x8192xf64>], mlirml.in_place = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c8192 = arith.constant 8192 : index
  scf.for %i = %c0 to %c64 step %c1 {
    scf.for %j = %c0 to %c8192 step %c1 {
      %a = memref.load %x[%i, %j] : memref<64x8192xf64>
      memref.store %a, %out[%i, %j] : memref<64x8192xf64>
    }
  }
  return
}

// -----

// A result that is not in place is aligned; sums keep their order; functions take longer than loads.
// CHECK-LABEL: func.func @main
// CHECK-NOT: extract_aligned_pointer
func.func @main(%x: memref<8192xf32>, %out: memref<8192xf32>, %other: memref<8192xf32>, %sum: memref<f32>)
    attributes {mlirml.inputs = [tensor<8192xf32>], mlirml.in_place = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8192 = arith.constant 8192 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c8192 step %c1 {
    %a = memref.load %x[%i] : memref<8192xf32>
    memref.store %a, %other[%i] : memref<8192xf32>
  }
  %total = scf.for %i = %c0 to %c8192 step %c1 iter_args(%t = %zero) -> (f32) {
    %a = memref.load %x[%i] : memref<8192xf32>
    %b = arith.addf %a, %t : f32
    memref.store %a, %out[%i] : memref<8192xf32>
    scf.yield %b : f32
  }
  memref.store %total, %sum[] : memref<f32>
  scf.for %i = %c0 to %c8192 step %c1 {
    %a = memref.load %x[%i] : memref<8192xf32>
    %b = math.tanh %a : f32
    memref.store %b, %out[%i] : memref<8192xf32>
  }
  return
}

// -----

// Short rows, of which the masked vectors would be a large part.
// CHECK-LABEL: func.func @main
// CHECK-NOT: extract_aligned_pointer
func.func @main(%x: memref<8192xf32>, %out: memref<8192xf32>)
    attributes {mlirml.inputs = [tensor<8192xf32>], mlirml.in_place = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c512 = arith.constant 512 : index
  scf.for %i = %c0 to %c512 step %c1 {
    %a = memref.load %x[%i] : memref<8192xf32>
    memref.store %a, %out[%i] : memref<8192xf32>
  }
  return
}

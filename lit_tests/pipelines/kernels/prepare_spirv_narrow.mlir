// RUN: mlirml-opt %s --mlirml-prepare-spirv | filecheck %s

// What depends on the high bits of narrow integers is computed with 32 bits.
// CHECK-LABEL: gpu.func @k
// CHECK:         %[[A:.*]] = arith.extui %[[X:.*]] : i8 to i32
// CHECK:         %[[I:.*]] = arith.index_cast %[[A]] : i32 to index
// CHECK:         %[[L:.*]] = arith.extsi %[[X]] : i8 to i32
// CHECK:         %[[R:.*]] = arith.extsi %[[X]] : i8 to i32
// CHECK:         %[[Q:.*]] = arith.divsi %[[L]], %[[R]] : i32
// CHECK:         arith.trunci %[[Q]] : i32 to i8
// CHECK-NOT:     arith.index_castui
gpu.module @kernels {
  gpu.func @k(%x: memref<8xi8>, %y: memref<8xi8>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    %c0 = arith.constant 0 : index
    %0 = memref.load %x[%c0] : memref<8xi8>
    %1 = arith.index_castui %0 : i8 to index
    %2 = arith.divsi %0, %0 : i8
    memref.store %2, %y[%1] : memref<8xi8>
    gpu.return
  }
}

// RUN: mlirml-opt %s --mlirml-lower-launches | filecheck %s

// The bytes of a copy of dynamic size are computed.
// CHECK:       %[[BYTES:.*]] = arith.constant 32 : i64
// CHECK:       %[[N:.*]] = memref.dim %{{.*}}, %{{.*}} : memref<?x8xf32>
// CHECK:       %[[WORD:.*]] = arith.index_cast %[[N]] : index to i64
// CHECK:       %[[ALL:.*]] = arith.muli %[[BYTES]], %[[WORD]] : i64
// CHECK:       llvm.call @mgpuMemcpy(%{{.*}}, %{{.*}}, %[[ALL]], %{{.*}})
module attributes {gpu.container_module} {
  func.func @main(%x: memref<64xi8>, %y: memref<64xi8>, %n: index) {
    %c0 = arith.constant 0 : index
    %a = memref.view %x[%c0][%n] : memref<64xi8> to memref<?x8xf32>
    %b = memref.view %y[%c0][%n] : memref<64xi8> to memref<?x8xf32>
    gpu.memcpy %b, %a : memref<?x8xf32>, memref<?x8xf32>
    return
  }
}

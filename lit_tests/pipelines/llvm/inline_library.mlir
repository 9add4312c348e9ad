// RUN: mlirml-opt %s --mlirml-inline-library | filecheck %s

// CHECK: gpu.func @k
// CHECK-NOT: call
// CHECK: %[[A:.*]] = arith.addf
// CHECK: %[[B:.*]] = arith.addf %[[A]], %[[A]]
// CHECK: memref.store %[[B]]
// CHECK-NOT: func.func
gpu.module @kernels {
  gpu.func @k(%x: memref<8xf32>) kernel {
    %c0 = arith.constant 0 : index
    %a = memref.load %x[%c0] : memref<8xf32>
    %b = func.call @four(%a) : (f32) -> f32
    memref.store %b, %x[%c0] : memref<8xf32>
    gpu.return
  }
  func.func private @four(%a: f32) -> f32 {
    %b = func.call @twice(%a) : (f32) -> f32
    %c = func.call @twice(%b) : (f32) -> f32
    return %c : f32
  }
  func.func private @twice(%a: f32) -> f32 {
    %b = arith.addf %a, %a : f32
    return %b : f32
  }
}

// RUN: not mlirml-opt %s --mlirml-batch 2>&1 | filecheck %s

// A store has no batched form: memory becomes tensors before.
// CHECK: mlirml.NoBatchingError: `memref.store` has no batched form: it works on memory, which becomes tensors
// CHECK-NEXT: --> {{.*}}batch_errors.mlir:9:3
func.func @main(%xs: tensor<8xf64>, %m: memref<4xf64>) -> tensor<8xf64> {
  %c0 = arith.constant 0 : index
  %x = "mlirml.unbatch"(%xs) {group = 0 : i64} : (tensor<8xf64>) -> f64
  memref.store %x, %m[%c0] : memref<4xf64>
  %b = "mlirml.vmap"(%x) {group = 0 : i64, size = 8 : i64} : (f64) -> tensor<8xf64>
  return %b : tensor<8xf64>
}

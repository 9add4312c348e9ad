// RUN: mlirml-opt %s --mlirml-lower-launches | filecheck %s

// What a kernel does with its arrays: four times their bytes, plus 1 where it reads them, plus 2 where it writes them.
// CHECK:       mlirml.kernels = [{accesses = array<i64: 129, 130, 130, 0, 177, 0, 131>,
// CHECK-SAME:  {accesses = array<i64: 129, 130, -1>,
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k0(%read: memref<8xf32>, %written: memref<8xf32>, %sums: memref<8xf32>, %i: index,
                 %rows: memref<3x8xi8, strided<[18, 1]>>, %x: f32, %both: memref<2x4xf32>) kernel {
      %c0 = arith.constant 0 : index
      %a = memref.load %read[%i] : memref<8xf32>
      memref.store %a, %written[%i] : memref<8xf32>
      %b = memref.atomic_rmw addf %x, %sums[%i] : (f32, memref<8xf32>) -> f32
      %row = vector.load %rows[%i, %c0] : memref<3x8xi8, strided<[18, 1]>>, vector<8xi8>
      %flat = memref.collapse_shape %both [[0, 1]] : memref<2x4xf32> into memref<8xf32>
      %c = memref.load %flat[%i] : memref<8xf32>
      memref.store %c, %both[%c0, %i] : memref<2x4xf32>
      gpu.return
    }
    gpu.func @k1(%copied: memref<8xf32>, %chosen: memref<8xf32>, %views: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      %x = arith.constant 0.0 : f32
      %shared = memref.alloc() : memref<8xf32, 3>
      %token = nvgpu.device_async_copy %copied[%c0], %shared[%c0], 4 : memref<8xf32> to memref<8xf32, 3>
      %last = scf.for %i = %c0 to %c0 step %c0 iter_args(%each = %chosen) -> (memref<8xf32>) {
        memref.store %x, %each[%i] : memref<8xf32>
        scf.yield %each : memref<8xf32>
      }
      gpu.return
    }
  }
  func.func @main() { return }
}

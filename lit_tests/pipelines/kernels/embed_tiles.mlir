// RUN: mlirml-opt %s --mlirml-embed-tiles | filecheck %s

// A tile kernel becomes text for the assembler of tiles; other kernels stay.
// CHECK: gpu.binary @double [#gpu.object<#nvvm.target, properties = {mlirml.tile = {arguments = [memref<300xf32, strided<[1]>>, index, memref<300xi1, strided<[1]>>], warps = 4 : i64}}, "def kernel(x0, x1, x2):\0A
// CHECK-SAME: [[I:v[0-9]+]] = ct.bid(0)
// CHECK-SAME: [[X:v[0-9]+]] = ct.load(x0, index=([[I]],), shape=(64,), padding_mode=ct.PaddingMode.ZERO)
// CHECK-SAME: [[SUM:v[0-9]+]] = [[X]]
// CHECK-SAME: for {{i[0-9]+}} in range(0, x1, 1):
// CHECK-SAME:   [[NEXT:v[0-9]+]] = [[SUM]] + [[X]]
// CHECK-SAME:   [[SUM]] = [[NEXT]]
// CHECK-SAME: [[BIG:v[0-9]+]] = [[SUM]] > {{v[0-9]+}}
// CHECK-SAME: ct.store(x2, index=([[I]],), tile=ct.astype([[BIG]], ct.int8))
// CHECK: gpu.module @kernels
// CHECK-NOT: @double
// CHECK: gpu.func @other
gpu.module @kernels {
  gpu.func @double(%x: memref<300xf32, strided<[1]>>, %n: index, %y: memref<300xi1, strided<[1]>>) kernel attributes {known_block_size = array<i32: 1, 1, 1>, mlirml.tile = {warps = 4 : i64}} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %ones = arith.constant dense<1.0> : vector<64xf32>
    %i = gpu.block_id x
    %start = arith.muli %i, %c64 : index
    %v = vector.transfer_read %x[%start], %zero : memref<300xf32, strided<[1]>>, vector<64xf32>
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %v) -> (vector<64xf32>) {
      %next = arith.addf %s, %v : vector<64xf32>
      scf.yield %next : vector<64xf32>
    }
    %big = arith.cmpf ogt, %sum, %ones : vector<64xf32>
    vector.transfer_write %big, %y[%start] : vector<64xi1>, memref<300xi1, strided<[1]>>
    gpu.return
  }
  gpu.func @other() kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    gpu.return
  }
}

// RUN: mlirml-opt %s --mlirml-prepare-spirv --mlirml-embed-wgsl | filecheck %s
// RUN: mlirml-opt %s --mlirml-prepare-spirv --mlirml-embed-wgsl --emit=wgsl | filecheck %s --check-prefix=TEXT

// The text stands in the place of the module, with what the launch calls it.
// CHECK-NOT: gpu.module
// CHECK: gpu.binary @kernels [#gpu.object<#spirv.target_env<{{.*}}, "@group(0) @binding(0)

// Buffers in the order of the arguments; numbers that are passed by value are buffers of one.
// TEXT: @group(0) @binding(0) var<storage, read_write> buffer0_0: array<f32, 8>;
// TEXT-NEXT: @group(0) @binding(1) var<storage, read_write> buffer0_1: array<atomic<u32>, 2>;
// TEXT-NEXT: @group(0) @binding(2) var<storage, read_write> buffer0_2: i32;
// TEXT-NEXT: var<workgroup> shared0_3: array<f32, 8>;
// TEXT-NEXT: @compute @workgroup_size(8, 1, 1)
// TEXT-NEXT: fn k(@builtin(local_invocation_id) thread: vec3<u32>) {
// TEXT: let [[COUNT:v[0-9]+]] = buffer0_2;
// TEXT: let [[I:v[0-9]+]] = i32(thread.x);
// TEXT: let [[X:v[0-9]+]] = buffer0_0{{\[}}[[I]]];
// TEXT: shared0_3{{\[}}[[I]]] = [[X]];
// TEXT: workgroupBarrier();

// What loops carry are variables.
// TEXT: var [[SUM:v[0-9]+]]: f32 = 0.0f;
// TEXT: for (var [[J:n[0-9]+]] = 0i; [[J]] < [[COUNT]]; [[J]] += 1i) {
// TEXT:   let [[Y:v[0-9]+]] = shared0_3{{\[}}[[J]]];
// TEXT:   let [[NEXT:v[0-9]+]] = [[SUM]] + [[Y]];
// TEXT:   [[SUM]] = [[NEXT]];
// TEXT: }

// Unsigned operations, truth values packed into words that other threads write too.
// TEXT: let [[LEFT:v[0-9]+]] = i32(u32([[I]]) % 3u);
// TEXT: let [[LARGE:v[0-9]+]] = [[SUM]] > 2.5f;
// TEXT: if [[LARGE]] {
// TEXT:   let {{v[0-9]+}} = 
// TEXT:   atomicAnd(&buffer0_1[u32([[LEFT]]) / 4u], ~(255u << (u32([[LEFT]]) % 4u * 8u)));
// TEXT:   atomicOr(&buffer0_1[u32([[LEFT]]) / 4u], select(0u, 1u, {{v[0-9]+}}) << (u32([[LEFT]]) % 4u * 8u));
// TEXT: } else {
// TEXT:   atomicAnd

// Memory that is combined atomically is atomic as a whole.
// TEXT: @group(0) @binding(0) var<storage, read_write> buffer1_0: array<atomic<i32>, 8>;
// TEXT: let [[BEFORE:v[0-9]+]] = atomicLoad(&buffer1_0{{\[}}0i]);
// TEXT: atomicAdd(&buffer1_0{{\[}}3i], [[BEFORE]]);
// TEXT: atomicExchange(&buffer1_0{{\[}}3i], [[BEFORE]]);
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%x: memref<8xf32>, %y: memref<8xi1>, %n: index) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %zero = arith.constant 0.0 : f32
      %limit = arith.constant 2.5 : f32
      %false = arith.constant false
      %shared = memref.alloc() : memref<8xf32, #gpu.address_space<workgroup>>
      %i = gpu.thread_id x
      %a = memref.load %x[%i] : memref<8xf32>
      memref.store %a, %shared[%i] : memref<8xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %sum = scf.for %j = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) {
        %b = memref.load %shared[%j] : memref<8xf32, #gpu.address_space<workgroup>>
        %t = arith.addf %s, %b : f32
        scf.yield %t : f32
      }
      %left = arith.remui %i, %c3 : index
      %large = arith.cmpf ogt, %sum, %limit : f32
      scf.if %large {
        %same = arith.cmpf oeq, %sum, %a : f32
        memref.store %same, %y[%left] : memref<8xi1>
      } else {
        memref.store %false, %y[%left] : memref<8xi1>
      }
      gpu.return
    }
    gpu.func @atomics(%m: memref<8xi32>) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c3 = arith.constant 3 : index
      %a = memref.load %m[%c0] : memref<8xi32>
      %b = memref.atomic_rmw addi %a, %m[%c3] : (i32, memref<8xi32>) -> i32
      %c = memref.atomic_rmw assign %a, %m[%c3] : (i32, memref<8xi32>) -> i32
      gpu.return
    }
  }
}

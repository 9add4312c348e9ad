// RUN: mlirml-opt %s --split-input-file --mlirml-plan-transfers | filecheck %s

// The host reads one element: it alone is copied. Whole buffers are copied by the device.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: memref<4x8xf32>, %[[Y:.*]]: memref<4x8xf32>, %[[I:.*]]: index)
// CHECK-SAME:  mlirml.host_work = ["a number is read on the host, for {{.*}}; 4 bytes move to the host and 0 back"]
// CHECK:       gpu.memcpy %[[Y]], %[[X]] : memref<4x8xf32>, memref<4x8xf32>
// CHECK:       %[[H:.*]] = memref.alloc() {{.*}}mlirml.host{{.*}} : memref<f32>
// CHECK:       %[[PART:.*]] = memref.subview %[[X]][%[[I]], %[[I]]] [1, 1] [1, 1]
// CHECK:       gpu.memcpy %[[H]], %[[PART]]
// CHECK:       %[[V:.*]] = memref.load %[[H]][]
// CHECK:       return %[[V]]
func.func @main(%x: memref<4x8xf32>, %y: memref<4x8xf32>, %i: index) -> f32 {
  memref.copy %x, %y : memref<4x8xf32> to memref<4x8xf32>
  %v = memref.load %x[%i, %i] : memref<4x8xf32>
  return %v : f32
}

// -----

// A sort is the host's: its array comes, and goes back sorted.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: memref<8xf32>, %[[Y:.*]]: memref<8xf32>)
// CHECK:       %[[A:.*]] = memref.alloc() {{.*}}mlirml.host
// CHECK:       gpu.memcpy %[[A]], %[[X]]
// CHECK-NEXT:  %[[B:.*]] = memref.alloc() {{.*}}mlirml.host
// CHECK-NEXT:  "mlirml.sort"(%[[A]], %[[B]])
// CHECK:       gpu.memcpy %[[Y]], %[[B]]
// CHECK-NOT:   gpu.memcpy
func.func @main(%x: memref<8xf32>, %y: memref<8xf32>) {
  "mlirml.sort"(%x, %y) : (memref<8xf32>, memref<8xf32>) -> ()
  return
}

// -----

// A number that the host has stays there, and the device gets a copy for its kernel.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[S:.*]]: memref<f32>, %[[X:.*]]: memref<8xf32>)
// CHECK:       memref.load %[[S]][]
// CHECK:       %[[D:.*]] = memref.alloc() {alignment = 64 : i64} : memref<f32>
// CHECK:       gpu.memcpy %[[D]], %[[S]]
// CHECK:       gpu.launch_func {{.*}} args(%[[D]] : memref<f32>, %[[X]] : memref<8xf32>)
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k0(%s: memref<f32>, %x: memref<8xf32>) kernel { gpu.return }
  }
  func.func @main(%s: memref<f32>, %x: memref<8xf32>) -> f32 attributes {mlirml.host_inputs = array<i64: 0>} {
    %c1 = arith.constant 1 : index
    %v = memref.load %s[] : memref<f32>
    gpu.launch_func @kernels::@k0 blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%s : memref<f32>, %x : memref<8xf32>)
    return %v : f32
  }
}

// -----

// Constants that kernels read lie in an argument that is the same at each call; what the host reads stays its own.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: memref<4xf32>, %[[C:.*]]: memref<512xi8>)
// CHECK-SAME:  mlirml.constants = dense<"0x0000803F0000004000004040000080400000
// CHECK-NOT:   gpu.memcpy
// CHECK:       memref.get_global @table
// CHECK:       %[[A:.*]] = memref.view %[[C]][%c0{{.*}}][] : memref<512xi8> to memref<2x2xf32>
// CHECK:       %[[FLAT:.*]] = memref.collapse_shape %[[A]] {{.*}} into memref<4xf32>
// CHECK:       %[[B:.*]] = memref.view %[[C]][%c256{{.*}}][] : memref<512xi8> to memref<2xi1>
// CHECK:       gpu.launch_func {{.*}} args(%[[FLAT]] : memref<4xf32>, %[[B]] : memref<2xi1>, %[[X]] : memref<4xf32>)
module attributes {gpu.container_module} {
  memref.global "private" constant @table : memref<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]>
  memref.global "private" constant @flags : memref<2xi1> = dense<[true, false]>
  gpu.module @kernels {
    gpu.func @k0(%t: memref<4xf32>, %f: memref<2xi1>, %x: memref<4xf32>) kernel { gpu.return }
  }
  func.func @main(%x: memref<4xf32>) -> f32 {
    %c1 = arith.constant 1 : index
    %t = memref.get_global @table : memref<2x2xf32>
    %u = memref.collapse_shape %t [[0, 1]] : memref<2x2xf32> into memref<4xf32>
    %f = memref.get_global @flags : memref<2xi1>
    gpu.launch_func @kernels::@k0 blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%u : memref<4xf32>, %f : memref<2xi1>, %x : memref<4xf32>)
    %v = memref.load %t[%c1, %c1] : memref<2x2xf32>
    return %v : f32
  }
}

// -----

// A call of a library reads its first operands and overwrites the last one, which is the one that moves back.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[A:.*]]: memref<1x3x3xf32>, %[[B:.*]]: memref<1x3x2xf32>, %[[X:.*]]: memref<1x3x2xf32>)
// CHECK:       %[[HA:.*]] = memref.alloc() {{.*mlirml.host.*}} : memref<1x3x3xf32>
// CHECK:       gpu.memcpy %[[HA]], %[[A]]
// CHECK:       %[[HB:.*]] = memref.alloc() {{.*mlirml.host.*}} : memref<1x3x2xf32>
// CHECK:       gpu.memcpy %[[HB]], %[[B]]
// CHECK:       %[[HX:.*]] = memref.alloc() {{.*mlirml.host.*}} : memref<1x3x2xf32>
// CHECK-NEXT:  "mlirml.triangular_solve"(%[[HA]], %[[HB]], %[[HX]])
// CHECK-NEXT:  gpu.memcpy %[[X]], %[[HX]]
// CHECK-NEXT:  return
func.func @main(%a: memref<1x3x3xf32>, %b: memref<1x3x2xf32>, %x: memref<1x3x2xf32>) {
  "mlirml.triangular_solve"(%a, %b, %x) {kind = "f32", mode = 0 : i64} : (memref<1x3x3xf32>, memref<1x3x2xf32>, memref<1x3x2xf32>) -> ()
  return
}

// -----

// A loop that stays on the host works on copies of whole buffers, of which only those come back that it changes.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: memref<4x2xf32>, %[[Y:.*]]: memref<8xf32>)
// CHECK-SAME:  "a loop is computed on the host, for {{.*}}: it is small; 64 bytes move to the host and 32 back"
// CHECK-DAG:   gpu.memcpy %[[A:.*]], %[[X]] : memref<4x2xf32>
// CHECK-DAG:   gpu.memcpy %[[B:.*]], %[[Y]] : memref<8xf32>
// CHECK:       memref.collapse_shape %[[A]]
// CHECK:       scf.for
// CHECK-NOT:     gpu.memcpy
// CHECK:         memref.store %{{.*}}, %[[B]]
// CHECK:       } {mlirml.why = "it is small"}
// CHECK-NEXT:  gpu.memcpy %[[Y]], %[[B]]
// CHECK-NOT:   gpu.memcpy
func.func @main(%x: memref<4x2xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %flat = memref.collapse_shape %x [[0, 1]] : memref<4x2xf32> into memref<8xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    %a = memref.load %flat[%i] : memref<8xf32>
    %b = memref.load %y[%c0] : memref<8xf32>
    %s = arith.addf %a, %b : f32
    %t = memref.alloc() : memref<f32>
    memref.store %s, %t[] : memref<f32>
    memref.copy %t, %t : memref<f32> to memref<f32>
    memref.store %s, %y[%i] : memref<8xf32>
  } {mlirml.why = "it is small"}
  return
}

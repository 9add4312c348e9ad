// RUN: mlirml-opt %s --split-input-file --mlirml-plan-buffers | filecheck %s
// RUN: mlirml-opt %s --split-input-file --mlirml-plan-buffers | mlirml-opt --split-input-file | filecheck %s

func.func private @use(memref<16xf32>, memref<16xf32>)

// The third buffer takes the place of the first; the second lives beside both.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<16xf32>, %[[W:.*]]: memref<128xi8>)
// CHECK-SAME: mlirml.workspace = 128 : i64
// CHECK-DAG: %[[A:.*]] = memref.view %[[W]][%[[ZERO:.*]]][] : memref<128xi8> to memref<16xf32>
// CHECK-DAG: %[[B:.*]] = memref.view %[[W]][%c64{{.*}}][] : memref<128xi8> to memref<16xf32>
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.dealloc
func.func @main(%x: memref<16xf32>) {
  %a = memref.alloc() {alignment = 64 : i64} : memref<16xf32>
  %b = memref.alloc() {alignment = 64 : i64} : memref<16xf32>
  %c = memref.alloc() {alignment = 64 : i64} : memref<16xf32>
  func.call @use(%x, %a) : (memref<16xf32>, memref<16xf32>) -> ()
  func.call @use(%a, %b) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %a : memref<16xf32>
  func.call @use(%b, %c) : (memref<16xf32>, memref<16xf32>) -> ()
  func.call @use(%c, %x) : (memref<16xf32>, memref<16xf32>) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%{{.*}}: memref<16xf32>) attributes {mlirml.workspace = 0 : i64}
func.func @main(%x: memref<16xf32>) {
  return
}

// -----

func.func private @use(memref<16xf32>, memref<16xf32>)

// Two buffers of one round of a loop take the same place; one from outside is kept until the loop ends.
// CHECK-LABEL: func.func @main
// CHECK-SAME: mlirml.workspace = 128 : i64
// CHECK-NOT: memref.alloc
func.func @main(%x: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %a = memref.alloc() {alignment = 64 : i64} : memref<16xf32>
  func.call @use(%x, %a) : (memref<16xf32>, memref<16xf32>) -> ()
  scf.for %i = %c0 to %c9 step %c1 {
    func.call @use(%a, %x) : (memref<16xf32>, memref<16xf32>) -> ()
    %b = memref.alloc() {alignment = 64 : i64} : memref<16xf32>
    func.call @use(%x, %b) : (memref<16xf32>, memref<16xf32>) -> ()
    func.call @use(%b, %x) : (memref<16xf32>, memref<16xf32>) -> ()
    %c = memref.alloc() {alignment = 64 : i64} : memref<16xf32>
    func.call @use(%x, %c) : (memref<16xf32>, memref<16xf32>) -> ()
    func.call @use(%c, %x) : (memref<16xf32>, memref<16xf32>) -> ()
  }
  return
}

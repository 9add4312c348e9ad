// RUN: mlirml-opt %s --mlirml-lower-lengths --split-input-file | filecheck %s
// RUN: mlirml-opt %s --mlirml-lower-lengths=for-requests=true --split-input-file | filecheck %s --check-prefix=KEPT

// A row of changing length becomes a loop that stores into the whole array, where it is.
// KEPT: linalg.generic {{.*}} attrs = {mlirml.order
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[A:.*]]: tensor<8x8xf32>, %[[Y:.*]]: tensor<8xf32>)
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[Y0:.*]] = %[[Y]])
// CHECK-NOT: extract_slice
// CHECK: scf.for %[[D:.*]] = %{{.*}} to %[[I]] step %{{.*}} iter_args(%[[C:.*]] = %[[Y0]]) -> (tensor<8xf32>)
// CHECK-NEXT: %[[X:.*]] = tensor.extract %[[A]][%[[I]], %[[D]]]
// CHECK-NEXT: %[[E:.*]] = math.exp %[[X]]
// CHECK-NEXT: tensor.insert %[[E]] into %[[C]][%[[D]]]
// CHECK-NOT: linalg
func.func @main(%a: tensor<8x8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%y0 = %y) -> (tensor<8xf32>) {
    %n = arith.maxsi %i, %c0 : index
    %x = tensor.extract_slice %a[%i, 0] [1, %n] [1, 1] : tensor<8x8xf32> to tensor<?xf32>
    %o = tensor.extract_slice %y0[0] [%n] [1] : tensor<8xf32> to tensor<?xf32>
    %g = linalg.generic {
      indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]
    } ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>) attrs = {mlirml.order = array<i64: 0>} {
    ^bb0(%in: f32, %out: f32):
      %e = math.exp %in : f32
      linalg.yield %e : f32
    } -> tensor<?xf32>
    %y1 = tensor.insert_slice %g into %y0[0] [%n] [1] : tensor<?xf32> into tensor<8xf32>
    scf.yield %y1 : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// The columns of a matrix are not next to each other: the loop along its rows is the innermost one, and what it does not
// move is read in front of it.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[V:.*]]: tensor<8xf32>, %[[A:.*]]: tensor<8x8xf32>, %[[Y:.*]]: tensor<8xf32>)
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[Y0:.*]] = %[[Y]])
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %[[I]] {{.*}} iter_args(%[[Y1:.*]] = %[[Y0]]) -> (tensor<8xf32>)
// CHECK-NEXT: tensor.extract %[[V]][%[[K]]]
// CHECK: scf.for %[[J:.*]] = %{{.*}} to %c8{{.*}} iter_args(%[[Y2:.*]] = %[[Y1]]) -> (tensor<8xf32>)
// CHECK-NEXT: tensor.extract %[[A]][%[[K]], %[[J]]]
// CHECK-NEXT: tensor.extract %[[Y2]][%[[J]]]
func.func @main(%v: tensor<8xf32>, %a: tensor<8x8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%y0 = %y) -> (tensor<8xf32>) {
    %n = arith.maxsi %i, %c0 : index
    %x = tensor.extract_slice %v[0] [%n] [1] : tensor<8xf32> to tensor<?xf32>
    %b = tensor.extract_slice %a[0, 0] [%n, 8] [1, 1] : tensor<8x8xf32> to tensor<?x8xf32>
    %g = linalg.generic {
      indexing_maps = [affine_map<(j, k) -> (k)>, affine_map<(j, k) -> (k, j)>, affine_map<(j, k) -> (j)>],
      iterator_types = ["parallel", "reduction"]
    } ins(%x, %b : tensor<?xf32>, tensor<?x8xf32>) outs(%y0 : tensor<8xf32>)
      attrs = {mlirml.order = array<i64: 0, 0>} {
    ^bb0(%p: f32, %q: f32, %out: f32):
      %m = arith.mulf %p, %q : f32
      %s = arith.addf %out, %m : f32
      linalg.yield %s : f32
    } -> tensor<8xf32>
    scf.yield %g : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// The loop went downward along what it reads and stores, and does so again: x[7 - d] is read before it is stored.
// CHECK-LABEL: func.func @main
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[X0:.*]] = %{{.*}})
// CHECK: scf.for %[[V:.*]] = %{{.*}} to %[[I]] {{.*}} iter_args(%[[C:.*]] = %[[X0]]) -> (tensor<8xf32>)
// CHECK: %[[N:.*]] = arith.subi %[[I]], %[[V]]
// CHECK: %[[D:.*]] = arith.subi %[[N]], %c1
// CHECK: %[[TO:.*]] = arith.addi %[[D]], %c1
// CHECK: %[[X:.*]] = tensor.extract %[[C]][%[[D]]]
// CHECK: tensor.insert %[[X]] into %[[C]][%[[TO]]]
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%x0 = %x) -> (tensor<8xf32>) {
    %n = arith.subi %c8, %i : index
    %from = tensor.extract_slice %x0[0] [%i] [1] : tensor<8xf32> to tensor<?xf32>
    %o = tensor.extract_slice %x0[1] [%i] [1] : tensor<8xf32> to tensor<?xf32>
    %g = linalg.generic {
      indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]
    } ins(%from : tensor<?xf32>) outs(%o : tensor<?xf32>) attrs = {mlirml.order = array<i64: -1>} {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<?xf32>
    %x1 = tensor.insert_slice %g into %x0[1] [%i] [1] : tensor<?xf32> into tensor<8xf32>
    scf.yield %x1 : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// A sum is a number that the loop carries.
// CHECK-LABEL: func.func @main
// CHECK: scf.for {{.*}} iter_args(%[[START:.*]] = %{{.*}}) -> (f32)
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[S:.*]] = %[[START]]) -> (f32)
// CHECK: %[[T:.*]] = arith.addf %[[S]],
// CHECK: scf.yield %[[T]]
// CHECK: scf.yield %[[SUM]]
func.func @main(%x: tensor<8xf32>, %start: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%s0 = %start) -> (f32) {
    %v = tensor.extract_slice %x[0] [%i] [1] : tensor<8xf32> to tensor<?xf32>
    %t = tensor.from_elements %s0 : tensor<f32>
    %g = linalg.generic {
      indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> ()>], iterator_types = ["reduction"]
    } ins(%v : tensor<?xf32>) outs(%t : tensor<f32>) attrs = {mlirml.order = array<i64: 0>} {
    ^bb0(%in: f32, %out: f32):
      %s = arith.addf %out, %in : f32
      linalg.yield %s : f32
    } -> tensor<f32>
    %s1 = tensor.extract %g[] : tensor<f32>
    scf.yield %s1 : f32
  }
  return %r : f32
}

// -----

// A product of matrices: strips of 32 and of 8 elements of the sum are contractions of static sizes, and what is left
// becomes loops.
// CHECK-LABEL: func.func @main
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[C:.*]] = %{{.*}}) -> (tensor<20x30xf32>)
// CHECK: %[[MAIN:.*]] = scf.for %[[K:.*]] = {{.*}} step %c32{{.*}} iter_args(%[[C0:.*]] = %[[C]])
// CHECK: tensor.extract_slice %{{.*}}[0, %[[K]]] [20, 32] [1, 1] : tensor<40x40xf32> to tensor<20x32xf32>
// CHECK: tensor.extract_slice %{{.*}}[%[[K]], 0] [32, 30] [1, 1] : tensor<40x40xf32> to tensor<32x30xf32>
// CHECK: linalg.contract {{.*}} outs(%[[C0]] : tensor<20x30xf32>)
// CHECK: scf.for {{.*}} step %c8{{.*}} iter_args(%{{.*}} = %[[MAIN]])
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %{{.*}} : tensor<20x8xf32>, tensor<8x30xf32>)
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for
// CHECK: arith.mulf
// CHECK-NOT: linalg.contract
func.func @main(%a: tensor<40x40xf32>, %y: tensor<20x30xf32>) -> tensor<20x30xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c40 = arith.constant 40 : index
  %r = scf.for %i = %c0 to %c40 step %c1 iter_args(%y0 = %y) -> (tensor<20x30xf32>) {
    %n = arith.maxsi %i, %c0 : index
    %p = tensor.extract_slice %a[0, 0] [20, %n] [1, 1] : tensor<40x40xf32> to tensor<20x?xf32>
    %q = tensor.extract_slice %a[0, 0] [%n, 30] [1, 1] : tensor<40x40xf32> to tensor<?x30xf32>
    %m = linalg.matmul {mlirml.order = array<i64: 0, 0, 0>}
        ins(%p, %q : tensor<20x?xf32>, tensor<?x30xf32>) outs(%y0 : tensor<20x30xf32>) -> tensor<20x30xf32>
    scf.yield %m : tensor<20x30xf32>
  }
  return %r : tensor<20x30xf32>
}

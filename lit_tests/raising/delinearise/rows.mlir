// RUN: mlirml-opt %s --mlirml-delinearise --split-input-file | filecheck %s

// A product of matrices on flat arrays: reads, a store, and the array behind the nest.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[A:.*]]: tensor<12xf32>, %[[B:.*]]: tensor<20xf32>, %[[C:.*]]: tensor<15xf32>)
// CHECK-DAG: %[[A2:.*]] = tensor.expand_shape %[[A]] {{.*}} : tensor<12xf32> into tensor<3x4xf32>
// CHECK-DAG: %[[B2:.*]] = tensor.expand_shape %[[B]] {{.*}} : tensor<20xf32> into tensor<4x5xf32>
// CHECK-DAG: %[[C2:.*]] = tensor.expand_shape %[[C]] {{.*}} : tensor<15xf32> into tensor<3x5xf32>
// CHECK: %[[R:.*]] = scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %[[C2]]) -> (tensor<3x5xf32>)
// CHECK: scf.for %[[J:.*]] = {{.*}} iter_args(%{{.*}}) -> (tensor<3x5xf32>)
// CHECK: scf.for %[[K:.*]] = {{.*}} iter_args(%[[C3:.*]] = %{{.*}}) -> (tensor<3x5xf32>)
// CHECK-DAG: tensor.extract %[[A2]][%[[I]], %[[K]]]
// CHECK-DAG: tensor.extract %[[B2]][%[[K]], %[[J]]]
// CHECK-DAG: tensor.extract %[[C3]][%[[I]], %[[J]]]
// CHECK: tensor.insert %{{.*}} into %[[C3]][%[[I]], %[[J]]]
// CHECK: tensor.collapse_shape %[[R]] {{.*}} : tensor<3x5xf32> into tensor<15xf32>
func.func @main(%a: tensor<12xf32>, %b: tensor<20xf32>, %c: tensor<15xf32>) -> tensor<15xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%y0 = %c) -> (tensor<15xf32>) {
    %r0 = scf.for %j = %c0 to %c5 step %c1 iter_args(%y1 = %y0) -> (tensor<15xf32>) {
      %r1 = scf.for %k = %c0 to %c4 step %c1 iter_args(%y2 = %y1) -> (tensor<15xf32>) {
        %0 = arith.muli %i, %c4 : index
        %1 = arith.addi %0, %k : index
        %2 = arith.muli %k, %c5 : index
        %3 = arith.addi %j, %2 : index
        %4 = arith.muli %i, %c5 : index
        %5 = arith.addi %4, %j : index
        %x = tensor.extract %a[%1] : tensor<12xf32>
        %y = tensor.extract %b[%3] : tensor<20xf32>
        %z = tensor.extract %y2[%5] : tensor<15xf32>
        %6 = arith.mulf %x, %y : f32
        %7 = arith.addf %z, %6 : f32
        %y3 = tensor.insert %7 into %y2[%5] : tensor<15xf32>
        scf.yield %y3 : tensor<15xf32>
      }
      scf.yield %r1 : tensor<15xf32>
    }
    scf.yield %r0 : tensor<15xf32>
  }
  return %r : tensor<15xf32>
}

// -----

// Offsets go to the dimension where they stay in bounds; a condition tells what the loops do not.
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = tensor.expand_shape %{{.*}} : tensor<24xf32> into tensor<6x4xf32>
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: scf.for %[[J:[a-z0-9]+]] =
// CHECK: %[[K:.*]] = arith.subi %[[J]], %c1
// CHECK: scf.if
// CHECK: %[[I4:.*]] = arith.addi %[[I]], %c4
// CHECK: tensor.extract %[[X]][%[[I4]], %[[K]]]
func.func @main(%a: tensor<24xf32>, %c: tensor<15xf32>) -> tensor<15xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c12 = arith.constant 12 : index
  %c15 = arith.constant 15 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%y0 = %c) -> (tensor<15xf32>) {
    %r0 = scf.for %j = %c0 to %c5 step %c1 iter_args(%y1 = %y0) -> (tensor<15xf32>) {
      %b = arith.muli %i, %c12 : index
      %first = tensor.extract %a[%b] : tensor<24xf32>
      %k = arith.subi %j, %c1 : index
      %inside = arith.cmpi sge, %k, %c0 : index
      %s = scf.if %inside -> (f32) {
        %0 = arith.muli %i, %c4 : index
        %1 = arith.addi %0, %j : index
        %2 = arith.addi %1, %c15 : index
        %3 = tensor.extract %a[%2] : tensor<24xf32>
        scf.yield %3 : f32
      } else {
        scf.yield %first : f32
      }
      %y2 = tensor.insert %s into %y1[%j] : tensor<15xf32>
      scf.yield %y2 : tensor<15xf32>
    }
    scf.yield %r0 : tensor<15xf32>
  }
  return %r : tensor<15xf32>
}

// -----

// Rows that overlap are no rows, and an array that is read as a whole stays as it is.
// CHECK-LABEL: func.func @main
// CHECK-NOT: tensor.expand_shape
#v = affine_map<(d0) -> (d0)>
func.func @main(%a: tensor<16xf32>, %b: tensor<16xf32>) -> tensor<16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%y0 = %b) -> (tensor<16xf32>) {
    %r0 = scf.for %j = %c0 to %c5 step %c1 iter_args(%y1 = %y0) -> (tensor<16xf32>) {
      %0 = arith.muli %i, %c4 : index
      %1 = arith.addi %0, %j : index
      %x = tensor.extract %a[%1] : tensor<16xf32>
      %y2 = tensor.insert %x into %y1[%1] : tensor<16xf32>
      scf.yield %y2 : tensor<16xf32>
    }
    %r1 = scf.for %j = %c0 to %c4 step %c1 iter_args(%y1 = %r0) -> (tensor<16xf32>) {
      %0 = arith.muli %i, %c4 : index
      %1 = arith.addi %0, %j : index
      %x = tensor.extract %b[%1] : tensor<16xf32>
      %y2 = tensor.insert %x into %y1[%1] : tensor<16xf32>
      scf.yield %y2 : tensor<16xf32>
    }
    %s = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%b : tensor<16xf32>) outs(%r1 : tensor<16xf32>) {
    ^bb0(%p: f32, %q: f32):
      %0 = arith.addf %p, %q : f32
      linalg.yield %0 : f32
    } -> tensor<16xf32>
    scf.yield %s : tensor<16xf32>
  }
  return %r : tensor<16xf32>
}

// -----

// A dimension of several is taken apart where a nest stores to such a place; the others stay.
// CHECK-LABEL: func.func @groups
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1], [2]{{\]}} output_shape [2, 3, 5] : tensor<6x5xf32> into tensor<2x3x5xf32>
// CHECK: tensor.insert %{{.*}} into %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : tensor<2x3x5xf32>
// CHECK: tensor.collapse_shape
func.func @groups(%x: tensor<5xf32>, %y: tensor<6x5xf32>) -> tensor<6x5xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %g = %c0 to %c2 step %c1 iter_args(%y0 = %y) -> (tensor<6x5xf32>) {
    %s = scf.for %f = %c0 to %c3 step %c1 iter_args(%y1 = %y0) -> (tensor<6x5xf32>) {
      %t = scf.for %i = %c0 to %c5 step %c1 iter_args(%y2 = %y1) -> (tensor<6x5xf32>) {
        %p = arith.muli %g, %c3 : index
        %q = arith.addi %p, %f : index
        %v = tensor.extract %x[%i] : tensor<5xf32>
        %y3 = tensor.insert %v into %y2[%q, %i] : tensor<6x5xf32>
        scf.yield %y3 : tensor<6x5xf32>
      }
      scf.yield %t : tensor<6x5xf32>
    }
    scf.yield %s : tensor<6x5xf32>
  }
  return %r : tensor<6x5xf32>
}

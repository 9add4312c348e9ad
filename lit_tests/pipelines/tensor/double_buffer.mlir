// RUN: mlirml-opt %s --split-input-file --mlirml-double-buffer | filecheck %s

#v = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>
// CHECK: scf.for {{.*}} iter_args(%[[U:.*]] = %[[X]], %[[OTHER:.*]] = %[[X]])
// CHECK: %[[F:.*]] = linalg.generic
// CHECK: %[[NEW:.*]] = tensor.insert_slice %[[F]] into %[[OTHER]][1] [6] [1]
// CHECK: scf.yield %[[NEW]], %[[U]]
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %t = %c0 to %c9 step %c1 iter_args(%u = %x) -> (tensor<8xf32>) {
    %west = tensor.extract_slice %u[0] [6] [1] : tensor<8xf32> to tensor<6xf32>
    %east = tensor.extract_slice %u[2] [6] [1] : tensor<8xf32> to tensor<6xf32>
    %e = tensor.empty() : tensor<6xf32>
    %f = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
        ins(%west, %east : tensor<6xf32>, tensor<6xf32>) outs(%e : tensor<6xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
    } -> tensor<6xf32>
    %new = tensor.insert_slice %f into %u[1] [6] [1] : tensor<6xf32> into tensor<8xf32>
    scf.yield %new : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

#v = affine_map<(i) -> (i)>

// The second array is stored once, behind the loop.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>, %[[Y:.*]]: tensor<8xf32>
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[U:.*]] = %[[X]], %[[OTHER:.*]] = %[[X]])
// CHECK: tensor.insert_slice {{.*}} into %[[OTHER]][1] [6] [1]
// CHECK-NOT: tensor.insert_slice
// CHECK: scf.yield
// CHECK: %[[LAST:.*]] = tensor.extract_slice %[[R]]#0[1] [6] [1]
// CHECK: %[[W:.*]] = tensor.insert_slice %[[LAST]] into %[[Y]][2] [6] [1]
// CHECK: return %[[R]]#0, %[[W]]
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%u = %x, %w = %y) -> (tensor<8xf32>, tensor<8xf32>) {
    %east = tensor.extract_slice %u[2] [6] [1] : tensor<8xf32> to tensor<6xf32>
    %e = tensor.empty() : tensor<6xf32>
    %f = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
        ins(%east : tensor<6xf32>) outs(%e : tensor<6xf32>) {
    ^bb0(%p: f32, %o: f32):
      %s = arith.negf %p : f32
      linalg.yield %s : f32
    } -> tensor<6xf32>
    %new = tensor.insert_slice %f into %u[1] [6] [1] : tensor<6xf32> into tensor<8xf32>
    %same = tensor.insert_slice %f into %w[2] [6] [1] : tensor<6xf32> into tensor<8xf32>
    scf.yield %new, %same : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

#v = affine_map<(i) -> (i)>

// What reads only the element that it computes works in place; so does what is stored at another place each round.
// CHECK-LABEL: func.func @main
// CHECK: iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<8xf32>, tensor<8xf32>)
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %r:2 = scf.for %t = %c0 to %c6 step %c1 iter_args(%u = %x, %w = %y) -> (tensor<8xf32>, tensor<8xf32>) {
    %middle = tensor.extract_slice %u[1] [6] [1] : tensor<8xf32> to tensor<6xf32>
    %two = tensor.extract_slice %w[3] [2] [1] : tensor<8xf32> to tensor<2xf32>
    %e = tensor.empty() : tensor<6xf32>
    %f = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
        ins(%middle : tensor<6xf32>) outs(%e : tensor<6xf32>) {
    ^bb0(%p: f32, %o: f32):
      %s = arith.negf %p : f32
      linalg.yield %s : f32
    } -> tensor<6xf32>
    %e2 = tensor.empty() : tensor<2xf32>
    %g = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
        ins(%two : tensor<2xf32>) outs(%e2 : tensor<2xf32>) {
    ^bb0(%p: f32, %o: f32):
      %s = arith.negf %p : f32
      linalg.yield %s : f32
    } -> tensor<2xf32>
    %new = tensor.insert_slice %f into %u[1] [6] [1] : tensor<6xf32> into tensor<8xf32>
    %moved = tensor.insert_slice %g into %w[%t] [2] [1] : tensor<2xf32> into tensor<8xf32>
    scf.yield %new, %moved : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

#v = affine_map<(i) -> (i)>

// An array put together of slices begins in the second buffer.

// CHECK-LABEL: func.func @pieces
// CHECK: scf.for {{.*}} iter_args(%[[U:.*]] = {{.*}}, %[[OTHER:.*]] = {{.*}})
// CHECK: %[[A:.*]] = tensor.insert_slice {{.*}} into %[[OTHER]][0] [1] [1]
// CHECK: %[[B:.*]] = tensor.insert_slice {{.*}} into %[[A]][1] [7] [1]
// CHECK: scf.yield %[[B]], %[[U]]
func.func @pieces(%x: tensor<8xf32>, %y: tensor<1xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %t = %c0 to %c9 step %c1 iter_args(%u = %x) -> (tensor<8xf32>) {
    %left = tensor.extract_slice %u[0] [7] [1] : tensor<8xf32> to tensor<7xf32>
    %e = tensor.empty() : tensor<7xf32>
    %f = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
        ins(%left : tensor<7xf32>) outs(%e : tensor<7xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = arith.negf %a : f32
      linalg.yield %0 : f32
    } -> tensor<7xf32>
    %w = tensor.empty() : tensor<8xf32>
    %first = tensor.insert_slice %y into %w[0] [1] [1] : tensor<1xf32> into tensor<8xf32>
    %new = tensor.insert_slice %f into %first[1] [7] [1] : tensor<7xf32> into tensor<8xf32>
    scf.yield %new : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// So does one that a loop fills in part.

// CHECK-LABEL: func.func @shrinking
// CHECK: scf.for {{.*}} iter_args(%[[U:.*]] = {{.*}}, %[[OTHER:.*]] = {{.*}})
// CHECK: %[[NEW:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[OTHER]])
// CHECK: scf.yield %[[NEW]], %[[U]]
func.func @shrinking(%x: tensor<9xf64>) -> tensor<9xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %t = %c0 to %c8 step %c1 iter_args(%old = %x) -> (tensor<9xf64>) {
    %e = tensor.empty() : tensor<9xf64>
    %stop = arith.subi %c8, %t : index
    %new = scf.for %k = %c0 to %stop step %c1 iter_args(%to = %e) -> (tensor<9xf64>) {
      %n = arith.addi %k, %c1 : index
      %p = tensor.extract %old[%n] : tensor<9xf64>
      %stored = tensor.insert %p into %to[%k] : tensor<9xf64>
      scf.yield %stored : tensor<9xf64>
    }
    scf.yield %new : tensor<9xf64>
  }
  return %r : tensor<9xf64>
}

// -----

// One array that is carried on twice begins in one second buffer; its pieces all stay.

// CHECK-LABEL: func.func @twice
// CHECK: scf.for {{.*}} iter_args(%[[U:[a-z0-9]+]] = {{.*}}, %[[V:[a-z0-9]+]] = {{.*}}, %[[OTHER:[a-z0-9]+]] = {{.*}}) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
// CHECK: %[[A:.*]] = tensor.insert_slice {{.*}} into %[[OTHER]][0] [1] [1]
// CHECK: %[[B:.*]] = tensor.insert_slice {{.*}} into %[[A]][1] [7] [1]
// CHECK: scf.yield %[[B]], %[[B]], %[[U]]
func.func @twice(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r:2 = scf.for %t = %c0 to %c9 step %c1 iter_args(%u = %x, %v = %y) -> (tensor<8xf32>, tensor<8xf32>) {
    %last = tensor.extract_slice %v[7] [1] [1] : tensor<8xf32> to tensor<1xf32>
    %rest = tensor.extract_slice %v[0] [7] [1] : tensor<8xf32> to tensor<7xf32>
    %w = tensor.empty() : tensor<8xf32>
    %first = tensor.insert_slice %last into %w[0] [1] [1] : tensor<1xf32> into tensor<8xf32>
    %new = tensor.insert_slice %rest into %first[1] [7] [1] : tensor<7xf32> into tensor<8xf32>
    scf.yield %new, %new : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

// What the loop takes from outside of it stays where it is: other things read it.

// CHECK-LABEL: func.func @from_outside
// CHECK: %[[E:.*]] = tensor.empty
// CHECK: tensor.insert_slice {{.*}} into %[[E]][0] [1] [1]
// CHECK: scf.for {{.*}} iter_args(%{{[a-z0-9]*}} = %{{[a-z0-9]*}}) -> (tensor<5xf64>)
func.func @from_outside(%x: tensor<5xf64>, %n: index) -> (tensor<5xf64>, tensor<5xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = tensor.extract_slice %x[4] [1] [1] : tensor<5xf64> to tensor<1xf64>
  %first = tensor.extract_slice %x[0] [4] [1] : tensor<5xf64> to tensor<4xf64>
  %e = tensor.empty() : tensor<5xf64>
  %a = tensor.insert_slice %last into %e[0] [1] [1] : tensor<1xf64> into tensor<5xf64>
  %rolled = tensor.insert_slice %first into %a[1] [4] [1] : tensor<4xf64> into tensor<5xf64>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%u = %x) -> (tensor<5xf64>) {
    scf.yield %rolled : tensor<5xf64>
  }
  return %r, %rolled : tensor<5xf64>, tensor<5xf64>
}

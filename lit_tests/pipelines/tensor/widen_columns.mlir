// RUN: mlirml-opt %s --split-input-file --mlirml-widen-columns=columns=8 | filecheck %s

#r = affine_map<(i) -> (i)>
#n = affine_map<(i) -> ()>

// Eight columns at a time, then four, then one: the dot products are sums over rows of vectors.
// CHECK-LABEL: func.func @project
// CHECK: scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step %c8
// CHECK: %[[C:.*]] = tensor.extract_slice %{{.*}}[0, %[[J]]] [70, 8] [1, 1] : tensor<70x60xf64> to tensor<70x8xf64>
// CHECK: %[[D:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%{{.*}}, %[[C]] : {{.*}} outs(%{{.*}} : tensor<8xf64>)
// CHECK: tensor.insert_slice %[[D]] into %{{.*}}[%{{.*}}, %[[J]]] [1, 8] [1, 1]
// CHECK: %[[N:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%{{.*}}, %[[D]], %[[C]]
// CHECK: tensor.insert_slice %[[N]] into %{{.*}}[0, %[[J]]] [70, 8] [1, 1]
// CHECK: scf.for %{{.*}} step %c4
// CHECK: scf.for %{{.*}} step %c1
// CHECK: linalg.dot
func.func @project(%q: tensor<70xf64>, %a: tensor<70x60xf64>, %s: tensor<60x60xf64>, %k: index) -> (tensor<70x60xf64>, tensor<60x60xf64>) {
  %zero = arith.constant dense<0.0> : tensor<f64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c60 = arith.constant 60 : index
  %r:2 = scf.for %j = %k to %c60 step %c1 iter_args(%b = %a, %t = %s) -> (tensor<70x60xf64>, tensor<60x60xf64>) {
    %column = tensor.extract_slice %b[0, %j] [70, 1] [1, 1] : tensor<70x60xf64> to tensor<70xf64>
    %d = linalg.dot ins(%q, %column : tensor<70xf64>, tensor<70xf64>) outs(%zero : tensor<f64>) -> tensor<f64>
    %e = tensor.extract %d[] : tensor<f64>
    %t1 = tensor.insert %e into %t[%k, %j] : tensor<60x60xf64>
    %empty = tensor.empty() : tensor<70xf64>
    %new = linalg.generic {indexing_maps = [#r, #n, #r, #r], iterator_types = ["parallel"]}
        ins(%q, %d, %column : tensor<70xf64>, tensor<f64>, tensor<70xf64>) outs(%empty : tensor<70xf64>) {
    ^bb0(%x: f64, %y: f64, %z: f64, %out: f64):
      %0 = arith.mulf %x, %y : f64
      %1 = arith.subf %z, %0 : f64
      linalg.yield %1 : f64
    } -> tensor<70xf64>
    %b1 = tensor.insert_slice %new into %b[0, %j] [70, 1] [1, 1] : tensor<70xf64> into tensor<70x60xf64>
    scf.yield %b1, %t1 : tensor<70x60xf64>, tensor<60x60xf64>
  }
  return %r#0, %r#1 : tensor<70x60xf64>, tensor<60x60xf64>
}

// -----

// A column that the iteration before has changed.
// CHECK-LABEL: func.func @neighbours
// CHECK-NOT: step %c8
func.func @neighbours(%a: tensor<70x60xf64>) -> tensor<70x60xf64> {
  %zero = arith.constant dense<0.0> : tensor<f64>
  %c1 = arith.constant 1 : index
  %c60 = arith.constant 60 : index
  %r = scf.for %j = %c1 to %c60 step %c1 iter_args(%b = %a) -> (tensor<70x60xf64>) {
    %i = arith.subi %j, %c1 : index
    %before = tensor.extract_slice %b[0, %i] [70, 1] [1, 1] : tensor<70x60xf64> to tensor<70xf64>
    %d = linalg.dot ins(%before, %before : tensor<70xf64>, tensor<70xf64>) outs(%zero : tensor<f64>) -> tensor<f64>
    %e = tensor.extract %d[] : tensor<f64>
    %b1 = tensor.insert %e into %b[%c1, %j] : tensor<70x60xf64>
    scf.yield %b1 : tensor<70x60xf64>
  }
  return %r : tensor<70x60xf64>
}

// -----

// The sum of a column is captured by a body, where it is no operand.
#r = affine_map<(i) -> (i)>
// CHECK-LABEL: func.func @captured
// CHECK-NOT: step %c8
func.func @captured(%q: tensor<70xf64>, %a: tensor<70x60xf64>) -> tensor<70x60xf64> {
  %zero = arith.constant dense<0.0> : tensor<f64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c60 = arith.constant 60 : index
  %r = scf.for %j = %c0 to %c60 step %c1 iter_args(%b = %a) -> (tensor<70x60xf64>) {
    %column = tensor.extract_slice %b[0, %j] [70, 1] [1, 1] : tensor<70x60xf64> to tensor<70xf64>
    %d = linalg.dot ins(%q, %column : tensor<70xf64>, tensor<70xf64>) outs(%zero : tensor<f64>) -> tensor<f64>
    %e = tensor.extract %d[] : tensor<f64>
    %empty = tensor.empty() : tensor<70xf64>
    %new = linalg.generic {indexing_maps = [#r, #r], iterator_types = ["parallel"]}
        ins(%column : tensor<70xf64>) outs(%empty : tensor<70xf64>) {
    ^bb0(%z: f64, %out: f64):
      %1 = arith.subf %z, %e : f64
      linalg.yield %1 : f64
    } -> tensor<70xf64>
    %b1 = tensor.insert_slice %new into %b[0, %j] [70, 1] [1, 1] : tensor<70xf64> into tensor<70x60xf64>
    scf.yield %b1 : tensor<70x60xf64>
  }
  return %r : tensor<70x60xf64>
}

// -----

// An operation with two results, one of which is a sum.
// CHECK-LABEL: func.func @two_results
// CHECK: step %c8
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} {{.*}} outs(%{{.*}}, %{{.*}} : tensor<70x8xf64>, tensor<8xf64>)
#r = affine_map<(i) -> (i)>
#n = affine_map<(i) -> ()>
func.func @two_results(%a: tensor<70x60xf64>, %s: tensor<60xf64>) -> (tensor<70x60xf64>, tensor<60xf64>) {
  %zero = arith.constant dense<0.0> : tensor<f64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c60 = arith.constant 60 : index
  %r:2 = scf.for %j = %c0 to %c60 step %c1 iter_args(%b = %a, %t = %s) -> (tensor<70x60xf64>, tensor<60xf64>) {
    %column = tensor.extract_slice %b[0, %j] [70, 1] [1, 1] : tensor<70x60xf64> to tensor<70xf64>
    %empty = tensor.empty() : tensor<70xf64>
    %new:2 = linalg.generic {indexing_maps = [#r, #r, #n], iterator_types = ["reduction"]}
        ins(%column : tensor<70xf64>) outs(%empty, %zero : tensor<70xf64>, tensor<f64>) {
    ^bb0(%z: f64, %out: f64, %sum: f64):
      %1 = arith.mulf %z, %z : f64
      %2 = arith.addf %sum, %z : f64
      linalg.yield %1, %2 : f64, f64
    } -> (tensor<70xf64>, tensor<f64>)
    %e = tensor.extract %new#1[] : tensor<f64>
    %t1 = tensor.insert %e into %t[%j] : tensor<60xf64>
    %b1 = tensor.insert_slice %new#0 into %b[0, %j] [70, 1] [1, 1] : tensor<70xf64> into tensor<70x60xf64>
    scf.yield %b1, %t1 : tensor<70x60xf64>, tensor<60xf64>
  }
  return %r#0, %r#1 : tensor<70x60xf64>, tensor<60xf64>
}

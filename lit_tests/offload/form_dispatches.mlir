// RUN: mlirml-opt %s --split-input-file --mlirml-form-dispatches | filecheck %s

// A product and what reads it are two kernels; the fill is part of the first.
// CHECK-LABEL: func.func @main
// CHECK:       %[[P:.*]] = scf.execute_region -> tensor<4x3xf32> no_inline {
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<4x3xf32>
// CHECK:         %[[F:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[E]]
// CHECK:         %[[M:.*]] = linalg.matmul ins(%arg0, %arg1 {{.*}} outs(%[[F]]
// CHECK:         scf.yield %[[M]]
// CHECK:       } {mlirml.dispatch = "device"}
// CHECK:       %[[R:.*]] = scf.execute_region -> tensor<4x3xf32> no_inline {
// CHECK:         linalg.exp ins(%[[P]]
// CHECK:       } {mlirml.dispatch = "device"}
// CHECK:       return %[[R]]
func.func @main(%x: tensor<4x5xf32>, %w: tensor<5x3xf32>) -> tensor<4x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>
  %p = linalg.matmul ins(%x, %w : tensor<4x5xf32>, tensor<5x3xf32>) outs(%f : tensor<4x3xf32>) -> tensor<4x3xf32>
  %r = linalg.exp ins(%p : tensor<4x3xf32>) outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// A loop stays on the host, and its body is dispatched. The array that it starts from is a kernel too.
// CHECK-LABEL: func.func @main
// CHECK:       %[[INIT:.*]] = scf.execute_region
// CHECK:         linalg.fill
// CHECK:       } {mlirml.dispatch = "device"}
// CHECK:       scf.for {{.*}} iter_args(%[[X:.*]] = %[[INIT]])
// CHECK:         %[[Y:.*]] = scf.execute_region
// CHECK:           linalg.exp ins(%[[X]]
// CHECK:         scf.yield %[[Y]]
func.func @main(%n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %f) -> (tensor<8xf32>) {
    %y = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// What is elementwise over a product is part of its kernel.
// CHECK-LABEL: func.func @main
// CHECK:       %[[R:.*]] = scf.execute_region -> tensor<4x3xf32> no_inline {
// CHECK:         %[[M:.*]] = linalg.matmul
// CHECK:         linalg.generic {{.*}} ins(%[[M]]
// CHECK:         scf.yield
// CHECK:       } {mlirml.dispatch = "device"}
// CHECK-NEXT:  return %[[R]]
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<4x5xf32>, %w: tensor<5x3xf32>) -> tensor<4x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>
  %p = linalg.matmul ins(%x, %w : tensor<4x5xf32>, tensor<5x3xf32>) outs(%f : tensor<4x3xf32>) -> tensor<4x3xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<4x3xf32>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  } -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

// Rows are walked by one kernel, with what is computed for each row between; the reshape goes along.
// CHECK-LABEL: func.func @main
// CHECK:       scf.execute_region -> tensor<4x8xf32> no_inline {
// CHECK:         %[[S:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
// CHECK:         %[[E:.*]] = tensor.expand_shape
// CHECK:         %[[Q:.*]] = linalg.generic {{.*}} ins(%[[E]]
// CHECK:         %[[C:.*]] = tensor.collapse_shape %[[Q]]
// CHECK:         linalg.generic {{.*}} ins(%arg0, %[[C]]
// CHECK:         scf.yield
// CHECK-NEXT:  } {mlirml.dispatch = "device"}
// CHECK-NEXT:  return
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %k = tensor.expand_shape %s [[0, 1]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
  %e1 = tensor.empty() : tensor<4x1xf32>
  %q = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%k : tensor<4x1xf32>) outs(%e1 : tensor<4x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.sqrt %a : f32
    linalg.yield %t : f32
  } -> tensor<4x1xf32>
  %c = tensor.collapse_shape %q [[0, 1]] : tensor<4x1xf32> into tensor<4xf32>
  %e2 = tensor.empty() : tensor<4x8xf32>
  %r = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %c : tensor<4x8xf32>, tensor<4xf32>) outs(%e2 : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// A number is passed by value, and what is computed of it alone is computed on the host.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: tensor<8xf32>, %[[S:.*]]: tensor<f64>)
// CHECK-SAME:  mlirml.host_inputs = array<i64: 1>
// CHECK:       %[[N:.*]] = tensor.extract %[[S]][]
// CHECK:       %[[F:.*]] = arith.truncf %[[N]] : f64 to f32
// CHECK:       scf.execute_region
// CHECK:         arith.mulf %{{.*}}, %[[F]]
#v = affine_map<(i) -> (i)>
#n = affine_map<(i) -> ()>
func.func @main(%x: tensor<8xf32>, %s: tensor<f64>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#v, #n, #v], iterator_types = ["parallel"]} ins(%x, %s : tensor<8xf32>, tensor<f64>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f64, %o: f32):
    %c = arith.truncf %b : f64 to f32
    %d = arith.mulf %a, %c : f32
    linalg.yield %d : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// What is stored into a slice of unknown length is computed with the store, and read there by others.
#id = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func @main(
// CHECK: %[[R:.*]] = scf.execute_region -> tensor<64xf32>
// CHECK: %[[S:.*]] = linalg.generic
// CHECK: tensor.insert_slice %[[S]]
// CHECK: scf.execute_region -> tensor<64xf32>
// CHECK: tensor.extract_slice %[[R]][0] [%{{.*}}] [1] : tensor<64xf32> to tensor<?xf32>
// CHECK: tensor.insert_slice
func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>, %n: index) -> (tensor<64xf32>, tensor<64xf32>) {
  %s = tensor.extract_slice %x[0] [%n] [1] : tensor<64xf32> to tensor<?xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%s : tensor<?xf32>)
      outs(%s : tensor<?xf32>) {
  ^bb0(%in: f32, %o: f32):
    %0 = math.exp %in : f32
    linalg.yield %0 : f32
  } -> tensor<?xf32>
  %r = tensor.insert_slice %a into %x[0] [%n] [1] : tensor<?xf32> into tensor<64xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : tensor<?xf32>)
      outs(%a : tensor<?xf32>) {
  ^bb0(%in: f32, %o: f32):
    %0 = arith.addf %in, %in : f32
    linalg.yield %0 : f32
  } -> tensor<?xf32>
  %t = tensor.insert_slice %b into %y[0] [%n] [1] : tensor<?xf32> into tensor<64xf32>
  return %r, %t : tensor<64xf32>, tensor<64xf32>
}

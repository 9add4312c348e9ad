// RUN: mlirml-opt %s --split-input-file --mlirml-widen-products | filecheck %s

#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Columns 0 to 498 with columns 1 to 499: a part of the symmetric product of all.
// CHECK-LABEL: func.func @columns
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<600x500xf64>
// CHECK: %[[S:.*]] = linalg.contract {{.*}} ins(%[[X]], %[[X]] : {{.*}} -> tensor<500x500xf64>
// CHECK: %[[R:.*]] = tensor.extract_slice %[[S]][0, 1] [499, 499] [1, 1]
// CHECK: return %[[R]]
func.func @columns(%x: tensor<600x500xf64>) -> tensor<499x499xf64> {
  %zero = arith.constant 0.0 : f64
  %a = tensor.extract_slice %x[0, 0] [600, 499] [1, 1] : tensor<600x500xf64> to tensor<600x499xf64>
  %b = tensor.extract_slice %x[0, 1] [600, 499] [1, 1] : tensor<600x500xf64> to tensor<600x499xf64>
  %e = tensor.empty() : tensor<499x499xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<499x499xf64>) -> tensor<499x499xf64>
  %r = linalg.contract indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<600x499xf64>, tensor<600x499xf64>) outs(%z : tensor<499x499xf64>) -> tensor<499x499xf64>
  return %r : tensor<499x499xf64>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// Rows 10 to 209 with rows 0 to 189: of rows 0 to 209.
// CHECK-LABEL: func.func @rows
// CHECK: %[[X:.*]] = tensor.extract_slice %{{.*}}[0, 0] [210, 64] [1, 1]
// CHECK: %[[S:.*]] = linalg.contract {{.*}} ins(%[[X]], %[[X]] : {{.*}} -> tensor<210x210xf32>
// CHECK: tensor.extract_slice %[[S]][10, 0] [200, 190] [1, 1]
func.func @rows(%x: tensor<300x64xf32>) -> tensor<200x190xf32> {
  %zero = arith.constant 0.0 : f32
  %a = tensor.extract_slice %x[10, 0] [200, 64] [1, 1] : tensor<300x64xf32> to tensor<200x64xf32>
  %b = tensor.extract_slice %x[0, 0] [190, 64] [1, 1] : tensor<300x64xf32> to tensor<190x64xf32>
  %e = tensor.empty() : tensor<200x190xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<200x190xf32>) -> tensor<200x190xf32>
  %r = linalg.contract indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<200x64xf32>, tensor<190x64xf32>) outs(%z : tensor<200x190xf32>) -> tensor<200x190xf32>
  return %r : tensor<200x190xf32>
}

// -----

#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Slices that have few columns in common.
// CHECK-LABEL: func.func @apart
// CHECK: linalg.contract {{.*}} -> tensor<200x200xf64>
func.func @apart(%x: tensor<600x500xf64>) -> tensor<200x200xf64> {
  %zero = arith.constant 0.0 : f64
  %a = tensor.extract_slice %x[0, 0] [600, 200] [1, 1] : tensor<600x500xf64> to tensor<600x200xf64>
  %b = tensor.extract_slice %x[0, 100] [600, 200] [1, 1] : tensor<600x500xf64> to tensor<600x200xf64>
  %e = tensor.empty() : tensor<200x200xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<200x200xf64>) -> tensor<200x200xf64>
  %r = linalg.contract indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<600x200xf64>, tensor<600x200xf64>) outs(%z : tensor<200x200xf64>) -> tensor<200x200xf64>
  return %r : tensor<200x200xf64>
}

// -----

#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Slices of two matrices, and rows that differ.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-2: linalg.contract {{.*}} -> tensor<499x499xf64>
func.func @others(%x: tensor<600x500xf64>, %y: tensor<600x500xf64>) -> (tensor<499x499xf64>, tensor<499x499xf64>) {
  %zero = arith.constant 0.0 : f64
  %a = tensor.extract_slice %x[0, 0] [600, 499] [1, 1] : tensor<600x500xf64> to tensor<600x499xf64>
  %b = tensor.extract_slice %y[0, 1] [600, 499] [1, 1] : tensor<600x500xf64> to tensor<600x499xf64>
  %p = tensor.extract_slice %x[0, 0] [599, 499] [1, 1] : tensor<600x500xf64> to tensor<599x499xf64>
  %q = tensor.extract_slice %x[1, 1] [599, 499] [1, 1] : tensor<600x500xf64> to tensor<599x499xf64>
  %e = tensor.empty() : tensor<499x499xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<499x499xf64>) -> tensor<499x499xf64>
  %r = linalg.contract indexing_maps = [#a, #b, #c] ins(%a, %b : tensor<600x499xf64>, tensor<600x499xf64>) outs(%z : tensor<499x499xf64>) -> tensor<499x499xf64>
  %s = linalg.contract indexing_maps = [#a, #b, #c] ins(%p, %q : tensor<599x499xf64>, tensor<599x499xf64>) outs(%z : tensor<499x499xf64>) -> tensor<499x499xf64>
  return %r, %s : tensor<499x499xf64>, tensor<499x499xf64>
}

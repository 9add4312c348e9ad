// RUN: mlirml-opt %s --mlirml-halve-products --split-input-file | filecheck %s

#i = affine_map<(i, j, k) -> (i, k)>
#j = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>

// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[A:.*]]: tensor<256x500xf64>)
// CHECK:       %[[A0:.*]] = tensor.extract_slice %[[A]][0, 0] [128, 500] [1, 1]
// CHECK:       %[[A00:.*]] = tensor.extract_slice %[[A]][0, 0] [128, 500] [1, 1]
// CHECK:       %[[C0:.*]] = linalg.contract {{.*}} ins(%[[A0]], %[[A00]] : tensor<128x500xf64>, tensor<128x500xf64>)
// CHECK:       %[[R0:.*]] = tensor.insert_slice %[[C0]] into %{{.*}}[0, 0] [128, 128] [1, 1]
// CHECK:       %[[A1:.*]] = tensor.extract_slice %[[A]][128, 0] [128, 500] [1, 1]
// CHECK:       %[[C1:.*]] = linalg.contract {{.*}} ins(%[[A1]], %[[A]] : tensor<128x500xf64>, tensor<256x500xf64>)
// CHECK:       %[[LEFT:.*]] = tensor.extract_slice %[[C1]][0, 0] [128, 128] [1, 1]
// CHECK:       %[[ABOVE:.*]] = linalg.generic {{.*}} ins(%[[LEFT]]
// CHECK:       %[[R1:.*]] = tensor.insert_slice %[[ABOVE]] into %[[R0]][0, 128] [128, 128] [1, 1]
// CHECK:       %[[R2:.*]] = tensor.insert_slice %[[C1]] into %[[R1]][128, 0] [128, 256] [1, 1]
// CHECK:       return %[[R2]]
func.func @main(%a: tensor<256x500xf64>) -> tensor<256x256xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<256x256xf64>
  %zeros = linalg.fill ins(%zero : f64) outs(%e : tensor<256x256xf64>) -> tensor<256x256xf64>
  %c = linalg.contract indexing_maps = [#i, #j, #c] ins(%a, %a : tensor<256x500xf64>, tensor<256x500xf64>)
    outs(%zeros : tensor<256x256xf64>) -> tensor<256x256xf64>
  return %c : tensor<256x256xf64>
}

// -----

#square = affine_map<(i, j, k) -> (i, k)>
#turned = affine_map<(i, j, k) -> (k, j)>
#out = affine_map<(i, j, k) -> (i, j)>

// A matrix times itself is not symmetric.
// CHECK-LABEL: func.func @main
// CHECK-NOT:   tensor.insert_slice
// CHECK:       return
func.func @main(%a: tensor<256x256xf64>) -> tensor<256x256xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<256x256xf64>
  %zeros = linalg.fill ins(%zero : f64) outs(%e : tensor<256x256xf64>) -> tensor<256x256xf64>
  %c = linalg.contract indexing_maps = [#square, #turned, #out] ins(%a, %a : tensor<256x256xf64>, tensor<256x256xf64>)
    outs(%zeros : tensor<256x256xf64>) -> tensor<256x256xf64>
  return %c : tensor<256x256xf64>
}

// RUN: mlirml-opt %s --split-input-file --mlirml-pack-slices | filecheck %s

#id = affine_map<(i, j, k) -> (i, j, k)>

// Two shifted slices of one step of time are read from one copy..
// CHECK-LABEL: func.func @upwind
// CHECK: %[[PART:.*]] = tensor.extract_slice %arg0[0, 1, 0, 1] [20, 18, 11, 1] [1, 1, 1, 1] : tensor<20x20x11x3xf64> to tensor<20x18x11xf64>
// CHECK: %[[PACKED:.*]] = linalg.generic {{.*}} ins(%[[PART]] : tensor<20x18x11xf64>)
// CHECK-NEXT: ^bb0(%[[X:.*]]: f64, %{{.*}}: f64):
// CHECK-NEXT: linalg.yield %[[X]] : f64
// CHECK: %[[A:.*]] = tensor.extract_slice %[[PACKED]][0, 0, 0] [18, 18, 11] [1, 1, 1]
// CHECK: %[[B:.*]] = tensor.extract_slice %[[PACKED]][2, 0, 0] [18, 18, 11] [1, 1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[A]], %[[B]] :
func.func @upwind(%u: tensor<20x20x11x3xf64>) -> tensor<18x18x11xf64> {
  %a = tensor.extract_slice %u[0, 1, 0, 1] [18, 18, 11, 1] [1, 1, 1, 1] : tensor<20x20x11x3xf64> to tensor<18x18x11xf64>
  %b = tensor.extract_slice %u[2, 1, 0, 1] [18, 18, 11, 1] [1, 1, 1, 1] : tensor<20x20x11x3xf64> to tensor<18x18x11xf64>
  %e = tensor.empty() : tensor<18x18x11xf64>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %b : tensor<18x18x11xf64>, tensor<18x18x11xf64>) outs(%e : tensor<18x18x11xf64>) {
  ^bb0(%x: f64, %z: f64, %o: f64):
    %0 = arith.divf %x, %z : f64
    %1 = arith.subf %x, %0 : f64
    %2 = math.absf %1 : f64
    linalg.yield %2 : f64
  } -> tensor<18x18x11xf64>
  return %y : tensor<18x18x11xf64>
}

// -----

#id = affine_map<(i) -> (i)>

// Long rows that are read twice stay, and so do slices that something else than a loop reads.
// CHECK-LABEL: func.func @coordinates
// CHECK-NOT: linalg.yield %{{in|x}} :
// CHECK: tensor.extract_slice %arg0[0, 1] [5000, 1] [1, 1] : tensor<5000x3xf64> to tensor<5000xf64>
// CHECK: linalg.generic
// CHECK: return
func.func @coordinates(%p: tensor<5000x3xf64>, %s: tensor<40x40x8x2xf32>) -> (tensor<5000xf64>, tensor<40x40x8xf32>) {
  %x = tensor.extract_slice %p[0, 1] [5000, 1] [1, 1] : tensor<5000x3xf64> to tensor<5000xf64>
  %e = tensor.empty() : tensor<5000xf64>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<5000xf64>) outs(%e : tensor<5000xf64>) {
  ^bb0(%a: f64, %o: f64):
    %0 = math.exp %a : f64
    linalg.yield %0 : f64
  } -> tensor<5000xf64>
  %t = tensor.extract_slice %s[0, 0, 0, 1] [40, 40, 8, 1] [1, 1, 1, 1] : tensor<40x40x8x2xf32> to tensor<40x40x8xf32>
  return %y, %t : tensor<5000xf64>, tensor<40x40x8xf32>
}

// RUN: mlirml-opt %s --target=vulkan --emit=spirv -o %t && %python -c "import sys; words = open(sys.argv[1], 'rb').read(); print(words[:4].hex(), len(words) % 4, b'k0_mulf' in words)" %t | filecheck %s

// The magic number of SPIR-V, whole words, the name of the kernel.
// CHECK: 03022307 0 True
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.mulf %a, %a : f32
    linalg.yield %m : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

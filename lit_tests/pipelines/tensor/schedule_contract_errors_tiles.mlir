// RUN: not mlirml-opt %s --mlirml-schedule-contract=processor=avx512+avx512_bf16 2>&1 | filecheck %s

// CHECK: mlirml.LoweringError: mlirml.schedule of linalg.matmul: pairs = 32 asks for tile registers (AMX), which this process has not
// CHECK-NEXT: --> {{.*}}schedule_contract_errors_tiles.mlir:9:8
// CHECK: help: leave `pairs` out: the kernel is then chosen for this processor
func.func @main(%a: tensor<64x64xbf16>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {


  %r = linalg.matmul {mlirml.schedule = {pairs = 32}} ins(%a, %a : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

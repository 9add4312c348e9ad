// RUN: not mlirml-opt %s --mlirml-schedule-contract 2>&1 | filecheck %s

// CHECK: mlirml.LoweringError: mlirml.schedule of linalg.matmul: tile is no field of a schedule
// CHECK-NEXT: --> {{.*}}schedule_contract_errors.mlir:9:8
// CHECK: help: the fields are kernel, lanes, mr, nr
func.func @main(%a: tensor<4x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {


  %r = linalg.matmul {mlirml.schedule = {tile = 4}} ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

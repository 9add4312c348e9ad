// RUN: mlirml-opt %s --mlirml-schedule-contract='tuned={19f0660edccaf3251ff1/kernel=direct/lanes=4/mr=2/nr=4/unroll=1/kc=24/mc=40/nc=20/pack=/prefetch=0/parallel=none/chunks=1/grain=1/group=1/pairs=1,00/kernel=small}' --split-input-file | filecheck %s

// A contraction of this form has the schedule of the tuner.
// CHECK-LABEL: func.func @found
// CHECK: linalg.matmul {mlirml.schedule = {kc = 24 : i64, kernel = "direct", lanes = 4 : i64, mc = 40 : i64, mr = 2 : i64, nc = 20 : i64, nr = 4 : i64}}
func.func @found(%x: tensor<40x24xf32>, %y: tensor<24x20xf32>, %z: tensor<40x20xf32>) -> tensor<40x20xf32> {
  %r = linalg.matmul ins(%x, %y : tensor<40x24xf32>, tensor<24x20xf32>) outs(%z : tensor<40x20xf32>) -> tensor<40x20xf32>
  return %r : tensor<40x20xf32>
}

// -----

// One that has fields of its own keeps them; of another dtype it has the default schedule.
// CHECK-LABEL: func.func @own
// CHECK: linalg.matmul {mlirml.schedule = {{{.*}}kernel = "packed"
// CHECK-LABEL: func.func @other
// CHECK: linalg.matmul {mlirml.schedule = {{{.*}}mr = 5 : i64
func.func @own(%x: tensor<40x24xf32>, %y: tensor<24x20xf32>, %z: tensor<40x20xf32>) -> tensor<40x20xf32> {
  %r = linalg.matmul {mlirml.schedule = {kernel = "packed"}} ins(%x, %y : tensor<40x24xf32>, tensor<24x20xf32>) outs(%z : tensor<40x20xf32>) -> tensor<40x20xf32>
  return %r : tensor<40x20xf32>
}
func.func @other(%x: tensor<40x24xf64>, %y: tensor<24x20xf64>, %z: tensor<40x20xf64>) -> tensor<40x20xf64> {
  %r = linalg.matmul ins(%x, %y : tensor<40x24xf64>, tensor<24x20xf64>) outs(%z : tensor<40x20xf64>) -> tensor<40x20xf64>
  return %r : tensor<40x20xf64>
}

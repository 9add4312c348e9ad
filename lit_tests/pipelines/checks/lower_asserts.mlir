// RUN: mlirml-opt %s --split-input-file --mlirml-lower-asserts | filecheck %s

// CHECK: func.func private @mlirml_check_failed(i64)

// @main returns at once.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[OK:.*]]: i1, %[[OTHER:.*]]: i1, %{{.*}}: memref<f32>)
// CHECK: cf.cond_br %[[OK]], ^[[NEXT:.*]], ^[[FIRST:.*]]
// CHECK: ^[[NEXT]]:
// CHECK: cf.cond_br %[[OTHER]], ^[[REST:.*]], ^[[SECOND:.*]]
// CHECK: ^[[FIRST]]:
// CHECK: %[[NUMBER:.*]] = arith.constant 3 : i64
// CHECK: call @mlirml_check_failed(%[[NUMBER]]) : (i64) -> ()
// CHECK-NEXT: return
// CHECK: ^[[REST]]:
// CHECK: memref.store
// CHECK-NEXT: return
// CHECK: ^[[SECOND]]:
// CHECK: arith.constant 4 : i64
// CHECK-NOT: cf.assert
func.func @main(%ok: i1, %other: i1, %x: memref<f32>) {
  %one = arith.constant 1.0 : f32
  cf.assert %ok, "an index is out of bounds" {mlirml.check = 3 : i64}
  cf.assert %other, "an index is out of bounds" {mlirml.check = 4 : i64}
  memref.store %one, %x[] : memref<f32>
  return
}

// -----

// Other functions go on.
// CHECK-LABEL: func.func @part
// CHECK: cf.cond_br %{{.*}}, ^[[REST:.*]], ^[[FAILED:.*]]
// CHECK: ^[[REST]]:
// CHECK-NEXT: return
// CHECK: ^[[FAILED]]:
// CHECK: call @mlirml_check_failed
// CHECK-NEXT: cf.br ^[[REST]]
func.func @part(%ok: i1) {
  cf.assert %ok, "an index is out of bounds" {mlirml.check = 3 : i64}
  return
}

// -----

// What is between two asserts goes between their branches.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: cf.cond_br
// CHECK: memref.store
// CHECK-NEXT: memref.store
// CHECK-NEXT: cf.cond_br
// CHECK-NOT: cf.assert
func.func @main(%ok: i1, %other: i1, %x: memref<f32>, %a: f32, %b: f32) {
  cf.assert %ok, "an index is out of bounds" {mlirml.check = 3 : i64}
  memref.store %a, %x[] : memref<f32>
  memref.store %b, %x[] : memref<f32>
  cf.assert %other, "an index is out of bounds" {mlirml.check = 4 : i64}
  memref.store %a, %x[] : memref<f32>
  return
}

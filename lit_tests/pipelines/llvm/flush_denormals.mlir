// RUN: mlirml-opt %s --mlirml-flush-denormals | filecheck %s

// CHECK: llvm.func internal @main.parallel0.thunk
// CHECK: llvm.call_intrinsic "llvm.x86.sse.stmxcsr"(%[[OLD:.*]]) :
// CHECK: llvm.or %{{.*}}, %{{.*}} : i32
// CHECK: llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%[[NEW:.*]]) :
// CHECK: llvm.call @main.parallel0
// CHECK: llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%[[OLD]]) :
// CHECK: llvm.return
llvm.func internal @main.parallel0.thunk(%lo: i64, %hi: i64, %context: !llvm.ptr) {
  llvm.call @main.parallel0(%lo, %hi) : (i64, i64) -> ()
  llvm.return
}
// CHECK: llvm.func @main.parallel0
// CHECK-NOT: mxcsr
// CHECK: llvm.return
llvm.func @main.parallel0(%lo: i64, %hi: i64) {
  llvm.return
}
llvm.func @main(%x: !llvm.ptr) {
  llvm.return
}
// CHECK: llvm.func @entry(%{{.*}}: !llvm.ptr) {
// CHECK: stmxcsr
// CHECK: ldmxcsr
// CHECK: llvm.call @main
// CHECK: ldmxcsr
llvm.func @entry(%pointers: !llvm.ptr) attributes {mlirml.flush_denormals} {
  llvm.call @main(%pointers) : (!llvm.ptr) -> ()
  llvm.return
}

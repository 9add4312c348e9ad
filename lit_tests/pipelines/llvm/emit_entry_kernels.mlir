// RUN: mlirml-opt %s --mlirml-emit-entry | filecheck %s

// Kernels that go ahead of @main get no entry; what must not be inlined is told to LLVM.
// CHECK-NOT: @entry
// CHECK: llvm.func @kernel(%{{.*}}: !llvm.ptr) attributes {no_inline}
// CHECK-NOT: @entry
llvm.func @kernel(%x: !llvm.ptr) attributes {mlirml.no_inline} {
  llvm.return
}

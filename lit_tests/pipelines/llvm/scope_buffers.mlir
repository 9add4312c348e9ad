// RUN: mlirml-opt %s --split-input-file --mlirml-scope-buffers | filecheck %s

// The slices at 0 and 128 overlap, the one at 64 does not overlap with that at 128.

// CHECK-LABEL: llvm.func @main
// CHECK-NOT: mlirml.slices
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> i64
// CHECK: llvm.load %{{.*}} {alias_scopes = [#[[B:.*]]], noalias_scopes = [#[[C:.*]]]} : !llvm.ptr -> f64
// CHECK: llvm.store %{{.*}}, %{{.*}} {alias_scopes = [#[[A:.*]]]} : f64
// CHECK: llvm.store %{{.*}}, %{{.*}} {alias_scopes = [#[[C]]], noalias_scopes = [#[[B]]]} : f64
// CHECK: llvm.func @other
// CHECK: llvm.load %{{.*}} {alias_scopes = [#[[D:.*]]], noalias_scopes = [#[[E:.*]]]} : !llvm.ptr -> f64
// CHECK: llvm.store %{{.*}}, %{{.*}} {alias_scopes = [#[[E]]], noalias_scopes = [#[[D]]]} : f64
llvm.func @main(%x: !llvm.ptr, %w: !llvm.ptr) attributes {mlirml.slices = array<i64: 1, 0, 192, 64, 64, 128, 64>} {
  %b = llvm.getelementptr %w[64] : (!llvm.ptr) -> !llvm.ptr, i8
  %c = llvm.getelementptr %w[128] : (!llvm.ptr) -> !llvm.ptr, i8
  %i = llvm.load %x : !llvm.ptr -> i64
  %q = llvm.getelementptr %b[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %r = llvm.getelementptr %w[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %s = llvm.getelementptr %c[3] : (!llvm.ptr) -> !llvm.ptr, f64
  %e = llvm.load %q : !llvm.ptr -> f64
  llvm.store %e, %r : f64, !llvm.ptr
  llvm.store %e, %s : f64, !llvm.ptr
  llvm.call @other(%w, %x) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.return
}

llvm.func @other(%w: !llvm.ptr, %x: !llvm.ptr) {
  %b = llvm.getelementptr %w[64] : (!llvm.ptr) -> !llvm.ptr, i8
  %c = llvm.getelementptr %w[128] : (!llvm.ptr) -> !llvm.ptr, i8
  %i = llvm.load %x : !llvm.ptr -> i64
  %q = llvm.getelementptr %b[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %e = llvm.load %q : !llvm.ptr -> f64
  llvm.store %e, %c : f64, !llvm.ptr
  llvm.return
}

// -----

// Where all places are known, nothing needs to be told.

// CHECK-LABEL: llvm.func @main
// CHECK-NOT: scopes
llvm.func @main(%w: !llvm.ptr, %i: i64) attributes {mlirml.slices = array<i64: 0, 0, 64, 64, 64>} {
  %b = llvm.getelementptr %w[64] : (!llvm.ptr) -> !llvm.ptr, i8
  %q = llvm.getelementptr %b[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %e = llvm.load %q : !llvm.ptr -> f64
  llvm.store %e, %w : f64, !llvm.ptr
  llvm.return
}

// -----

// A slice of a tensor that begins at a place that a loop around computes.

// CHECK-LABEL: llvm.func @main
// CHECK: llvm.load %{{.*}} {alias_scopes = [#[[A:.*]]], noalias_scopes = [#[[B:.*]]]} : !llvm.ptr -> f64
// CHECK: llvm.store %{{.*}}, %{{.*}} {alias_scopes = [#[[B]]], noalias_scopes = [#[[A]]]} : f64
llvm.func @main(%w: !llvm.ptr, %k: i64, %n: i64) attributes {mlirml.slices = array<i64: 0, 0, 64, 64, 64>} {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %b = llvm.getelementptr %w[64] : (!llvm.ptr) -> !llvm.ptr, i8
  %start = llvm.mul %k, %n : i64
  llvm.br ^body(%zero : i64)
^body(%i: i64):
  %place = llvm.add %start, %i : i64
  %q = llvm.getelementptr %b[%place] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %r = llvm.getelementptr %w[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %e = llvm.load %q : !llvm.ptr -> f64
  llvm.store %e, %r : f64, !llvm.ptr
  %more = llvm.icmp "slt" %place, %n : i64
  llvm.cond_br %more, ^body(%place : i64), ^end
^end:
  llvm.return
}

// -----

// A loop over static offsets that loads the same element in each iteration, which LLVM takes to depend on the stores.

// CHECK-LABEL: llvm.func @main
// CHECK: llvm.load %{{.*}} {alias_scopes = [#[[A:.*]]], noalias_scopes = [#[[B:.*]]]} : !llvm.ptr -> f64
// CHECK: llvm.store %{{.*}}, %{{.*}} {alias_scopes = [#[[B]]], noalias_scopes = [#[[A]]]} : f64
llvm.func @main(%w: !llvm.ptr, %n: i64) attributes {mlirml.slices = array<i64: 0, 0, 64, 64, 64>} {
  %one = llvm.mlir.constant(1 : i64) : i64
  %b = llvm.getelementptr %w[64] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.br ^body(%one : i64)
^body(%i: i64):
  %r = llvm.getelementptr %w[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %e = llvm.load %b : !llvm.ptr -> f64
  llvm.store %e, %r : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  %more = llvm.icmp "slt" %next, %n : i64
  llvm.cond_br %more, ^body(%next : i64), ^end
^end:
  llvm.return
}

// RUN: mlirml-opt %s --mlirml-lower-parallel | filecheck %s

// CHECK: llvm.func @mlirml_parallel_for_long(!llvm.ptr, i64, i64, i64, !llvm.ptr)
// CHECK: llvm.func @mlirml_parallel_for(!llvm.ptr, i64, i64, i64, !llvm.ptr)
// CHECK: llvm.func internal @body.thunk(%[[LO:.*]]: i64, %[[HI:.*]]: i64, %[[C:.*]]: !llvm.ptr)
// CHECK: %[[P:.*]] = llvm.getelementptr %[[C]][0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr, f32)>
// CHECK: %[[X:.*]] = llvm.load %[[P]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[Q:.*]] = llvm.getelementptr %[[C]][0, 1]
// CHECK: %[[S:.*]] = llvm.load %[[Q]] : !llvm.ptr -> f32
// CHECK: llvm.call @body(%[[LO]], %[[HI]], %[[X]], %[[S]])
// CHECK: llvm.func internal @body({{.*}}llvm.noalias{{.*}}) attributes {no_inline}
llvm.func internal @body(%lo: i64, %hi: i64, %x: !llvm.ptr {llvm.noalias}, %s: f32) {
  llvm.return
}

// CHECK: llvm.func @f
// CHECK: %[[R:.*]] = llvm.alloca
// CHECK: llvm.store
// CHECK: llvm.store
// CHECK: %[[T:.*]] = llvm.mlir.addressof @body.thunk
// CHECK: %[[G:.*]] = llvm.mlir.constant(16 : i64)
// CHECK: llvm.call @mlirml_parallel_for(%[[T]], %{{.*}}, %{{.*}}, %[[G]], %[[R]])
// CHECK: llvm.call @body
llvm.func @f(%x: !llvm.ptr, %s: f32) {
  %lo = llvm.mlir.constant(0 : i64) : i64
  %hi = llvm.mlir.constant(64 : i64) : i64
  llvm.call @body(%lo, %hi, %x, %s) {mlirml.parallel_for = 16 : i64} : (i64, i64, !llvm.ptr, f32) -> ()
  llvm.call @body(%lo, %hi, %x, %s) : (i64, i64, !llvm.ptr, f32) -> ()
  llvm.return
}

llvm.func internal @more(%lo: i64, %hi: i64) {
  llvm.return
}

// CHECK: llvm.func @few_chunks
// CHECK: llvm.call @mlirml_parallel_for_long(
llvm.func @few_chunks(%lo: i64, %hi: i64) {
  llvm.call @more(%lo, %hi) {mlirml.long_chunks, mlirml.parallel_for = 1 : i64} : (i64, i64) -> ()
  llvm.return
}

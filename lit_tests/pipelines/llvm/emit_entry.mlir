// RUN: mlirml-opt %s --mlirml-emit-entry | filecheck %s

// CHECK: llvm.func @entry(%[[P:.*]]: !llvm.ptr) attributes {mlirml.inputs = [tensor<8xf32>], mlirml.outputs = [tensor<8xf32>], mlirml.workspace = 0 : i64}
// CHECK-NEXT: %[[X:.*]] = llvm.load %[[P]] : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT: %[[Q:.*]] = llvm.getelementptr %[[P]][1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK-NEXT: %[[Y:.*]] = llvm.load %[[Q]]
// CHECK-NEXT: llvm.call @main(%[[X]], %[[Y]])
// CHECK-NEXT: llvm.return
// CHECK: llvm.func internal @main(%{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias})
llvm.func @main(%x: !llvm.ptr, %y: !llvm.ptr) attributes {
    mlirml.inputs = [tensor<8xf32>], mlirml.outputs = [tensor<8xf32>], mlirml.workspace = 0 : i64} {
  llvm.return
}

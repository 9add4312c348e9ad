// RUN: mlirml-opt %s --mlirml-expand-math | filecheck %s
// RUN: mlirml-opt %s --mlirml-expand-math=processor=sse4.1 | filecheck %s --check-prefix=OLD
// RUN: mlirml-opt %s --mlirml-expand-math=processor=avx512 | filecheck %s --check-prefix=SCALEF
// RUN: mlirml-opt %s --mlirml-expand-math='processor=avx512 libmvec=true' | filecheck %s --check-prefix=LIBMVEC
// RUN: mlirml-opt %s --mlirml-expand-math --mlirml-expand-math | filecheck %s

// CHECK-LABEL: func.func @functions(
// CHECK-NEXT: %[[A:.*]] = call @mlirml.exp.f32(%{{.*}}) : (f32) -> f32
// CHECK-NEXT: %[[B:.*]] = call @mlirml.log.v4x8xf64(%{{.*}}) : (vector<4x8xf64>) -> vector<4x8xf64>
// CHECK-NEXT: %[[C:.*]] = call @mlirml.exp.f32(%[[A]]) : (f32) -> f32
// CHECK-NEXT: return %[[C]], %[[B]]
func.func @functions(%x: f32, %y: vector<4x8xf64>) -> (f32, vector<4x8xf64>) {
  %a = math.exp %x : f32
  %b = math.log %y : vector<4x8xf64>
  %c = math.exp %a : f32
  return %c, %b : f32, vector<4x8xf64>
}

// CHECK-LABEL: func.func @small_floats(
// CHECK: call @mlirml.addf.bf16(%{{.*}}, %{{.*}}) : (bf16, bf16) -> bf16
// CHECK: call @mlirml.cmpf.4.f16(%{{.*}}, %{{.*}}) : (f16, f16) -> i1
// CHECK: call @mlirml.extf.bf16.f32(%{{.*}}) : (bf16) -> f32
// CHECK: call @mlirml.truncf.f64.f16(%{{.*}}) : (f64) -> f16
// CHECK: arith.extf %{{.*}} : f16 to f32
// OLD: call @mlirml.extf.f16.f32(%{{.*}}) : (f16) -> f32
func.func @small_floats(%h: f16, %b: bf16, %d: f64) -> (bf16, i1, f32, f16, f32) {
  %0 = arith.addf %b, %b : bf16
  %1 = arith.cmpf olt, %h, %h : f16
  %2 = arith.extf %b : bf16 to f32
  %3 = arith.truncf %d : f64 to f16
  %4 = arith.extf %h : f16 to f32
  return %0, %1, %2, %3, %4 : bf16, i1, f32, f16, f32
}

// What LLVM does well stays, and so does arithmetic that is not on small floats.
// CHECK-LABEL: func.func @untouched(
// CHECK-NEXT: math.sqrt
// CHECK-NEXT: math.floor
// CHECK-NEXT: arith.addf
// CHECK-NEXT: math.fpowi
// CHECK-NEXT: return
func.func @untouched(%x: f32, %n: i32) -> f32 {
  %0 = math.sqrt %x : f32
  %1 = math.floor %0 : f32
  %2 = arith.addf %0, %1 : f32
  %3 = math.fpowi %2, %n : f32, i32
  return %3 : f32
}

// CHECK-LABEL: func.func @branches(
// CHECK-NEXT: call @mlirml.sin.f32
func.func @branches(%x: f32) -> f32 {
  %0 = math.sin %x : f32
  return %0 : f32
}

// One function for each op and type, straight-line code that is always inlined.
// CHECK-LABEL: func.func private @mlirml.exp.f32(
// CHECK-SAME: llvm.passthrough = ["alwaysinline"]
// CHECK-NOT: scf.if
// CHECK: math.fma
// CHECK-NOT: @mlirml.exp.f32
// CHECK-LABEL: func.func private @mlirml.log.v4x8xf64(
// CHECK: arith.constant dense<{{.*}}> : vector<4x8xf64>
// CHECK-LABEL: func.func private @mlirml.addf.bf16(
// CHECK: arith.addf %{{.*}}, %{{.*}} : f32
// CHECK: arith.bitcast %{{.*}} : i16 to bf16

// A function that leaves part of the range to libm stays a call until loops are vectorised.
// CHECK-LABEL: func.func private @mlirml.sin.f32(
// CHECK-SAME: "noinline", ["vector-function-abi-variant", "_ZGV_LLVM_N8v_mlirml.sin.f32(mlirml.sin.v8xf32)
// CHECK: scf.if
// CHECK: math.sin %{{.*}} : f32
// CHECK-LABEL: func.func private @mlirml.sin.v8xf32(
// CHECK: vector.reduction <and>
// CHECK: scf.for
// CHECK: math.sin %{{.*}} : f32
// CHECK: arith.select

// OLD-LABEL: func.func private @mlirml.exp.f32(
// OLD-NOT: math.fma
// OLD: return
// SCALEF-LABEL: func.func private @mlirml.exp.f32(
// Underflow is slow: a power that vanishes is not scaled.
// SCALEF: %[[V:.*]] = arith.cmpf olt, %arg0
// SCALEF: %[[N:.*]] = arith.select %[[V]], %c0
// SCALEF: %[[P:.*]] = llvm.call_intrinsic "llvm.ldexp.f32.i32"(%{{.*}}, %[[N]])
// SCALEF: arith.select %[[V]], %{{.*}}, %[[P]]

// With glibc's vector functions the scalar function is kept for LLVM's vectoriser, which takes the declared ones.
// LIBMVEC-DAG: func.func private @mlirml.exp.f32({{.*}}"noinline", ["vector-function-abi-variant", "_ZGV_LLVM_N16v_mlirml.exp.f32(_ZGVeN16v_expf),_ZGV_LLVM_N8v_mlirml.exp.f32(_ZGVdN8v_expf)"]
// LIBMVEC-DAG: func.func private @_ZGVeN16v_expf(vector<16xf32>) -> vector<16xf32>

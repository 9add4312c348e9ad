// RUN: mlirml-opt %s --split-input-file --mlirml-widen-chains | filecheck %s

// Conversions in the middle of a chain are left out. f16 have normal reciprocals in f32.

// CHECK-LABEL: func.func @chain(
// CHECK:         scf.for
// CHECK-DAG:       %[[A:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK-DAG:       %[[B:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK:           %[[P:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK:           %[[D:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK:           %[[Q:.*]] = arith.divf %[[P]], %[[D]] fastmath<arcp> : f32
// CHECK:           %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// CHECK:           %[[S:.*]] = arith.addf %[[Q]], %[[HALF]] : f32
// CHECK:           %[[R:.*]] = arith.truncf %[[S]] : f32 to f16
// CHECK:           memref.store %[[R]]
func.func @chain(%x: memref<70xf16>, %y: memref<70xf16>, %d: f16, %z: memref<70xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c70 = arith.constant 70 : index
  %half = arith.constant 5.0e-01 : f16
  scf.for %j = %c0 to %c70 step %c1 {
    %a = memref.load %x[%j] : memref<70xf16>
    %b = memref.load %y[%j] : memref<70xf16>
    %p = arith.mulf %a, %b : f16
    %q = arith.divf %p, %d : f16
    %s = arith.addf %q, %half : f16
    memref.store %s, %z[%j] : memref<70xf16>
  }
  return
}

// -----

// A square that is added up in f32 is not rounded; bf16 are not multiplied by reciprocals.

// CHECK-LABEL: func.func @sum(
// CHECK:         %[[Q:.*]] = arith.divf %{{.*}}, %{{.*}} : f32
// CHECK:         %[[P:.*]] = arith.mulf %[[Q]], %[[Q]] : f32
// CHECK-NOT:     arith.truncf
// CHECK:         arith.addf %[[P]], %{{.*}} : f32
func.func @sum(%a: bf16, %b: bf16, %total: f32) -> f32 {
  %q = arith.divf %a, %b : bf16
  %p = arith.mulf %q, %q : bf16
  %w = arith.extf %p : bf16 to f32
  %s = arith.addf %w, %total : f32
  return %s : f32
}

// -----

// What is compared is rounded, and so is what was rounded in the program.

// CHECK-LABEL: func.func @rounded(
// CHECK:         %[[P:.*]] = arith.mulf %{{.*}}, %{{.*}} : vector<8xf32>
// CHECK:         %[[N:.*]] = arith.truncf %[[P]] : vector<8xf32> to vector<8xf16>
// CHECK:         arith.addf %[[P]], %{{.*}} : vector<8xf32>
// CHECK:         arith.cmpf ogt, %[[N]], %{{.*}} : vector<8xf16>
// CHECK-LABEL: func.func @converted(
// CHECK:         %[[N:.*]] = arith.truncf %{{.*}} : f32 to f16
// CHECK:         %[[W:.*]] = arith.extf %[[N]] : f16 to f32
// CHECK:         arith.addf %[[W]], %{{.*}} : f32
// CHECK:         arith.mulf %{{.*}}, %{{.*}} : f16
func.func @rounded(%a: vector<8xf16>, %b: vector<8xf16>) -> (vector<8xf16>, vector<8xi1>) {
  %p = arith.mulf %a, %b : vector<8xf16>
  %s = arith.addf %p, %b : vector<8xf16>
  %c = arith.cmpf ogt, %p, %a : vector<8xf16>
  return %s, %c : vector<8xf16>, vector<8xi1>
}

func.func @converted(%a: f32, %b: f16) -> (f32, f16) {
  %n = arith.truncf %a : f32 to f16
  %w = arith.extf %n : f16 to f32
  %s = arith.addf %w, %a : f32
  %alone = arith.mulf %n, %b : f16
  return %s, %alone : f32, f16
}

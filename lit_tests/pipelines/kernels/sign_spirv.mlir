// RUN: mlirml-opt %s --mlirml-sign-spirv | filecheck %s

// CHECK: %[[X:.*]] = spirv.Bitcast %{{.*}} : i32 to si32
// CHECK: %[[Y:.*]] = spirv.Bitcast %{{.*}} : i32 to si32
// CHECK: %[[Z:.*]] = spirv.SDiv %[[X]], %[[Y]] : si32
// CHECK: %[[Q:.*]] = spirv.Bitcast %[[Z]] : si32 to i32
// CHECK: %[[S:.*]] = spirv.Bitcast %[[Q]] : i32 to si32
// CHECK: spirv.ConvertSToF %[[S]] : si32 to f32
spirv.module Logical GLSL450 requires #spirv.vce<v1.3, [Shader], []> {
  spirv.func @f(%a: i32, %b: i32) -> f32 "None" {
    %q = spirv.SDiv %a, %b : i32
    %f = spirv.ConvertSToF %q : i32 to f32
    spirv.ReturnValue %f : f32
  }
}

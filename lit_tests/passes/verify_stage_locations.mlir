// RUN: mlirml-opt %s --split-input-file --verify-diagnostics --mlirml-verify-stage=stage=optimize
// RUN: mlirml-opt %s --split-input-file --verify-diagnostics --mlirml-verify-stage=stage=capture

func.func @constants_need_no_line() -> f32 {
  %c = arith.constant 1.0 : f32 loc(unknown)
  return %c : f32
}

// -----

// expected-error@unknown {{`arith.addf` has no source location after stage}}
func.func @a_pass_must_keep_the_line(%a: f32) -> f32 {
  %0 = arith.addf %a, %a : f32 loc(unknown)
  return %0 : f32
}

// -----

// expected-error@unknown {{`arith.addf` has no source location after stage}}
func.func @fusing_nothing_gives_nothing(%a: f32) -> f32 {
  %0 = arith.addf %a, %a : f32 loc(fused[unknown, unknown])
  return %0 : f32
}

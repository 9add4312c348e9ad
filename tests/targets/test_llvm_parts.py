"""Which functions of a module are vector code, and that the two parts make one object again."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mlirml.runtime import Program, load_object
from mlirml.targets.llvm import compile_to_object, optimised_ir
from mlirml.targets.llvm_parts import split

PROGRAM = """
@weight = private constant float 3.000000e+00
declare float @llvm.fabs.f32(float)
define void @entry(ptr %pointers) {
  %x = load ptr, ptr %pointers
  %at = getelementptr ptr, ptr %pointers, i64 1
  %y = load ptr, ptr %at
  call void @scalars(ptr %x, ptr %y)
  call void @vectors(ptr %y)
  ret void
}
define internal void @scalars(ptr noalias %x, ptr noalias %y) noinline #0 {
  br label %loop
loop:
  %i = phi i64 [0, %0], [%next, %loop]
  %p = getelementptr float, ptr %x, i64 %i
  %q = getelementptr float, ptr %y, i64 %i
  %v = load float, ptr %p
  %w = call float @twice(float %v)
  store float %w, ptr %q
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 1024
  br i1 %more, label %loop, label %done
done:
  ret void
}
define internal float @twice(float %v) {
  %a = call float @llvm.fabs.f32(float %v)
  %w = fmul float %a, 2.0
  ret float %w
}
define internal void @vectors(ptr %y) #0 {
  br label %loop
loop:
  %i = phi i64 [0, %0], [%next, %loop]
  %q = getelementptr float, ptr %y, i64 %i
  %v = load <8 x float>, ptr %q
  %one = load float, ptr @weight
  %lane = insertelement <8 x float> poison, float %one, i32 0
  %all = shufflevector <8 x float> %lane, <8 x float> poison, <8 x i32> zeroinitializer
  %w = call <8 x float> @plus(<8 x float> %v, <8 x float> %all)
  store <8 x float> %w, ptr %q
  %next = add i64 %i, 8
  %more = icmp ult i64 %next, 1024
  br i1 %more, label %loop, label %done
done:
  ret void
}
define internal <8 x float> @plus(<8 x float> %a, <8 x float> %b) noinline {
  %c = fadd <8 x float> %a, %b
  ret <8 x float> %c
}
attributes #0 = { nounwind }
"""


def defined(text: str) -> list[str]:
    return re.findall(r"^define .*@([\w.]+)\(", text, re.MULTILINE)


def test_functions_with_scalar_loops_and_what_they_call_are_left_to_llvm() -> None:
    parts = split(PROGRAM)
    assert defined(parts.others) == ["scalars", "twice"]
    assert defined(parts.vectors) == ["entry", "vectors", "plus"]


def test_only_what_the_other_part_names_is_visible() -> None:
    parts = split(PROGRAM)
    assert "define void @scalars" in parts.others and "define internal float @twice" in parts.others
    assert "declare void @scalars(ptr noalias %x, ptr noalias %y) noinline #0\n" in parts.vectors
    assert "define internal void @vectors" in parts.vectors
    assert "declare" not in parts.others.replace("declare float @llvm.fabs.f32", "")


@pytest.mark.parametrize(
    "old, new",
    [
        ("@weight = private", "@weight = external"),
        ("attributes #0", "@llvm.compiler.used = appending global [1 x ptr] [ptr @twice]\nattributes #0"),
        ("@twice(float %v) {", '@"twice"(float %v) {'),
        ("%c = fadd <8 x float> %a, %b\n  ret <8 x float> %c\n}", "ret <8 x float> %a }"),
    ],
)
def test_what_is_unusual_stays_whole(old: str, new: str) -> None:
    assert old in PROGRAM
    changed = PROGRAM.replace(old, new)
    assert (split(changed).vectors, split(changed).others) == ("", changed)


def test_a_module_of_one_kind_is_one_part() -> None:
    vectors = PROGRAM.replace("store float %w, ptr %q", "")
    assert (split(vectors).vectors, split(vectors).others) == (vectors, "")
    scalars = PROGRAM.replace("%v = load <8 x float>", "%n = load i32, ptr %q\n  %v = load <8 x float>")
    scalars = scalars.replace("call void @vectors(ptr %y)", "").replace("call void @scalars(ptr %x, ptr %y)", "")
    assert defined(split(scalars).others) == ["scalars", "vectors", "twice", "plus"]


def test_the_linked_parts_run_and_only_the_entry_is_global() -> None:
    text = optimised_ir(PROGRAM)
    assert re.findall(r"^define (?!internal).*@(\w+)\(", text, re.MULTILINE) == ["entry"]
    assert "call float @twice" not in text and re.search(r"fmul <\d+ x float>", text), "inlined and vectorised"
    x = np.arange(-512, 512, dtype=np.float32)
    spec = (x.dtype, x.shape)
    (y,) = Program(load_object(compile_to_object(PROGRAM)), "entry", [spec], [spec])([x])
    np.testing.assert_array_equal(y, 2 * np.abs(x) + 3)

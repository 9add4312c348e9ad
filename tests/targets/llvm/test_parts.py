"""Which functions of a module are vector code, and that the two parts make one object again."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mlirml.core.config import config
from mlirml.runtime import Program, load_object
from mlirml.targets.llvm.codegen import CodegenOptions, compile_to_object, optimised_ir
from mlirml.targets.llvm.parts import drivers, split
from mlirml.targets.llvm.units import units_to_emit, units_to_optimise, whole

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


def test_arguments_that_are_stored_for_a_parallel_loop_are_nothing_to_vectorise() -> None:
    field = "%field = getelementptr { ptr, i64 }, ptr %y, i32 0, i32 1"
    call = "%w = call <8 x float> @plus("
    stored = PROGRAM.replace(call, f"{field}\n  store i64 %i, ptr %field, align 4\n  {call}")
    assert defined(split(stored).vectors) == ["entry", "vectors", "plus"]
    elsewhere = PROGRAM.replace(call, f"{field}\n  store i64 %i, ptr %q, align 4\n  {call}")
    assert "vectors" in defined(split(elsewhere).others)
    other = PROGRAM.replace(call, f"%field = getelementptr i64, ptr %y, i64 1\n  store i64 %i, ptr %field\n  {call}")
    assert "vectors" in defined(split(other).others)


DRIVER = """
define void @drive(ptr %0, i64 %1) {
  br label %3

3:                                                ; preds = %6, %2
  %4 = phi i64 [ %8, %6 ], [ 0, %2 ]
  %5 = icmp slt i64 %4, %1
  br i1 %5, label %6, label %9

6:                                                ; preds = %3
  %7 = mul nsw i64 %4, 48
  call void @kernel(ptr %0, i64 %7)
  %8 = add i64 %4, 1
  br label %3

9:                                                ; preds = %3
  ret void
}
define internal void @kernel(ptr %0, i64 %1) {
  %3 = getelementptr float, ptr %0, i64 %1
  store <8 x float> splat (float 1.0), ptr %3
  ret void
}
"""


def test_functions_that_do_nothing_but_call_kernels_are_drivers() -> None:
    assert drivers(DRIVER) == {"drive"}
    assert drivers(PROGRAM) == {"entry"}
    for kernel in ("store float 1.0, ptr %0", "%x = load double, ptr %0", "store <2 x i64> zeroinitializer, ptr %0"):
        assert not drivers(DRIVER.replace("%7 = mul", f"{kernel}\n  %7 = mul"))


def test_a_function_with_a_loop_that_calls_nothing_is_no_driver() -> None:
    steps = DRIVER.replace("  call void @kernel(ptr %0, i64 %7)\n", "")
    assert not drivers(
        steps.replace("  ret void\n}\ndefine", "  call void @kernel(ptr %0, i64 0)\n  ret void\n}\ndefine")
    )
    assert not drivers(
        DRIVER.replace("call void @kernel(ptr %0, i64 %7)", "%x = call i64 @llvm.smin.i64(i64 %7, i64 3)")
    )


def test_drivers_are_made_plainly_and_kernels_are_not() -> None:
    text = optimised_ir(DRIVER)
    attributes = dict(re.findall(r"^attributes (#\d+) = \{(.*)\}", text, re.MULTILINE))
    made = {m[1]: attributes[m[2]] for m in re.finditer(r"^define .*@(\w+)\(.*(#\d+) \{", text, re.MULTILINE)}
    assert "optnone" in made["drive"] and "optnone" not in made["kernel"]


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


def long_program(functions: int, lines: int) -> str:
    """`entry` adds up, into its second array, what `functions` functions of many lines make of the first one."""
    texts = [f"@weight = private constant float {functions}.0", "define void @entry(ptr %pointers) {"]
    texts += ["%x = load ptr, ptr %pointers", "%at = getelementptr ptr, ptr %pointers, i64 1", "%y = load ptr, ptr %at"]
    texts += ["store <8 x float> zeroinitializer, ptr %y, align 4"]
    texts += [f"call void @part{i}(ptr %x, ptr %y)" for i in range(functions)] + ["ret void", "}"]
    for i in range(functions):
        texts += [
            f"define internal void @part{i}(ptr %x, ptr %y) noinline {{",
            "%v0 = load <8 x float>, ptr %x, align 4",
        ]
        for n in range(lines):
            op = ("fadd", "fmul")[(n + i) % 2]
            texts.append(f"%v{n + 1} = {op} <8 x float> %v{n}, %v{max(n - 3, 0)}")
        texts += ["%w = load float, ptr @weight", "%first = insertelement <8 x float> poison, float %w, i32 0"]
        texts += ["%all = shufflevector <8 x float> %first, <8 x float> poison, <8 x i32> zeroinitializer"]
        texts += [f"%scaled = fmul <8 x float> %v{lines}, %all", "%old = load <8 x float>, ptr %y, align 4"]
        texts += ["%new = fadd <8 x float> %old, %scaled", "store <8 x float> %new, ptr %y, align 4", "ret void", "}"]
    return "\n".join(texts)


def test_modules_with_variables_are_not_cut() -> None:
    variable = long_program(7, 120).replace("@weight = private constant", "@weight = internal global")
    assert (units_to_optimise(variable, ()), units_to_emit(variable, ()), whole(variable, ())) == (None, None, None)
    assert (split(variable).vectors, split(variable).others) == ("", variable)


def test_the_code_does_not_depend_on_the_number_of_threads() -> None:
    program = long_program(9, 200)
    objects = set()
    for threads in (1, 2, 4, None):
        with config.override(threads=threads):
            objects.add(compile_to_object(program))
    (data,) = objects
    x = np.linspace(-0.5, 0.5, 8, dtype=np.float32)
    plain = compile_to_object(program, CodegenOptions(level=1))  # is not taken apart
    spec = [(x.dtype, x.shape)]
    (found,), (expected,) = (Program(load_object(code), "entry", spec, spec)([x]) for code in (data, plain))
    np.testing.assert_array_equal(found, expected)

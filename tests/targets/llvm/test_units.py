"""Units: functions with equal code have equal texts, and an object made of units is that of the whole program."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from mlirml.core.config import config
from mlirml.runtime import Program, load_object
from mlirml.targets.llvm import code_cache
from mlirml.targets.llvm.code_cache import counted
from mlirml.targets.llvm.codegen import CodegenOptions, compile_to_object
from mlirml.targets.llvm.elf import join, undefined_symbols
from mlirml.targets.llvm.units import SHORT_OPTIMISED, Unit, units_to_emit, units_to_optimise, whole
from mlirml.targets.machine import named

KEEPS = frozenset(["memcpy"])


def scale(name: str, factor: str, scope: int, lines: int = SHORT_OPTIMISED, attributes: int = 0) -> str:
    """A function with a scalar loop that multiplies 1024 floats by a factor."""
    body = "\n".join(
        f"  %w{n} = call float @llvm.fma.f32(float %{'v' if n == 0 else f'w{n - 1}'}, float {factor}, float 0.0)"
        for n in range(lines)
    )
    return f"""define internal void @{name}(ptr noalias %x) #{attributes} {{
  br label %loop
loop:
  %i = phi i64 [0, %0], [%next, %loop]
  %p = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %p, !noalias !{scope}
{body}
  %one = call float @twice(float %w{lines - 1})
  store float %one, ptr %p
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 1024
  br i1 %more, label %loop, label %done
done:
  ret void
}}"""


TWICE = """define internal float @twice(float %v) #1 {
  %w = fadd float %v, %v
  ret float %w
}"""


def program(*functions: str, first_scope: int = 3) -> str:
    """A module with an entry that calls functions on its only array."""
    names = [re.findall(r"@([\w.]+)\(", function)[0] for function in functions]
    calls = "\n".join(f"  call void @{name}(ptr %x)" for name in names if name != "twice")
    scope, domain = first_scope + 10, first_scope + 11
    lists = [f"!{n} = !{{!{scope}}}" for n in range(first_scope, first_scope + 4)]
    scopes = "\n".join(
        [*lists, f"!{scope} = distinct !{{!{scope}, !{domain}}}", f"!{domain} = distinct !{{!{domain}}}"]
    )
    entry = f"define void @entry(ptr %pointers) {{\n  %x = load ptr, ptr %pointers\n{calls}\n  ret void\n}}"
    return "\n".join(
        [
            "; ModuleID = 'test'",
            "declare float @llvm.fma.f32(float, float, float) #2",
            entry,
            *functions,
            TWICE,
            "attributes #0 = { noinline nounwind }",
            "attributes #1 = { alwaysinline }",
            "attributes #2 = { nounwind }",
            scopes,
            "",
        ]
    )


def texts(units: list[Unit] | None) -> list[str]:
    assert units is not None
    return [unit.text for unit in units]


def test_equal_functions_of_other_names_and_numbers_have_equal_texts() -> None:
    one = units_to_optimise(program(scale("a", "2.0", 4), scale("b", "3.0", 5)), KEEPS)
    other = units_to_optimise(program(scale("c", "5.0", 7), scale("d", "2.0", 9), first_scope=7), KEEPS)
    assert len(set(texts(one)) & set(texts(other))) == 2  # the entries, and @a and @d
    assert texts(one) == texts(units_to_optimise(program(scale("a", "2.0", 4), scale("b", "3.0", 5)), KEEPS))


def test_a_unit_has_its_own_of_functions_that_are_always_inlined() -> None:
    units = units_to_optimise(program(scale("a", "2.0", 4), scale("b", "3.0", 5)), KEEPS)
    assert sum(text.count("fadd float") for text in texts(units)) == 2
    assert all(text.count("define void") == 1 or "entry" in text for text in texts(units)[:2])


def test_functions_that_may_be_inlined_are_with_their_callers() -> None:
    inlined = program(scale("a", "2.0", 4, attributes=2), scale("b", "3.0", 5))
    (entry, b) = sorted(texts(units_to_optimise(inlined, KEEPS)), key=lambda text: "ptr %pointers" not in text)
    assert entry.count("define ") == 3 and "2.0" in entry
    assert "3.0" in b and "2.0" not in b


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2.0", "4.0"),
        ("noinline nounwind", "noinline"),
        ("fadd float %v, %v", "fmul float %v, %v"),
        ("!4 = !{!13}", "!4 = !{!14}"),
    ],
)
def test_what_changes_the_code_changes_the_text(old: str, new: str) -> None:
    text = program(scale("a", "2.0", 4), scale("b", "3.0", 5))
    changed = text.replace(old, new)
    assert changed != text
    assert set(texts(units_to_optimise(changed, KEEPS))) != set(texts(units_to_optimise(text, KEEPS)))


def test_what_keeps_its_name_is_in_the_text() -> None:
    text = program(scale("a", "2.0", 4)).replace("@twice(float %w", "@memcpy(float %w")
    text += "declare float @memcpy(float)\n"
    (unit, _) = units_to_optimise(text, KEEPS) or []
    assert "call float @memcpy(float" in unit.text and "declare float @memcpy" in unit.text
    assert "memcpy" not in unit.names


@pytest.mark.parametrize("cut", [units_to_optimise, units_to_emit])
def test_units_joined_are_the_program(cut: Callable[..., list[Unit] | None]) -> None:
    scales = ("a", "2.0", 4, 3), ("b", "0.9375", 5, SHORT_OPTIMISED), ("c", "1.0625", 6, 2 * SHORT_OPTIMISED)
    text = program(*(scale(*each) for each in scales))
    units = cut(text, KEEPS)
    assert units is not None and len(units) == 3
    objects = [
        compile_to_object(unit.text, CodegenOptions(level=2, exports=unit.exports, externals=frozenset(unit.names)))
        for unit in units
    ]
    data = join(objects, ["entry"], [unit.names for unit in units])
    assert undefined_symbols(data) == []
    np.testing.assert_array_equal(run(data), run(compile_to_object(text, CodegenOptions(level=2))))


def run(data: bytes) -> np.ndarray:
    x = np.linspace(-1, 1, 1024, dtype=np.float32)
    spec = [(x.dtype, x.shape)]
    Program(load_object(data), "entry", spec, [])([x])
    return x


def long(*names: str, factors: str = "23456789") -> str:
    return program(*(scale(name, f"{factor}.0", 4, lines=SHORT_OPTIMISED * 3) for name, factor in zip(names, factors)))


def test_the_code_of_an_unchanged_function_is_reused(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    with config.override(cache=True, cache_dir=str(tmp_path)):
        code_cache.forget()
        with counted() as first:
            compile_to_object(long("a", "b", "c"))
        with counted() as changed:
            data = compile_to_object(long("a", "x", "b", factors="259"))
        assert (first.units, first.compiled) == (4, 4)
        assert (changed.units, changed.compiled) == (4, 2)  # the entry, and the one that is new
        code_cache.forget()
        with counted() as from_disk:
            assert compile_to_object(long("a", "x", "b", factors="259")) == data
        assert (from_disk.units, from_disk.compiled) == (4, 0)
    with config.override(cache=False), counted() as without:
        assert compile_to_object(long("a", "x", "b", factors="259")) == data
    assert (without.units, without.compiled) == (4, 4)


def test_equal_functions_are_compiled_once() -> None:
    with config.override(cache=False), counted() as counts:
        data = compile_to_object(long("a", "b", "c", "d", factors="1111"))
    assert (counts.units, counts.compiled) == (5, 2)
    np.testing.assert_array_equal(run(data), np.linspace(-1, 1, 1024, dtype=np.float32) * 16)


def test_a_module_of_quoted_names_is_no_unit() -> None:
    text = program(scale("a", "2.0", 4)).replace("@a(", '@"a b"(')
    assert whole(text, KEEPS) is None and units_to_optimise(text, KEEPS) is None


NAMED = "_ZGV_LLVM_N16v_sys.exp.f32(_ZGVeN16v_expf),_ZGV_LLVM_N8v_sys.exp.f32(_ZGVdN8v_expf)"
VARIANTS = f'"vector-function-abi-variant"="{NAMED}"'


def with_variants(*names: str) -> str:
    """A module whose loops call a scalar function that has vector variants, which a list keeps."""
    text = program(*(scale(name, "2.0", 4) for name in names)).replace("@twice(", "@sys.exp.f32(")
    declared = [f"declare <{n} x float> @_ZGV{letter}N{n}v_expf(<{n} x float>)" for n, letter in ((16, "e"), (8, "d"))]
    kept = "@llvm.compiler.used = appending global [2 x ptr] [ptr @_ZGVeN16v_expf, ptr @_ZGVdN8v_expf]"
    function = "define internal float @sys.exp.f32(float %v) #9 {\n  %w = fadd float %v, %v\n  ret float %w\n}"
    attributes = f"attributes #9 = {{ noinline {VARIANTS} }}"
    text = re.sub(r"define internal float @sys.exp.f32.*?\n}", "", text, flags=re.DOTALL)
    return "\n".join([text, *declared, function, attributes, f'{kept}, section "llvm.metadata"', ""])


def test_a_unit_keeps_the_vector_variants_of_the_functions_that_it_calls() -> None:
    units = units_to_optimise(with_variants("a", "b"), KEEPS)
    assert units is not None and len(units) == 3
    callers = [unit for unit in units if "call float @sys.exp.f32" in unit.text]
    assert len(callers) == 2 and callers[0].text == callers[1].text
    assert "declare <16 x float> @_ZGVeN16v_expf" in callers[0].text
    assert callers[0].text.count("@llvm.compiler.used") == 1
    plain = units_to_optimise(program(scale("a", "2.0", 4)), KEEPS)
    assert plain is not None and not any("compiler.used" in unit.text for unit in plain)


def test_loops_of_units_call_the_vector_variants() -> None:
    options = CodegenOptions(processor=named("avx512"), externals=frozenset(["_ZGVeN16v_expf", "_ZGVdN8v_expf"]))
    with config.override(cache=False), counted() as counts:
        data = compile_to_object(with_variants("a", "b", "c"), options)
    assert counts.units > 1 and counts.compiled < counts.units  # equal functions are one unit
    assert "_ZGVeN16v_expf" in undefined_symbols(data)


def test_a_list_that_keeps_what_the_module_defines_is_not_repeated() -> None:
    text = with_variants("a").replace("[ptr @_ZGVeN16v_expf,", "[ptr @sys.exp.f32,")
    assert whole(text, KEEPS) is None

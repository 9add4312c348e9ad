"""The exit to LLVM: what is refused, that literals keep every bit, what objects may call, and determinism."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mlirml.errors import InternalError, LoweringError, TargetError
from mlirml.ir.bindings import make_context, parse
from mlirml.runtime import Program, load_object
from mlirml.targets.llvm.codegen import (
    CodegenOptions,
    compile_to_object,
    optimised_ir,
    to_assembly,
    to_llvm_ir,
    undefined_symbols,
)
from mlirml.targets.llvm.literals import float_bits, rewrite_float_literals
from mlirml.targets.machine import named

Array = npt.NDArray[Any]
SCALE = """
define void @entry(ptr %pointers) {
  %x = load ptr, ptr %pointers
  %at = getelementptr ptr, ptr %pointers, i64 1
  %y = load ptr, ptr %at
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
define float @twice(float %v) {
  %w = fmul float %v, 2.0
  ret float %w
}
"""


def sections(data: bytes) -> set[bytes]:
    """The section names that occur in an object."""
    return {name for name in (b".eh_frame", b".text", b".rodata") if name in data}


def test_operations_without_an_llvm_form_are_named_with_their_places() -> None:
    module = parse(
        'func.func @g(%x: f32) -> f32 {\n  %0 = arith.addf %x, %x : f32 loc("model.py":7:3)\n  return %0 : f32 }'
    )
    with pytest.raises(LoweringError) as caught:
        to_llvm_ir(module)
    assert "arith.addf, func.func, func.return" in str(caught.value)
    assert 'arith.addf at loc("model.py":7:3)' in str(caught.value)


def test_a_leftover_cast_is_refused() -> None:
    module = parse(
        """llvm.func @g(%x: i64) {
          %0 = builtin.unrealized_conversion_cast %x : i64 to index
          llvm.return
        }"""
    )
    with pytest.raises(LoweringError, match=r"builtin\.unrealized_conversion_cast"):
        to_llvm_ir(module)


def constant_through_the_object(kind: str, width: int, bits: Array) -> Array:
    """Constants through MLIR, LLVM 24's text, the rewriter, LLVM 22 and the loader, back to memory."""
    values = ",".join(f"0x{int(b):0{width // 4}X}" for b in bits)
    attribute = f"dense<[{values}]> : tensor<{len(bits)}x{kind}>"
    text = f"""
    llvm.mlir.global internal constant @g({attribute}) : !llvm.array<{len(bits)} x {kind}>
    llvm.func @entry(%pointers: !llvm.ptr) {{
      %out = llvm.load %pointers : !llvm.ptr -> !llvm.ptr
      %g = llvm.mlir.addressof @g : !llvm.ptr
      %n = llvm.mlir.constant({bits.nbytes} : i64) : i64
      "llvm.intr.memcpy"(%out, %g, %n) <{{isVolatile = false}}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
      llvm.return
    }}"""
    code = load_object(compile_to_object(parse(text, make_context())))
    result: Array = Program(code, "entry", [], [(bits.dtype, bits.shape)])([])[0]
    return result


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_every_half_and_bfloat_literal_keeps_its_bits(kind: str) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    np.testing.assert_array_equal(constant_through_the_object(kind, 16, bits), bits)


@pytest.mark.parametrize(("kind", "width", "exponent"), [("f32", 32, 8), ("f64", 64, 11)])
def test_float_literals_keep_their_bits(kind: str, width: int, exponent: int) -> None:
    """Random patterns, NaN payloads, denormals, infinities, and numbers with few decimals."""
    rng = np.random.default_rng(0)
    dtype = np.dtype(f"u{width // 8}")
    bits = rng.integers(0, 1 << width, 4000, dtype=dtype)
    field = dtype.type(((1 << exponent) - 1) << (width - 1 - exponent))
    short = np.array([float(f"{v:.3g}") for v in rng.standard_normal(1000)], f"f{width // 8}").view(dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 0.1, 1e-40, 5e-324], f"f{width // 8}").view(dtype)
    every = np.concatenate([bits, bits | field, bits & ~field, short, special])
    np.testing.assert_array_equal(constant_through_the_object(kind, width, every), every)


def test_decimals_next_to_ties_round_as_the_exact_value_does() -> None:
    """A decimal just above the middle of two f32 is rounded up, though as an f64 it lies on the middle."""
    middle = Fraction(1) + Fraction(1, 1 << 24)
    above, below = middle + Fraction(1, 10**30), middle - Fraction(1, 10**30)
    decimal = {name: f"1.{str(int((v - 1) * 10**30)).zfill(30)}" for name, v in (("above", above), ("below", below))}
    assert float_bits("float", decimal["above"]) == 0x3F800001
    assert float_bits("float", decimal["below"]) == 0x3F800000


def test_words_in_names_and_strings_are_not_literals() -> None:
    text = '@float = global [9 x i8] c"float 1.0"\n  %half = call float @"double 1.5"(i32 %inf, float %nan, i1 %q.1)'
    assert rewrite_float_literals(text) == text


def test_rewriting_a_hundred_thousand_lines_is_quick() -> None:
    rng = random.Random(0)
    arithmetic = [f"  %{i} = fmul float %1, %2" for i in range(60_000)]
    memory = [f"  %{i} = load float, ptr %2, align 4" for i in range(30_000)]
    constants = [f"  %{i} = fadd <16 x float> %1, splat (float {rng.random():e})" for i in range(10_000)]
    start = time.perf_counter()
    rewrite_float_literals("\n".join(arithmetic + memory + constants))
    assert time.perf_counter() - start < 2


def test_an_unknown_function_is_named() -> None:
    text = (
        "declare float @nosuch(float)\ndefine float @f(float %x) {\n %y = call float @nosuch(float %x)\n ret float %y }"
    )
    with pytest.raises(LoweringError, match="nosuch"):
        compile_to_object(text)
    assert undefined_symbols(compile_to_object(text, CodegenOptions(externals=frozenset({"nosuch"})))) == ["nosuch"]


def test_functions_of_libm_and_the_thread_pool_may_be_called() -> None:
    text = """declare float @sinf(float)
    declare void @mlirml_parallel_for(ptr, i64, i64, i64, ptr)
    define float @f(float %x) {
      call void @mlirml_parallel_for(ptr null, i64 0, i64 1, i64 1, ptr null)
      %y = call float @sinf(float %x)
      ret float %y
    }"""
    assert undefined_symbols(compile_to_object(text)) == ["mlirml_parallel_for", "sinf"]


def test_broken_text_is_our_error_and_leaves_a_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    text = "define float @f() {\n  ret float oops\n}"
    with pytest.raises(InternalError, match="ret float oops"):
        compile_to_object(text)
    (dump,) = tmp_path.iterdir()
    assert dump.read_text().splitlines()[1:] == text.splitlines()[1:]


def test_the_level_is_checked() -> None:
    with pytest.raises(TargetError, match="not 4"):
        compile_to_object(SCALE, CodegenOptions(level=4))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_objects_run_at_every_level(level: int) -> None:
    code = load_object(compile_to_object(SCALE, CodegenOptions(level=level)))
    x = np.arange(1024, dtype=np.float32)
    (y,) = Program(code, "entry", [(x.dtype, x.shape)], [(x.dtype, x.shape)])([x])
    np.testing.assert_array_equal(y, 2 * x)


def test_objects_have_no_unwind_tables_and_only_the_entry_is_global() -> None:
    data = compile_to_object(SCALE)
    assert sections(data) == {b".text"}
    assert b"twice" not in data
    assert b"twice" in compile_to_object(SCALE, CodegenOptions(exports=("other",)))


def test_loops_use_the_widest_vectors_unless_told_otherwise() -> None:
    assert "zmm" in to_assembly(SCALE, CodegenOptions(processor=named("avx512")))
    narrow = to_assembly(SCALE, CodegenOptions(processor=named("avx512"), vector_width=256))
    assert "zmm" not in narrow and "ymm" in narrow
    assert "mm" not in to_assembly(SCALE, CodegenOptions(loop_vectorise=False)).replace("xmm", "")


def test_unrolling_can_be_turned_off() -> None:
    unrolled, rolled = (optimised_ir(SCALE, CodegenOptions(unroll=unroll)) for unroll in (True, False))
    assert unrolled.count("fmul") >= rolled.count("fmul") > 0


def test_attributes_are_put_behind_arguments_with_parentheses() -> None:
    text = "define i32 @f(i32 range(i32 0, 4) %x, ptr byval({ i32 }) %p) local_unnamed_addr {\n ret i32 %x }"
    assert "nounwind" in optimised_ir(text)


PROGRAM = """
import hashlib, sys
from mlirml.targets.llvm.codegen import compile_to_object
sys.stdout.write(hashlib.sha256(compile_to_object(sys.stdin.read())).hexdigest())
"""


def test_two_processes_give_the_same_bytes() -> None:
    here = hashlib.sha256(compile_to_object(SCALE)).hexdigest()
    compile_to_object(SCALE.replace("1024", "512"))  # what came before leaves no trace
    assert hashlib.sha256(compile_to_object(SCALE)).hexdigest() == here
    result = subprocess.run([sys.executable, "-c", PROGRAM], input=SCALE, capture_output=True, text=True, check=True)
    assert result.stdout == here

"""`bfloat` in LLVM IR text becomes `i16`: the code calls no function for a move, and denormals are kept."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlirml as ml
from mlirml.core.config import config
from mlirml.targets.llvm.bf16 import move_bf16_as_integers

BF16 = ml_dtypes.bfloat16
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "product": (lambda a, b: a @ b, ((37, 70), (70, 53))),
    "maximum": (lambda a: np.max(a, -1), ((37, 70),)),
    "position": (lambda a: np.argmax(a, -1), ((37, 70),)),
    "softmax": (lambda a: np.exp(a - np.max(a, -1, keepdims=True)), ((37, 70),)),
    "loop": (lambda a: ml.scan(lambda c, r: (np.maximum(c, r), c), a[0], a), ((37, 70),)),
    "sort": (lambda a: np.sort(a), ((70,),)),
    "choice": (lambda a, b: ml.cond(np.sum(a) > 2, lambda: a, lambda: b), ((70,), (70,))),
}


@pytest.mark.parametrize("level", ["sse4.1", "avx2", "avx512", "amx"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_function_is_called_to_round_what_is_moved(name: str, level: str) -> None:
    function, shapes = PROGRAMS[name]
    with config.override(processor=level):
        code = ml.compile(function).lower(*[np.ones(shape, BF16) for shape in shapes]).emit("asm")
    assert not re.search(r"__(trunc|extend)\w+", code)


@pytest.mark.parametrize("name", PROGRAMS)
def test_denormals_and_nan_are_moved_as_they_are(name: str) -> None:
    function, shapes = PROGRAMS[name]
    tiny = np.array([1, 0x8001, 0x7F, 0x80, 0x3F80], np.uint16).view(BF16)
    if name == "product":  # the instructions of AVX512_BF16 and AMX take denormals for zeros
        tiny = tiny[3:]
    arrays = [np.resize(tiny, shape).astype(BF16) for shape in shapes]
    compiled, expected = ml.compile(function)(*arrays), ml.compile(function, target="reference")(*arrays)
    compiled = compiled if isinstance(compiled, tuple) else (compiled,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for ours, theirs in zip(compiled, expected, strict=True):
        np.testing.assert_array_equal(ours.astype(np.float64), theirs.astype(np.float64))


def test_types_literals_and_intrinsics_are_rewritten() -> None:
    text = """
  %a = select i1 %c, bfloat 0xR3F80, bfloat %b
  %m = call <4 x bfloat> @llvm.masked.load.v4bf16.p0(ptr align 2 %p, <4 x i1> %k, <4 x bfloat> zeroinitializer)
  call void @keep_bfloat(), !name "bfloat 0xR3F80"
"""
    expected = """
  %a = select i1 %c, i16 16256, i16 %b
  %m = call <4 x i16> @llvm.masked.load.v4i16.p0(ptr align 2 %p, <4 x i1> %k, <4 x i16> zeroinitializer)
  call void @keep_bfloat(), !name "bfloat 0xR3F80"
"""
    assert move_bf16_as_integers(text) == expected


def test_a_function_that_moves_integers_is_declared_once() -> None:
    integers = "declare <4 x i16> @llvm.masked.load.v4i16.p0(ptr, <4 x i1>, <4 x i16>)\n"
    floats = integers.replace("i16", "bf16").replace("x bf16", "x bfloat")
    assert move_bf16_as_integers(floats + integers) == move_bf16_as_integers(integers + floats) == integers
    assert move_bf16_as_integers(floats) == integers


def test_a_product_of_bf16_and_int16() -> None:
    x, y = np.arange(3).astype(BF16), np.arange(3, dtype=np.int16)
    result = ml.compile(lambda x, y: x @ y)(x, y)
    assert (result, result.dtype) == (5, np.float32)


def test_operands_of_products_are_cast() -> None:
    """A name may not begin with a number, as which MLIR writes most values."""
    for result in ("r", "7"):
        call = f"%{result} = call <8 x float> @llvm.x86.avx512bf16.dpbf16ps.256(<8 x float> %s, "
        expected = f"""
  %bf16.{result}.0 = bitcast <16 x i16> %a to <16 x bfloat>
  %bf16.{result}.1 = bitcast <16 x i16> %b to <16 x bfloat>
  {call}<16 x bfloat> %bf16.{result}.0, <16 x bfloat> %bf16.{result}.1)
"""
        assert move_bf16_as_integers(f"\n  {call}<16 x bfloat> %a, <16 x bfloat> %b)\n") == expected


@pytest.mark.parametrize(
    "line",
    ["%b = fadd fast bfloat %a, %a", "%b = fpext bfloat %a to float", "%b = call bfloat @llvm.sqrt.bf16(bfloat %a)"],
)
def test_a_module_that_computes_with_the_type_stays(line: str) -> None:
    text = f"%a = load bfloat, ptr %p\n{line}\n"
    assert move_bf16_as_integers(text) == text

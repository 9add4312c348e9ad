"""Long sums of scalar integers are cut before code generation."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.targets.llvm.add_chains import cut_sums, may_have_long_sums


def chain(length: int, dtype: str) -> str:
    """A function of two integers with a sum whose additions depend on each other, as in a block cipher."""
    lines = [f"define {dtype} @f({dtype} %0, {dtype} %1) {{"]
    x, y, number = "%0", "%1", 3
    for _ in range(length):
        lines += [f"  %{number} = add {dtype} {x}, {y}", f"  %{number + 1} = xor {dtype} {y}, %{number}"]
        x, y, number = f"%{number}", f"%{number + 1}", number + 2
    return "\n".join([*lines, f"  ret {dtype} {x}", "}", ""])


def longest(text: str) -> int:
    """The most additions that need one another without anything between."""
    depths: dict[str, int] = {}
    for name, first, second in re.findall(r"(%\S+) = add \S+ (\S+), (\S+)", text):
        depths[name] = 1 + max(depths.get(first, 0), depths.get(second, 0))
    return max(depths.values())


@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_no_addition_needs_more_than_five_others(dtype: str) -> None:
    text = chain(40, dtype)
    assert longest(text) == 40 and may_have_long_sums(text)
    cut = cut_sums(text)
    assert longest(cut) == 6 and cut.count(" = add ") == 40


def test_other_text_is_left_as_it_is() -> None:
    text = "define i32 @f(i32 %0) {\n" + "  %2 = add nuw <4 x i32> %1, %1\n" * 9 + "}\n"
    assert cut_sums(text) == text
    blocks = chain(5, "i64") + chain(5, "i64")
    assert cut_sums(blocks) == blocks


def test_sums_are_those_of_numpy() -> None:
    def mixed(x: Any, y: Any) -> Any:
        for k in range(30):
            x = x + y
            y = (y ^ x) + k
        return x + y

    for dtype in (np.int32, np.int64, np.uint32, np.uint64):
        arguments = dtype(123456789), dtype(987654321)
        with np.errstate(over="ignore"):
            expected = mixed(*arguments)
        found = ml.compile(mixed, frontend="trace")(*arguments)
        assert found == expected and found.dtype == dtype


def test_functions_with_variants_for_vectors_beside_long_sums() -> None:
    """The optimised module has no variant any more, but an attribute that names it."""

    def mixed(x: Any, y: Any, z: Any) -> Any:
        for k in range(12):
            x = x + y
            y = (y ^ x) + k
        return x, np.remainder(z, 0.7) + np.sin(z) ** 1.5

    arguments = np.int32(12345), np.int32(54321), np.linspace(0.1, 3.0, 1003)
    with np.errstate(over="ignore"):
        expected = mixed(*arguments)
    with ml.config.override(libraries=()):
        found = ml.compile(mixed, frontend="trace")(*arguments)
    assert found[0] == expected[0]
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-13)


def test_a_generator_of_many_scalars() -> None:
    def draws(seed: Any) -> Any:
        rng = np.random.default_rng(seed)
        return rng.normal(), rng.gamma(2.5), rng.poisson(3.0)

    assert [float(x) for x in ml.compile(draws)(1)] == [float(x) for x in ml.compile(draws, target="reference")(1)]

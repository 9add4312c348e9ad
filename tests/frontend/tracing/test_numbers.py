"""Python numbers as arguments and literals: weakly typed as in NumPy 2, and never cut silently."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import TARGETS, check

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]


@pytest.mark.parametrize("number", [True, 2, 1.5], ids=["bool", "int", "float"])
def test_a_number_gives_way_to_an_array(number: float) -> None:
    arrays = [np.arange(4).astype(dtype) for dtype in DTYPES]

    def f(arrays: list[Any], n: Any) -> Any:
        return [(x + n, n * x, x < n, np.maximum(n, x), np.where(x > 1, n, x), x / (n + 1)) for x in arrays]

    check(f, arrays, number)
    check(lambda arrays: f(arrays, number), arrays)


def test_numpy_scalars_do_not_give_way() -> None:
    arrays = [np.arange(4).astype(dtype) for dtype in DTYPES]
    scalars = [np.int8(2), np.uint64(2), np.float32(1.5), np.float64(1.5), np.bool_(True)]

    def f(arrays: list[Any], scalars: list[Any]) -> Any:
        return [(x + s, s * x, np.where(x > 1, s, x)) for x in arrays for s in scalars]

    check(f, arrays, scalars)
    check(lambda arrays: f(arrays, scalars), arrays)


@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")  # of CPython 3.12
def test_arithmetic_of_python_numbers_is_python_s() -> None:
    def ints(a: Any, b: Any) -> Any:
        return a + b, a - b, a * b, a // b, a % b, a / b, -a, +a, abs(a), ~a, a & b, a | b, a ^ b, a << b, a >> b, a**b

    for a, b in [(7, 3), (-7, 3), (7, 2), (0, 1), (-8, 2)]:
        check(ints, a, b)
    check(ints, True, True)
    check(ints, True, 3)
    check(ints, 5, True)

    def floats(a: Any, b: Any) -> Any:
        return a + b, a - b, a * b, a // b, a % b, a / b, -a, +a, abs(a), a < b, a >= b, a == b, a != b

    for x, y in [(7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (1.0, 3)]:
        check(floats, x, y)
    check(floats, True, 2.5)


def test_results_of_operators_on_numbers_stay_weak() -> None:
    x = np.ones(3, np.float32)
    check(lambda x, a, b: (x * (a + b), x * (a / b), x * (2 * a), x + (a > b), x * -a), x, 1.5, 2)


def test_results_of_functions_on_numbers_are_numpy_s() -> None:
    x = np.ones(3, np.float32)
    check(lambda x, a: (x * np.add(a, 1.0), x * np.sqrt(a), x * np.float64(2), np.sum(a)), x, 4.0)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["i1", "u1", "u2", "i4", "u4"])
def test_integers_that_do_not_fit_are_errors(dtype: str, target: str) -> None:
    limits = np.iinfo(dtype)
    functions: list[Callable[..., Any]] = [
        lambda x, n: x + n,
        lambda x, n: np.where(x > 0, n, x),  # where NumPy 2.4 cuts the number
        lambda x, n: np.maximum(x, n),
    ]
    x = np.ones(3, dtype)
    for function in functions:
        compiled = ml.compile(function, target)
        for n in (int(limits.max), int(limits.min)):
            np.testing.assert_array_equal(compiled(x, n), function(x, n))
        for n in (int(limits.max) + 1, int(limits.min) - 1, 2**40):
            with pytest.raises(OverflowError):
                compiled(x, n)
            with pytest.raises(OverflowError):
                ml.compile(lambda x, n=n, function=function: function(x, n), target).trace(x)


@pytest.mark.parametrize("target", TARGETS)
def test_integers_beyond_64_bits(target: str) -> None:
    compiled = ml.compile(lambda x, n: x + n, target)
    with pytest.raises(OverflowError):
        compiled(np.ones(2, np.int64), 2**63)
    with pytest.raises(OverflowError):
        compiled(np.ones(2, np.int64), -(2**63) - 1)
    expected = np.ones(2, np.uint64) + (2**63 + 5)
    np.testing.assert_array_equal(compiled(np.ones(2, np.uint64), 2**63 + 5), expected)
    with pytest.raises(OverflowError):
        compiled(np.ones(2, np.uint64), 2**64)
    check(lambda x: (x * 1e300, x + 10**30), np.ones(2, np.float64), targets=(target,))


def test_a_number_that_is_narrowed_twice_must_fit_both() -> None:
    for target in TARGETS:
        compiled = ml.compile(lambda x, y, n: (x + n, y + n), target)
        x, y = np.ones(2, np.int8), np.ones(2, np.uint16)
        np.testing.assert_array_equal(compiled(x, y, 100)[1], y + 100)
        for n in (300, -1, -200):
            with pytest.raises(OverflowError):
                compiled(x, y, n)


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
def test_comparisons_take_integers_that_do_not_fit(compare: Any) -> None:
    limits = [np.iinfo(dtype) for dtype in ("i1", "u1", "i4", "u4", "i8", "u8")]
    arrays = [np.array([i.min, 0, 1, i.max], i.dtype) for i in limits]
    check(lambda xs: [compare(x, n) for x in xs for n in (-1, 300, -(2**62), 2**62, 2**70)], arrays)
    check(lambda xs, a, b: [(compare(x, a), compare(b, x)) for x in xs], arrays, -1, 300)


def test_numbers_as_results() -> None:
    check(lambda x, n: (n, n + 1, 3, 2.5, True, np.float32(4), np.int8(3)), np.ones(2), 7)


def test_0d_arrays_do_not_give_way() -> None:
    check(lambda x, s: (x + s, np.where(x > 0, s, x)), np.ones(3, np.float32), np.array(1.5))
    check(lambda x, s: (x + s, np.where(x > 0, s, x)), np.ones(3, np.int8), np.array(3, np.int64))


def test_joins_take_numbers_as_arrays() -> None:
    x = np.ones(3, np.float32)
    check(lambda x, n: (np.stack([x[0], n]), np.array([x[0], n, 2]), np.hstack([x, n]), np.full(2, n)), x, 1.5)
    check(lambda x: (np.stack([x[0], 1.5]), np.array([x[0], 2]), np.concatenate([x, [1.0]]), np.full(2, x[0])), x)
    check(lambda x, n: (np.dot(x, n), np.outer(x, n)), x, 2)


def test_a_scalar_argument_is_not_changed_in_place() -> None:
    def f(n: Any, s: Any) -> Any:
        n += 1
        s *= 2
        return n, s

    check(f, 3, 2.5)
    check(f, True, np.float32(2.5))

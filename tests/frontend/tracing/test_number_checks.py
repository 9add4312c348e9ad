"""Arithmetic on Python's numbers fails where Python's does; that of NumPy's arrays has NumPy's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import TARGETS, check


def floor(a: Any, b: Any) -> Any:
    return a // b


def remainder(a: Any, b: Any) -> Any:
    return a % b


def quotient(a: Any, b: Any) -> Any:
    return a / b


def both(a: Any, b: Any) -> Any:
    return divmod(a, b)


def reciprocal(a: Any, b: Any) -> Any:
    return b**-1


def left(a: Any, b: Any) -> Any:
    return a << (b - 1)


def right(a: Any, b: Any) -> Any:
    return a >> (b - 1)


def in_a_loop(a: Any, b: Any) -> Any:
    total = 0
    for i in range(5):
        total += i % b
    return total


CASES: list[tuple[Callable[..., Any], Any]] = [
    *((fn, 7) for fn in (floor, remainder, quotient, both, reciprocal, left, right, in_a_loop)),
    *((fn, 7.0) for fn in (floor, remainder, quotient, both, reciprocal)),
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("fn", "a"), CASES)
def test_python_numbers_fail_as_in_python(fn: Callable[..., Any], a: Any, target: str) -> None:
    compiled, zero = ml.compile(fn, target), type(a)(0)
    for b in (type(a)(2), zero, type(a)(3)):
        try:
            expected = fn(a, b)
        except (ZeroDivisionError, ValueError) as error:
            with pytest.raises(type(error)):
                compiled(a, b)
        else:
            assert np.array_equal(compiled(a, b), expected)


def guarded(a: Any, b: Any) -> Any:
    if b != 0:
        return a // b
    return -1


def of_loop_variables(a: Any, n: Any) -> Any:
    for i in range(n):
        for j in range(1, n):
            a[i, j] = i // j + i % n
    return a


def test_divisors_that_are_not_zero_where_they_divide() -> None:
    for b in (0, 3):
        check(guarded, 7, b)
    check(of_loop_variables, np.zeros((4, 4)), 4)
    check(of_loop_variables, np.zeros((4, 4)), 0)


@pytest.mark.parametrize("b", [0, 0.0])
def test_elements_of_arrays_divide_as_numpys_do(b: Any) -> None:
    x = np.array([1, 0, -3])
    check(lambda x, b: (x // b, x % b, x / b, x[0] // b), x, b)


def power(x: Any, y: Any) -> Any:
    return x**y


def powers(x: Any, y: Any) -> Any:
    for i in range(len(x)):
        x[i] = x[i] ** y[i]
    return x


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("fn", [power, powers])
def test_negative_powers_of_integers_fail(fn: Callable[..., Any], target: str) -> None:
    x, y = np.array([2, 3, -1]), np.array([1, -2, 0])
    compiled = ml.compile(fn, target)
    with pytest.raises(ValueError, match="negative integer powers"):
        compiled(x, y)
    assert x.tolist() == [2, 3, -1]
    check(fn, x, abs(y), targets=(target,))
    check(power, x.astype(float), y, targets=(target,))
    check(power, x, y.astype(float), targets=(target,))


def test_functions_of_the_library_have_limits_where_their_arithmetic_divides_by_zero() -> None:
    assert float(ml.grad(ml.special.xlogy, 1)(0.0, 0.0)) == 0
    assert float(ml.compile(lambda x: ml.special.entr(x) + ml.special.xlogy(x, x))(0.0)) == 0


def test_complex_numbers_of_python_have_no_order() -> None:
    for fn in (lambda a, b: a < b, lambda a, b: max(a, b), lambda a, b: min([a, b])):
        with pytest.raises(TypeError):
            fn(1 + 2j, 1)
        with pytest.raises(ml.DTypeError, match="have no order"):
            ml.compile(fn)(1 + 2j, 1)
    check(lambda x: (x[0] < x[1], x[0] >= 2), np.array([1 + 2j, 1 - 3j]))  # those of NumPy have


def test_lists_and_numbers_of_python_are_no_arrays() -> None:
    for fn in (lambda a, b: a + b, lambda a, b: b - a, lambda a, b: a < b):
        for items in ([1, 2], (1.0, 2.0)):
            with pytest.raises(TypeError):
                fn(items, 2)
            with pytest.raises(ml.DTypeError, match="Python has none for"):
                ml.compile(fn)(items, 2)
    compiled = ml.compile(lambda a, b: (a == b, b != a, b in [a, b], a + np.array([b, b])))
    found = compiled([1, 1], 1)
    assert found[:3] == (False, True, True) and found[3].tolist() == [2, 2]
    np.testing.assert_array_equal(ml.compile(lambda a, b: a + b)([1, 2], np.int64(2)), [3, 4])

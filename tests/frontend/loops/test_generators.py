"""`sum`, `max`, `min`, `any` and `all` of generators are loops that carry the total."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mlirml as ml

from .against_python import check

X = np.random.default_rng(3).standard_normal(300)


def squares(x):
    return sum(v * v for v in x)


def greatest(x):
    return max(v * 2 for v in x), min(abs(v - 0.5) for v in x)


def conditions(x):
    return any(v > 2.5 for v in x), all(v < 2 for v in x), all(v < 99 for v in x), any(v > 99 for v in x)


def by_index(x):
    return sum(math.sin(x[i]) * i for i in range(len(x)))


def counted(x):
    return sum(1 for v in x if v > 0.5)


def filtered(x):
    return sum(math.sqrt(v) for v in x if v > 0.5 if v < 0.9)


def pairs(x):
    return sum(v * w for v, w in zip(x, x[::-1])), max(abs(a - b) for a, b in zip(x, x[7:]))


def numbered(x):
    return sum(i * v for i, v in enumerate(x))


def nested(x):
    return sum(x[i] * x[j] for i in range(70) for j in range(i) if i % 3 != j % 2)


def with_start(x):
    return sum((x[i : i + 3] * x[i] for i in range(200)), np.ones(3))


def of_arrays(x):
    return sum(np.outer(x[i : i + 3], x[i : i + 3]) for i in range(200)) / 200


def in_a_loop(x):
    s = 0.0
    for k in range(100):
        s += sum(x[k] * x[j] for j in range(k))
    return s


def shadowed(x):
    v, total = 5.0, 2.0
    y = sum(v * total for v in x)
    return y, v, total


@pytest.mark.parametrize(
    "function",
    [
        squares, greatest, conditions, by_index, counted, filtered, pairs, numbered, nested, with_start, of_arrays,
        in_a_loop, shadowed,
    ],
)  # fmt: skip
def test_long_generators_stay_loops(function: Any) -> None:
    check(function, X)
    text = ml.compile(function).ir("capture", X)
    assert text.count("scf.for") + text.count("scf.while") >= 1
    assert len(text) < 40_000, "copies of the body"


def of_python_numbers(x):
    size = sum(i for i in range(5)) + max(len(name) for name in ("a", "bcd"))
    return np.zeros(size) + x[0], sum(i * i for i in range(1000))


def of_few(x):
    return sum(v for v in [1.5, 2.5, x[0]]), sum(v for v in x[:3]), max(v for v in (x[1], 0.0))


def of_nothing(x):
    return sum(v for v in x[:0]), any(v > 0 for v in x[:0]), all(v > 0 for v in x[:0])


class Own:
    """A function of the name `sum`."""

    @staticmethod
    def first(items):
        return next(iter(items))


def of_another_function(x):
    sum = Own.first
    return sum(v * 2 for v in x)


@pytest.mark.parametrize("function", [of_python_numbers, of_few, of_nothing, of_another_function])
def test_others_are_as_in_python(function: Any) -> None:
    check(function, X)


def longest_of_none(x):
    return max(v for v in x[:0])


def test_errors_are_python_s() -> None:
    with pytest.raises(ValueError, match=r"empty|arg is an empty sequence|no items"):
        ml.compile(longest_of_none)(X)


def test_time_does_not_grow_with_the_number_of_items() -> None:
    """One program text for each length, of one size."""
    lengths = {len(ml.compile(squares).ir("capture", np.ones(n))) for n in (1000, 5000, 9000)}
    assert len(lengths) == 1


def test_gradient() -> None:
    np.testing.assert_allclose(ml.compile(ml.grad(squares))(X), 2 * X)

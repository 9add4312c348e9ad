"""Random indices that are computed of positions of extremes and of tables: checked where they may be out of bounds.

`MLIRML_FUZZ=1000` runs so many programs, other ones each time; `MLIRML_FUZZ_SEED` takes a seed back.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.fuzzing import COUNT, first_seed

FORMS = [
    "x[np.argmax(x, axis={a}) - {k}]", "x[np.argmin(y, axis={a}) + {k}]", "x[np.argmax(x, axis={a}) * {k}]",
    "np.take(x, np.argmax(y, axis={a}) - {k}, axis={a}, mode='clip')", "x[:, np.argmax(x, axis={a}) // 2 - {k}]",
    "x[np.argmax(np.abs(x), axis={a}) % 3 - {k}]", "x[np.array([{k}, 1]) - np.argmax(x[0])]",
    "x[-np.argmax(x, axis={a}) - {k}]", "x[np.where(y[0] > 0, np.argmax(x), {k}) % 4]", "x[np.array([0, {k}])]",
    "x[np.array([[0, {k}], [2, -{k}]])[y.argmax(0) % 2]]", "np.take_along_axis(x, np.argmin(x, 1)[:, None] + {k}, 1)",
]  # fmt: skip


def check(seed: int) -> None:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    source = rng.choice(FORMS).format(a=rng.choice((0, 1)), k=rng.choice((0, 0, 1, 2, 3, 5, 6, 7)))
    shape = rng.choice((3, 4, 6)), rng.choice((3, 5))
    x, y = numbers.standard_normal(shape), numbers.standard_normal(shape)
    function = eval(f"lambda x, y: {source}", {"np": np})
    try:
        expected = function(x, y)
    except IndexError:
        with pytest.raises(IndexError):
            ml.compile(function)(x, y)
    else:
        np.testing.assert_array_equal(ml.compile(function)(x, y), expected, err_msg=f"seed {seed}: {source}")


def test_random_positions() -> None:
    first = first_seed() if COUNT else 0
    for number in range(COUNT or 50):
        check(first + number)


ROWS = ["x[i]", "x[i]", "x[i][:, {k}:]", "x[j]", "x[i] + x[i]", "x[i] * {k}", "np.tanh(x[i])", "y[i % 3]"]
FUNCTIONS = [
    "np.exp({a})", "np.sum({a} / (np.abs({a}) + 1), axis=-1)", "{a}[:, 0] * np.cos({a}[:, -1]) + {b}[:, 0]",
    "np.sqrt(np.abs({a}[:, -1:])) * {b}[:, :1] - y[0, :1]",
    "np.sin({a})[:, 0] + np.sin({b})[:, -1] * np.arange(len(i))",
    "np.concatenate([np.exp({a}[:, 0]), {b}[:, -1]])", "(1 / (2 + {a} ** 2)).T", "np.log(2 + {a} ** 2).max(axis=0)",
    "np.where({a}[:, 0] > 0, np.log(np.abs({a}[:, 0]) + 1), {b}[:, -1])", "np.cumsum(np.exp({a}[:, 0])) / {k}",
]  # fmt: skip


def check_rows(seed: int) -> None:
    """Compare functions of gathered rows, and their derivatives, with NumPy's and with those of the interpreter."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    a, b = (rng.choice(ROWS).format(k=rng.choice((1, 2))) for _ in range(2))
    source = rng.choice(FUNCTIONS).format(a=f"({a})", b=f"({b})", k=rng.choice((1, 2)))
    rows, count = rng.choice(((3, 300), (5, 256), (4, 640), (90, 300)))
    x, y = numbers.standard_normal((max(rows, 3), 4)), numbers.standard_normal((3, 4))
    i, j = (numbers.integers(-3, 3, count) for _ in range(2))
    function = eval(f"lambda x, y, i, j: {source}", {"np": np})
    note = f"seed {seed}: {source}"
    np.testing.assert_allclose(ml.compile(function)(x, y, i, j), function(x, y, i, j), 1e-12, 1e-12, err_msg=note)

    def total(x, y, i, j):
        return np.sum(function(x, y, i, j) ** 2)

    found, expected = (ml.compile(ml.grad(total), target)(x, y, i, j) for target in ("cpu", "reference"))
    np.testing.assert_allclose(found, expected, 1e-9, 1e-9, err_msg=note)


def test_random_functions_of_rows() -> None:
    first = first_seed() if COUNT else 0
    for number in range(COUNT or 12):
        check_rows(first + number)

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

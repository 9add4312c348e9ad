"""List comprehensions over many items are loops that append."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mlirml as ml

X = np.random.default_rng(7).standard_normal(300)
STEP, WIDTH = 2, 16


def frames(x):
    window = np.hanning(WIDTH)
    return np.stack([x[i * STEP : i * STEP + WIDTH] * window for i in range(len(x) // STEP - WIDTH)])


def named(x):
    rows = [np.sum(x[i : i + 5]) * x for i in range(100)]
    return np.array(rows) @ x, len(rows), rows[3]


def of_elements(x):
    for _ in range(3):
        x = x - np.array([0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x])
    return x


def zipped(x):
    return np.array([a * math.exp(-b) for a, b in zip(x, x[::-1])])


def enumerated(x):
    return np.array([float(v) * i for i, v in enumerate(x)])


def added_up(x):
    return sum([v * v for v in x]), max([v * 2 for v in x])


def nested(x):
    return np.array([np.sum(np.stack([x[j : j + 3] * i for j in range(70)])) + x[i] for i in range(70)])


def shadowing(x):
    i = 5
    y = np.array([x[i] * i for i in range(80)])
    return y, i


@pytest.mark.parametrize("function", [frames, named, of_elements, added_up, nested, shadowing, zipped, enumerated])
def test_long_comprehension_stays_a_loop(function) -> None:
    compiled = ml.compile(function)
    check(compiled(X), function(X))
    assert "copies of its body" not in compiled.explain()


def sizes(x):
    widths = [len(x) - i for i in range(100)]
    return np.zeros(widths[90]) + x[0]


def views(x):
    rows = [x[i : i + 2] for i in range(100)]
    x[1] = 7
    return rows[0] * 1


def of_different_lengths(x):
    parts = [x[:i] * 2 for i in range(100)]
    return parts[40], parts[99]


def of_lists(x):
    scales = [0.5 * i for i in range(100)]
    return sum([x * s for s in scales])


def filtered(x):
    return np.array([x[i] * 2 for i in range(200) if i % 3 == 0])


def counted(x):
    found = []

    def note(i):
        found.append(i)
        return x[i] * 2

    values = [note(i) for i in range(100)]
    return values[7], len(found), found[99]


@pytest.mark.parametrize(
    "function", [sizes, views, of_different_lengths, of_lists, filtered, counted, zipped, enumerated]
)
@pytest.mark.parametrize("frontend", ["auto", "loops"])
def test_any_other_comprehension_means_what_it_does_in_python(function, frontend) -> None:
    found, expected = X.copy(), X.copy()
    check(ml.compile(function, frontend=frontend)(found), function(expected))
    np.testing.assert_array_equal(found, expected)


def check(found, expected) -> None:
    """Equal, part by part."""
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            check(one, other)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)

"""Arrays that get shorter by the same amount in each iteration of a loop, which stays a loop."""

from __future__ import annotations

import numpy as np
import pytest

import mlirml as ml

from .against_python import check

V = np.random.default_rng(5).standard_normal(90)


def pascal(x):
    for _ in range(70):
        x = 0.5 * (x[:-1] + x[1:])
    return x


def backwards(x):
    y = x
    for i in range(140, 0, -2):
        y = y[1:] * 0.99 + i * 1e-3
    return y, x


def shifted_views(x):
    y = x
    for _ in range(70):
        y = y[::-1][1:]
    return y


def two_dimensions(x):
    y = x[:, None] * x
    for _ in range(44):
        y = y[1:, 1:-1] * 1.001
    return y


def to_nothing(x):
    for _ in range(len(x)):
        x = x[1:]
    return x


def with_lengths_and_sums(x):
    total = 0.0
    for _ in range(80):
        x = x[1:]
        total += np.sum(x) + x.max() * x.shape[0] + x.size
    return total, x


def exchanged(x):
    a, b = x * 1, x * 2
    for _ in range(71):
        a, b = b[1:] + 0.5 * a[1:], a[1:]
    return a, b


def in_a_tuple(x):
    pair = (x, x * 2)
    for _ in range(70):
        pair = (pair[0][1:], pair[1][:-1] + pair[0][1:])
    return pair


def nested(x):
    kept = np.zeros(3)
    for k in range(3):
        y = x * 1
        for _ in range(70):
            y = y[1:] * 1.001
        kept[k] = y[0] + k
    return kept


def integers(x):
    y = (x * 10).astype(np.int64)
    for _ in range(70):
        y = y[1:] + y[:-1] // 2
    return y


def argument_stored_into(x):
    y = x.copy()
    for _ in range(70):
        y = y[:-1]
        x[0] += y[1]
    return y


@pytest.mark.parametrize(
    "function",
    [
        pascal,
        backwards,
        shifted_views,
        two_dimensions,
        to_nothing,
        with_lengths_and_sums,
        exchanged,
        in_a_tuple,
        nested,
        integers,
        argument_stored_into,
    ],
    ids=lambda function: function.__name__,
)
def test_stays_a_loop(function) -> None:
    check(function, V, exact=False)
    compiled = ml.compile(function)
    compiled(V.copy())
    assert "copies of its body" not in compiled.explain()


def view_of_what_is_stored_into(x):
    y = x
    for _ in range(70):
        x[3] += 1
        y = y[:-1]
    return y


def stored_into(x):
    y = x * 1
    for i in range(70):
        y[0] = i
        y = y[:-1]
    return y


def past_the_end(x):
    for _ in range(len(x) + 5):
        x = x[1:]
    return x


def kept_from_an_iteration(x):
    for _ in range(70):
        y = x
        x = x[1:] + x[:-1]
    return y


def by_other_amounts(x):
    for i in range(66):
        x = x[1 + i % 2 * (i > 60) :]
    return x


@pytest.mark.parametrize(
    "function", [view_of_what_is_stored_into, stored_into, past_the_end, kept_from_an_iteration, by_other_amounts]
)
def test_what_cannot_be_a_slice_of_the_first_array_is_unrolled(function) -> None:
    found, expected = V.copy(), V.copy()
    compiled = ml.compile(function)
    np.testing.assert_allclose(compiled(found), function(expected), rtol=1e-12)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_derivatives_and_batches() -> None:
    def weighted(x):
        return np.sum(pascal(x) ** 2)

    step = 1e-6 * np.ones(90)
    slope = (weighted(V + step) - weighted(V - step)) / 2e-6
    assert np.sum(ml.compile(ml.grad(weighted))(V)) == pytest.approx(slope, rel=1e-6)
    batch = np.stack([V, 2 * V])
    np.testing.assert_allclose(ml.compile(ml.vmap(pascal))(batch), [pascal(V), pascal(2 * V)], rtol=1e-12, atol=1e-14)

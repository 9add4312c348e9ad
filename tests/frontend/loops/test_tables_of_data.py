"""Arrays of several dimensions of which one is as long as the data say: columns, rows, and what joins them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend.loops.against_python import same

Array = Any


def columns(x: Array) -> Array:
    y = x[x[:, 0] > 0]
    z = y[:, :2].copy()
    z[:, 0] = 1
    return y[:, :1], y[:, 1:3] + 1, y[:, ::2], y[:, :2].T, np.zeros_like(y[:, :2]), z


def rows(x: Array) -> Array:
    total, number = 0.0, 0
    for a, b, c in x[x[:, 0] > 0]:
        total += a * b - c
    for row in x[x[:, 1] > 0]:
        a, _, c = row
        total += a / c
        number += len(row)
    for i, (a, b, _) in enumerate(x[x[:, 2] > 0]):
        total += i * a - b
    return total, number


def pairs_of_rows(x: Array) -> Array:
    y = x[x[:, 0] > 0]
    best = 0.0
    for a, b, c in y:
        for d, e, f in y:
            best = max(best, abs(a - d) + abs(b - e) + abs(c - f))
    return best, sum((a * b for a, b, _ in x[x[:, 1] > 0]), 0.0)


def positions(x: Array) -> Array:
    total = 0
    for i, j in np.argwhere(x > 0.5):
        total += i * 10 + j
    for i, j in np.transpose(np.nonzero(x < 0)):
        total -= i * j
    return total


def lists_of_positions(x: Array) -> Array:
    chosen = [(i + j, i * j) for i, j in np.argwhere(x > 0) if i > j]
    stack, total = [(i, j) for i, j in np.argwhere(x > 0)], 0
    while stack:
        i, j = stack.pop()
        total = total * 3 % 1000 + i * 10 + j
        if i > 0 and total % 3 == 0:
            stack.append((i - 1, j))
    return len(chosen), sum(a * b for a, b in chosen), total


def stacked(x: Array) -> Array:
    i, j = np.nonzero(x > 0)
    both = np.stack((i, j), axis=1)
    return (
        both,
        np.array((i, j)),
        np.vstack((i, j)),
        np.column_stack((i, j)),
        np.stack([both, both + 1], -1),
        np.array([i, j]).T.sum(0),
    )


def joined(x: Array) -> Array:
    y = x[x[:, 0] > 0]
    return (
        np.hstack([y, y[:, :1]]),
        np.vstack([y, np.ones(3)]),
        np.column_stack([y, y[:, 0]]),
        np.concatenate([y, y * 2], axis=-1),
        np.concatenate([y[:, :2], y[:, 1:]]),
    )


def ordered(x: Array) -> Array:
    y = x[x[:, 0] > 0]
    order = np.lexsort((y[:, 1], np.round(y[:, 2])))
    return order, y[order]


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize(
    "function", [columns, rows, pairs_of_rows, positions, lists_of_positions, stacked, joined, ordered]
)
def test_results_are_those_of_numpy(function: Callable[..., Any], target: str) -> None:
    compiled = ml.compile(function, target)
    for x in (np.random.default_rng(seed).standard_normal((9, 3)) for seed in range(2)):
        same(compiled(x), function(x), False, function.__name__)
    x = -np.ones((9, 3))
    same(compiled(x), function(x), False, "of no rows")


def stores_into_rows(x: Array) -> Array:
    points = np.argwhere(x > 0)
    for point in points:
        point[0] += 1
        point *= 2
    return points


def test_rows_are_views() -> None:
    x = np.random.default_rng(0).standard_normal((9, 3))
    same(ml.compile(stores_into_rows)(x), stores_into_rows(x), True, "the rows")


def test_parts_of_different_lengths_fail_at_their_line() -> None:
    def bad(x: Array) -> Array:
        return np.stack([x[x > 0], x[x < 0]])

    with pytest.raises(ml.ShapeError, match="different lengths") as failure:
        ml.compile(bad)(np.array([1.0, 2.0, -1.0]))
    assert "np.stack([x[x > 0], x[x < 0]])" in str(failure.value)

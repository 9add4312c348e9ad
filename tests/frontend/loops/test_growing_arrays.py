"""Arrays that grow in loops and branches by as much as the data say, with the room of lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.frontend.loops.against_python import check, same

Array = Any
X = np.round(np.random.default_rng(5).standard_normal(60), 2)


def appended(x: Array) -> Any:
    y = np.zeros(0)
    for v in x:
        if v > 0.5:
            y = np.append(y, v)
    return y, len(y)


def joined(x: Array) -> Any:
    y = x[x > 1]
    for i in range(len(x) - 1):
        y = np.concatenate([y, x[i : i + 2][x[i : i + 2] > 0.75]])
    return y


def sums_of_subsets(x: Array) -> Any:
    sums = np.array([0.0])
    for v in x:
        sums = np.unique(np.concatenate([sums, np.round(sums + v, 2)]))
        sums = sums[(sums > 0) & (sums <= 1)]
        if len(sums) == 0:
            sums = np.array([0.25])
    return sums


def reached(x: Array) -> Any:
    steps = np.full(len(x), -1)
    front = np.array([3])
    n = 0
    while len(front) > 0:
        steps[front] = n
        n += 1
        near = []
        for i in front:
            for j in ((7 * i + 1) % len(x), (3 * i + 2) % len(x)):
                if steps[j] < 0 and x[j] > -0.5:
                    near.append(j)
        front = np.array(near, dtype=np.int64)
    return steps, n


def grows_and_shrinks(x: Array) -> Any:
    y, i = x[:2], 2
    while i < len(x):
        if x[i] > y[-1]:
            y = np.concatenate([y, x[i : i + 1]])
        elif len(y) > 1:
            y = y[:-1]
        i += 1
    return y


def rows(x: Array) -> Any:
    table = np.zeros((0, 2))
    for i in range(len(x)):
        if x[i] > 0:
            table = np.vstack([table, np.array([[i, x[i]]])])
    return table, table.sum(axis=0)


def exchanged(x: Array) -> Any:
    y, z = np.zeros(0), np.zeros(0)
    for v in x:
        if v > 0:
            y = np.append(y, v)
            z = np.insert(z, 0, v)
        else:
            y, z = z, y
    return y, z


def doubled(x: Array) -> Any:
    y = np.zeros(1)
    for v in x:
        if v > 0:
            y = np.concatenate([y, y])
            if len(y) > 50:
                y = y[:3] + 1
    return y


def of_a_branch(x: Array) -> Any:
    y = np.zeros((2, 3)) if x[0] > 0 else np.ones((2, 5))
    return y, y.sum(), y.shape[1]


@pytest.mark.parametrize(
    "function",
    [
        appended, joined, sums_of_subsets, reached, grows_and_shrinks, rows, exchanged, doubled, of_a_branch,
    ],
)  # fmt: skip
def test_function(function: Any) -> None:
    check(function, X)
    check(function, -X)


def test_an_array_outgrows_its_room() -> None:
    x = np.arange(3000.0)
    same(ml.compile(appended)(x), appended(x), True, "the result")

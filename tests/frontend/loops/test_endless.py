"""`while True` that a `return` ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import TARGETS


def halved(x: Any) -> Any:
    while True:
        if x < 1:
            return x
        x = x * 0.5


def settled(labels: Any, sources: Any, targets: Any) -> Any:
    while True:
        new = labels.copy()
        for e in range(len(sources)):
            low = min(new[sources[e]], new[targets[e]])
            new[sources[e]] = low
            new[targets[e]] = low
        if np.array_equal(new, labels):
            return labels
        labels = new


def found(x: Any, limit: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        k = i
        while True:
            total += x[k]
            k += 1
            if total > limit:
                return total, i, k
            if k == len(x):
                break
    return total, -1, -1


def nested(n: Any) -> Any:
    steps = 0
    while True:
        while True:
            steps += 1
            if steps % 7 == 0:
                return steps
            if steps > n:
                break
        n += 3


@pytest.mark.parametrize("target", TARGETS)
def test_endless_loops(target: str) -> None:
    x, ends = np.array([1.0, 2.0, 3.0]), (np.array([0, 2, 3, 5]), np.array([1, 3, 4, 5]))
    for function, arguments in (
        (halved, (10.0,)), (settled, (np.arange(6), *ends)), (found, (x, 7.5)), (found, (x, 100.0)),
        (nested, (2,)), (nested, (9,)),
    ):  # fmt: skip
        np.testing.assert_array_equal(
            np.concatenate([*map(np.ravel, np.atleast_1d(ml.compile(function, target)(*arguments)))]),
            np.concatenate([*map(np.ravel, np.atleast_1d(function(*arguments)))]),
        )

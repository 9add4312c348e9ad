"""Loops whose indices are inspected by chunks do what Python does, whatever the indices are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.targets import cpu
from tests.fuzz.fuzzing import COUNT, first_seed
from tests.pipelines.options import with_options

Arrays = list[np.ndarray]


def product(data: Any, column: Any, start: Any, x: Any, y: Any) -> None:
    for i in range(len(y)):
        total = 0.0
        for k in range(start[i], start[i + 1]):
            total += data[k] * x[column[k]]
        y[i] = total


def scattered_rows(data: Any, column: Any, start: Any, x: Any, y: Any) -> None:
    for i in range(len(y)):
        for k in range(start[i], start[i + 1]):
            y[column[k]] += data[k] * x[i]


def permuted_rows(data: Any, column: Any, start: Any, x: Any, y: Any) -> None:
    # The row's own index is checked behind the loop over it, whose nest is replaced.
    for i in range(len(y)):
        total = 0.0
        for k in range(start[i], start[i + 1]):
            total += data[k] * x[column[k]]
        y[column[i]] = total


def rows_twice(data: Any, column: Any, start: Any, x: Any, y: Any) -> None:
    for i in range(len(y)):
        for k in range(start[i], start[i + 1]):
            y[i] += data[k] * x[column[k]]
        for k in range(start[i], start[i + 1]):
            y[i] -= data[k] * x[column[column[k]]]


def carried_rows(data: Any, column: Any, start: Any, x: Any, y: Any) -> float:
    total = 1.0
    for i in range(len(y)):
        for k in range(start[i], start[i + 1]):
            total = total * 0.5 + x[column[k]] + data[column[k]]
        y[i] += total
    return total


def rows_that_change(data: Any, column: Any, start: Any, x: Any, y: Any) -> None:
    for i in range(len(y)):
        for k in range(start[i], start[i + 1]):
            y[i] += x[column[k]]
        start[i + 1] += 1


def columns_that_change(data: Any, column: Any, start: Any, x: Any, y: Any) -> None:
    for i in range(len(y)):
        for k in range(start[i], start[i + 1]):
            y[i] += x[column[k]]
            column[k] = i


def counts(data: Any, column: Any, start: Any, x: Any, y: Any) -> None:
    for k in range(len(column)):
        y[column[k]] += 1.0


def counts_of_counts(data: Any, column: Any, start: Any, x: Any, y: Any) -> float:
    total = 0.0
    for k in range(len(column)):
        y[column[column[k]]] += x[column[k]] + data[k]
        total = total * 0.5 + y[column[k]]
    return total


def counts_in_place(data: Any, column: Any, start: Any, x: Any, y: Any) -> None:
    for k in range(len(column)):
        column[column[k]] += 1
        y[column[k]] += 1.0


def the_one_before(data: Any, column: Any, start: Any, x: Any, y: Any) -> float:
    total, before = 0.0, column[-1]
    for k in range(len(column)):
        total = total * 0.5 + x[before] - y[column[k]]
        before = column[k]
    return total


def slices(data: Any, column: Any, start: Any, x: Any, y: Any) -> None:
    for i in range(len(y)):
        columns = column[start[i] : start[i + 1]]
        values = data[start[i] : start[i + 1]]
        y[i] = values @ x[columns]


def slice_sums(data: Any, column: Any, start: Any, x: Any, y: Any) -> float:
    total = 0.0
    for i in range(len(y)):
        y[i] += np.sum(x[column[start[i] : start[i + 1]]])
        total += np.max(data[start[i] :]) if start[i] == 3 else 0.0
    return total


def slices_of_other_ends(data: Any, column: Any, start: Any, x: Any, y: Any) -> None:
    for i in range(len(y)):
        y[i] = np.sum(x[column[start[i] : start[i + 1] + 1]])


PROGRAMS: list[Callable[..., Any]] = [
    product, scattered_rows, permuted_rows, rows_twice, carried_rows, rows_that_change, columns_that_change, counts,
    counts_of_counts, counts_in_place, the_one_before, slices, slice_sums, slices_of_other_ends,
]  # fmt: skip
MANY = max(COUNT // 8, 40)


@pytest.fixture(params=["mlirml-inspect-indices{chunk=3 rows=2}", "mlirml-inspect-indices"])
def compiled(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    with_options(monkeypatch, {"mlirml-inspect-indices": request.param})
    assert request.param in dict(cpu.cpu_target().stages)["lower"]
    yield lambda f: ml.compile(f, frontend="loops")
    cpu.target_with.cache_clear()


def arguments(rng: np.random.Generator, index: type) -> Arrays:
    """A sparse matrix of 7 by 7, and two vectors; some of its indices may be negative or out of bounds."""
    n, count = 7, 20
    start = np.concatenate([[0], np.sort(rng.integers(0, count, n - 1)), [count]])
    column = rng.integers(0, n, count)
    for array, numbers in ((start, (-1, -3, 0, count + 1, -count - 1)), (column, (-1, -n, n, -n - 1, 2**30))):
        for _ in range(rng.choice([0, 0, 1, 2])):
            array[rng.integers(array.size)] = rng.choice(numbers)
    return [
        rng.integers(-3, 4, count).astype(float), column.astype(index), start.astype(index),
        rng.integers(-3, 4, n).astype(float), rng.integers(-3, 4, n).astype(float),
    ]  # fmt: skip


@pytest.mark.parametrize("index", [np.int64, np.int32, np.uint32])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_random_indices(function: Callable[..., Any], index: type, compiled: Callable[..., Any]) -> None:
    program, rng, failures = compiled(function), np.random.default_rng(first_seed() if COUNT else 0), 0
    for _ in range(MANY):
        inputs = arguments(rng, index)
        ours, expected = ([x.copy() for x in inputs] for _ in range(2))
        try:
            with np.errstate(all="ignore"):
                result = function(*expected)
        except IndexError:
            failures += 1
            with pytest.raises(IndexError):
                program(*ours)
            for mine, before in zip(ours, inputs):
                np.testing.assert_array_equal(mine, before)
            continue
        given = program(*ours)
        for mine, right in zip(ours, expected):
            np.testing.assert_array_equal(mine, right)
        if result is not None:
            np.testing.assert_allclose(given, result, rtol=1e-12)
    assert 0 < failures < MANY

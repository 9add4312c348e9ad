"""Loops over columns, tiled over rows: what NumPy gives, whatever is left over, and only where rows are independent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.pipelines.memref import tile_rows
from mlirml.pipelines.memref.tile_rows import ColumnLoop

Function = Callable[..., Any]
Array = np.ndarray


@pytest.fixture
def tiles(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The rows of the tiles, which are small ones for small arrays."""
    found: list[int] = []
    plan = tile_rows.plan_tile

    def small(columns: ColumnLoop, l2_bytes: int, least_bytes: int) -> int:
        each = sum(math.prod(c.operand.type.shape) // columns.count for c in columns.columns) * 64
        found.append(plan(columns, l2_bytes, min(8, columns.count // 2) * each))
        return found[-1]

    monkeypatch.setattr(tile_rows, "plan_tile", small)
    with ml.config.override(cache=False):
        yield found


def recurrence(x: Array, y: Array) -> None:
    for j in range(2, x.shape[1]):
        y[:, j] = 0.5 * x[:, j] + 0.25 * x[:, j - 1] + 0.5 * y[:, j - 1] - 0.25 * y[:, j - 2]


def backwards(x: Array, y: Array) -> None:
    for j in range(x.shape[1] - 3, -1, -1):
        y[:, j] = 0.5 * x[:, j + 1] + 0.25 * x[:, j + 2] + 0.5 * y[:, j + 1] - 0.25 * y[:, j + 2]


def inner_rows(x: Array, y: Array) -> None:
    for j in range(1, x.shape[1]):
        y[1:-1, j] = x[:-2, j] + x[2:, j] - 0.5 * y[1:-1, j - 1]


def two_stores(x: Array, y: Array) -> Array:
    c = np.zeros_like(x)
    for j in range(1, x.shape[1]):
        c[:, j] = x[:, j] / (2.0 + c[:, j - 1])
        y[:, j] = (y[:, j] - y[:, j - 1] * c[:, j]) * 0.5
    return c


def with_a_column(x: Array, y: Array) -> None:
    last = np.zeros(x.shape[0])
    for j in range(x.shape[1] - 1, -1, -1):
        now = x[:, j] - 0.5 * last
        last[:] = now
        y[:, j] = 2.0 * now


def with_a_row(x: Array, y: Array) -> None:
    for j in range(1, x.shape[1]):
        y[:, j] = x[:, j] * x[0, j] + 0.5 * y[:, j - 1]


@pytest.mark.parametrize("rows", [18, 37, 64])
@pytest.mark.parametrize("function", [recurrence, backwards, inner_rows, two_stores, with_a_column, with_a_row])
def test_columns(tiles: list[int], function: Function, rows: int) -> None:
    check(function, (rows, 30))
    assert tiles == [8]


def sweep(x: Array, y: Array) -> Array:
    c = np.zeros_like(x)
    for k in range(1, x.shape[2]):
        c[:, :, k] = x[:, :, k] / (2.0 + c[:, :, k - 1])
        y[:, :, k] = (y[:, :, k] - y[:, :, k - 1] * c[:, :, k]) * 0.5
    for k in range(x.shape[2] - 2, -1, -1):
        y[:, :, k] -= c[:, :, k] * y[:, :, k + 1]
    return c


@pytest.mark.parametrize("rows", [6, 7, 24])
def test_planes(tiles: list[int], rows: int) -> None:
    check(sweep, (rows, 20, 30))
    assert tiles == [{6: 3, 7: 1, 24: 8}[rows]] * 2


def neighbours(x: Array, y: Array) -> None:
    for j in range(1, x.shape[1]):
        y[1:, j] = x[1:, j] + 0.5 * y[:-1, j - 1]


def one_row_for_all(x: Array, y: Array) -> None:
    for j in range(1, x.shape[1]):
        y[:, j] = x[:, j] + 0.5 * y[0, j - 1]


def sums(x: Array, y: Array) -> None:
    for j in range(1, x.shape[1]):
        y[:, j] = x[:, j] - np.sum(y[:, j - 1]) / 64


def transposed(x: Array, y: Array) -> None:
    for j in range(1, 30):
        y[:30, j] = x[:30, j] + 0.5 * y[j - 1, :30]


@pytest.mark.parametrize("function", [neighbours, one_row_for_all, sums, transposed])
def test_rows_that_depend_on_others_stay(tiles: list[int], function: Function) -> None:
    check(function, (64, 30))
    assert not tiles


def along_rows(x: Array, y: Array) -> None:
    for i in range(1, x.shape[0]):
        y[i] = x[i] + 0.5 * y[i - 1]


def test_loops_that_go_along_memory_stay(tiles: list[int]) -> None:
    check(along_rows, (30, 64))
    assert not tiles


def test_small_arrays_stay() -> None:
    shape = (64, 30)
    with ml.config.override(cache=False):
        text = str(ml.compile(recurrence).ir("schedule", np.ones(shape), np.ones(shape)))
        large = str(ml.compile(recurrence).ir("schedule", np.ones((4096, 30)), np.ones((4096, 30))))
    assert "parallel0" not in text
    assert "parallel0" in large


def check(function: Function, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.random(shape), rng.random(shape)
    expected, found = y.copy(), y.copy()
    returned = function(x, expected)
    np.testing.assert_array_equal(ml.compile(function)(x, found), returned)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)

"""Functions of gathered rows, which are computed for the rows of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((7, 5))
INDICES = RNG.integers(-7, 7, 600)


def columns(table: Any, indices: Any) -> Any:
    rows = table[indices]
    angle = np.sqrt(rows[:, 0] ** 2 + rows[:, 1] ** 2)
    return rows[:, 2] * np.cos(angle) / angle + rows[:, 3]


def whole_rows(table: Any, indices: Any) -> Any:
    rows = table[indices]
    return np.exp(rows) / np.sum(np.exp(rows), axis=1, keepdims=True) + rows


def vectors(table: Any, indices: Any) -> Any:
    return np.tanh(table[:, 1][indices] * 2) * table[indices][:, 4] + np.arange(600.0)


def parts(table: Any, indices: Any) -> Any:
    rows = table[indices][:, 1:4]
    return np.log(np.abs(rows[:, ::2]) + 1), np.cos(rows) * np.arange(3.0), rows.T


def numbers(table: Any, indices: Any) -> Any:
    whole = np.arange(7)[indices]
    return 100 // np.where(whole == 0, 1, whole), np.arange(600) * np.exp(table[indices, 0])


def of_positions(table: Any, indices: Any) -> Any:
    return np.sin(table[indices] * np.arange(600.0)[:, None])


@pytest.mark.parametrize("function", [columns, whole_rows, vectors, parts, numbers, of_positions])
def test_same_as_numpy(function: Callable[..., Any]) -> None:
    expected, found = function(TABLE, INDICES), ml.compile(function)(TABLE, INDICES)
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("function", [columns, whole_rows, vectors])
def test_rows_without_an_index_have_no_derivative(function: Callable[..., Any]) -> None:
    table, indices = TABLE.copy(), np.abs(INDICES) % 6
    table[6] = 0  # where `columns` divides by zero

    def total(table: Any, indices: Any) -> Any:
        return np.sum(function(table, indices) ** 2)

    found = ml.compile(ml.grad(total))(table, indices)
    np.testing.assert_array_equal(found[6], 0.0)
    step = np.zeros_like(table)
    step[2] = 1e-6
    expected = (total(table + step, indices) - total(table - step, indices)) / 2e-6
    np.testing.assert_allclose(found[2].sum(), expected, rtol=1e-5)


def test_indices_out_of_bounds_are_errors() -> None:
    indices = INDICES.copy()
    indices[5] = 7
    with pytest.raises(IndexError):
        ml.compile(columns)(TABLE, indices)


def test_functions_are_computed_for_the_rows_of_the_table() -> None:
    text = ml.compile(columns).ir("optimize", TABLE, INDICES)
    lines = [line for line in text.splitlines() if "tensor<7xf64>" in line and "linalg.generic" in line]
    assert lines and "tensor<600x5xf64>" not in text

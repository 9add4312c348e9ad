"""Stores through reshaped arguments: a view or a copy as NumPy decides it, by how the argument lies in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.fuzz.oracle import TARGETS, assert_same, cloned

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "reshape": lambda t: stored(t, t.reshape(-1)),
    "ravel": lambda t: stored(t, t.ravel()),
    "np.ravel": lambda t: stored(t, np.ravel(t)),
    "np.reshape of the transposed": lambda t: stored(t, np.reshape(t.T, -1)),
    "rows": lambda t: stored(t, t[1:].reshape(-1)),
    "columns": lambda t: stored(t, t[:, :2].reshape(-1)),
    "ravel of a column": lambda t: stored(t, t[:, 1].ravel()),
}


def stored(t: Any, flat: Any) -> Any:
    flat[0:4:2] = 7
    t[0, 1] += 10
    return t, flat


def layouts(dtype: Any) -> dict[str, np.ndarray]:
    x = np.arange(12).reshape(3, 4).astype(dtype)
    wide = np.arange(48).reshape(6, 8).astype(dtype)
    return {
        "contiguous": x, "Fortran": x.copy(order="F"), "transposed": np.arange(12).reshape(4, 3).astype(dtype).T,
        "rows": wide[:3, :4], "strided": wide[::2, 1::2], "backwards": x.copy()[::-1], "one row": wide[:1, :],
        "one column": wide[:, 3:4].repeat(2, 1),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.complex128])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_views_and_copies(name: str, dtype: Any) -> None:
    for target in TARGETS:
        compiled = ml.compile(FUNCTIONS[name], target)
        for number in range(2):
            for layout, x in layouts(dtype).items():
                given, expected = cloned([x]), cloned([x])
                try:
                    right = FUNCTIONS[name](*expected)
                except IndexError:
                    continue
                assert_same(compiled(*given), right, f"{target}, {layout}, call {number}: result")
                assert_same(given, expected, f"{target}, {layout}, call {number}: arguments")


def test_arguments_that_overlap() -> None:
    def f(t: Any, row: Any) -> Any:
        flat = t.reshape(-1)
        flat[1:3] = row[0] + 1
        row[2] = 5
        return flat * 2

    compiled = ml.compile(f)
    for order in ("C", "F"):
        given, expected = (np.arange(12.0).reshape(3, 4).copy(order=order) for _ in range(2))
        assert_same(compiled(given, given[0]), f(expected, expected[0]), order)
        assert_same(given, expected, order)


def test_loops_over_a_flat_view() -> None:
    def f(t: Any) -> Any:
        flat = t.reshape(-1)
        for i in range(1, flat.shape[0]):
            flat[i] = flat[i - 1] + 2 * flat[i]
        return t

    compiled = ml.compile(f)
    for x in layouts(np.float64).values():
        given, expected = cloned([x]), cloned([x])
        assert_same(compiled(*given), f(*expected), "result")
        assert_same(given, expected, "arguments")
    assert "tensor" in compiled.ir("capture", ml.TensorSpec((3, 4), np.float64))


RESULTS: dict[str, Callable[[Any], Any]] = {
    "sum of a transposed": lambda x: x.T + 1,
    "columns": lambda x: x[:, [1, 0]],
    "columns after an ellipsis": lambda x: x[..., [1, 0]],
    "+columns": lambda x: +x[:, [1, 0]],
    "rows": lambda x: x[[1, 0], :],
    "columns by a matrix": lambda x: x[:, np.array([[0, 1], [1, 0]])],
    "columns by bools": lambda x: x[:, [True, False, True, False]],
    "last of three dimensions": lambda x: x.reshape(2, 3, 2)[:, :, [1, 0]],
    "middle of three dimensions": lambda x: x.reshape(2, 3, 2)[:, [0, 1], :],
    "two of three dimensions": lambda x: x.reshape(2, 3, 2)[:, [0, 1], [1, 0]],
    "first and last": lambda x: x.reshape(2, 3, 2)[[0, 1], :, [1, 0]],
    "slice and last": lambda x: x.reshape(2, 3, 2)[:, 1:, [1, 0]],
    "twice": lambda x: x.reshape(2, 3, 2)[[0, 1]][:, :, [1, 0]],
    "taken": lambda x: np.take(x, [1, 0], 1),
    "zeros like": lambda x: np.zeros_like(x.T),
    "copy": lambda x: np.copy(x.T),
    "sorted": lambda x: np.sort(x.T),
    "sum of one dimension": lambda x: x.reshape(2, 3, 2).transpose(2, 1, 0).sum(0),
}
"""Results whose memory order NumPy chooses."""


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("name", RESULTS)
def test_a_store_into_a_flat_result(name: str, known: bool) -> None:
    def f(x: Any) -> Any:
        made = RESULTS[name](np.arange(12.0).reshape(3, 4) if known else x)
        np.ravel(made)[0] += 2
        return made

    x = np.arange(12.0).reshape(3, 4)
    for target in TARGETS:
        try:
            result = ml.compile(f, target)(x.copy())
        except ml.CaptureError as error:
            assert "may or may not have made a copy" in error.message
        else:
            assert_same(result, f(x.copy()), target)

"""Constant arrays that comparisons or sums of indices compute: they are found, and only those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.ir.text.index_masks import IndexMask, match_choice, match_index_mask, match_index_sum

ROW, COLUMN = np.arange(60)[:, None], np.arange(70)
KNOWN: dict[str, Callable[[Any, Any], Any]] = {
    "lower": lambda i, j: j <= i + 3,
    "upper": lambda i, j: j > i,
    "band": lambda i, j: np.abs(i - j) < 5,
    "no band": lambda i, j: np.abs(i - j) > 4,
    "window": lambda i, j: (j <= i) & (j > i - 7),
    "blocks": lambda i, j: i // 8 == j // 8,
    "blocks of the past": lambda i, j: j // 16 <= i // 16,
    "padding": lambda i, j: (j < 40) & (i >= 0),
    "diagonal": lambda i, j: i == j,
    "leading ones": lambda i, j: (j <= i)[None, None],
}
OTHERS = {
    "random": np.random.default_rng(0).random((60, 70)) > 0.5,
    "even": (COLUMN + 0 * ROW) % 2 == 0,
    "rows": (ROW < 30) & (COLUMN >= 0),
    "two intervals": (COLUMN < 5) | (COLUMN == ROW),
    "integers": (COLUMN <= ROW).astype(int),
    "several": np.stack([COLUMN <= ROW, COLUMN < ROW]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_constant_mask_is_a_comparison(name: str) -> None:
    mask = KNOWN[name](ROW, COLUMN)
    assert match_index_mask(mask) is not None
    x = np.random.default_rng(0).standard_normal(mask.shape)
    compiled = ml.compile(lambda x: np.where(KNOWN[name](np.arange(60)[:, None], np.arange(70)), x, 0))
    np.testing.assert_array_equal(compiled(x), np.where(mask, x, 0))
    assert "i1>" not in compiled.ir("capture", x).partition("{")[2].partition(")")[0]


@pytest.mark.parametrize("name", OTHERS)
def test_another_array_is_no_mask(name: str) -> None:
    assert match_index_mask(OTHERS[name]) is None


def test_random_edges_are_found_or_left() -> None:
    """What is found is the array itself, whatever the edges are."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        low, high = (int(n) for n in rng.integers(-80, 80, 2))
        b = int(rng.integers(1, 20))
        mask = [
            (low <= COLUMN - ROW) & (high > COLUMN - ROW),
            (ROW // b * b + low <= COLUMN) & (high > COLUMN),
            (low <= COLUMN - ROW) | (high > COLUMN - ROW),
        ]
        for array in mask:
            found = match_index_mask(array)
            if found is None:
                continue
            first = -1 if found.first is None else found.first.at(ROW)
            last = 69 if found.last is None else found.last.at(ROW)
            within = (first < COLUMN) & (last >= COLUMN)
            np.testing.assert_array_equal(~within if found.others else within, array)


def test_sums_of_indices() -> None:
    for array in (ROW - COLUMN, COLUMN * 3 + 1, np.arange(300, dtype=np.int32), 5 - np.arange(200).reshape(4, 5, 10)):
        found = match_index_sum(np.ascontiguousarray(array))
        assert found is not None
        grids = np.indices(array.shape)
        total = sum(step * grid for step, grid in zip(found.steps, grids, strict=True))
        np.testing.assert_array_equal(total + found.offset, array)
    assert match_index_sum(np.abs(ROW - COLUMN)) is None
    assert match_index_sum(np.arange(300.0)) is None


def test_a_choice_of_two_numbers_is_one_of_a_mask() -> None:
    for dtype in ("f2", "f4", "f8", "i4", "u1"):
        for yes, no in ((0, 3), (1, 0)):
            array = np.where(KNOWN["window"](ROW, COLUMN), yes, no).astype(dtype)
            assert match_choice(array) is not None
            x = np.ones(array.shape, dtype)
            np.testing.assert_array_equal(ml.compile(lambda x, array=array: x + np.add(array, 0))(x), x + array)
    signed = np.where(KNOWN["lower"](ROW, COLUMN), 0.0, -0.0)
    found = match_choice(signed)
    assert found is not None and np.signbit(found.chosen) != np.signbit(found.other)
    assert match_choice(np.where(OTHERS["random"], 0.0, -np.inf)) is None
    assert match_choice(KNOWN["lower"](ROW, COLUMN) * 1.0 + KNOWN["upper"](ROW, COLUMN) * 2.0) is None


def elements(found: IndexMask, shape: tuple[int, int]) -> np.ndarray:
    """The mask as an array."""
    rows, columns = np.indices(shape)
    within = np.ones(shape, bool)
    if found.first is not None:
        within &= columns > found.first.at(rows)
    if found.last is not None:
        within &= columns <= found.last.at(rows)
    return ~within if found.others else within


@pytest.mark.parametrize("shape", [(1, 7), (7, 2), (5, 5), (4, 9), (9, 4)])
def test_diagonals(shape: tuple[int, int]) -> None:
    for offset in range(-shape[0] - 1, shape[1] + 2):
        lower = np.tri(*shape, offset, dtype=np.bool_)
        for mask in (lower, ~lower):
            found = match_index_mask(mask)
            if mask.all() or not mask.any():  # filled
                assert found is None
                continue
            assert found is not None
            np.testing.assert_array_equal(elements(found, shape), mask)


def test_one_element_less_is_another_mask() -> None:
    mask = np.tri(6, 8, 1, dtype=np.bool_)
    for place in np.ndindex(mask.shape):
        other = mask.copy()
        other[place] ^= True
        found = match_index_mask(other)
        assert found is None or np.array_equal(elements(found, (6, 8)), other), place


def test_other_arrays() -> None:
    assert match_index_mask(np.tri(4)) is None
    assert match_index_mask(np.zeros((0, 4), np.bool_)) is None


def test_no_memory_is_read() -> None:
    """A program with a triangle has no array of it, and computes the same."""
    x = np.arange(400 * 300, dtype=np.float32).reshape(400, 300)
    function = ml.compile(lambda x: np.where(np.tri(400, 300, 2, dtype=bool), x, -1))
    np.testing.assert_array_equal(function(x), np.where(np.tri(400, 300, 2, dtype=bool), x, -1))
    assert "i1>" not in function.ir("capture", x).partition("{")[2].partition(")")[0]


def test_a_mask_that_the_caller_changes_is_read() -> None:
    mask = np.tri(200, dtype=bool)
    x = np.ones((200, 200), np.float32)
    function = ml.compile(lambda x: np.where(mask, x, 0))
    np.testing.assert_array_equal(function(x), np.tri(200))
    mask[0, 100] = True
    assert function(x)[0, 100] == 1

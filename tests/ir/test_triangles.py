"""Constant masks that are triangles: found whatever their diagonal, and only those."""

from __future__ import annotations

import numpy as np
import pytest

import mlirml as ml
from mlirml.ir.text.triangles import match_triangle


@pytest.mark.parametrize("shape", [(1, 7), (7, 2), (5, 5), (4, 9), (9, 4)])
def test_diagonals(shape: tuple[int, int]) -> None:
    for offset in range(-shape[0] - 1, shape[1] + 2):
        lower = np.tri(*shape, offset, dtype=np.bool_)
        for mask, above in ((lower, False), (~lower, True)):
            found = match_triangle(mask)
            if mask.all() or not mask.any():  # filled
                assert found is None
                continue
            assert found is not None
            rows, columns = np.indices(shape)
            behind = columns > rows + found.offset
            np.testing.assert_array_equal(behind if found.above else ~behind, mask)
            assert found.above == above or min(shape) == 1


def test_one_element_less_is_no_triangle() -> None:
    mask = np.tri(6, 8, 1, dtype=np.bool_)
    for place in np.ndindex(mask.shape):
        other = mask.copy()
        other[place] ^= True
        assert match_triangle(other) is None, place


def test_other_arrays() -> None:
    assert match_triangle(np.tri(4)) is None
    assert match_triangle(np.tri(4, dtype=np.bool_)[None]) is None
    assert match_triangle(np.zeros((0, 4), np.bool_)) is None


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

"""Loops that check indices have a version without checks for plain ones; results and errors stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml


def index_loop(x: Any, keys: Any) -> Any:
    total = 0.0
    for i in range(len(keys)):
        x[keys[i]] += 1.0
        total = total * 0.5 + x[keys[i]]
    return total


@pytest.mark.parametrize("where", [None, 0, 5, 4095, 4096, 4097, 9000, 9999])
@pytest.mark.parametrize("key", [-1, -50, 49, 50, -51, 2**40, -(2**40)])
def test_versions_of_checked_loops(where: int | None, key: int) -> None:
    """The version for plain indices stops at any other one, and the loop goes on or fails as without it."""
    keys = np.random.default_rng(0).integers(0, 50, 10_000)
    if where is not None:
        keys[where] = key
    ours, expected = np.zeros(50), np.zeros(50)
    program = ml.compile(index_loop, frontend="loops")
    try:
        result = index_loop(expected, keys)
    except IndexError:
        with pytest.raises(ml.IndexOutOfBoundsError, match=f"index {key} is out of bounds"):
            program(ours, keys)
        assert not ours.any()
        return
    np.testing.assert_allclose(program(ours, keys), result, rtol=1e-12)
    np.testing.assert_array_equal(ours, expected)


def test_mixed_indices() -> None:
    keys = np.random.default_rng(0).integers(-50, 50, 10_000)
    ours, expected = np.zeros(50), np.zeros(50)
    np.testing.assert_allclose(ml.compile(index_loop, frontend="loops")(ours, keys), index_loop(expected, keys))
    np.testing.assert_array_equal(ours, expected)

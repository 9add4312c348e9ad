"""An index that data decide is checked: no access outside of an array, an IndexError as in Python, memory untouched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from benchmarks.checks import gather, histogram, sorting_network


def guarded(x: Any, index: Any, out: Any) -> None:
    for i in range(index.shape[0]):
        if index[i] >= 0:
            out[i] = x[index[i]]


def chained(x: Any, index: Any, out: Any) -> None:
    for i in range(index.shape[0]):
        out[i] = x[index[index[i]]]


def follow(index: Any, count: int) -> Any:
    k, steps = 0, 0
    while steps < count and index[k] != 0:
        k = index[k]
        steps += 1
    return k


def in_the_middle(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A copy in the middle of a larger buffer, and the buffer."""
    buffer = np.full(array.size + 128, 77, array.dtype)
    view = buffer[64 : 64 + array.size].reshape(array.shape)
    view[...] = array
    return view, buffer


def compare(function: Any, *arguments: Any) -> None:
    """The compiled function fails where Python does, and leaves the same memory; none around is written."""
    kept = [in_the_middle(x) if isinstance(x, np.ndarray) else (x, None) for x in arguments]
    expected = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]
    failure = None
    try:
        result = function(*expected)
    except IndexError as error:
        failure = error
    program = ml.compile(function, frontend="loops")
    if failure is None:
        assert np.array_equal(np.asarray(program(*(x for x, _ in kept))), np.asarray(result)) or result is None
        for (view, _), x in zip(kept, expected):
            assert np.array_equal(view, x)
    else:
        with pytest.raises(ml.IndexOutOfBoundsError, match="out of bounds for axis") as caught:
            program(*(x for x, _ in kept))
        assert caught.value.location is not None
    for view, buffer in kept:
        if buffer is not None:
            around = np.concatenate([buffer[:64], buffer[64 + view.size :]])
            assert np.all(around == 77)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_data_dependent_indices_are_checked(seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    count, low, high = int(rng.integers(0, 9)), *((-7, 7) if seed % 2 else (-5, 5))
    if dtype.startswith("u"):
        low, high = 0, 7 if seed % 2 else 5
    index = rng.integers(low, high, count).astype(dtype)
    x = rng.integers(0, 9, 5).astype(np.float64)
    compare(gather, x, index, np.zeros(count))
    compare(guarded, x, index, np.zeros(count))
    compare(histogram, x, index)
    if count:
        compare(chained, x, np.minimum(index, index.dtype.type(count)), np.zeros(count))
        compare(follow, index, 6)
    pairs = rng.integers(low, high, (3, 2)).astype(dtype)
    compare(sorting_network, rng.integers(0, 9, (4, 5)).astype(np.float32), pairs)


def test_a_nest_that_fails_its_check_stores_nothing() -> None:
    x, out = np.arange(5.0), np.zeros(3)
    with pytest.raises(ml.IndexOutOfBoundsError, match="index 9 is out of bounds for axis 0 with size 5"):
        ml.compile(gather)(x, np.array([1, 9, 2]), out)
    assert not out.any()


def test_a_loop_in_order_stores_nothing_either() -> None:
    found = np.zeros(5)
    with pytest.raises(ml.IndexOutOfBoundsError, match="index -6 is out of bounds for axis 0 with size 5"):
        ml.compile(histogram)(found, np.array([1, -6, 2]))
    assert not found.any()

"""Arguments that the function stores into, but that cannot be stored into."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error


def clear(state: Any) -> Any:
    first = state["a"]
    first[0] = 0.0
    return first


def locked(shape: tuple[int, ...]) -> np.ndarray:
    array = np.ones(shape)
    array.flags.writeable = False
    return array


REPEATED = np.lib.stride_tricks.as_strided(np.ones(1), (3,), (0,))


def test_read_only() -> None:
    check_error(
        lambda: ml.compile(clear)({"a": locked((3,))}),
        """
        mlirml.LaunchError: argument `state['a']` is stored into, but it is read-only
          --> test_read_only_argument.py:16:5 (clear)
            |
         16 |     first[0] = 0.0
            |     ^^^^^^^^
           = help: pass a copy: `state['a'].copy()`
        """,
    )


def test_on_the_reference_target() -> None:
    check_error(
        lambda: ml.compile(clear, "reference")({"a": locked((3,))}),
        """
        mlirml.LaunchError: argument `state['a']` is stored into, but it is read-only
          --> test_read_only_argument.py:16:5 (clear)
            |
         16 |     first[0] = 0.0
            |     ^^^^^^^^
           = help: pass a copy: `state['a'].copy()`
        """,
    )


def test_elements_that_share_memory() -> None:
    check_error(
        lambda: ml.compile(clear)({"a": REPEATED}),
        """
        mlirml.LaunchError: argument `state['a']` is stored into, but its elements share memory
          --> test_read_only_argument.py:16:5 (clear)
            |
         16 |     first[0] = 0.0
            |     ^^^^^^^^
           = help: pass a copy: `state['a'].copy()`
        """,
    )


def test_later_calls_are_checked_too() -> None:
    compiled = ml.compile(clear)
    fresh = np.ones(3)
    compiled({"a": fresh})
    for _ in range(2):
        with pytest.raises(ValueError, match="stored into, but it is read-only"):
            compiled({"a": locked((3,))})
    compiled({"a": fresh})
    np.testing.assert_array_equal(fresh, [0.0, 1.0, 1.0])

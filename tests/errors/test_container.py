"""Containers among the arguments keep their items."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def add_item(state: Any) -> Any:
    state["new"] = [state["x"] + 1]
    return state["x"]


def test_an_item_is_added() -> None:
    check_error(
        lambda: ml.compile(add_item)({"x": np.ones(3)}),
        """
        mlirml.CaptureError: a list, dict or dataclass among the arguments has other items after the call than before
          --> test_container.py:15:12 (add_item)
            |
         15 |     return state["x"]
            |            ^^^^^^^^^^
           = help: return what is new; only lists and dicts of numbers and arrays can get and lose items
        """,
    )


def counted(x: Any) -> Any:
    counts: dict[Any, int] = {}
    for v in x:
        counts[v] = counts.get(v, 0) + 1
    return counts


def test_an_element_is_a_key() -> None:
    check_error(
        lambda: ml.compile(counted)(np.array([1, 2, 1])),
        """
        mlirml.TracedValueError: a key of a dict or an item of a set needs the value of i64[], known only at run time
          --> test_container.py:35:21 (counted)
            |
         35 |         counts[v] = counts.get(v, 0) + 1
            |                     ^^^^^^^^^^^^^^^^
           = help: count in an array that the key indexes, `counts = np.zeros(n)`, `counts[key] += 1`, or `np.bincount`
        """,
    )

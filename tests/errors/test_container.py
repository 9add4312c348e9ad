"""Containers among the arguments keep their items."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def add_item(state: Any) -> Any:
    state["new"] = state["x"] + 1
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
           = help: return what is new; compiled code can assign to the items of a container, not add or remove any
        """,
    )

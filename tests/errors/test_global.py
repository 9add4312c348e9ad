"""A compiled function cannot assign to globals."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error

COUNT = 0


@ml.compile
def counting(x: Any) -> Any:
    global COUNT
    COUNT += 1
    return x


def outer(x: Any) -> Any:
    return helper(x) + 1


def helper(x: Any) -> Any:
    global COUNT
    del COUNT
    return x


def test_assignment() -> None:
    check_error(
        lambda: counting(np.ones(3)),
        """
        mlirml.UnsupportedSyntaxError: `counting` assigns to the global `COUNT`, which compiled code cannot do
          --> test_global.py:18:5 (counting)
            |
         18 |     COUNT += 1
            |     ^^^^^
           = help: return the new value
        """,
    )


def test_a_function_that_is_called() -> None:
    check_error(
        lambda: ml.compile(outer)(np.ones(3)),
        """
        mlirml.UnsupportedSyntaxError: `helper` assigns to the global `COUNT`, which compiled code cannot do
          --> test_global.py:28:9 (helper)
            |
         28 |     del COUNT
            |         ^^^^^
           = help: return the new value
        """,
    )

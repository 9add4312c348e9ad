"""Static arguments that cannot be static."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def scale(x: Any, factors: Any) -> Any:
    return x * factors[0]


def test_an_argument_that_is_not_hashable() -> None:
    check_error(
        lambda: ml.compile(scale, static_argnums=1)(np.ones(3), [2.0]),
        """
        mlirml.ArgumentError: static argument `factors` is a list, which is not hashable
          --> test_static_argnums.py:13 (scale)
            |
         13 | def scale(x: Any, factors: Any) -> Any:
            | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: pass a tuple of what it holds
        """,
    )


def test_an_array() -> None:
    check_error(
        lambda: ml.compile(scale, static_argnums=0)(np.ones(3), (2.0,)),
        """
        mlirml.ArgumentError: static argument `x` is a ndarray, which is not hashable
          --> test_static_argnums.py:13 (scale)
            |
         13 | def scale(x: Any, factors: Any) -> Any:
            | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: arrays cannot be static
        """,
    )


def test_by_name() -> None:
    check_error(
        lambda: ml.compile(scale, static_argnums=1)(np.ones(3), factors={}),
        """
        mlirml.ArgumentError: static argument `factors` is a dict, which is not hashable
          --> test_static_argnums.py:13 (scale)
            |
         13 | def scale(x: Any, factors: Any) -> Any:
            | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: pass a tuple of what it holds
        """,
    )


def test_no_such_position() -> None:
    check_error(
        lambda: ml.compile(scale, static_argnums=2),
        """
        mlirml.ArgumentError: static_argnums: `scale` has no positional argument 2
          --> test_static_argnums.py:13 (scale)
            |
         13 | def scale(x: Any, factors: Any) -> Any:
            | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: positions count from 0
        """,
    )

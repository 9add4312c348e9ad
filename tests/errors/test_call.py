"""Calls that do not fit the signature of the function."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def scale(x: Any, factor: Any = 2.0) -> Any:
    return x * factor


def test_too_many_arguments() -> None:
    check_error(
        lambda: ml.compile(scale)(np.ones(3), 1.0, 2.0),
        """
        mlirml.ArgumentError: scale(x, factor=2.0): too many positional arguments
          --> test_call.py:13 (scale)
            |
         13 | def scale(x: Any, factor: Any = 2.0) -> Any:
            | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_a_missing_argument() -> None:
    check_error(
        lambda: ml.compile(scale)(),
        """
        mlirml.ArgumentError: scale(x, factor=2.0): missing a required argument: 'x'
          --> test_call.py:13 (scale)
            |
         13 | def scale(x: Any, factor: Any = 2.0) -> Any:
            | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_an_unknown_keyword() -> None:
    check_error(
        lambda: ml.compile(scale)(np.ones(3), faktor=3.0),
        """
        mlirml.ArgumentError: scale(x, factor=2.0): got an unexpected keyword argument 'faktor'
          --> test_call.py:13 (scale)
            |
         13 | def scale(x: Any, factor: Any = 2.0) -> Any:
            | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_an_argument_given_twice() -> None:
    check_error(
        lambda: ml.compile(scale)(np.ones(3), x=3.0),
        """
        mlirml.ArgumentError: scale(x, factor=2.0): multiple values for argument 'x'
          --> test_call.py:13 (scale)
            |
         13 | def scale(x: Any, factor: Any = 2.0) -> Any:
            | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    )


def test_no_function() -> None:
    check_error(
        lambda: ml.compile("scale"),
        """
        mlirml.ArgumentError: compile: expected a function, got 'scale'
        """,
    )

"""Functions that turn a traced array into a real one."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error

absolute = np.vectorize(abs)


def vectorized(x: Any) -> Any:
    return absolute(x)


def spread(x: Any) -> Any:
    return statistics.fmean(x)


def test_vectorize() -> None:
    check_error(
        lambda: ml.compile(vectorized)(np.ones(3)),
        """
        mlirml.TracedBoolError: `absolute()` needs the value of f64[3], known only when the program runs
          --> test_real_array.py:17:12 (vectorized)
            |
         17 |     return absolute(x)
            |            ^^^^^^^^^^^
           = help: write it with `np.` functions, or call it outside and pass its result as an argument
        """,
    )


def test_a_function_of_a_library() -> None:
    check_error(
        lambda: ml.compile(spread)(np.ones(3)),
        """
        mlirml.TracedBoolError: `statistics.fmean()` needs the value of f64[], known only when the program runs
          --> test_real_array.py:21:12 (spread)
            |
         21 |     return statistics.fmean(x)
            |            ^^^^^^^^^^^^^^^^^^^
           = help: write it with `np.` functions, or call it outside and pass its result as an argument
        """,
    )

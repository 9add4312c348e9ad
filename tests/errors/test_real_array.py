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
        mlirml.TracedValueError: `absolute()` needs the value of f64[3], known only at run time
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
        mlirml.TracedValueError: `statistics.fmean()` needs the value of f64[], known only at run time
          --> test_real_array.py:21:12 (spread)
            |
         21 |     return statistics.fmean(x)
            |            ^^^^^^^^^^^^^^^^^^^
           = help: write it with `np.` functions, or call it outside and pass its result as an argument
        """,
    )


def of_list(x: Any) -> Any:
    return np.unique([x[0], x[1] * 2])


def test_a_list_of_traced_values() -> None:
    check_error(
        lambda: ml.compile(of_list)(np.ones(3)),
        """
        mlirml.TracedValueError: `np.unique()` needs the value of f64[], known only at run time
          --> test_real_array.py:53:12 (of_list)
            |
         53 |     return np.unique([x[0], x[1] * 2])
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: make an array of the list: `np.unique(np.array([x[0], x[1] * 2]))`
        """,
    )


def made_of_numbers(x: Any) -> Any:
    return np.array([[x[0], x[1]], [x[1], x[0]]])


FUNCTIONS = {"matrix": made_of_numbers}


def test_an_array_of_traced_values_in_a_function_out_of_a_container() -> None:
    check_error(
        lambda: ml.compile(lambda x: FUNCTIONS["matrix"](x), frontend="trace")(np.ones(3)),
        """
        mlirml.TracedValueError: `np.array()` needs the value of f64[], known only at run time
          --> test_real_array.py:71:12 (made_of_numbers)
            |
         71 |     return np.array([[x[0], x[1]], [x[1], x[0]]])
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: join the numbers by `np.stack([...])`, row by row
        """,
    )
    compiled = ml.compile(lambda x: FUNCTIONS["matrix"](x))  # whose calls are replaced
    np.testing.assert_array_equal(compiled(np.arange(3.0)), made_of_numbers(np.arange(3.0)))

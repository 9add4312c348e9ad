"""An index that is known only at run time: it is checked then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error
from tests.fuzz.oracle import TARGETS


def element(x: Any, i: Any) -> Any:
    return x[i]


def picked(x: Any, i: Any) -> Any:
    y = x + 1
    return y[:, i] * 2


def item_of_a_list(x: Any, i: Any) -> Any:
    return [x, -x][i]


def test_an_argument_as_index_of_a_list() -> None:
    check_error(
        lambda: ml.compile(item_of_a_list)(np.ones((4, 8), np.float32), np.int64(1)),
        """
        mlirml.TracedValueError: an index needs the value of i64[], known only at run time
          --> test_traced_index.py:25:12 (item_of_a_list)
            |
         25 |     return [x, -x][i]
            |            ^^^^^^^^^^
           = help: index an array of the program, `np.asarray(table)[i]`, or `np.stack(items)[i]` for a list; or make the argument static (`static_argnums`)
        """,  # noqa: E501
    )


@pytest.mark.parametrize("target", TARGETS)
def test_a_number_out_of_bounds_at_run_time(target: str) -> None:
    compiled = ml.compile(element, target)
    x = np.arange(32.0).reshape(4, 8)
    assert (compiled(x, -4) == x[0]).all()
    for wrong, shown in ((4, "index 4"), (-5, "index -5"), (2**62, "the index"), (-(2**63), "the index")):
        check_error(
            lambda wrong=wrong: compiled(x, wrong),
            f"""
            mlirml.IndexOutOfBoundsError: {shown} is out of bounds for axis 0 with size 4
              --> test_traced_index.py:16:12 (element)
                |
             16 |     return x[i]
                |            ^^^^
               = help: an index lies between -4 and 3; `np.take` can clip or wrap what lies outside
            """,
        )
        assert (compiled(x, 3) == x[3]).all()


@pytest.mark.parametrize("target", TARGETS)
def test_an_array_with_a_number_out_of_bounds_at_run_time(target: str) -> None:
    compiled = ml.compile(picked, target)
    x = np.arange(32.0).reshape(4, 8)
    for dtype in (np.int8, np.uint64, np.int64):
        assert (compiled(x, np.array([1, 7], dtype)) == picked(x, [1, 7])).all()
        error = check_error(
            lambda dtype=dtype: compiled(x, np.array([1, 8], dtype)),
            """
            mlirml.IndexOutOfBoundsError: index 8 is out of bounds for axis 1 with size 8
              --> test_traced_index.py:21:12 (picked)
                |
             21 |     return y[:, i] * 2
                |            ^^^^^^^
               = help: an index lies between -8 and 7; `np.take` can clip or wrap what lies outside
            """,
        )
        assert isinstance(error, IndexError)

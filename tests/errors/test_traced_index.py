"""An index that is known only when the program runs."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def element(x: Any, i: Any) -> Any:
    return x[i]


def rest(x: Any, i: Any) -> Any:
    return x[i:]


def rows(x: Any) -> Any:
    return x[[0, 2]]


def item_of_a_list(x: Any, i: Any) -> Any:
    return [x, -x][i]


def test_an_argument_as_index() -> None:
    check_error(
        lambda: ml.compile(element)(np.ones((4, 8), np.float32), 1),
        """
        mlirml.UnsupportedSyntaxError: indexing with a traced value (i64[]) is not compiled yet
          --> test_traced_index.py:14:12 (element)
            |
         14 |     return x[i]
            |            ^^^^
           = help: use Python integers or slices, or make the argument static (`static_argnums`)
        """,
    )


def test_an_argument_as_bound_of_a_slice() -> None:
    check_error(
        lambda: ml.compile(rest)(np.ones((4, 8), np.float32), 1),
        """
        mlirml.TracedBoolError: an index needs the value of i64[], known only when the program runs
          --> test_traced_index.py:18:12 (rest)
            |
         18 |     return x[i:]
            |            ^^^^^
           = help: use Python integers or slices, or make the argument static (`static_argnums`)
        """,
    )


def test_a_list_of_indices() -> None:
    check_error(
        lambda: ml.compile(rows)(np.ones((4, 8), np.float32)),
        """
        mlirml.UnsupportedSyntaxError: indexing with an integer array or a list is not compiled yet
          --> test_traced_index.py:22:12 (rows)
            |
         22 |     return x[[0, 2]]
            |            ^^^^^^^^^
           = help: for a few positions write `np.stack([x[i] for i in positions])`
        """,
    )


def test_an_argument_as_index_of_a_list() -> None:
    check_error(
        lambda: ml.compile(item_of_a_list)(np.ones((4, 8), np.float32), 1),
        """
        mlirml.TracedBoolError: an index needs the value of i64[], known only when the program runs
          --> test_traced_index.py:26:12 (item_of_a_list)
            |
         26 |     return [x, -x][i]
            |            ^^^^^^^^^^
           = help: use Python integers or slices, or make the argument static (`static_argnums`)
        """,
    )

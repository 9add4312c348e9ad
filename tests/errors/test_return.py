"""Results that compiled code cannot return."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def text(x: Any) -> Any:
    return "text", x


def nested(x: Any) -> Any:
    def inner() -> Any:
        return x

    return {"x": inner(), "kind": dict}


def two_returns(x: Any) -> Any:
    if len(x) > 3:
        return x
    return {"set": {1, 2}}


def generator(x: Any) -> Any:
    yield x


def test_a_string() -> None:
    check_error(
        lambda: ml.compile(text)(np.ones(3)),
        """
        mlirml.DTypeError: result[0]: a str is no array or number: 'text'
          --> test_return.py:14:12 (text)
            |
         14 |     return "text", x
            |            ^^^^^^^^^
           = help: compiled code returns arrays, numbers, and containers of them
        """,
    )


def test_a_class_inside_of_a_dict() -> None:
    check_error(
        lambda: ml.compile(nested)(np.ones(3)),
        """
        mlirml.DTypeError: result['kind']: a type is no array or number: <class 'dict'>
          --> test_return.py:21:12 (nested)
            |
         21 |     return {"x": inner(), "kind": dict}
            |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: compiled code returns arrays, numbers, and containers of them
        """,
    )


def test_one_of_two_returns() -> None:
    check_error(
        lambda: ml.compile(two_returns)(np.ones(3)),
        """
        mlirml.DTypeError: result['set']: a set is no array or number: {1, 2}
          --> test_return.py:24 (two_returns)
            |
         24 | def two_returns(x: Any) -> Any:
            | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: compiled code returns arrays, numbers, and containers of them
        """,
    )

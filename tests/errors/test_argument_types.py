"""Arguments that are no arrays, numbers or containers of them."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

import mlirml as ml
from tests.errors.shown import check_error


def identity(x: Any) -> Any:
    return x


def test_a_string() -> None:
    check_error(
        lambda: ml.compile(identity)("text"),
        """
        mlirml.DTypeError: result: a str is no array or number: 'text'
          --> test_argument_types.py:15:12 (identity)
            |
         15 |     return x
            |            ^
           = help: compiled code returns arrays, numbers, and containers of them
        """,
    )


def test_a_string_inside() -> None:
    check_error(
        lambda: ml.compile(identity)({"rate": 0.1, "names": [1.0, "a"]}),
        """
        mlirml.DTypeError: result['names'][1]: a str is no array or number: 'a'
          --> test_argument_types.py:15:12 (identity)
            |
         15 |     return x
            |            ^
           = help: compiled code returns arrays, numbers, and containers of them
        """,
    )


def test_a_set() -> None:
    check_error(
        lambda: ml.compile(identity)({1, 2}),
        """
        mlirml.ArgumentError: argument `x` is a set, not an array, a number or a container of them
           = help: pass an array, or make the argument static (`static_argnums`)
        """,
    )


class Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def __call__(self) -> None:
        pass


def test_a_callable_that_is_not_hashable() -> None:
    check_error(
        lambda: ml.compile(identity)([Unhashable()]),
        """
        mlirml.ArgumentError: static argument `x[0]` is a Unhashable, which is not hashable
          --> test_argument_types.py:14 (identity)
            |
         14 | def identity(x: Any) -> Any:
            | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: pass a tuple of what it holds
        """,
    )


def test_a_date() -> None:
    check_error(
        lambda: ml.compile(identity)(datetime.date(2020, 1, 1)),
        """
        mlirml.ArgumentError: argument `x` is a date, not an array, a number or a container of them
           = help: pass an array, or make the argument static (`static_argnums`)
        """,
    )


def test_objects() -> None:
    check_error(
        lambda: ml.compile(identity)(np.array([object()])),
        """
        mlirml.DTypeError: argument `x` has dtype object, which mlirml does not compile
           = help: object arrays hold Python objects; convert to a numeric dtype with `x.astype(float)`
        """,
    )


def test_strings() -> None:
    check_error(
        lambda: ml.compile(identity)(np.array(["a", "b"])),
        """
        mlirml.DTypeError: argument `x` has dtype <U1, which mlirml does not compile
           = help: use a bool, integer, float or complex dtype
        """,
    )


def test_swapped_bytes() -> None:
    check_error(
        lambda: ml.compile(identity)(np.ones(3, ">f8")),
        """
        mlirml.DTypeError: argument `x` has byte-swapped dtype '>f8'
           = help: convert it with `x.astype(x.dtype.newbyteorder('='))`
        """,
    )


def test_long_double() -> None:
    check_error(
        lambda: ml.compile(identity)(np.ones(3, np.longdouble)),
        """
        mlirml.DTypeError: argument `x` has dtype float128, which mlirml does not compile
           = help: use float64: `x.astype(np.float64)`
        """,
    )


def test_dates() -> None:
    check_error(
        lambda: ml.compile(identity)(np.array(["2020-01-01"], "datetime64[D]")),
        """
        mlirml.DTypeError: argument `x` has dtype datetime64[D], which mlirml does not compile
           = help: use integers: `x.astype('int64')`
        """,
    )


def test_a_record() -> None:
    check_error(
        lambda: ml.compile(identity)(np.ones(3, [("a", np.float32)])),
        """
        mlirml.DTypeError: argument `x` has dtype [('a', '<f4')], which mlirml does not compile
           = help: pass the fields of a structured array one by one: `x['field']`
        """,
    )


def test_a_masked_array() -> None:
    check_error(
        lambda: ml.compile(identity)(np.ma.masked_array([1.0, 2.0])),
        """
        mlirml.ArgumentError: argument `x` is a MaskedArray, whose arithmetic differs from plain arrays
           = help: pass `np.asarray(x)`, for a masked array `x.filled(value)` and the mask
        """,
    )


def test_a_matrix() -> None:
    check_error(
        lambda: ml.compile(identity)(np.ones((1, 1)).view(np.matrix)),
        """
        mlirml.ArgumentError: argument `x` is a matrix, whose arithmetic differs from plain arrays
           = help: pass `np.asarray(x)`, for a masked array `x.filled(value)` and the mask
        """,
    )


def test_a_tensor_spec() -> None:
    check_error(
        lambda: ml.compile(identity)(ml.TensorSpec((3,), np.float32)),
        """
        mlirml.ArgumentError: identity: a TensorSpec has no elements to compute with
           = help: pass an array
        """,
    )

"""Attributes of arrays that compiled code does not have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error


def strides(x: Any) -> Any:
    return x.strides


def bits(x: Any) -> Any:
    return x.view(np.uint8)


def iterated(x: Any) -> Any:
    return [v + 1 for v in x.flat]


def assign_shape(x: Any) -> Any:
    x.shape = (2, 2)
    return x


def unknown(x: Any) -> Any:
    return x.foo


def assign_unknown(x: Any) -> Any:
    x.foo = 1
    return x


def delete(x: Any) -> Any:
    del x[0]
    return x


def test_strides() -> None:
    check_error(
        lambda: ml.compile(strides)(np.ones(4)),
        """
        mlirml.UnsupportedSyntaxError: the array attribute `.strides` is not compiled
          --> test_attribute.py:15:12 (strides)
            |
         15 |     return x.strides
            |            ^^^^^^^^^
           = help: compiled code chooses the memory layout itself; use `shape` and `dtype`
        """,
    )


def test_view() -> None:
    check_error(
        lambda: ml.compile(bits)(np.ones(4)),
        """
        mlirml.UnsupportedSyntaxError: `.view(uint8)` of f64[4] is not compiled
          --> test_attribute.py:19:12 (bits)
            |
         19 |     return x.view(np.uint8)
            |            ^^^^^^^^^^^^^^^^
           = help: the bits of elements can be read as numbers of the same size; convert with `x.astype(...)`
        """,
    )


def test_assignment_to_shape() -> None:
    check_error(
        lambda: ml.compile(assign_shape)(np.ones(4)),
        """
        mlirml.UnsupportedSyntaxError: assigning to the `.shape` of an argument would change the caller's array
          --> test_attribute.py:27:5 (assign_shape)
            |
         27 |     x.shape = (2, 2)
            |     ^^^^^^^
           = help: write `x = x.reshape(...)`
        """,
    )


def test_deleting_elements() -> None:
    check_error(
        lambda: ml.compile(delete)(np.ones(4)),
        """
        mlirml.ShapeError: cannot delete array elements
          --> test_attribute.py:41:9 (delete)
            |
         41 |     del x[0]
            |         ^^^^
           = help: join what is left: `np.concatenate([x[:i], x[i + 1:]])`
        """,
    )


def test_an_unknown_attribute_is_missing_as_in_numpy() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'foo'"):
        ml.compile(unknown)(np.ones(4))
    with pytest.raises(AttributeError, match="foo"):
        ml.compile(assign_unknown)(np.ones(4))
    assert ml.compile(lambda x: x + hasattr(x, "foo"))(np.ones(1)) == 1.0

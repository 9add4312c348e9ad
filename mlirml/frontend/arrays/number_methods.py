"""Methods of Python's and NumPy's numbers that arrays do not have, and those of arrays that return Python's numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.sizes import is_dynamic_shape
from mlirml.errors import ShapeError
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.iteration_limits import MOST_COPIES

if TYPE_CHECKING:
    from mlirml.frontend.arrays.array import Traced

NUMPY_TYPES = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64, "c": np.complex128}
PYTHON_TYPES = {"b": bool, "i": int, "f": float, "c": complex}


def number_method(number: Traced, name: str) -> Callable[[], Any] | None:
    """The method of a number of the program, or None for one that is not compiled."""
    kind = number.dtype.kind
    if name == "is_integer" and kind in "iuf":
        return lambda: np.logical_and(np.isfinite(number), np.equal(np.floor(number), number))
    if name == "bit_count" and kind in "biu" and has_method(number, name):
        return lambda: _python_integer(number, np.bitwise_count(number))
    if name == "bit_length" and kind in "bi" and has_method(number, name):
        return lambda: _python_integer(number, _bit_length(number))
    return None


def has_method(number: Traced, name: str) -> bool:
    """True if the number would have such an attribute in Python."""
    types = PYTHON_TYPES if number._is_weak() else NUMPY_TYPES
    return hasattr(types.get(number.dtype.kind, np.generic), name)


def python_values(array: Traced, name: str) -> Callable[..., Any] | None:
    """`array.item` or `array.tolist`, whose numbers are Python's; None where these have no such type, or are many."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if is_dynamic_shape(array.shape) or (kind not in PYTHON_TYPES and not (kind == "u" and size < 8)):
        return None
    if name == "tolist":
        return partial(_listed, array) if array.size <= MOST_COPIES else None
    return partial(_item, array)


def _item(array: Traced, *index: Any) -> Any:
    if len(index) == 1:
        index = index[0] if isinstance(index[0], tuple) else (index[0],)
        array, index = (array.reshape(-1), index) if len(index) == 1 else (array, index)
    with at_user_line():
        if not index and array.size != 1:
            raise ShapeError("can only convert an array of size 1 to a Python scalar")
        element: Any = array[index] if index else array.reshape(())
        if element.ndim:
            raise ShapeError("incorrect number of indices for array")
    return _python_number(array, element, NUMPY_TYPES["i" if array.dtype.kind == "u" else array.dtype.kind])


def _listed(array: Traced) -> Any:
    return [_listed(array[i]) for i in range(array.shape[0])] if array.ndim else _item(array)


def _bit_length(number: Traced) -> Any:
    """The position of the highest one, which is found by halves."""
    rest = np.abs(number.astype(np.int64)).astype(np.uint64)
    length: Any = 0
    for half in (32, 16, 8, 4, 2, 1):
        high = rest >> np.uint64(half)
        has_high = high > 0
        length = length + half * has_high
        rest = np.where(has_high, high, rest)
    return length + rest.astype(np.int64)


def _python_integer(number: Traced, value: Any) -> Any:
    return _python_number(number, value, np.int64)


def _python_number(array: Traced, value: Any, dtype: Any) -> Any:
    """A number as one of Python's, which yields in promotion."""
    result = value.astype(dtype)
    return type(array)(array._trace, Cell(replace(result._read(), weak=True)), scalar=True)

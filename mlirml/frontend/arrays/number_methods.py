"""Methods of Python's and NumPy's numbers that arrays do not have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.frontend.arrays.tracer import Cell

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
    result = value.astype(np.int64)
    return type(number)(number._trace, Cell(replace(result._read(), weak=True)), scalar=True)

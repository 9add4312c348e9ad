"""Truth values that are Python's or NumPy's depending on data, of which some operations have two meanings.

s = True
for v in x:                     `v > 0` is NumPy's, so that `s is True` is false after it
    if v > 2:
        s = v > 0
return s is True, s + s         refused: True and 2, or False and True
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.errors import UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.carry import MIXED
from mlirml.ir.text.builder import Value


def is_mixed(x: Any) -> bool:
    """True for a truth value that is one of Python's or of NumPy's."""
    return isinstance(x, Traced) and isinstance(x._cell.value, Value) and x._cell.value.weak is MIXED


def refused(operation: str) -> UnsupportedSyntaxError:
    """The error for an operation on one."""
    return UnsupportedSyntaxError(
        f"{operation} of a truth value that is one of Python's or of NumPy's, depending on data",
        help="make all of them Python's, `s = bool(x > 0)`, or compare with `==`",
    )


def not_mixed(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands of arithmetic, in which a truth value of Python's is an integer, and two of NumPy's give another."""
    if any(map(is_mixed, operands)) and all(isinstance(x, bool) or _dtype(x) == np.bool_ for x in operands):
        raise refused("arithmetic")
    return operands


def _dtype(x: Any) -> Any:
    return getattr(x, "dtype", None)

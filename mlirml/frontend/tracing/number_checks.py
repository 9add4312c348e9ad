"""Checks that arithmetic on Python's numbers fails where Python's does: zero divisors, negative counts of shifts.

NumPy's arrays and scalars have results for these, 0 or an infinity; the numbers of Python raise an exception.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.config import config
from mlirml.errors import DTypeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.frames import is_in_library
from mlirml.ir.text import control
from mlirml.ir.text.builder import Check

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

_DIVISIONS: dict[np.ufunc, str] = {
    np.divide: "division by zero",
    np.floor_divide: "integer division or modulo by zero",
    np.remainder: "integer modulo by zero",
}
_ORDERS = (np.less, np.less_equal, np.greater, np.greater_equal)
_SHIFTS = (np.left_shift, np.right_shift)


def check_numbers(trace: Trace, ufunc: np.ufunc, operands: tuple[Any, ...]) -> None:
    """Let the call fail if an operator on Python's numbers has an operand for which Python has no result.

    Functions of the library have results where NumPy's and SciPy's have. Raises ZeroDivisionError or ValueError when
    the program runs, and a DTypeError for comparisons of complex numbers.
    """
    if ufunc in _ORDERS and any(map(_is_complex, operands)):
        raise DTypeError("Python's complex numbers have no order", help="compare `abs(z)`, or the parts one by one")
    if not config.checks or is_in_library():
        return
    if ufunc in _DIVISIONS:
        message = _DIVISIONS[ufunc] if all(map(_is_integer, operands)) else "division by zero"
        _check(trace, np.not_equal, operands[1], ZeroDivisionError(message))
    elif ufunc is np.power and type(operands[1]) in (int, float) and operands[1] < 0:
        _check(trace, np.not_equal, operands[0], ZeroDivisionError("0.0 cannot be raised to a negative power"))
    elif ufunc in _SHIFTS:
        _check(trace, np.greater_equal, operands[1], ValueError("negative shift count"))


def _check(trace: Trace, holds: np.ufunc, x: Any, error: Exception) -> None:
    """Check that a comparison of a number with 0 holds, unless that is certain."""
    if isinstance(x, (bool, int, float, complex)):
        if holds(x, 0):
            return
        condition = trace.builder.scalar(False, np.dtype(np.bool_))
    elif not isinstance(x, Traced) or _is_certain(trace, holds, x):
        return
    else:
        truth = trace.call_operator(holds, (x, 0))._read()
        condition = control.to_scalar(trace.builder, truth)
    trace.builder.check(condition, Check("MlirmlError", str(error), raised=error))


def _is_certain(trace: Trace, holds: np.ufunc, x: Traced) -> bool:
    form = trace.integers.of(x)
    if form is None:
        return False
    least, greatest = trace.integers.limits(form)
    if least is not None and least >= (1 if holds is np.not_equal else 0):
        return True
    return holds is np.not_equal and greatest is not None and greatest < 0


def _is_complex(x: Any) -> bool:
    return isinstance(x, complex) or (isinstance(x, Traced) and x.dtype.kind == "c")


def _is_integer(x: Any) -> bool:
    return isinstance(x, int) or (isinstance(x, Traced) and x.dtype.kind in "biu")

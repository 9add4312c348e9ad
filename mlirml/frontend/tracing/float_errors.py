"""`np.errstate(invalid="raise")` in compiled functions: operations in the block fail the call as NumPy's would.

NumPy reads the processor's flags; here the conditions are derived from the results: a NaN where no operand has one is
invalid, an infinity of finite operands a division by zero or an overflow, depending on the operation. Underflow is not
detected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.frontend.arrays.array import Traced
from mlirml.ir.text.builder import Check
from mlirml.ops.registry import OpDef

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

_DIVIDES = frozenset([
    "divide", "floor_divide", "remainder", "fmod", "divmod", "reciprocal", "log", "log2", "log10", "log1p", "arctanh",
    "power", "float_power",
])  # fmt: skip


def check(trace: Trace, record: OpDef, args: Sequence[Any], result: Any) -> None:
    """Emit checks for the error conditions that NumPy's error state raises now."""
    now, outside = np.geterr(), trace.errors
    conditions = [
        condition for condition in ("invalid", "divide", "over") if now[condition] == "raise" != outside[condition]
    ]
    if record.kind == "view" or not conditions:
        return
    trace.errors, before = now, trace.errors  # operations of the check itself are not checked
    try:
        for part in _arrays(result):
            for condition in conditions:
                _check(trace, record, condition, [*_arrays(args)], part)
    finally:
        trace.errors = before


def _check(trace: Trace, record: OpDef, condition: str, operands: list[Any], result: Any) -> None:
    found: Any
    divides = record.name in _DIVIDES
    if result.dtype.kind not in "fc":
        if condition != "divide" or not divides or len(operands) < 2:
            return
        found = np.any(operands[1] == 0)
    elif condition == "invalid":
        found = np.any(np.isnan(result))
        for x in operands:
            if _is_float(x):
                found = np.logical_and(found, np.logical_not(np.any(np.isnan(x))))
    elif (condition == "divide") != divides:
        return
    else:
        bad, spread = np.isinf(result), record.kind == "elementwise"
        for x in operands:
            if _is_float(x):
                finite = np.isfinite(x)
                bad = np.logical_and(bad, finite if spread else np.all(finite))
        found = np.any(bad)
    if not isinstance(found, Traced):
        if found:
            raise FloatingPointError(_message(condition, record))
        return
    b = trace.builder
    fine: Any = np.logical_not(found)
    b.check(b.element(fine._read()), Check("FloatOperationError", _message(condition, record)))


def _message(condition: str, record: OpDef) -> str:
    what = {"invalid": "invalid value", "divide": "divide by zero", "over": "overflow"}[condition]
    return f"{what} encountered in {record.name}"


def _is_float(x: Any) -> bool:
    return np.asarray(x).dtype.kind in "fc" if not isinstance(x, Traced) else x.dtype.kind in "fc"


def _arrays(tree: Any) -> Iterator[Any]:
    """The arrays and numbers in arguments or results."""
    if isinstance(tree, (list, tuple)):
        for x in tree:
            yield from _arrays(x)
    elif isinstance(tree, (Traced, np.ndarray, np.generic, int, float, complex)):
        yield tree

"""Ranges of integers computed from loop variables and constants, by which range checks can be omitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.ir.text.builder import Value

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace

Range = tuple[int, int]
_LIMITS = np.iinfo(np.int64)


def note_range(trace: Trace, ufunc: np.ufunc, operands: tuple[Any, ...], result: Value) -> None:
    """Record the range of the result of an operator on Python integers, if it is bounded."""
    if result.shape or result.dtype != np.int64:
        return
    found = _combined(ufunc, [range_of(trace, x) for x in operands])
    if found is not None and _LIMITS.min <= found[0] and found[1] <= _LIMITS.max:
        trace.builder.known_ranges[result.name] = found


def range_of(trace: Trace, x: Any) -> Range | None:
    """The smallest and the largest value that an operand may have, or None."""
    if type(x) is int:
        return x, x
    value = getattr(getattr(x, "_cell", None), "value", None)
    if isinstance(value, Value) and not x._views:
        return trace.builder.known_ranges.get(value.name)
    return None


def _combined(ufunc: np.ufunc, ranges: list[Range | None]) -> Range | None:
    last = ranges[-1]
    if ufunc is np.remainder and last is not None and last[0] == last[1] > 0:
        return 0, last[0] - 1
    if None in ranges:
        return None
    first, *rest = ((low, high) for low, high in (r for r in ranges if r is not None))
    if ufunc is np.negative:
        return -first[1], -first[0]
    if not rest:
        return None
    (low, high), ((other_low, other_high),) = first, rest
    if ufunc is np.add:
        return low + other_low, high + other_high
    if ufunc is np.subtract:
        return low - other_high, high - other_low
    if ufunc is np.multiply:
        products = [a * b for a in (low, high) for b in (other_low, other_high)]
        return min(products), max(products)
    if ufunc is np.floor_divide and other_low == other_high and other_low > 0:
        return low // other_low, high // other_low
    return None

"""`np.c_` and `np.r_`, and NumPy's functions that apply a user's function to slices of an array."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.errors import ShapeError, UnsupportedSyntaxError
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.tracing.array import Traced
from mlirml.ops import promotion

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace


class Join:
    """`np.c_` and `np.r_`: columns side by side, and rows or vectors joined."""

    def __init__(self, trace: Trace, name: str) -> None:
        self._trace, self._name = trace, name

    def __getitem__(self, items: Any) -> Any:
        with at_user_line():
            parts: list[Any] = list(items) if isinstance(items, tuple) else [items]
            if any(isinstance(part, (str, np.matrix)) for part in parts):
                raise UnsupportedSyntaxError(
                    f"`np.{self._name}` with text or matrices is not compiled",
                    help="join with `np.concatenate` or `np.stack`",
                )
            trace = self._trace
            parts = [np.r_[part] if isinstance(part, slice) else part for part in parts]
            weak = [np.isscalar(part) or (isinstance(part, Traced) and part._is_weak()) for part in parts]
            parts = [part if is_weak else trace.array(part, copy=False) for part, is_weak in zip(parts, weak)]
            dtype = promotion.result_type(*map(trace.lift, parts))
            arrays = [trace.array(part, copy=False).astype(dtype, copy=False) for part in parts]
            if self._name == "c_":
                columns = [a.reshape(-1, 1) if a.ndim < 2 else a for a in arrays]
                return trace.call_function(np.concatenate, (columns,), {"axis": -1})
            return trace.call_function(np.concatenate, ([a if a.ndim else a.reshape(1) for a in arrays],), {})


def piecewise(trace: Trace, x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
    """`np.piecewise`: under each condition, the result of its function for the elements there."""
    from mlirml.frontend.transforms.nested_calls import callee_in_trace

    x = trace.array(x, copy=False)
    is_array = isinstance(condlist, (Traced, np.ndarray))
    one = condlist.ndim < 2 if is_array else isinstance(condlist[0], (bool, np.bool_))
    several = [condlist] if one else condlist
    conditions = [trace.array(condition, copy=False).astype(bool, copy=False) for condition in several]
    if len(funclist) == len(conditions) + 1:
        met: Any = conditions[0]
        for condition in conditions[1:]:
            met = met | condition
        conditions.append(~met)
    if len(funclist) != len(conditions):
        raise ShapeError(f"piecewise: {len(conditions)} conditions for {len(funclist)} functions")
    result = trace.call_function(np.zeros_like, (x,), {})
    for condition, function in zip(conditions, funclist):
        is_value = not callable(function)
        result[condition] = function if is_value else callee_in_trace(function, trace)(x[condition], *args, **kwargs)
    return result


def apply_along_axis(trace: Trace, func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """`np.apply_along_axis`: a function of each row along an axis, as one batch."""
    from mlirml.frontend.transforms.derivatives import trace_vmap
    from mlirml.frontend.transforms.nested_calls import callee_in_trace

    array: Any = trace.array(arr, copy=False)
    if not -array.ndim <= axis < array.ndim:
        raise ShapeError(f"apply_along_axis: axis {axis} of an array with {array.ndim} dimensions")
    dim, function = axis % array.ndim, callee_in_trace(func1d, trace)

    def of_row(row: Traced) -> Any:
        found: Any = trace.array(function(row, *args, **kwargs), copy=False)
        return found

    if array.ndim == 1:
        return of_row(array)
    rows: Any = trace.call_function(np.moveaxis, (array, dim, -1), {})
    kept = rows.shape[:-1]
    rows = rows.reshape(math.prod(kept), rows.shape[-1])
    found = trace_vmap(trace, of_row, (rows,), 0, 0, None)
    rest = found.ndim - 1
    whole = found.reshape(*kept, *found.shape[1:])
    sources, targets = range(len(kept), len(kept) + rest), range(dim, dim + rest)
    return trace.call_function(np.moveaxis, (whole, tuple(sources), tuple(targets)), {})


FUNCTIONS: dict[Any, Callable[..., Any]] = {np.piecewise: piecewise, np.apply_along_axis: apply_along_axis}

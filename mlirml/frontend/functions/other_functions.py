"""NumPy's functions that are no operations: creation, comparisons of whole arrays, queries, and calls of functions."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.errors import DTypeError, ShapeError
from mlirml.frontend.arrays.array import Traced, check_device, is_complex_object
from mlirml.frontend.functions import data_sizes, index_functions, linear_algebra
from mlirml.frontend.tracing.trace import Trace, keeps_c_order


def _like(
    trace: Trace, function: Callable[..., Any], a: Any, dtype: Any = None, shape: Any = None, **fill: Any
) -> Traced:
    shape = np.shape(a) if shape is None else shape
    dtype = a.dtype if dtype is None else dtype
    value = {"zeros_like": 0, "ones_like": 1, "empty_like": 0}.get(function.__name__)
    result = trace.filled(shape, fill.get("fill_value") if value is None else value, dtype)
    result._cell.c_order = keeps_c_order(a)
    return result


def _at_least(rank: int) -> Callable[..., Any]:
    def function(trace: Trace, *arrays: Any) -> Any:
        results = []
        for a in arrays:
            a = a if isinstance(a, Traced) else trace.array(a, copy=False)
            missing = max(rank - a.ndim, 0)
            results.append(a.reshape((1,) * missing + a.shape) if missing else a)
        return results[0] if len(results) == 1 else tuple(results)

    return function


def _copyto(trace: Trace, dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if not isinstance(dst, Traced):
        raise trace.real_array_error()
    given = src.dtype if isinstance(src, (Traced, np.ndarray, np.generic)) else np.asarray(src).dtype
    number = type(src) is int or (isinstance(src, Traced) and src._is_weak() and given.kind == "i")
    fits = number and dst.dtype.kind == "u" and casting == "same_kind"  # as a store, which checks the value
    if not fits and not np.can_cast(given, dst.dtype, casting):  # type: ignore[arg-type]
        raise DTypeError(f"copyto: cannot cast {given} to {dst.dtype} with casting={casting!r}")
    if where is True:
        dst._assign(src)
    else:
        dst._assign_where(where, src)


def _array_equal(trace: Trace, a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    if np.shape(a1) != np.shape(a2):
        return False
    same = trace.call_function(np.equal, (a1, a2), {})
    if equal_nan:
        nans = [trace.call_function(np.isnan, (a,), {}) for a in (a1, a2)]
        same = trace.call_function(np.logical_or, (same, trace.call_function(np.logical_and, nans, {})), {})
    return trace.call_function(np.all, (same,), {})


def _array_equiv(trace: Trace, a1: Any, a2: Any) -> Any:
    try:
        np.broadcast_shapes(np.shape(a1), np.shape(a2))
    except ValueError:
        return False
    return trace.call_function(np.all, (trace.call_function(np.equal, (a1, a2), {}),), {})


def _allclose(trace: Trace, a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    close = trace.call_function(np.isclose, (a, b), {"rtol": rtol, "atol": atol, "equal_nan": equal_nan})
    return trace.call_function(np.all, (close,), {})


def _piecewise(trace: Trace, x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
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


def _apply_along_axis(trace: Trace, func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """`np.apply_along_axis`: a function of each row along an axis, as one batch."""
    from mlirml.frontend.transforms.derivatives import trace_vmap
    from mlirml.frontend.transforms.nested_calls import callee_in_trace

    array: Any = trace.array(arr, copy=False)
    if not -array.ndim <= axis < array.ndim:
        raise ShapeError(f"apply_along_axis: axis {axis} of an array with {array.ndim} dimensions")
    dim, function = axis % array.ndim, callee_in_trace(func1d, trace)

    def of_row(row: Traced) -> Any:
        return trace.array(function(row, *args, **kwargs), copy=False)

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


def _apply_over_axes(trace: Trace, func: Callable[..., Any], a: Any, axes: Any) -> Any:
    """`np.apply_over_axes`: a function of an array and an axis, for one axis after the other."""
    from mlirml.frontend.transforms.nested_calls import callee_in_trace

    function, found = callee_in_trace(func, trace), trace.array(a, copy=False)
    rank = found.ndim
    for axis in np.atleast_1d(axes).tolist():
        place = axis + rank if axis < 0 else axis
        after: Any = trace.array(function(found, place), copy=False)
        if after.ndim == rank - 1:
            after = trace.call_function(np.expand_dims, (after, place), {})
        if after.ndim != rank:
            raise ShapeError("apply_over_axes: the function keeps the dimensions of its array, or all but the axis")
        found = after
    return found


FACTORIZATIONS = (
    np.linalg.eig, np.linalg.eigh, np.linalg.eigvals, np.linalg.eigvalsh, np.linalg.lstsq, np.linalg.pinv,
    np.linalg.qr, np.linalg.svd, np.linalg.svdvals,
)  # fmt: skip
"""NumPy's functions in `frontend/functions/factorizations.py`."""
TRANSFORMS = tuple(getattr(np.fft, name) for name in np.fft.__all__ if name not in ("fftfreq", "rfftfreq"))
"""NumPy's functions in `frontend/functions/fourier.py`."""


def _on_demand(module: str, name: str) -> Callable[..., Any]:
    """A function of a module of this folder, which is imported at the first call."""

    def call(trace: Trace, *args: Any, **kwargs: Any) -> Any:
        functions = importlib.import_module(f"mlirml.frontend.functions.{module}")
        return getattr(functions, name)(trace, *args, **kwargs)

    return call


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.shape: lambda trace, a: a.shape,
    np.ndim: lambda trace, a: a.ndim,
    np.size: lambda trace, a, axis=None: a.size if axis is None else a.shape[axis],
    np.copy: lambda trace, a, order="K", subok=False: a._copy(c_order=a._keeps_c_order()),
    np.copyto: _copyto,
    **index_functions.FUNCTIONS,
    **data_sizes.FUNCTIONS,
    **linear_algebra.FUNCTIONS,
    **{function: _on_demand("factorizations", function.__name__) for function in FACTORIZATIONS},
    **{function: _on_demand("fourier", function.__name__) for function in TRANSFORMS},
    np.piecewise: _piecewise,
    np.apply_along_axis: _apply_along_axis,
    np.apply_over_axes: _apply_over_axes,
    np.tril_indices_from: lambda trace, arr, k=0: np.tril_indices_from(_of_shape(arr), k),
    np.triu_indices_from: lambda trace, arr, k=0: np.triu_indices_from(_of_shape(arr), k),
    np.diag_indices_from: lambda trace, arr: np.diag_indices_from(_of_shape(arr)),
    np.common_type: lambda trace, *arrays: np.common_type(*map(_of_shape, arrays)),
    np.real: lambda trace, val: val.real,
    np.imag: lambda trace, val: val.imag,
    np.zeros_like: lambda trace, *a, **k: _like(trace, np.zeros_like, *a, **_creation(k)),
    np.ones_like: lambda trace, *a, **k: _like(trace, np.ones_like, *a, **_creation(k)),
    np.empty_like: lambda trace, *a, **k: _like(trace, np.empty_like, *a, **_creation(k)),
    np.full_like: lambda trace, a, fill_value, **k: _like(
        trace, np.full_like, a, fill_value=fill_value, **_creation(k)
    ),
    np.atleast_1d: _at_least(1),
    np.atleast_2d: _at_least(2),
    np.broadcast_arrays: lambda trace, *a, subok=False: tuple(
        trace.call_function(np.broadcast_to, (x, np.broadcast_shapes(*map(np.shape, a))), {}) for x in a
    ),
    np.array_equal: _array_equal,
    np.allclose: _allclose,
    np.matrix_transpose: lambda trace, x: x.mT,
    np.linalg.matrix_transpose: lambda trace, x: x.mT,
    np.astype: lambda trace, x, dtype, copy=True, device=None: x.to_device(device).astype(dtype, copy=copy),
    np.linalg.matmul: lambda trace, x1, x2: trace.call_ufunc(np.matmul, "__call__", (x1, x2), {}),
    np.linalg.outer: lambda trace, x1, x2: trace.call_function(np.outer, (x1, x2), {}),
    np.linalg.cross: lambda trace, x1, x2, axis=-1: trace.call_function(np.cross, (x1, x2), {"axis": axis}),
    np.linalg.tensordot: lambda trace, x1, x2, axes=2: trace.call_function(np.tensordot, (x1, x2, axes), {}),
    np.linalg.diagonal: lambda trace, x, offset=0: trace.call_function(np.diagonal, (x, offset, -2, -1), {}),
    np.linalg.trace: lambda trace, x, offset=0, dtype=None: trace.call_function(
        np.trace, (x, offset, -2, -1, dtype), {}
    ),
    np.array_equiv: lambda trace, a1, a2: _array_equiv(trace, a1, a2),
    np.i0: lambda trace, x: importlib.import_module("mlirml.special").i0(x),
    np.iscomplexobj: lambda trace, x: is_complex_object(x),
    np.isrealobj: lambda trace, x: not is_complex_object(x),
    np.result_type: lambda trace, *a: np.result_type(*map(_dtype_of, a)),
    np.can_cast: lambda trace, from_, to, casting="safe": np.can_cast(_dtype_of(from_), _dtype_of(to), casting),
    np.reshape: lambda trace, a, /, shape, order="C", copy=None: trace.array(a, copy=False).reshape(
        shape, order=order, copy=copy
    ),
    np.may_share_memory: lambda trace, a, b, max_work=None: getattr(a, "_cell", a) is getattr(b, "_cell", b),
}


def _of_shape(x: Any) -> Any:
    """A real array of the shape and dtype of a traced one, in the memory of one element."""
    return np.broadcast_to(np.zeros((), x.dtype), x.shape) if isinstance(x, Traced) else x


def _dtype_of(x: Any) -> Any:
    return x.dtype if isinstance(x, Traced) else x


def _creation(options: dict[str, Any]) -> dict[str, Any]:
    """Drop the arguments of creation functions that choose a memory layout or device."""
    check_device(options.get("device"))
    return {k: v for k, v in options.items() if k not in ("order", "subok", "device", "like")}

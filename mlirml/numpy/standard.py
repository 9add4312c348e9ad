"""Functions of the array API standard 2024.12 whose signature or result differs from NumPy's.

https://data-apis.org/array-api/2024.12. On traced arrays each of them is the operation of that name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.frontend.arrays.array import Traced
from mlirml.runtime.array import Array

__array_api_version__ = "2024.12"


@dataclass(frozen=True)
class FloatLimits:
    """The limits of a floating-point dtype as Python numbers; for a complex one, of its parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


@dataclass(frozen=True)
class IntegerLimits:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: Any


def finfo(type: Any, /) -> FloatLimits:
    """The limits of a floating-point or complex dtype, or of an array's."""
    found = np.finfo(_dtype(type))
    eps, largest, least, normal = (float(x) for x in (found.eps, found.max, found.min, found.smallest_normal))
    return FloatLimits(found.bits, eps, largest, least, normal, np.dtype(found.dtype))


def iinfo(type: Any, /) -> IntegerLimits:
    """The limits of an integer dtype, or of an array's."""
    found = np.iinfo(_dtype(type))
    return IntegerLimits(found.bits, int(found.max), int(found.min), found.dtype)


def _dtype(type: Any) -> np.dtype:
    return np.dtype(getattr(type, "dtype", type) if isinstance(type, (np.ndarray, np.generic, Traced, Array)) else type)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """`x.astype(dtype)`."""
    _check_device(device)
    return x.astype(dtype, copy=copy)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """The elements, those below `min` or above `max` replaced by it."""
    if min is None and max is None:
        return +x if x.dtype != np.bool_ else x.copy()
    return np.clip(x, min, max)


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Any]:
    """The coordinate arrays of a grid, one for each 1-d array: a list."""
    grid: Any = np.meshgrid
    return list(grid(*arrays, indexing=indexing))


def broadcast_arrays(*arrays: Any) -> list[Any]:
    """The arrays broadcast against one another: a list."""
    return list(np.broadcast_arrays(*arrays))


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The elements in order along an axis; NaN is larger than every number."""
    return _in_order(np.sort, x, axis, descending)


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The positions (i64) that put an axis in order; equal elements keep their order, in descending order too."""
    return _in_order(np.argsort, x, axis, descending)


def _in_order(function: Callable[..., Any], x: Any, axis: int, descending: bool) -> Any:
    if isinstance(x, Traced):
        trace: Any = x._trace
        return trace.call_function(function, (x,), {"axis": axis, "stable": True, "descending": descending})
    if not descending:
        return function(x, axis=axis, stable=True)
    turned = np.flip(np.argsort(np.flip(x, axis), axis=axis, stable=True), axis)
    order = np.shape(x)[axis] - 1 - turned
    return (
        order
        if function is np.argsort
        else np.take_along_axis(x if isinstance(x, Array) else np.asarray(x), order, axis)
    )


def matrix_transpose(x: Any, /) -> Any:
    """The last two dimensions exchanged."""
    return x.mT if isinstance(x, (Traced, Array)) else np.swapaxes(x, -1, -2)


def __array_namespace_info__() -> Any:
    """The namespace described: its dtypes, its defaults, its device ("cpu": arrays are NumPy's)."""
    return np.__array_namespace_info__()


def _check_device(device: Any) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f'the device of a NumPy array is "cpu", got {device!r}')

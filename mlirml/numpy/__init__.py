"""NumPy's functions under their array-API names, for traced and real arrays alike: the standard's version 2024.12.

Compiled functions may be written with `numpy` itself; this namespace adds the array-API spellings (`acos`, `concat`,
`permute_dims`, `astype`, ...) and works where a function is reached through `from mlirml.numpy import zeros`.
On real arrays outside of a trace every function is NumPy's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.frontend.arrays.at import at  # noqa: F401
from mlirml.frontend.current import current_trace
from mlirml.frontend.namespace.numpy_namespace import COMPUTED, Namespace
from mlirml.numpy import fft, linalg
from mlirml.numpy.standard import (  # noqa: F401
    __array_api_version__,
    __array_namespace_info__,
    argsort,
    astype,
    broadcast_arrays,
    clip,
    finfo,
    iinfo,
    matrix_transpose,
    meshgrid,
    sort,
)
from mlirml.ops import OPS, OpDef
from mlirml.runtime.array import Array

# Array-API names of functions that NumPy 2.0 knows by another name or not at all.
_ALIASES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2",
    "atanh": "arctanh", "pow": "power", "concat": "concatenate", "permute_dims": "transpose", "abs": "absolute",
    "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "bitwise_invert": "invert",
}  # fmt: skip
_CREATION = ("zeros", "ones", "empty", "full", "array", "asarray", "from_dlpack", *COMPUTED)
_KEEPING = ("array", "asarray", "from_dlpack")
_OTHER = (
    "zeros_like", "ones_like", "empty_like", "full_like", "shape", "ndim", "size", "copy", "atleast_1d", "atleast_2d",
    "select", "choose", "put", "put_along_axis", "putmask", "fill_diagonal", "ix_",
    "array_equal", "allclose", "result_type", "can_cast", "broadcast_shapes", "isdtype",
    "nonzero",
    "real", "imag", "conj", "iscomplexobj", "isrealobj",
    "unique_all", "unique_counts", "unique_inverse", "unique_values",
)  # fmt: skip
_OWN = (
    "argsort", "astype", "at", "broadcast_arrays", "clip", "finfo", "iinfo", "matrix_transpose", "meshgrid",
    "sort",
)  # fmt: skip
_CONSTANTS = (
    "pi", "e", "inf", "nan", "newaxis", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip


def _numpy_name(name: str) -> str:
    return _ALIASES.get(name, name)


def _dispatcher(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        if trace is not None and name in _CREATION:
            return getattr(Namespace(trace), name)(*args, **kwargs)
        if name in _KEEPING and args and isinstance(args[0], Array):
            return _array_again(args[0], *args[1:], **kwargs)
        return function(*args, **kwargs)

    record = OPS.get(name)
    if record is not None and record.reference is function and _is_extension(record):
        call = _extension(record)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = record.doc if record is not None else function.__doc__
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call


def _array_again(x: Any, dtype: Any = None, *, device: Any = None, copy: Any = None, **options: Any) -> Any:
    """`asarray` of an `Array`, which stays one, as it does not change."""
    if device is not None and device != x.device:
        x = x.to(device)
    return x if dtype is None or np.dtype(dtype) == x.dtype else x.astype(dtype)


def _is_extension(record: OpDef) -> bool:
    return (record.reference.__module__ or "").startswith("mlirml.")


def _extension(record: OpDef) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        if trace is not None:
            return trace.call_function(record.reference, args, kwargs)
        gathering: Any = next((x for x in (*args, *kwargs.values()) if isinstance(x, Array)), None)
        if gathering is not None:
            return gathering.__array_function__(record.reference, (Array,), args, kwargs)
        return record.reference(*args, **kwargs)

    return call


def _build() -> dict[str, Any]:
    names = {*OPS, *_ALIASES, *_CREATION, *_OTHER}
    functions = {n: _dispatcher(n, getattr(np, _numpy_name(n))) for n in sorted(names) if hasattr(np, _numpy_name(n))}
    functions |= {n: _dispatcher(n, r.reference) for n, r in OPS.items() if n not in functions}
    for name in _OWN:
        functions.pop(name, None)
    return functions | {n: getattr(np, n) for n in _CONSTANTS if hasattr(np, n)}


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


_NAMES = _build()
globals().update(_NAMES)
__all__ = [*_NAMES, *_OWN, "fft", "linalg"]  # noqa: PLE0604

"""Python's own functions of numbers, for numbers of the program: `int`, `max`, `math.exp` and so on."""

from __future__ import annotations

import builtins
import math
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mlirml.capture import advice
from mlirml.capture.array import Cell, Traced
from mlirml.capture.frames import at_user_line
from mlirml.capture.indexing import is_varying
from mlirml.capture.loops.ranges import traced_enumerate, traced_range, traced_reversed, traced_zip
from mlirml.capture.trace import Trace
from mlirml.errors import DTypeError, UnsupportedSyntaxError

_Function = Callable[..., Any]
_I64, _F64, _BOOL = (np.dtype(name) for name in ("int64", "float64", "bool"))


def replaced(trace: Trace, callee: Any) -> Any:
    """What to call for a function: the function itself, or where it is of numbers one that takes traced ones too."""
    if not isinstance(callee, (types.BuiltinFunctionType, type)):
        return callee
    own = _OWN.get(callee)
    if own is None and isinstance(callee, type) and issubclass(callee, np.generic):
        own = _scalar(callee)
    if own is None:
        return callee

    def call(*args: Any, **kwargs: Any) -> Any:
        if callee not in _ITERATORS and not any(isinstance(x, Traced) or is_varying(x) for x in args):
            return callee(*args, **kwargs)
        with at_user_line():
            return own(trace, *args, **kwargs)

    return call


def python_number(trace: Trace, x: Any, dtype: np.dtype) -> Any:
    """A number as Python's bool, int or float, which gives way in promotion."""
    if isinstance(x, Traced):
        known = x._known()
        if known is not None and known.shape == ():
            return np.dtype(dtype).type(known[()]).item()
        if x.size != 1:
            raise DTypeError(f"only one number can be converted, got {x._describe()}")
        if x.dtype.kind == "c":
            raise DTypeError(f"cannot convert {x._describe()} to a real number", help="take `x.real` or `abs(x)`")
        value = trace.builder.cast(trace.builder.reshape(x._read(), ()), dtype)
        return Traced(trace, Cell(replace(value, weak=True)), scalar=True)
    return dtype.type(x).item()


def _scalar(kind: type[np.generic]) -> _Function:
    """`np.float32(x)` and its like: a NumPy scalar of a number."""

    def function(trace: Trace, x: Any) -> Any:
        found = x.astype(kind)
        return Traced(trace, Cell(found._contents()), scalar=True) if not found.shape else found

    return function


def _round(trace: Trace, x: Any, digits: Any = None) -> Any:
    if digits is not None:
        return trace.call_function(np.round, (x, digits), {})
    if x.dtype.kind in "iub":
        return python_number(trace, x, _I64)
    return python_number(trace, trace.call_ufunc(np.rint, "__call__", (x,), {}), _I64)


def _extreme(comparison: np.ufunc) -> _Function:
    def function(trace: Trace, *args: Any) -> Any:
        if len(args) == 1:
            (items,) = args
            if is_varying(items) and items.ndim == 1:
                return items.max() if comparison is np.greater else items.min()
            if isinstance(items, Traced) and items.ndim != 1:
                raise DTypeError(
                    f"the largest or smallest item of {items._describe()}", help="use `np.max` or `np.min`"
                )
            args = tuple(items)
        result = args[0]
        for x in args[1:]:
            result = _either(trace, trace.call_operator(comparison, (x, result)), x, result)
        return result

    return function


def _either(trace: Trace, condition: Any, one: Any, other: Any) -> Any:
    return trace.hooks.select(condition, lambda: one, lambda: other)


def _sum(trace: Trace, items: Any, start: Any = 0) -> Any:
    if is_varying(items):
        return start + items.sum()
    for item in items:
        start = start + item
    return start


def _math(ufunc: Any, result: np.dtype = _F64) -> _Function:
    """A function of `math`: it computes in double precision and gives a Python number."""

    def function(trace: Trace, *args: Any) -> Any:
        numbers = [python_number(trace, x, _F64) for x in args]
        return python_number(trace, ufunc(*numbers), result)

    return function


def _hypot(trace: Trace, *args: Any) -> Any:
    if len(args) == 2:
        return _math(np.hypot)(trace, *args)
    total: Any = 0.0
    for x in args:
        number = python_number(trace, x, _F64)
        total = total + number * number
    return python_number(trace, np.sqrt(total), _F64)


def _log(trace: Trace, x: Any, base: Any = None) -> Any:
    found = _math(np.log)(trace, x)
    return found if base is None else found / _math(np.log)(trace, base)


def _whole(trace: Trace, x: Any) -> Any:
    """`math.floor` and its like of an integer."""
    return python_number(trace, x, _I64)


def _to_whole(ufunc: np.ufunc) -> _Function:
    def function(trace: Trace, x: Any) -> Any:
        return _whole(trace, x) if x.dtype.kind in "iub" else _math(ufunc, _I64)(trace, x)

    return function


def _text(function: Callable[..., str]) -> _Function:
    """`str` and its like, which need the number itself."""

    def made(trace: Trace, x: Any, *specification: str) -> str:
        known = x._convert(f"`{function.__name__}()`", advice.on_conversion, advice.PRINT)
        return function(known[()] if x._scalar else known, *specification)

    return made


def _fabs(trace: Trace, x: Any) -> Any:
    return abs(python_number(trace, x, _F64))


_SAME = (
    "sqrt", "exp", "expm1", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "fmod", "copysign",
    "degrees", "radians", "exp2", "cbrt", "ldexp",
)  # fmt: skip
_INVERSE = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "pow": np.power,
}  # fmt: skip

_OWN: dict[Any, _Function] = {
    builtins.range: lambda trace, *bounds: traced_range(*bounds),
    builtins.enumerate: lambda trace, *args, **options: traced_enumerate(*args, **options),
    builtins.zip: lambda trace, *args, **options: traced_zip(*args, **options),
    builtins.reversed: lambda trace, rounds: traced_reversed(rounds),
    builtins.int: lambda trace, x: python_number(trace, x, _I64),
    builtins.float: lambda trace, x: python_number(trace, x, _F64),
    builtins.bool: lambda trace, x: python_number(trace, x, _BOOL),
    builtins.round: _round,
    builtins.len: lambda trace, x: x.shape[0] if is_varying(x) else len(x),
    builtins.str: _text(str),
    builtins.repr: _text(repr),
    builtins.format: _text(format),
    builtins.max: _extreme(np.greater),
    builtins.min: _extreme(np.less),
    builtins.sum: _sum,
    math.hypot: _hypot,
    math.log: _log,
    math.fabs: _fabs,
    math.floor: _to_whole(np.floor),
    math.ceil: _to_whole(np.ceil),
    math.trunc: _to_whole(np.trunc),
    math.isnan: _math(np.isnan, _BOOL),
    math.isinf: _math(np.isinf, _BOOL),
    math.isfinite: _math(np.isfinite, _BOOL),
    **{getattr(math, name): _math(getattr(np, name)) for name in _SAME if hasattr(math, name)},
    **{getattr(math, name): _math(ufunc) for name, ufunc in _INVERSE.items()},
}


_ITERATORS = (builtins.enumerate, builtins.zip, builtins.reversed)


def _refused(name: str) -> _Function:
    def function(trace: Trace, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedSyntaxError(
            f"`math.{name}` is not compiled", help="write it with `np.` functions, or compute it outside"
        )

    return function


_OWN |= {
    getattr(math, name): _refused(name)
    for name in dir(math)
    if isinstance(getattr(math, name), types.BuiltinFunctionType) and getattr(math, name) not in _OWN
}

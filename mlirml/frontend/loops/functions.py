"""Python's functions of numbers, for dynamic numbers: `int`, `max`, `math.exp` and so on."""

from __future__ import annotations

import builtins
import cmath
import importlib
import inspect
import itertools
import math
import types
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mlirml.core.sizes import Size, is_size
from mlirml.core.tree import flatten
from mlirml.errors import DTypeError, UnsupportedSyntaxError
from mlirml.frontend.arrays import printing
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.growing_list import GrowingList
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.arrays.list_parts import is_numeric_list
from mlirml.frontend.arrays.long_folds import folded
from mlirml.frontend.arrays.optional import given
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.loops.heaps import written_in_python
from mlirml.frontend.loops.integer_functions import comb, factorial, perm, power_modulo, real_factorial
from mlirml.frontend.loops.iterators import following, makes_iterators
from mlirml.frontend.loops.list_hooks import unchanged
from mlirml.frontend.loops.orders import extreme_by_key, sorted_by_key
from mlirml.frontend.loops.ranges import (
    CHOICES,
    Items,
    TracedRange,
    traced_choices,
    traced_enumerate,
    traced_map,
    traced_ndenumerate,
    traced_ndindex,
    traced_pairwise,
    traced_product,
    traced_range,
    traced_repeat,
    traced_reversed,
    traced_zip,
)
from mlirml.frontend.namespace.numpy_namespace import of_numpy, retarget
from mlirml.frontend.tracing.affine import value_in
from mlirml.frontend.tracing.trace import Trace, is_weak
from mlirml.frontend.user_objects import is_library
from mlirml.ops import error_functions

_Function = Callable[..., Any]
_I64, _F64, _C128, _BOOL = (np.dtype(name) for name in ("int64", "float64", "complex128", "bool"))


def replaced(trace: Trace, callee: Any) -> Any:
    """The replacement of a callee: a function that accepts traced numbers too, or the function itself."""
    if isinstance(callee, types.MethodType) and type(callee.__self__) is GrowingList:
        return callee
    of_items = written_in_python(trace, callee)
    if of_items is not None:
        return of_items
    if isinstance(callee, types.MethodDescriptorType) and callee.__objclass__ in (list, deque):
        return partial(_unbound, trace, callee)
    if isinstance(callee, (types.FunctionType, types.MethodType)):
        return retarget(callee, trace, trace._loops_memo)  # functions called by name are rewritten already
    creation = of_numpy(callee, trace, trace._loops_memo)
    if creation is not None:
        return creation
    if isinstance(callee, type) and not is_library(callee.__module__):
        return partial(_constructed, trace, callee)
    if callable(callee) and not is_library(type(callee).__module__):
        return retarget(callee, trace, trace._loops_memo)
    if not isinstance(callee, (types.BuiltinFunctionType, type)):
        return callee
    if isinstance(callee, types.BuiltinFunctionType) and type(callee.__self__) is list and callee.__name__ == "sort":
        return partial(_sort, trace, callee.__self__)
    own = _OWN.get(callee)
    if own is None and isinstance(callee, type) and issubclass(callee, np.generic):
        own = _scalar(callee)
    if own is None:
        return partial(_made, trace, callee) if makes_iterators(callee) else callee

    def call(*args: Any, **kwargs: Any) -> Any:
        for x in args:
            trace.hooks.iterators.check(x)
        return trace.hooks.iterators.made(called(*args, **kwargs))

    def called(*args: Any, **kwargs: Any) -> Any:
        args = tuple(map(given, args))
        if callee in _OF_LISTS and args and isinstance(getattr(args[0], "numbers", args[0]), TracedRange):
            args = (trace.hooks.listed(args[0], unchanged), *args[1:])  # `map` and the like, of unknown length
        by_key = callee in _ORDERED and kwargs.get("key") is not None
        plain = len(args) == 1 and not isinstance(args[0], Traced) and not is_dynamic(args[0]) and not _is_rows(args[0])
        if callee in _OF_ITEMS and plain and not by_key:
            args = (list(args[0]),)
            if any(isinstance(item, Traced) for item in args[0]) or (
                callee in _ORDERED and (_are_dynamic_tuples(args[0]) or any(type(x) is GrowingList for x in args[0]))
            ):
                with at_user_line():
                    return own(trace, *args, **kwargs)
        of_rows = callee in _OF_LISTS and (by_key or any(map(_is_rows, args)))
        of_rows |= callee in _ORDERED and _are_dynamic_tuples(args)
        if (
            not of_rows
            and callee not in _ALWAYS
            and not any(isinstance(x, (Traced, Size)) or is_dynamic(x) for x in args)
        ):
            return callee(*args, **kwargs)
        with at_user_line():
            return own(trace, *args, **kwargs)

    call.original = callee  # type: ignore[attr-defined]
    return call


def divisor(trace: Trace, callee: Any) -> Any:
    """A callee whose result is the divisor of `/`: a factorial there may have more than 64 bits."""
    called = replaced(trace, callee)
    if all(getattr(one, "original", None) is not math.factorial for one in (called, callee)):
        return called
    real = _of_integers(real_factorial)
    return lambda x, /: real(trace, x) if isinstance(x, Traced) and x._known() is None else called(x)


def _made(trace: Trace, callee: Any, *args: Any, **kwargs: Any) -> Any:
    """A new iterator."""
    return trace.hooks.iterators.made(callee(*args, **kwargs))


def _unbound(trace: Trace, method: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`list.append(items, x)` and its like."""
    if args and type(args[0]) is GrowingList:
        return replaced(trace, getattr(args[0], method.__name__))(*args[1:], **kwargs)
    return method(*args, **kwargs)


def _is_sized(x: Any) -> bool:
    """True for an array whose first size is dynamic."""
    return isinstance(x, Traced) and x.ndim > 0 and is_size(x.shape[0])


def _is_rows(x: Any) -> bool:
    """True for a list that a loop has appended to, or appends to."""
    return type(x) is GrowingList and x.has_rows


def _constructed(trace: Trace, class_: Any, /, *args: Any, **kwargs: Any) -> Any:
    """An object of a user's class, whose `__init__` is called as other methods are."""
    if trace.methods is not None:
        trace.methods.add(class_)
    start = inspect.getattr_static(class_, "__init__", None)
    plain = type(class_) is type and inspect.getattr_static(class_, "__new__") is vars(object)["__new__"]
    if not plain or not isinstance(start, types.FunctionType):
        return trace.reached.made(class_(*args, **kwargs))
    made = trace.reached.made(class_.__new__(class_))
    retarget(start, trace, trace._loops_memo)(made, *args, **kwargs)
    return made


def python_number(trace: Trace, x: Any, dtype: np.dtype) -> Any:
    """A number as Python's bool, int or float, which yields in promotion."""
    if isinstance(x, Traced):
        known = x._known()
        if known is not None and known.shape == ():
            return np.dtype(dtype).type(known[()]).item()
        if x.size != 1:
            raise DTypeError(f"only one number can be converted, got {x._describe()}")
        if x.dtype.kind == "c" and dtype.kind not in "bc":
            raise DTypeError(f"cannot convert {x._describe()} to a real number", help="take `x.real` or `abs(x)`")
        value = trace.builder.cast(trace.builder.reshape(x._read(), ()), dtype)
        return Traced(trace, Cell(replace(value, weak=True)), scalar=True)
    return dtype.type(x).item()


def _scalar(scalar_type: type[np.generic]) -> _Function:
    """`np.float32(x)` and its like: a NumPy scalar of a number."""

    def function(trace: Trace, x: Any) -> Any:
        found = x.astype(scalar_type)
        return Traced(trace, Cell(found._contents()), scalar=True) if not found.shape else found

    return function


def _round(trace: Trace, number: Any, ndigits: Any = None) -> Any:
    is_double = is_weak(number) and number.dtype.kind == "f"
    if is_double and type(ndigits) is int and abs(ndigits) <= 22:
        return _to_decimals(trace, number, ndigits)
    if ndigits is not None:
        return trace.call_function(np.round, (number, ndigits), {})
    if number.dtype.kind in "iub":
        return python_number(trace, number, _I64)
    return python_number(trace, trace.call_ufunc(np.rint, "__call__", (number,), {}), _I64)


def _to_decimals(trace: Trace, x: Any, digits: int) -> Any:
    """Python's rounding of a float, by its exact value: where the scaled one is a tie, by the error of its scaling."""
    power = float(10 ** abs(digits))
    scaled = x * power if digits >= 0 else x / power
    whole = np.rint(scaled)
    half = scaled - whole
    if digits >= 0:
        (a, b), (c, d) = _halves(x), _halves(power)
        error = ((a * c - scaled) + a * d + b * c) + b * d
    else:
        error = x - scaled * power
    up, down = np.logical_and(half == 0.5, error > 0), np.logical_and(half == -0.5, error < 0)
    # A tie that was rounded to even the other way than its error says.
    whole = whole + np.where(up, 1.0, 0.0) - np.where(down, 1.0, 0.0)
    rounded = whole / power if digits >= 0 else whole * power
    exact = np.logical_or(np.logical_not(np.isfinite(scaled)), np.abs(scaled) >= 2.0**52)
    return python_number(trace, np.where(exact, x, rounded), _F64)


def _halves(x: Any) -> tuple[Any, Any]:
    """Two numbers of 26 bits whose sum is a number of 53."""
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    return high, x - high


_NONE = object()  # in place of an argument that is not given


def _extreme(comparison: np.ufunc) -> _Function:
    def function(trace: Trace, *args: Any, key: Any = None, default: Any = _NONE) -> Any:
        if len(args) == 1:
            (items,) = args
            if default is not _NONE:
                length = trace.hooks.function(len)(items)
                return trace.hooks.select(length == 0, lambda: default, lambda: function(trace, items, key=key))
            if key is not None or _has_tuples(items):
                return extreme_by_key(trace, comparison, items, key)
            if _is_rows(items):
                return _number_of(items, np.max if comparison is np.greater else np.min)
            if is_dynamic(items) and items.ndim == 1:
                return items.max() if comparison is np.greater else items.min()
            if isinstance(items, Traced) and items.ndim != 1:
                raise DTypeError(
                    f"the largest or smallest item of {items._describe()}", help="use `np.max` or `np.min`"
                )
            found = folded("max" if comparison is np.greater else "min", items)
            if found is not NotImplemented:
                return found
            args = tuple(items)
        if key is not None or any(type(x) in (tuple, list) for x in args):
            return extreme_by_key(trace, comparison, args, key)
        result, name = args[0], "maximum" if comparison is np.greater else "minimum"
        for x in args[1:]:
            before = result
            result = _either(trace, trace.call_operator(comparison, (x, before)), x, before)
            value = value_in(result)
            if value is not None:
                trace.integers.note_limits(name, (x, before), value)
        return result

    return function


def _has_tuples(items: Any) -> bool:
    """True for an iterable whose items are tuples, or lists."""
    if isinstance(items, Items):
        return bool(items.sources)
    if _is_rows(items):
        return items.rows is None or not is_numeric_list(items)
    return isinstance(items, (list, tuple)) and any(isinstance(item, (tuple, list)) for item in items)


def _are_dynamic_tuples(items: Any) -> bool:
    """True if some items are tuples or lists with dynamic values in them."""
    tuples = [item for item in items if type(item) in (tuple, list)]
    return any(isinstance(leaf, Traced) for leaf in flatten(tuples)[0])


def _either(trace: Trace, condition: Any, one: Any, other: Any) -> Any:
    return trace.hooks.select(condition, lambda: one, lambda: other)


def _number_of(items: GrowingList, function: Any) -> Any:
    """A function of a list of numbers, as a Python number if those are."""
    found = function(items.array(), axis=0)
    if not is_numeric_list(items):
        return found
    assert items.rows is not None
    return Traced(found._trace, Cell(replace(found._read(), weak=items.rows.growth.leaf_types[0].weak)), scalar=True)


def _sorted(trace: Trace, items: Any, *, key: Any = None, reverse: bool = False) -> Any:
    if key is not None or _has_tuples(items):
        return sorted_by_key(trace, items, key, reverse)
    numbers = items.copy() if is_numeric_list(items) else trace.hooks.list_(list, items, grows=True)
    if not is_numeric_list(numbers):
        numbers = trace.hooks.list_(list, trace.array([*items]), grows=True)
    numbers.sort(reverse=reverse)
    return numbers


def _sort(trace: Trace, items: list[Any], *, key: Any = None, reverse: bool = False) -> None:
    """`list.sort`."""
    items[:] = [*trace.hooks.function(sorted)(items, key=key, reverse=reverse)]


def _sum(trace: Trace, items: Any, start: Any = 0) -> Any:
    if is_dynamic(items):
        return start + items.sum()
    if _is_rows(items):
        return start + (_number_of(items, np.sum) if is_numeric_list(items) else np.sum(items.array(), axis=0))
    found = folded("sum", items, start)
    if found is not NotImplemented:
        return found
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


def _dist(trace: Trace, p: Any, q: Any) -> Any:
    gaps = [a - b for a, b in zip(p, q, strict=True)]
    return _hypot(trace, *gaps) if any(isinstance(gap, Traced) for gap in gaps) else math.dist(p, q)


def _log(trace: Trace, x: Any, base: Any = None) -> Any:
    found = _math(np.log)(trace, x)
    return found if base is None else found / _math(np.log)(trace, base)


def _cmath(function: Any, result: np.dtype = _C128) -> _Function:
    """A function of `cmath`."""

    def made(trace: Trace, x: Any) -> Any:
        return python_number(trace, function(python_number(trace, x, _C128)), result)

    return made


def _rect(trace: Trace, r: Any, phi: Any) -> Any:
    """`cmath.rect`: of the angle 0 the imaginary part is 0, also where `r` is infinite."""
    r, phi = (python_number(trace, x, _F64) for x in (r, phi))
    height = np.where(np.equal(phi, 0), phi, r * np.sin(phi))
    return python_number(trace, r * np.cos(phi) + 1j * height, _C128)


def _complex_log(trace: Trace, x: Any, base: Any = None) -> Any:
    found = _cmath(np.log)(trace, x)
    return found if base is None else found / _cmath(np.log)(trace, base)


def _whole_numbers(ufunc: np.ufunc) -> _Function:
    def function(trace: Trace, *args: Any) -> Any:
        result: Any = 0 if ufunc is np.gcd else 1
        for x in args:
            if x.dtype.kind not in "iub" if isinstance(x, Traced) else not isinstance(x, (int, np.integer)):
                raise DTypeError(f"`math.{ufunc.__name__}` takes integers, got {x!r}")
            result = ufunc(result, python_number(trace, x, _I64))
        return python_number(trace, result, _I64)

    return function


def _isclose(trace: Trace, a: Any, b: Any, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> Any:
    """`math.isclose`, by the formula in Python's documentation; infinities are close to themselves only."""
    one, other = (python_number(trace, x, _F64) for x in (a, b))
    largest = np.maximum(np.abs(one), np.abs(other))
    near = np.abs(one - other) <= np.maximum(rel_tol * largest, abs_tol)
    return python_number(trace, np.logical_or(one == other, np.logical_and(near, np.isfinite(largest))), _BOOL)


def _isqrt(trace: Trace, x: Any) -> Any:
    """The whole part of a square root: that of the nearest double is one off at most."""
    if x.dtype.kind not in "iub":
        raise DTypeError(f"`math.isqrt` takes integers, got {x!r}")
    number = python_number(trace, x, _I64)
    root = np.minimum(python_number(trace, np.sqrt(python_number(trace, x, _F64)), _I64), 3037000499)
    root = root - (root * root > number)
    return python_number(trace, root + (number - root * root > 2 * root), _I64)


def _of_integers(function: Callable[..., Any]) -> _Function:
    """A function that is written in Python, of integers."""
    name = function.__name__.removeprefix("real_")

    def call(trace: Trace, *args: Any) -> Any:
        for x in args:
            if not (x.dtype.kind in "iub" if isinstance(x, Traced) else hasattr(x, "__index__")):
                got = x._describe() if isinstance(x, Traced) else repr(x)
                raise DTypeError(f"`math.{name}` takes integers, got {got}", help="convert it with `int(x)`")
        numbers = [python_number(trace, x, _I64) for x in args]
        return retarget(function, trace, trace._loops_memo)(*numbers)

    return call


def _special(name: str) -> _Function:
    """A function of `math` that is one of `mlirml.special`, which is written in NumPy, above this module."""
    return lambda trace, x: _math(getattr(importlib.import_module("mlirml.special"), name))(trace, x)


def _ldexp(trace: Trace, x: Any, exponent: Any) -> Any:
    return python_number(trace, np.ldexp(python_number(trace, x, _F64), exponent), _F64)


def _modf(trace: Trace, x: Any) -> Any:
    return tuple(python_number(trace, part, _F64) for part in np.modf(python_number(trace, x, _F64)))


def _frexp(trace: Trace, x: Any) -> Any:
    mantissa, exponent = np.frexp(python_number(trace, x, _F64))
    return python_number(trace, mantissa, _F64), python_number(trace, exponent, _I64)


def _choices(function: Any, trace: Trace, items: Any, r: Any = None) -> Any:
    return traced_choices(trace, function, items, r)


def _int(trace: Trace, x: Any, *base: Any) -> Any:
    if not base:
        return python_number(trace, x, _I64)
    if isinstance(x, Traced):
        raise DTypeError(f"`int()` with a base takes a text, got {x._describe()}")
    return int(x, base[0].__index__())


def _whole(trace: Trace, x: Any) -> Any:
    """`math.floor` and the like of an integer."""
    return python_number(trace, x, _I64)


def _to_whole(ufunc: np.ufunc) -> _Function:
    def function(trace: Trace, x: Any) -> Any:
        return _whole(trace, x) if x.dtype.kind in "iub" else _math(ufunc, _I64)(trace, x)

    return function


def _pow(trace: Trace, x: Any, exponent: Any, modulus: Any = None) -> Any:
    if modulus is None:
        return x**exponent
    if not all(
        is_weak(n) and (n.dtype.kind in "bi" if isinstance(n, Traced) else not isinstance(n, (float, complex)))
        for n in (x, exponent, modulus)
    ):
        raise DTypeError(
            "`pow()` with three arguments takes Python's integers, as in Python",
            help="convert elements of arrays with `int(x)`; of arrays write a loop over the elements",
        )
    return retarget(power_modulo, trace, trace._loops_memo)(x, exponent, modulus)


def _complex(trace: Trace, real: Any, imag: Any = 0) -> Any:
    """Python's complex number; what are given as parts may be complex themselves."""
    result: Any = np.zeros((), np.complex128)
    if any(isinstance(x, complex) or (isinstance(x, Traced) and x.dtype.kind == "c") for x in (real, imag)):
        result = real + imag * 1j
        return python_number(trace, result, _C128) if isinstance(result, Traced) else result
    result = trace.array(result)
    result.real[...], result.imag[...] = (python_number(trace, x, _F64) for x in (real, imag))
    return Traced(trace, Cell(replace(result._read(), weak=True)), scalar=True)


def _fold(name: str) -> _Function:
    """`any` and `all` of items."""

    def function(trace: Trace, items: Any) -> Any:
        if is_dynamic(items):
            return getattr(items, name)()
        if _is_rows(items):
            return python_number(trace, getattr(items.array(), name)(), _BOOL)
        found = folded(name, items)
        if found is not NotImplemented:
            return python_number(trace, found, _BOOL)
        combine = trace.hooks.or_ if name == "any" else trace.hooks.and_
        result: Any = name == "all"
        for item in items:
            truth = python_number(trace, item, _BOOL)
            result = combine(result, lambda truth=truth: truth)
        return result

    return function


def _fabs(trace: Trace, x: Any) -> Any:
    return abs(python_number(trace, x, _F64))


_SAME = (
    "sqrt", "exp", "expm1", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "fmod", "copysign",
    "degrees", "radians", "exp2", "cbrt",
)  # fmt: skip
_INVERSE = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "pow": np.power,
}  # fmt: skip

_COMPLEX = ("sqrt", "exp", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh")

_OWN: dict[Any, _Function] = {
    builtins.range: lambda trace, *bounds: traced_range(*bounds),
    builtins.enumerate: lambda trace, *args, **options: traced_enumerate(*args, **options),
    builtins.zip: lambda trace, *args, **options: traced_zip(*args, **options),
    builtins.map: traced_map,
    itertools.pairwise: lambda trace, iterable: traced_pairwise(iterable),
    itertools.product: lambda trace, *parts, **options: traced_product(*parts, **options),
    itertools.repeat: traced_repeat,
    **{function: partial(_choices, function) for function in CHOICES},
    np.ndindex: lambda trace, *shape: traced_ndindex(*shape),
    np.ndenumerate: lambda trace, array: traced_ndenumerate(array),
    builtins.reversed: lambda trace, iterable: traced_reversed(iterable),
    builtins.int: _int,
    builtins.float: lambda trace, x: python_number(trace, x, _F64),
    builtins.bool: lambda trace, x: python_number(trace, x, _BOOL),
    builtins.complex: _complex,
    builtins.pow: _pow,
    builtins.any: _fold("any"),
    builtins.all: _fold("all"),
    builtins.round: _round,
    builtins.len: lambda trace, x: x.length if _is_rows(x) else x.shape[0] if is_dynamic(x) or _is_sized(x) else len(x),
    builtins.str: lambda trace, x: printing.text_of(x, str),
    builtins.repr: lambda trace, x: printing.text_of(x, repr),
    builtins.format: lambda trace, x, specification="": printing.formatted(x, specification),
    builtins.max: _extreme(np.greater),
    builtins.min: _extreme(np.less),
    builtins.sum: _sum,
    builtins.sorted: _sorted,
    builtins.next: following,
    builtins.list: lambda trace, items=(): items.copy() if _is_rows(items) else list(items),
    math.hypot: _hypot,
    math.dist: _dist,
    math.erf: _math(error_functions.erf.reference),
    math.erfc: _math(error_functions.erfc.reference),
    math.gcd: _whole_numbers(np.gcd),
    math.lcm: _whole_numbers(np.lcm),
    math.isclose: _isclose,
    math.isqrt: _isqrt,
    math.factorial: _of_integers(factorial),
    math.comb: _of_integers(comb),
    math.perm: lambda trace, n, k=None: _of_integers(perm)(trace, n, n if k is None else k),
    math.gamma: _special("gamma"),
    math.lgamma: _special("gammaln"),
    math.ldexp: _ldexp,
    math.modf: _modf,
    math.frexp: _frexp,
    math.log: _log,
    cmath.log: _complex_log,
    math.fabs: _fabs,
    math.floor: _to_whole(np.floor),
    math.ceil: _to_whole(np.ceil),
    math.trunc: _to_whole(np.trunc),
    math.isnan: _math(np.isnan, _BOOL),
    math.isinf: _math(np.isinf, _BOOL),
    math.isfinite: _math(np.isfinite, _BOOL),
    **{getattr(math, name): _math(getattr(np, name)) for name in _SAME if hasattr(math, name)},
    **{getattr(math, name): _math(ufunc) for name, ufunc in _INVERSE.items()},
    **{getattr(cmath, name): _cmath(getattr(np, name)) for name in _COMPLEX},
    **{getattr(cmath, name): _cmath(ufunc) for name, ufunc in _INVERSE.items() if name not in ("atan2", "pow")},
    cmath.isnan: _cmath(np.isnan, _BOOL),
    cmath.isinf: _cmath(np.isinf, _BOOL),
    cmath.isfinite: _cmath(np.isfinite, _BOOL),
    cmath.rect: _rect,
    cmath.phase: _cmath(np.angle, _F64),
    cmath.polar: lambda trace, x: (_cmath(np.abs, _F64)(trace, x), _cmath(np.angle, _F64)(trace, x)),
}


_ALWAYS = (
    builtins.enumerate, builtins.zip, builtins.map, builtins.reversed, itertools.product, itertools.repeat,
    np.ndindex, np.ndenumerate, math.dist, builtins.next, *CHOICES,
)  # fmt: skip
_OF_LISTS = (
    builtins.len, builtins.sum, builtins.max, builtins.min, builtins.sorted, builtins.any, builtins.all, builtins.list,
)  # fmt: skip
_ORDERED = (builtins.max, builtins.min, builtins.sorted)
_OF_ITEMS = (builtins.any, builtins.all, builtins.max, builtins.min, builtins.sorted)


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

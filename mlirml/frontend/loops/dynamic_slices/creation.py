"""New arrays whose sizes are numbers of the program: `np.zeros(n)` with a count `n` that the data decide.

    n = int(np.sum(x > 0))               buffer = np.zeros(len(x))
    out = np.zeros(n)                    out = buffer[:n]

The buffer has the greatest size that the number may have, where something bounds it, and the array is a slice of it.
Otherwise it has the room that the expression in the user's file has by now, as in `counted_functions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.errors import DTypeError, UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.frames import user_location
from mlirml.frontend.loops.dynamic_indices import Axis, Number, clamped, index_name, slice_bound
from mlirml.frontend.loops.dynamic_slices.counted_functions import room_for
from mlirml.frontend.loops.dynamic_slices.slices import DynamicSlice, check_front_end, part
from mlirml.frontend.tracing.trace import Trace
from mlirml.ir.text.builder import Check

MOST_ELEMENTS = 1 << 22
"""Elements of a buffer that a bound of its size decides: a bound may be much greater than the number."""


def filled_of_size(trace: Trace, sizes: Sequence[Any], fill_value: Any, dtype: Any) -> DynamicSlice:
    """`np.full` of sizes of which some are numbers of the program."""
    check_front_end(trace)
    shape = [_size(trace, size) for size in sizes]
    most = _most(trace, shape)
    return _beginning(trace.filled(most, fill_value, dtype), shape, most)


def grid_of_size(trace: Trace, function: Callable[..., Any], args: Sequence[Any], **options: Any) -> DynamicSlice:
    """`np.arange`, `np.linspace`, `np.eye` and `np.tri` of sizes that are numbers of the program."""
    name = function.__name__
    check_front_end(trace)
    dtype = options.pop("dtype", None)
    if name == "arange" and not options:
        start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
        if all(map(_is_integer, (start, stop))) and type(step) is int and step:
            start, stop = slice_bound(trace, start), slice_bound(trace, stop)  # NumPy's results are i64
            count = -((start - stop) // step) if step != 1 else stop - start
            most = _most(trace, [count])
            shape = [clamped(trace, count, 0, most[0])]
            numbers: Any = trace.known(np.arange(*most) * step) + start
            return _beginning(numbers if dtype is None else numbers.astype(dtype), shape, most)
        if all(map(_is_double_or_integer, (start, stop, step))) and not all(map(_is_integer, (start, stop, step))):
            return _of_doubles(trace, start, stop, step, dtype)
    if name == "linspace" and len(args) == 3 and not set(options) - {"endpoint"}:
        start, stop, count = args
        shape = [_size(trace, count)]
        most = _most(trace, shape)
        steps: Any = trace.known(np.arange(*most, dtype=np.float64))
        endpoint = options.get("endpoint", True)
        last = count - 1 if endpoint else count
        numbers = steps * ((stop - start) / np.maximum(last, 1)) + start
        if endpoint:
            numbers = trace.call_function(np.where, ((steps == last) & (steps > 0), stop, numbers), {})
        return _beginning(numbers if dtype is None else numbers.astype(dtype), shape, most)
    if name in ("eye", "identity", "tri") and not set(options) - {"M", "k"}:
        if name == "identity" and len(args) == 2:
            args, dtype = args[:1], args[1]
        if len(args) <= 3:
            return _units(trace, name, args, float if dtype is None else dtype, **options)
    raise UnsupportedSyntaxError(
        f"`np.{name}` of a number that is known only at run time is not compiled in this form",
        location=user_location(2),
        help="compute it from `np.arange(n)`",
    )


def _of_doubles(trace: Trace, start: Any, stop: Any, step: Any, dtype: Any) -> DynamicSlice:
    """`np.arange` of doubles: NumPy counts the steps in doubles, and adds up multiples of what the first one adds."""
    one, end, by = (trace.call_function(np.multiply, (number, 1.0), {}) for number in (start, stop, step))
    count: Any = np.ceil((end - one) / by)
    count = np.where(np.isfinite(count), np.maximum(count, 0.0), -1.0)  # which is an error, as for a step of 0
    shape = [_size(trace, count.astype(np.int64)[()])]
    most = _most(trace, shape)
    steps: Any = trace.known(np.arange(*most, dtype=np.float64))
    numbers = steps * ((one + by) - one) + one
    return _beginning(numbers if dtype is None else numbers.astype(dtype), shape, most)


def _units(trace: Trace, name: str, args: Sequence[Any], dtype: Any, **options: Any) -> DynamicSlice:
    """`np.eye`, `np.identity` and `np.tri`."""
    given = {**dict(zip(("N", "M", "k"), args)), **options}
    columns, k = given.get("M"), given.get("k", 0)
    shape = [_size(trace, given["N"]), _size(trace, given["N"] if columns is None else columns)]
    most = _most(trace, shape)
    first, second = (trace.known(np.arange(size)) for size in most)
    compare = np.greater_equal if name == "tri" else np.equal
    units = trace.call_ufunc(compare, "__call__", (first[:, None] + k, second), {})
    return _beginning(units.astype(dtype), shape, most)


def _is_integer(number: Any) -> bool:
    return getattr(number, "dtype", np.dtype(type(number))).kind in "iu"


def _is_double_or_integer(number: Any) -> bool:
    return _is_integer(number) or getattr(number, "dtype", np.dtype(type(number))) == np.float64


def _beginning(buffer: Traced, shape: Sequence[Number], most: Sequence[int]) -> DynamicSlice:
    return part(buffer, [Axis(0, 1, dim) for dim in range(len(shape))], shape, most)


def _size(trace: Trace, size: Any) -> Number:
    """A size as a number, which is checked not to be negative."""
    if not isinstance(size, Traced):
        return int(size.__index__())
    if size.shape or size.dtype.kind not in "iu":
        raise DTypeError(f"a size must be an integer, got {size._describe()}", help="convert it with `int(...)`")
    known = size._known()
    if known is not None:
        return int(known)
    number: Traced = slice_bound(trace, size)
    least, _ = trace.integers.limits_of(number._read())
    if trace.builder.checked and (least is None or least < 0):
        b = trace.builder
        b.check(
            b.named(f"arith.cmpi sge, {index_name(trace, number)}, {b.index(0)} : index"),
            Check("ShapeError", "negative dimensions are not allowed"),
        )
    return number


def _most(trace: Trace, shape: Sequence[Number]) -> tuple[int, ...]:
    """The greatest sizes: constants that bound the numbers, or the room that the expression has by now."""
    greatest = [trace.integers.limits_of(n._read())[1] if isinstance(n, Traced) else n for n in shape]
    known = [max(n, 0) for n in greatest if n is not None]
    if len(known) == len(greatest) and math.prod(known) <= MOST_ELEMENTS:
        return tuple(known)
    return tuple(room_for(trace, n, 0) if isinstance(n, Traced) else n for n in shape)

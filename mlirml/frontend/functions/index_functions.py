"""NumPy's index functions without op records: those that store, and those composed of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.errors import DTypeError, InvalidIndexError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.scattering import apply_at
from mlirml.frontend.tracing.trace import Trace
from mlirml.ir.text.builder import Check
from mlirml.ops import BY_FUNCTION, promotion
from mlirml.ops.elementwise import broadcast_shapes
from mlirml.ops.indexing.gather import broadcast_along
from mlirml.ops.indexing.positions import checked_mode, positions
from mlirml.ops.indexing.scatter import Scatter
from mlirml.ops.reductions import normalized_axes
from mlirml.ops.shapes.views import Reshape, integers


def put(trace: Trace, a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """`np.put`: values into the array in one dimension, repeated if there are too few."""
    if not isinstance(a, Traced):
        raise trace.real_array_error()
    a._check_part(v)
    indices, values = (trace.array(x, copy=False).reshape(-1) for x in (ind, v))
    if indices.dtype.kind not in "iub" or not np.can_cast(indices.dtype, np.int64, "safe"):
        raise DTypeError(f"put: indices of {indices.dtype}", help="convert them with `.astype(np.int64)`")
    if not indices.size or not values.size:
        return
    if values.size not in (1, indices.size):
        values = trace.call_function(np.take, (values, np.arange(indices.size) % values.size), {})
    # In row-major order of the elements, whatever the memory layout is.
    flat = a if a.ndim == 1 else Traced(trace, a._cell, (*a._views, Reshape((a.size,))))
    b, base = trace.builder, flat._read()
    found = positions(b, indices.astype(np.int64)._read(), a.size, 0, checked_mode("put", mode))
    flat._write(Scatter(base, (0,), (found,), 0, "set").write(b, values.astype(a.dtype)._read()))


def put_along_axis(trace: Trace, arr: Any, indices: Any, values: Any, axis: int | None = -1) -> None:
    """`np.put_along_axis`: stores a value at each of the indices along an axis."""
    if not isinstance(arr, Traced):
        raise trace.real_array_error()
    indices = trace.array(indices, copy=False)
    if indices.dtype.kind not in "iu":
        raise InvalidIndexError(f"put_along_axis: the indices must be integers, not {indices.dtype}")
    if axis is None:
        arr, axis = Traced(trace, arr._cell, (*arr._views, Reshape((arr.size,)))), 0
    if arr.ndim != indices.ndim:
        raise ShapeError(
            f"put_along_axis: the indices have {indices.ndim} dimensions, the array {arr.ndim}",
            help="add an axis to the indices, `np.expand_dims(indices, axis)`",
        )
    (dim,) = normalized_axes("put_along_axis", arr.shape, axis)
    broadcast_along(arr.shape, indices.shape, dim)
    index: list[Any] = []
    for d, n in enumerate(arr.shape):
        shape = [1] * arr.ndim
        shape[d] = n
        index.append(indices if d == dim else trace.known(np.arange(n).reshape(shape)))
    arr[tuple(index)] = values


def fill_diagonal(trace: Trace, a: Any, val: Any, wrap: bool = False) -> None:
    """`np.fill_diagonal`: stores values, repeated if there are too few, at the positions whose indices are all
    equal.
    """
    if not isinstance(a, Traced):
        raise trace.real_array_error()
    if a.ndim < 2:
        raise ShapeError("fill_diagonal: the array must have at least 2 dimensions")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ShapeError(f"fill_diagonal: the sizes {list(a.shape)} must be equal")
    if not a.size:
        return
    indices = np.arange(min(a.shape))
    index = (indices,) * a.ndim
    if a.ndim == 2:  # in the flattened array, one step further in each row
        columns = a.shape[1]
        index = np.divmod(np.arange(0, a.size if wrap else min(a.size, columns * columns), columns + 1), columns)
    a._check_part(val)
    values = trace.array(val, copy=False).reshape(-1)
    count = len(index[0])
    if values.size > 1:
        values = trace.call_function(np.take, (values, trace.known(np.arange(count) % values.size)), {})
    a[tuple(trace.known(i) for i in index)] = values


def putmask(trace: Trace, a: Any, mask: Any, values: Any) -> None:
    """`np.putmask`: under a mask, stores the values at the same positions, repeated if there are too few."""
    if not isinstance(a, Traced):
        raise trace.real_array_error()
    chosen, new = trace.array(mask, copy=False), trace.array(values, copy=False)
    a._check_part(values)
    if chosen.shape != a.shape:
        raise ShapeError(f"putmask: a mask of shape {list(chosen.shape)} for an array of shape {list(a.shape)}")
    _check_stored("putmask", a, values, new.dtype)
    if not new.size or not a.size:
        return
    if new.size not in (1, a.size):
        new = trace.call_function(np.take, (new, trace.known(np.arange(a.size) % new.size)), {})
    a._assign_where(chosen.astype(np.bool_), new.reshape(a.shape if new.size == a.size else (1,) * a.ndim))


def _check_stored(name: str, a: Traced, values: Any, dtype: np.dtype) -> None:
    """Arrays are stored without loss only; lists of numbers take the dtype of the array."""
    is_array = isinstance(values, np.ndarray) or (isinstance(values, Traced) and not values._scalar)
    if is_array and not np.can_cast(dtype, a.dtype, "safe"):
        raise DTypeError(f"{name}: cannot store {dtype} into an array of {a.dtype}")


def stored_under_mask(trace: Trace, arr: Any, mask: Any, vals: Any) -> None:
    """`np.place`: under a mask, stores the values in their order, repeated if there are too few."""
    if not isinstance(arr, Traced):
        raise trace.real_array_error()
    name = np.place.__name__
    chosen, new = trace.array(mask, copy=False).astype(np.bool_), trace.array(vals, copy=False).reshape(-1)
    arr._check_part(vals)
    _check_stored(name, arr, vals, new.dtype)
    if chosen.size != arr.size:
        raise ShapeError(f"{name}: a mask of {chosen.size} elements for an array of {arr.size}")
    if not new.size:
        _check(
            trace,
            trace.call_function(np.logical_not, (chosen,), {}),
            "ShapeError",
            f"{name}: there are no values for the elements under the mask",
        )
        return
    if arr.size:
        order = trace.call_function(np.cumsum, (chosen.reshape(-1),), {}) - 1
        taken = trace.call_function(np.take, (new, order % new.size), {})
        arr._assign_where(chosen.reshape(arr.shape), taken.reshape(arr.shape).astype(arr.dtype))


def _check(trace: Trace, holds: Any, error: str, message: str, help_: str | None = None) -> None:
    """An error when the program runs, unless all elements are true."""
    b = trace.builder
    b.check(b.element(trace.call_function(np.all, (holds,), {})._read()), Check(error, message, help_))


def _indices(trace: Trace, name: str, values: Any) -> Any:
    found: Any = trace.array(values, copy=False)
    if found.dtype.kind not in "iub" or not np.can_cast(found.dtype, np.int64, "safe"):
        raise DTypeError(f"{name}: indices of {found.dtype}", help="convert them with `.astype(np.int64)`")
    return found.astype(np.int64)


def _in_order(name: str, shape: Sequence[int], order: str) -> list[int]:
    """The axes of an array, the one with the largest steps in memory first."""
    if order not in ("C", "F"):
        raise ShapeError(f"{name}: the order {order!r} is neither 'C' nor 'F'")
    return list(range(len(shape)) if order == "C" else range(len(shape) - 1, -1, -1))


def _has_traced(x: Any) -> bool:
    return any(map(_has_traced, x)) if isinstance(x, (tuple, list)) else isinstance(x, Traced)


def unravel_index(trace: Trace, indices: Any, shape: Any, order: str = "C") -> tuple[Any, ...]:
    """`np.unravel_index`: the indices along each axis of an array for those into the flat one, as i64."""
    sizes = integers("unravel_index", "the shape", shape if np.ndim(shape) else (shape,))
    if not _has_traced(indices):
        return np.unravel_index(indices, sizes, order)  # type: ignore[call-overload]
    axes, left = _in_order("unravel_index", sizes, order), _indices(trace, "unravel_index", indices)
    count = math.prod(sizes)
    message = f"unravel_index: an index is negative, or not below the {count} elements of the shape {list(sizes)}"
    _check(trace, (left >= 0) & (left < count), "IndexOutOfBoundsError", message)
    left = trace.call_function(np.clip, (left, 0, max(count - 1, 0)), {})
    found: dict[int, Any] = {}
    for axis in reversed(axes[1:]):
        size = max(sizes[axis], 1)
        found[axis], left = left % size, left // size
    if axes:
        found[axes[0]] = left
    return tuple(found[axis] for axis in range(len(sizes)))


def ravel_multi_index(trace: Trace, multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    """`np.ravel_multi_index`: the indices into the flat array for those along each axis, as i64."""
    sizes = integers("ravel_multi_index", "`dims`", dims if np.ndim(dims) else (dims,))
    if not _has_traced(multi_index):
        return np.ravel_multi_index(multi_index, sizes, mode, order)  # type: ignore[call-overload]
    axes, parts = _in_order("ravel_multi_index", sizes, order), list(multi_index)
    modes = list(mode) if isinstance(mode, (tuple, list)) else [mode] * len(sizes)
    if len(parts) != len(sizes) or len(modes) != len(sizes):
        raise ShapeError(
            f"ravel_multi_index: {len(parts)} arrays of indices and {len(modes)} modes for {len(sizes)} dimensions"
        )
    flat: Any = 0
    for axis in axes:
        index, size = _indices(trace, "ravel_multi_index", parts[axis]), sizes[axis]
        chosen = checked_mode("ravel_multi_index", modes[axis])
        if chosen == "raise":
            message = f"ravel_multi_index: an index along axis {axis} is negative, or not below {size}"
            _check(trace, (index >= 0) & (index < size), "IndexOutOfBoundsError", message)
        if chosen == "wrap":
            index = index % max(size, 1)
        elif chosen == "clip":
            index = trace.call_function(np.clip, (index, 0, max(size - 1, 0)), {})
        flat = flat * size + index
    return flat


def select(trace: Trace, condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """`np.select`: for each element, the choice of the first true condition."""
    if len(condlist) != len(choicelist) or not condlist:
        raise ShapeError(f"select: {len(condlist)} conditions for {len(choicelist)} choices")
    conditions = [trace.array(c, copy=False) for c in condlist]
    for number, condition in enumerate(conditions):
        if condition.dtype != np.bool_:
            raise DTypeError(f"select: condition {number} is {condition.dtype}, not bool", help="compare: `x != 0`")
    dtype = promotion.result_type(*map(trace.lift, (*choicelist, default)))
    shape = broadcast_shapes("select", list(map(trace.lift, (*condlist, *choicelist))))
    result: Any = trace.array(default, copy=False).astype(dtype, copy=False)
    for condition, choice in reversed(list(zip(conditions, choicelist))):
        chosen = trace.array(choice, copy=False).astype(dtype, copy=False)
        result = trace.call_function(np.where, (condition, chosen, result), {})
    return trace.call_function(np.broadcast_to, (result, shape), {})._copy()


def choose(trace: Trace, a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """`np.choose`: for each element, the choice with the index given by an integer array."""
    which = trace.array(a, copy=False)
    if which.dtype.kind not in "iub" or not np.can_cast(which.dtype, np.int64, "safe"):
        raise DTypeError(f"choose: choices are numbered by integers, not {which.dtype}")
    dtype = promotion.result_type(*map(trace.lift, choices))  # Python numbers give way here
    parts = [trace.array(c, copy=False) for c in choices]
    shape = broadcast_shapes("choose", list(map(trace.lift, (which, *parts))))
    spread = [trace.call_function(np.broadcast_to, (p.astype(dtype, copy=False), shape), {}) for p in parts]
    stacked = trace.call_function(np.stack, (spread,), {})
    number = which.astype(np.int64)
    if checked_mode("choose", mode) != "raise":
        last = len(parts)
        number = (
            trace.call_function(np.clip, (number, 0, last - 1), {})
            if mode == "clip"
            else trace.call_function(np.remainder, (number, last), {})
        )
    number = trace.call_function(np.broadcast_to, (number, shape), {}).reshape((1, *shape))
    result = trace.call_function(np.take_along_axis, (stacked, number, 0), {}).reshape(shape)
    return result if out is None else trace._store_out(out, result)


def ix_(trace: Trace, *args: Any) -> tuple[Any, ...]:
    """`np.ix_`: each index array along a dimension of its own."""
    found = []
    for number, arg in enumerate(args):
        array = trace.array(arg, copy=False)
        if array.ndim != 1:
            raise ShapeError("ix_: the arrays of positions must have one dimension")
        if array.dtype == np.bool_:
            masks: tuple[Any, ...] = trace.handlers.of_data("ix_")(trace, *args)
            return masks
        found.append(array.reshape((1,) * number + (array.size,) + (1,) * (len(args) - number - 1)))
    return tuple(found)


def bincount(trace: Trace, x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """`np.bincount`. With `minlength` all numbers are below it, so that the length of the result is static."""
    numbers: Any = trace.array(x, copy=False)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iub" or not np.can_cast(numbers.dtype, np.int64, "safe"):
        raise ShapeError(f"bincount: needs integers in one dimension, not {numbers._describe()}")
    is_of_program = isinstance(minlength, Traced) and minlength._known() is None and not minlength._sizes()
    size = 0 if is_of_program else int(minlength)
    if size <= 0:
        return trace.handlers.of_data("bincount")(trace, numbers, weights, minlength)
    kind = np.dtype(np.int64 if weights is None else np.float64)
    counts = trace.known(np.zeros(size, kind))._copy()
    if not numbers.size:
        return counts
    indices = numbers.astype(np.int64)
    message = f"bincount: a number is negative, or not below minlength={size}"
    _check(trace, (indices >= 0) & (indices < size), "ShapeError", message, "give a greater `minlength`")
    added: Any = 1 if weights is None else trace.array(weights, copy=False)
    if weights is not None:
        if not np.can_cast(added.dtype, kind, "safe"):
            raise DTypeError(f"bincount: weights of {added.dtype}", help="convert them with `.astype(np.float64)`")
        added = added.astype(kind)
    if np.ndim(added) and added.shape != numbers.shape:
        raise ShapeError(f"bincount: weights of shape {list(added.shape)} for {numbers.size} numbers")
    safe = trace.call_function(np.clip, (indices, 0, size - 1), {})
    apply_at(trace, BY_FUNCTION[np.add], "np.bincount", counts, safe, added)
    return counts


def roll(trace: Trace, a: Any, shift: Any, axis: Any = None) -> Any:
    """`np.roll` with shifts that may be dynamic: elements are gathered at computed positions."""
    shifts = list(shift) if isinstance(shift, (tuple, list)) else [shift]
    if not any(isinstance(s, Traced) and s._known() is None for s in shifts):
        return trace._apply(trace._record(np.roll, "np.roll"), (a, shift, axis), {})
    array: Any = trace.array(a, copy=False)
    if axis is None:
        return roll(trace, array.reshape(-1), shift, 0).reshape(array.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    if any(isinstance(s, Traced) and s.dtype.kind not in "iu" for s in shifts):
        raise DTypeError("roll: shifts are integers", help="convert them with `.astype(np.int64)`")
    if any(np.ndim(s) for s in shifts) or len(shifts) not in (1, len(axes)):
        raise ShapeError("roll: shifts known at run time are one number, or a tuple of one for each axis")
    for dim, distance in zip(axes, shifts * len(axes) if len(shifts) == 1 else shifts):
        dim = normalized_axes("roll", array.shape, dim)[0]
        size = array.shape[dim]
        if size:
            array = np.take(array, (np.arange(size) - trace.array(distance).astype(np.int64)) % size, axis=dim)
    return array if axes else array.copy()


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.put: put, np.putmask: putmask, np.fill_diagonal: fill_diagonal, np.put_along_axis: put_along_axis,
    np.place: stored_under_mask, np.unravel_index: unravel_index, np.ravel_multi_index: ravel_multi_index,
    np.select: select, np.choose: choose, np.ix_: ix_, np.bincount: bincount, np.roll: roll,
}  # fmt: skip

"""NumPy's functions of arrays of dynamic lengths that are written with others, and captured as a user's would be."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.errors import IndexOutOfBoundsError, ShapeError, UnsupportedSyntaxError
from mlirml.frontend.loops.dynamic_slices.slices import axis_of, is_one, is_static


def _along(axis: int, index: Any) -> tuple[Any, ...]:
    return (*[slice(None)] * axis, index)


def _axis(a: Any, axis: int) -> int:
    return axis_of(axis, a.ndim)


# Shapes.


def expand_dims(a: Any, axis: Any) -> Any:
    given = axis if type(axis) in (tuple, list) else (axis,)
    rank = a.ndim + len(given)
    axes = [d % rank for d in given]
    return a[tuple([None if d in axes else slice(None) for d in range(rank)])]


def squeeze(a: Any, axis: Any = None) -> Any:
    given = axis if type(axis) in (tuple, list) else (axis,)
    ones = [is_one(n) for n in a.shape]
    axes = [d for d in range(a.ndim) if ones[d]] if axis is None else [_axis(a, d) for d in given]
    for d in range(a.ndim):
        if axis is None and not ones[d] and a.shape[d] == 1:
            raise ShapeError("squeeze: a dynamic length is 1", help="give the `axis`")
    if not all(ones[d] for d in axes):
        raise ShapeError("squeeze: an axis of another size than 1")
    return a[tuple([0 if d in axes else slice(None) for d in range(a.ndim)])]


def atleast_1d(*arys: Any) -> Any:
    found = [a if np.ndim(a) else np.reshape(a, 1) for a in arys]
    return found[0] if len(found) == 1 else tuple(found)


def atleast_2d(*arys: Any) -> Any:
    found = [a if a.ndim >= 2 else a[None] for a in atleast_1d(*arys, 0)[:-1]]
    return found[0] if len(found) == 1 else tuple(found)


def moveaxis(a: Any, source: int, destination: int) -> Any:
    first, last = _axis(a, source), _axis(a, destination)
    order = [d for d in range(a.ndim) if d != first]
    order.insert(last, first)
    return np.transpose(a, order)


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    order = list(range(a.ndim))
    first, second = _axis(a, axis1), _axis(a, axis2)
    order[first], order[second] = second, first
    return np.transpose(a, order)


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    sizes = shape if type(shape) in (tuple, list) else (shape,)
    return np.zeros(sizes, array.dtype) + array


# Elements at other positions.


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    array = np.reshape(a, -1) if axis is None else a
    dim = 0 if axis is None else _axis(array, axis)
    if out is not None:
        raise UnsupportedSyntaxError("`np.take` of an array of dynamic length: `out` is not compiled")
    at = np.asarray(indices)
    if mode == "clip":
        at = np.clip(at, 0, array.shape[dim] - 1)
    if mode == "wrap":
        at = at % array.shape[dim]
    if dim == 0:
        return array[at]
    return np.moveaxis(take(np.moveaxis(array, dim, 0), at, 0), 0, dim)


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    if arr.ndim != 1:
        raise UnsupportedSyntaxError("`np.take_along_axis` of dynamic lengths is compiled for vectors")
    return arr[indices]


def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    array = np.reshape(arr, -1) if axis is None else arr
    dim = 0 if axis is None else _axis(array, axis)
    size = array.shape[dim]
    if type(obj) is not slice and np.ndim(obj) == 0:
        if obj < -size or obj >= size:
            raise IndexOutOfBoundsError("delete: the position is out of bounds for an array of changing length")
        position = obj + size if obj < 0 else obj
        if is_static(size):
            at = np.arange(size - 1)
            return take(array, np.where(at < position, at, at + 1), dim)
        parts = array[_along(dim, slice(None, position))], array[_along(dim, slice(position + 1, None))]
        return np.concatenate(parts, axis=dim)
    keep = np.ones(size, dtype=bool)
    keep[np.asarray(obj) if type(obj) in (list, tuple) else obj] = False
    return take(array, np.flatnonzero(keep), dim)


def tile(A: Any, reps: Any) -> Any:
    counts = reps if type(reps) in (tuple, list) else (reps,)
    if A.ndim != 1 or len(counts) > 2:
        raise UnsupportedSyntaxError("`np.tile` of dynamic lengths is compiled for vectors")
    size = len(A)
    row = A[np.arange(size * counts[-1]) % np.maximum(size, 1)]
    return row if len(counts) == 1 else np.zeros((counts[0], size * counts[-1]), A.dtype) + row


def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Any:
    width = pad_width if type(pad_width) in (tuple, list) else (pad_width, pad_width)
    width = width[0] if type(width[0]) in (tuple, list) else width
    before, after = width if len(width) == 2 else (width[0], width[0])
    if array.ndim != 1 or mode not in ("constant", "edge", "wrap", "reflect", "symmetric"):
        raise UnsupportedSyntaxError(f"`np.pad` of dynamic lengths is compiled for vectors, not with mode {mode!r}")
    if before < 0 or after < 0:
        raise ShapeError("pad: the widths cannot be negative")
    size = len(array)
    if mode == "constant":
        values = constant_values if type(constant_values) in (tuple, list) else (constant_values, constant_values)
        ends = np.full(before, values[0], array.dtype), np.full(after, values[-1], array.dtype)
        return np.concatenate([ends[0], array, ends[1]])
    if size == 0 and before + after > 0:
        raise ShapeError(f"pad: an empty array cannot be extended with mode {mode!r}")
    at = np.arange(-before, size + after)
    if mode == "edge":
        at = np.clip(at, 0, size - 1)
    if mode == "wrap":
        at = at % np.maximum(size, 1)
    if mode == "symmetric":
        at = at % np.maximum(2 * size, 1)
        at = np.minimum(at, 2 * size - 1 - at)
    if mode == "reflect":
        at = at % np.maximum(2 * size - 2, 1)
        at = np.minimum(at, 2 * size - 2 - at)
    return array[at]


def resize(a: Any, new_shape: Any) -> Any:
    size = new_shape[0] if type(new_shape) in (tuple, list) else new_shape
    flat = np.reshape(a, -1)
    if len(flat) == 0:
        return np.zeros(size, a.dtype)
    return flat[np.arange(size) % np.maximum(len(flat), 1)]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    dim, size = _axis(ary, axis), ary.shape[axis]
    if np.ndim(indices_or_sections) == 0:
        if size % indices_or_sections:
            raise ShapeError("split: the length is no multiple of the number of parts")
        return array_split(ary, indices_or_sections, dim)
    bounds = [0, *indices_or_sections, size]
    return [ary[_along(dim, slice(bounds[i], bounds[i + 1]))] for i in range(len(bounds) - 1)]


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    if np.ndim(indices_or_sections):
        return split(ary, indices_or_sections, axis)
    dim, size = _axis(ary, axis), ary.shape[axis]
    each, longer = size // indices_or_sections, size % indices_or_sections
    bounds = [each * i + np.minimum(i, longer) for i in range(indices_or_sections + 1)]
    return [ary[_along(dim, slice(bounds[i], bounds[i + 1]))] for i in range(indices_or_sections)]


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    result = default
    for i in range(len(condlist) - 1, -1, -1):
        result = np.where(condlist[i], choicelist[i], result)
    return result


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    if out is not None or mode != "raise":
        raise UnsupportedSyntaxError("`np.choose` of dynamic lengths is compiled without options")
    if np.any((a < 0) | (a >= len(choices))):
        raise IndexOutOfBoundsError("choose: an element is the number of no array to choose from")
    result = choices[0]
    for i in range(1, len(choices)):
        result = np.where(a == i, choices[i], result)
    return result if len(choices) > 1 else result + np.zeros_like(a)


# Orders.


def partition(a: Any, kth: Any, axis: Any = -1) -> Any:
    _check_kth(a, kth, axis)
    return np.sort(a, axis)


def argpartition(a: Any, kth: Any, axis: Any = -1) -> Any:
    _check_kth(a, kth, axis)
    return np.argsort(a, axis)


def _check_kth(a: Any, kth: Any, axis: int) -> None:
    size = a.shape[axis]
    if np.any((np.asarray(kth) < -size) | (np.asarray(kth) >= size)):
        raise ShapeError("partition: `kth` is out of bounds for an array of changing length")


def by_rows(function: Any, a: Any, axis: int, dtype: np.dtype) -> Any:
    """A function of the vectors along an axis of a matrix that returns a number for each."""
    rows = a.T if _axis(a, axis) == 0 else a
    result = np.empty(rows.shape[0], dtype)
    for i in range(rows.shape[0]):
        result[i] = function(rows[i])
    return result


def rows_by_rows(function: Any, a: Any, axis: int, dtype: np.dtype) -> Any:
    """A function of the vectors along an axis of a matrix that returns as many elements for each."""
    turned = _axis(a, axis) == 0
    rows = a.T if turned else a
    result = np.empty(rows.shape, dtype)
    for i in range(rows.shape[0]):
        result[i] = function(rows[i])
    return result.T if turned else result


# Comparisons.


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    one, other = np.asarray(a1), np.asarray(a2)
    if one.ndim != other.ndim:
        return False
    for d in range(one.ndim):
        if one.shape[d] != other.shape[d]:
            return False
    same = one == other
    if equal_nan:
        same = same | ((one != one) & (other != other))
    return bool(np.all(same))


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    return bool(np.all(np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)))


# Matrices.


def diagonal(a: Any, offset: int = 0) -> Any:
    size = np.maximum(np.minimum(a.shape[0] + np.minimum(offset, 0), a.shape[1] - np.maximum(offset, 0)), 0)
    at = np.arange(size)
    return a[at + np.maximum(-offset, 0), at + np.maximum(offset, 0)]


def diag(v: Any, k: int = 0) -> Any:
    if v.ndim == 2:
        return diagonal(v, k)
    size = len(v) + abs(k)
    result = np.zeros((size, size), v.dtype)
    at = np.arange(len(v))
    result[at + np.maximum(-k, 0), at + np.maximum(k, 0)] = v
    return result


def trace(a: Any, offset: int = 0) -> Any:
    return np.sum(diagonal(a, offset))


def triu(m: Any, k: int = 0) -> Any:
    below = np.arange(m.shape[0])[:, None] + k > np.arange(m.shape[1])
    return np.where(below, m.dtype.type(0), m)


def tril(m: Any, k: int = 0) -> Any:
    above = np.arange(m.shape[0])[:, None] + k < np.arange(m.shape[1])
    return np.where(above, m.dtype.type(0), m)


def ix_(*args: Any) -> Any:
    found = []
    for i in range(len(args)):
        given = np.asarray(args[i])
        positions = np.flatnonzero(given) if given.dtype == np.bool_ else given
        found.append(positions[tuple([slice(None) if d == i else None for d in range(len(args))])])
    return tuple(found)


def insert(arr: Any, obj: Any, values: Any) -> Any:
    size, count = len(arr), len(obj)
    if np.any((obj < -size) | (obj > size)):
        raise IndexOutOfBoundsError("insert: a position is out of bounds for an array of changing length")
    before = np.where(obj < 0, obj + size, obj)
    order = np.argsort(before)
    at = np.zeros(count, np.int64)
    at[order] = before[order] + np.arange(count)
    kept = np.ones(size + count, dtype=bool)
    kept[at] = False
    result = np.zeros(size + count, arr.dtype)
    result[at] = values
    result[np.flatnonzero(kept)] = arr
    return result


def compress(condition: Any, a: Any, axis: Any = None) -> Any:
    return take(a, np.flatnonzero(condition), axis)


# Convolutions and histograms.


def _sliding(a: Any, v: Any, first: Any, count: Any) -> Any:
    """The sums of `a[k + i] * v[i]` over the elements that both have, for `count` numbers `k` from `first` on."""
    result = np.zeros(count, np.result_type(a.dtype, v.dtype))
    for number in range(count):
        k = first + number
        low, high = np.maximum(-k, 0), np.minimum(len(v), len(a) - k)
        result[number] = np.dot(a[k + low : k + high], v[low:high])
    return result


def _extent(name: str, mode: Any, n: Any, m: Any) -> tuple[Any, Any]:
    """The first of all overlaps that a mode includes, counted from the first one, and their number."""
    mode = {0: "valid", 1: "same", 2: "full"}.get(mode, mode)
    if mode not in ("valid", "same", "full"):
        raise ShapeError(f"{name}: mode is 'valid', 'same' or 'full', not {mode!r}")
    if n == 0 or m == 0:
        raise ShapeError(f"{name}: an array is empty")
    shorter, longer = np.minimum(n, m), np.maximum(n, m)
    if mode == "full":
        return 0, n + m - 1
    return ((shorter - 1) // 2, longer) if mode == "same" else (shorter - 1, longer - shorter + 1)


def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    one, other = np.asarray(a), np.asarray(v)
    first, count = _extent("convolve", mode, len(one), len(other))
    return _sliding(one, other[::-1], first - (len(other) - 1), count)


def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    one, other = np.asarray(a), np.asarray(v)
    n, m = len(one), len(other)
    first, count = _extent("correlate", mode, n, m)
    if m > n:  # the overlaps are those of exchanged arrays, in reverse
        first = n + m - 1 - first - count
    return _sliding(one, np.conj(other), first - (m - 1), count)


def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    flat = np.reshape(a, -1)
    edges = histogram_bin_edges(flat, bins, range)
    last = len(edges) - 1
    at = np.searchsorted(edges, flat, "right") - 1
    at = np.where(flat == edges[last], last - 1, at)
    inside = np.flatnonzero((at >= 0) & (at < last))
    if weights is None:
        counts = np.zeros(last, np.int64)
        np.add.at(counts, at[inside], 1)
    else:
        given = np.reshape(weights, -1)
        counts = np.zeros(last, given.dtype)
        np.add.at(counts, at[inside], given[inside])
    if density:
        return counts / np.diff(edges).astype(np.float64) / np.sum(counts), edges
    return counts, edges


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    if isinstance(bins, str):
        raise UnsupportedSyntaxError("the number of bins of an array of dynamic length is given as a number")
    if np.ndim(bins):
        return np.asarray(bins)
    if range is not None:
        return np.histogram_bin_edges(np.zeros(1, a.dtype), bins, range)
    kind = np.result_type(a.dtype, 1.0).type
    if len(a) == 0:
        low, high = kind(0), kind(1)
    else:
        low, high = np.min(a) * 1.0, np.max(a) * 1.0
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ShapeError("histogram: the range of the elements is not finite")
    alike = low == high
    return np.linspace(np.where(alike, low - 0.5, low), np.where(alike, high + 0.5, high), bins + 1)


# Others.


def piecewise(x: Any, condlist: Any, funclist: Any) -> Any:
    result = np.zeros_like(x)
    if len(funclist) == len(condlist) + 1:
        result[...] = funclist[-1](x) if callable(funclist[-1]) else funclist[-1]
    for i in range(len(condlist)):
        new = funclist[i](x) if callable(funclist[i]) else funclist[i]
        result[...] = np.where(condlist[i], new, result)
    return result


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord == np.inf:
        return np.max(np.abs(x), axis=axis, keepdims=keepdims)
    if ord == -np.inf:
        return np.min(np.abs(x), axis=axis, keepdims=keepdims)
    if (x.ndim > 1 and axis is None) or ord not in (0, 1, 3, 4):
        raise UnsupportedSyntaxError(f"the norm {ord!r} of an array of dynamic length is not compiled")
    if ord == 0:
        return np.sum((x != 0).astype(np.abs(x).dtype), axis=axis, keepdims=keepdims)
    if ord == 1:
        return np.sum(np.abs(x), axis=axis, keepdims=keepdims)
    return np.sum(np.abs(x) ** ord, axis=axis, keepdims=keepdims) ** (1 / ord)

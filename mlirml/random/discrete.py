"""Distributions of integers and truth values, and choices of elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml.errors import DTypeError, ShapeError
from mlirml.ops.reductions import normalized_axes
from mlirml.random.checks import check_real, refuse, refuse_no_probability, refuse_probabilities, shape_of, spread
from mlirml.random.continuous import standard_gumbel, unit
from mlirml.random.keys import as_array, blocks, checked_key, drawing, dtype_in, dtype_of, known_value, sizes

__all__ = ["bernoulli", "categorical", "choice", "permutation", "randint"]

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_LOW = np.uint64(0xFFFFFFFF)


@drawing
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Any:
    """True with probability p."""
    key = checked_key("bernoulli", key)
    refuse_no_probability("bernoulli", p=p)
    single = hasattr(p, "dtype") and p.dtype.kind == "f" and p.dtype.itemsize < 8
    dtype, wanted = _SINGLE if single else _DOUBLE, shape_of("bernoulli", shape, p)
    return unit(key, wanted, dtype) < spread(p, wanted, dtype)


@drawing
def randint(key: Any, shape: Any, low: Any, high: Any, dtype: Any = np.int64) -> Any:
    """Integers of [low, high).

    The probabilities of two numbers differ by at most (high - low) / 2**64 of themselves. Where `high` is not above
    `low`, and both are dynamic, the result is `low`.
    """
    key, wanted, kind = checked_key("randint", key), shape_of("randint", shape, low, high), dtype_of("randint", dtype)
    if kind.kind not in "iub":
        raise DTypeError(f"randint: the dtype must be an integer, not {kind.name}")
    for name, x in (("low", low), ("high", high)):
        if type(x) is not int and dtype_in(x).kind not in "iu":
            raise DTypeError(f"randint: {name} must be an integer")
    first, last = known_value(low), known_value(high)
    if first is not None and last is not None:
        least, most = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
        if np.any(first < least) or np.any(last.astype(object) - 1 > most):
            raise ShapeError(f"randint: [{low}, {high}) does not fit {kind.name}")
        if np.any(first >= last):
            raise ShapeError("randint: low must be below high")
        spans = np.asarray(last.astype(object) - first.astype(object))
        whole = np.asarray(spans == 1 << 64)  # all integers, whose number is no u64
        span = np.where(whole, 0, spans).astype(np.uint64)
        start = np.asarray(first.astype(object) % (1 << 64)).astype(np.uint64)
    else:
        start, end = (as_array(x).astype(np.int64) + np.int64(0) for x in (low, high))  # no Python integers any more
        span, start = np.where(end > start, end - start, 1).astype(np.uint64), start.astype(np.uint64)
        whole = np.asarray(False)
    span, start = as_array(span), as_array(start)
    bits = blocks(key, wanted, "both")
    drawn = _upper_product(bits, span)
    return ((np.where(whole, bits, drawn) if whole.any() else drawn) + start).astype(kind)


def _upper_product(x: Any, y: Any) -> Any:
    """The upper 64 bits of products of u64."""
    half = np.uint64(32)
    x0, x1, y0, y1 = x & _LOW, x >> half, y & _LOW, y >> half
    middle = x1 * y0 + ((x0 * y0) >> half)
    other = x0 * y1 + (middle & _LOW)
    return x1 * y1 + (middle >> half) + (other >> half)


@drawing
def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Any:
    """Indices (i64) along an axis, with probabilities proportional to exp(logits)."""
    check_real("categorical", logits)
    key, logits = checked_key("categorical", key), as_array(logits)
    (axis,) = normalized_axes("categorical", logits.shape, axis)
    if logits.shape[axis] == 0:
        raise ShapeError(f"categorical: logits of shape {list(logits.shape)} have nothing to choose along axis {axis}")
    moved = np.moveaxis(logits, axis, -1)
    rest = moved.shape[:-1]
    wanted = rest if shape is None else sizes("categorical", shape)
    if rest and wanted[len(wanted) - len(rest) :] != rest:
        raise ShapeError(f"categorical: the shape {list(wanted)} must end in {list(rest)}, that of the logits")
    dtype = _SINGLE if moved.dtype.kind == "f" and moved.dtype.itemsize < 8 else _DOUBLE
    return np.argmax(standard_gumbel(key, (*wanted, moved.shape[-1]), dtype) + moved.astype(dtype), axis=-1)


def _is_count(x: Any) -> bool:
    return isinstance(x, (int, np.integer)) and not isinstance(x, bool)


def _order(key: Any, count: int) -> Any:
    """The numbers below `count` in random order: that of 64 random bits each."""
    return np.argsort(blocks(key, (count,), "both"), stable=True)


@drawing
def permutation(key: Any, x: Any, axis: int = 0) -> Any:
    """The rows of an array along an axis in random order; of an integer n, the numbers below n."""
    key = checked_key("permutation", key)
    if _is_count(x):
        if x < 0:
            raise ShapeError(f"permutation: {x} is negative")
        return _order(key, int(x))
    x = as_array(x)
    if not x.ndim:
        raise ShapeError("permutation: needs an array of at least 1 dimension, or an integer")
    (axis,) = normalized_axes("permutation", x.shape, axis)
    return np.take(x, _order(key, x.shape[axis]), axis=axis)


@drawing
def choice(key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0) -> Any:
    """Elements of an array along an axis, or of the numbers below an integer, with probabilities p.

    Probabilities that are dynamic are divided by their sum.
    """
    key, wanted = checked_key("choice", key), sizes("choice", shape)
    a = a if _is_count(a) else as_array(a)
    if not _is_count(a) and not a.ndim:
        raise ShapeError("choice: needs an array of at least 1 dimension, or an integer")
    (axis,) = (0,) if _is_count(a) else normalized_axes("choice", a.shape, axis)
    count = int(a) if _is_count(a) else a.shape[axis]
    total = math.prod(wanted)
    if count < 1 and total:
        raise ShapeError("choice: there is nothing to choose from")
    if not replace and total > count:
        raise ShapeError(f"choice: {total} of {count} elements cannot be chosen without replacement")
    if p is not None:
        if np.shape(p) != (count,):
            raise ShapeError(f"choice: probabilities of shape {list(np.shape(p))} for {count} elements")
        refuse_probabilities("choice", p)
        if not replace:
            few = f"without replacement {total} elements are chosen, and fewer have a probability above 0"
            refuse("choice", few, p, lambda value: np.count_nonzero(value) < total)
    if not total:
        index = np.zeros(wanted, np.int64)
        return index if _is_count(a) else np.take(a, index, axis=axis)
    index = _chosen(key, count, wanted, replace, None if p is None else as_array(p).astype(_DOUBLE))
    return index if _is_count(a) else np.take(a, index, axis=axis)


def _chosen(key: Any, count: int, shape: tuple[int, ...], replace: bool, p: Any) -> Any:
    if not replace:
        if p is None:
            return _order(key, count)[: math.prod(shape)].reshape(shape)
        scores = standard_gumbel(key, (count,), _DOUBLE) + np.log(np.maximum(p, 1e-300))
        return np.argsort(-scores, stable=True)[: math.prod(shape)].reshape(shape)
    if p is None:
        return _upper_product(blocks(key, shape, "both"), as_array(np.uint64(count))).astype(np.int64)
    ends = np.cumsum(p)
    return np.searchsorted(ends, unit(key, shape, _DOUBLE) * ends[-1], side="right").astype(np.int64)

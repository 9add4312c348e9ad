"""Distances of elements from the nearest zero of an array."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml.errors import ShapeError
from mlirml.frontend import control
from mlirml.frontend.current import current_trace
from mlirml.ndimage.arguments import for_each, public, taken
from mlirml.ops.registry import BOOL
from mlirml.special.floats import as_array

__all__ = ["distance_transform_bf", "distance_transform_cdt", "distance_transform_edt"]

_METRICS = {"taxicab": False, "cityblock": False, "manhattan": False, "chessboard": True}
"""The metrics of integers, and whether diagonal neighbours are at distance 1."""
_FEW_OFFSETS = 8
"""As many offsets take less time than lower envelopes do."""


def _along(shape: tuple[int, ...], axis: int) -> Any:
    """The indices along an axis, in an array that broadcasts with one of the shape."""
    return np.arange(shape[axis]).reshape([-1 if a == axis else 1 for a in range(len(shape))])


def _from_zeros(zero: Any, axis: int, step: float) -> tuple[Any, Any]:
    """The squared distance from the nearest zero along an axis, and its index there."""
    count = zero.shape[axis]
    here = _along(zero.shape, axis)
    far = 2 * count
    before = np.maximum.accumulate(np.where(zero, here, -far), axis=axis)
    after = np.flip(np.minimum.accumulate(np.flip(np.where(zero, here, far), axis), axis=axis), axis)
    nearest = np.where(here - before <= after - here, before, after)
    found = (nearest >= 0) & (nearest < count)
    squared = ((here - nearest) * step) ** 2
    return np.where(found, squared, math.inf), np.where(found, nearest, 0)


def _joined(squared: Any, nearest: Any, axis: int, step: float) -> tuple[Any, Any]:
    """The minimum along an axis of squared distances plus those along the axis, and the zero that it belongs to.

    Offset by offset, until no larger one can be a minimum; where that needs many of them, by lower envelopes, whose
    time does not grow with the distances.
    """
    count = squared.shape[axis]
    here = np.arange(count)
    is_compiled = current_trace() is not None and math.prod(squared.shape) > 0
    most = min(count, _FEW_OFFSETS) if is_compiled else count

    def is_open(carry: Any) -> Any:
        offset, best, _ = carry
        return (offset < count) & np.any(best > (offset * step) ** 2)

    def improve(carry: Any) -> Any:
        offset, best, zero = carry
        for positions in (here - offset, here + offset):
            # Outside of the array are its ends, which are nearer than the offset.
            positions = np.clip(positions, 0, count - 1)
            other = np.take(squared, positions, axis=axis) + (offset * step) ** 2
            zero = np.where(other < best, np.take(nearest, positions, axis=axis), zero)
            best = np.minimum(other, best)
        return offset + 1, best, zero

    found = control.while_loop(
        lambda carry: (carry[0] < most) & is_open(carry), improve, (np.ones((), np.int64), squared, nearest)
    )
    _, best, zero = found
    if most == count:
        return best, zero

    def by_envelopes() -> tuple[Any, Any]:
        axes = math.prod(squared.shape[:axis]), count, math.prod(squared.shape[axis + 1 :])
        below, source = _envelopes(squared.reshape(axes), nearest.reshape(axes), step)
        return below.reshape(squared.shape), source.reshape(squared.shape)

    below, source = control.cond(is_open(found), by_envelopes, lambda: (best, zero))
    return below, source


def _envelopes(squared: Any, nearest: Any, step: float) -> tuple[Any, Any]:
    """`_joined` for the second of three axes, in compiled code: lower envelopes of the parabolas above the elements.

    P. Felzenszwalb, D. Huttenlocher: Distance transforms of sampled functions. Theory of Computing 8, 2012. Parabola k
    of the envelope is lowest from position `start[k]` on, an integer; where two are equal, either.
    """
    outer, count, inner = squared.shape
    square = step * step

    def one_row(row: Any, carry: Any) -> Any:
        before, after = row // inner, row % inner
        below, zero, *stack = carry

        def add(i: Any, carry: Any) -> Any:
            last, start, source, height = carry
            own = (
                squared[before, i, after] + i * i * square
            )  # the parabola at 0, but for the distance of its vertex from there

            def is_hidden(carry: Any) -> Any:
                """True if parabola i is lower where the last one starts. The first one starts nowhere."""
                last, start, source, height = carry
                slope = 2 * square * (i - taken(source, last, 0))
                return own - taken(height, last, 0) <= taken(start, last, 0) * slope

            last, start, source, height = control.while_loop(
                is_hidden, lambda carry: (carry[0] - 1, *carry[1:]), (last, start, source, height)
            )
            slope = 2 * square * np.maximum(i - taken(source, last, 0), 1)
            crossing = np.ceil((own - taken(height, last, 0)) / slope)
            crossing = np.where(last < 0, -math.inf, np.maximum(crossing, taken(start, last, 0) + 1))
            is_lowest = (own < math.inf) & (crossing < count)
            at = np.where(is_lowest, last + 1, count)  # the last element is that of parabolas that are nowhere lowest
            start[at], source[at], height[at] = crossing, i, own
            return np.where(is_lowest, last + 1, last), start, source, height

        def read(k: Any, carry: Any) -> Any:
            last, below, zero = carry
            i = count - 1 - k
            vertex = taken(source, last, 0)
            lowest = squared[before, vertex, after] + ((i - vertex) * step) ** 2
            below[before, i, after] = np.where(last < 0, math.inf, lowest)
            zero[before, i, after] = nearest[before, vertex, after]
            return np.where(taken(start, last, 0) >= i, last - 1, last), below, zero

        start, source, height = stack
        start[0], source[0], height[0] = -math.inf, 0, 0.0
        last, start, source, height = control.fori_loop(0, count, add, (as_array(np.int64(-1)), start, source, height))
        _, below, zero = control.fori_loop(0, count, read, (last, below, zero))
        return below, zero, start, source, height

    stack = (np.zeros(count + 1), np.zeros(count + 1, np.int64), np.zeros(count + 1))
    init = (np.zeros(squared.shape), np.zeros(nearest.shape, nearest.dtype), *stack)
    below, zero, *_ = control.fori_loop(0, outer * inner, one_row, init)
    return below, zero


def _euclidean(x: Any, steps: tuple[float, ...]) -> tuple[Any, Any]:
    """The squared distances, and the flat index of the nearest zero."""
    shape = x.shape
    flat = np.arange(math.prod(shape)).reshape(shape)
    last = x.ndim - 1
    squared, along = _from_zeros(x == 0, last, steps[last])
    nearest = flat - _along(shape, last) + along
    for axis in range(last - 1, -1, -1):
        squared, nearest = _joined(squared, nearest, axis, steps[axis])
    return squared, nearest


@public(dtypes=BOOL)
def distance_transform_edt(
    input: Any, sampling: Any = None, return_distances: bool = True, return_indices: bool = False,
    distances: Any = None, indices: Any = None,
) -> Any:  # fmt: skip
    """The Euclidean distance of each element from the nearest zero, as f64; infinite where there is none.

    `sampling` is the distance of neighbours along each axis. With `return_indices` also the indices of the nearest
    zeros, one of those that are at the same distance, as an i32 array with one more dimension. Results are stored into
    `distances` and `indices` where these are passed, and are not returned then.
    """
    x = as_array(input)
    if not x.ndim:
        raise ShapeError("distance_transform_edt: an array of at least one dimension is needed")
    given = for_each("distance_transform_edt", "sampling", 1 if sampling is None else sampling, x.ndim)
    steps = tuple(float(step) for step in given)
    squared, nearest = _euclidean(x, steps)
    found: list[Any] = []
    if return_distances:
        found += _stored(np.sqrt(squared), distances)
    if return_indices:
        found += _stored(_indices(nearest, x.shape), indices)
    return found[0] if len(found) == 1 else tuple(found) or None


def _indices(flat: Any, shape: tuple[int, ...]) -> Any:
    """The indices along each axis for flat ones."""
    found = []
    for size in reversed(shape):
        found.append(flat % size)
        flat = flat // size
    return np.stack(found[::-1]).astype(np.int32)


def _stored(x: Any, array: Any) -> list[Any]:
    """The result in a list, or nothing where it is stored into an array."""
    if array is None:
        return [x]
    array[...] = x
    return []


@public(dtypes=BOOL)
def distance_transform_cdt(input: Any, metric: str = "chessboard") -> Any:
    """The number of steps from the nearest zero as i32, -1 where there is none.

    The metric is "chessboard", with diagonal steps, or "taxicab" without.
    """
    x = as_array(input) != 0
    if metric not in _METRICS:
        raise ShapeError(
            f"distance_transform_cdt: there is no metric {metric!r}", help=f"metrics are {', '.join(_METRICS)}"
        )
    far = sum(x.shape) + 1  # more than any distance
    steps = np.where(x, np.int32(far), np.int32(0))
    for axis in range(x.ndim - 1, -1, -1):
        is_diagonal = _METRICS[metric] and axis < x.ndim - 1
        steps = _with_diagonal_steps(steps, axis, far) if is_diagonal else _with_steps(steps, axis)
    return np.where(steps < far, steps, -1).astype(np.int32)


def _with_steps(steps: Any, axis: int) -> Any:
    """The least of the numbers along an axis plus the distances from them."""
    here = _along(steps.shape, axis).astype(np.int32)
    before = np.minimum.accumulate(steps - here, axis=axis) + here
    after = np.flip(np.minimum.accumulate(np.flip(steps + here, axis), axis=axis), axis) - here
    return np.minimum(before, after)


def _with_diagonal_steps(steps: Any, axis: int, far: int) -> Any:
    """The numbers of steps from zeros, where those without steps along an axis are known.

    A step along the axis is one along the axes after it too. A. Rosenfeld, J. Pfaltz: Distance functions on digital
    pictures, Pattern Recognition 1, 1968.
    """
    found = np.moveaxis(steps, axis, 0).copy()
    count = found.shape[0]

    def around(slab: Any) -> Any:
        """The least of an element and its neighbours along the later axes."""
        for later in range(axis, slab.ndim):
            wide = np.pad(slab, [(1, 1) if a == later else (0, 0) for a in range(slab.ndim)], constant_values=far)
            parts = [np.take(wide, np.arange(k, k + slab.shape[later]), axis=later) for k in range(3)]
            slab = np.minimum(np.minimum(parts[0], parts[1]), parts[2])
        return slab

    def forward(i: Any, found: Any) -> Any:
        found[i + 1] = np.minimum(found[i + 1], around(found[i]) + 1)
        return found

    def backward(i: Any, found: Any) -> Any:
        last = count - 1 - i
        found[last - 1] = np.minimum(found[last - 1], around(found[last]) + 1)
        return found

    if count > 1:
        found = control.fori_loop(0, count - 1, forward, found)
        found = control.fori_loop(0, count - 1, backward, found)
    return np.moveaxis(found, 0, axis)


@public(dtypes=BOOL)
def distance_transform_bf(input: Any, metric: str = "euclidean", sampling: Any = None) -> Any:
    """The distance of each element from the nearest zero in the metric "euclidean", "taxicab" or "chessboard"."""
    if metric == "euclidean":
        return distance_transform_edt(input, sampling)
    return distance_transform_cdt(input, metric).astype(np.uint32)

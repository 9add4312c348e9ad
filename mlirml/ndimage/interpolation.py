"""Arrays at coordinates between their elements: shifted, zoomed, turned, or anywhere, by splines of order 0 to 5.

Coordinates that each depend on one index, as those of `zoom` and `shift`, are computed axis by axis; others take
(order + 1)**ndim elements for each point.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.errors import DTypeError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.ndimage.arguments import (
    Output,
    checked_axis,
    checked_mode,
    extended,
    for_each,
    integer,
    prepared,
    public,
    taken,
    working_dtype,
)
from mlirml.ndimage.splines import checked_order, continued, filtered, mapped, weights
from mlirml.special.floats import as_array

__all__ = ["affine_transform", "map_coordinates", "rotate", "shift", "zoom"]

_MOST_TAPS = 16
"""The greatest number of elements that each are a term of a sum that is written out."""
_MARGIN = 12
"""The elements by which an array is extended before it is filtered, for modes whose border cannot be."""


def _prepared(
    name: str, input: Any, output: Any, order: Any, mode: Any, cval: Any, prefilter: bool
) -> tuple[Any, Output, int, str, int]:
    """The coefficients, the output, the order, the mode, and the margin that was added to each side."""
    x, out = prepared(name, input, output)
    if not x.ndim:
        raise ShapeError(f"{name}: needs an array of at least 1 dimension")
    order, mode = checked_order(name, order), _checked_mode(name, mode)
    x, margin = _coefficients(x, x.ndim, order, mode, cval, prefilter, out)
    return x, out, order, mode, margin


def _checked_mode(name: str, mode: Any) -> str:
    return "reflect" if mode == "grid-mirror" else checked_mode(name, mode)


def _coefficients(x: Any, rank: int, order: int, mode: str, cval: Any, prefilter: bool, out: Output) -> tuple[Any, int]:
    """The coefficients along the first `rank` axes, and the margin that was added to each side of them."""
    x = x.astype(working_dtype(x.dtype, *([] if out.dtype.kind in "biu" else [out.dtype])))
    if order < 2 or not prefilter or not x.size:
        return x, 0
    margin = _MARGIN if mode in ("nearest", "grid-constant") else 0
    margins = dict.fromkeys(range(rank), (margin, margin))
    return filtered(extended(x, margins, dict.fromkeys(margins, mode), cval), rank, order, mode), margin


_ROUNDING = 1e-9


def _finished(x: Any, out: Output) -> Any:
    """The result in its dtype: integers are rounded, halves away from 0, and clamped; booleans are True from 1 on."""
    if out.dtype.kind in "iu" and x.dtype.kind == "f":
        limits = np.iinfo(out.dtype)
        x = np.trunc(np.where(x > 0, x + 0.5, x - 0.5))
        high = float(limits.max) if float(limits.max) <= limits.max else np.nextafter(float(limits.max), 0)
        return out.store(np.clip(x, float(limits.min), high).astype(out.dtype))
    if out.dtype.kind == "b" and x.dtype.kind == "f":
        return out.store(np.abs(x) >= 1 - _ROUNDING)  # SciPy cuts off fractions, and so the rounding of sums that are 1
    return out.store(x)


class _Taps:
    """The elements that the values at coordinates along an axis are made of: positions, weights and what is outside.

    `inside` is None, or says for each coordinate ("constant") or element ("grid-constant") if the array has it.
    """

    def __init__(self, c: Any, count: int, order: int, mode: str, dtype: Any) -> None:
        if count > np.iinfo(np.int32).max:
            raise ShapeError(f"an axis of {count} elements is too long to interpolate along")
        self.valid: Any = None
        if mode == "constant":
            self.valid = (c >= 0) & (c <= count - 1)
            c = np.where(self.valid, c, 0)
        c = mapped(c, count, mode)
        base = np.floor(c if order % 2 else c + 0.5)
        fraction = (c - base if order % 2 else c - base + 0.5).astype(dtype)
        within = np.clip(base, -order - 1.0, count + order + 0.0) if mode == "grid-constant" else base
        first = within.astype(np.int32) - order // 2
        self.weights = weights(fraction, order)
        if not order and mode != "constant" and (isinstance(c, Traced) or not np.isfinite(c).all()):
            self.weights = [np.where(np.isfinite(c), 1.0, np.nan).astype(dtype)]
        self.positions, self.inside = [], []
        for k in range(order + 1):
            i = first + k
            self.positions.append(continued(i, count, mode, order))
            self.inside.append((i >= 0) & (i < count) if mode == "grid-constant" else None)


def _along_axes(x: Any, coordinates: list[Any], order: int, mode: str, cval: Any) -> Any:
    """The array at all combinations of one coordinate for each axis, of which each is a vector, or None as it is."""
    valid: Any = None
    for axis, c in enumerate(coordinates):
        if c is None:
            continue
        taps = _Taps(c, x.shape[axis], order, mode, x.real.dtype)
        shape = tuple(-1 if d == axis else 1 for d in range(x.ndim))
        total: Any = None
        for weight, place, inside in zip(taps.weights, taps.positions, taps.inside):
            value = taken(x, place, axis)
            if inside is not None:
                value = np.where(inside.reshape(shape), value, cval).astype(x.dtype)
            if not isinstance(weight, float):
                value = value * weight.reshape(shape)
            total = value if total is None else total + value
        if taps.valid is not None:
            here = taps.valid.reshape(shape)
            valid = here if valid is None else valid & here
        x = total
    return x if valid is None else np.where(valid, x, cval).astype(x.dtype)


def _at_points(x: Any, coordinates: list[Any], order: int, mode: str, cval: Any) -> Any:
    """The array at points [...] of which a coordinate is given for each axis; further axes of `x` are a batch."""
    sizes, batch = x.shape[: len(coordinates)], x.shape[len(coordinates) :]
    if math.prod(sizes) > np.iinfo(np.int32).max:
        raise ShapeError(f"an array of shape {list(x.shape)} is too large to interpolate in")
    taps = [_Taps(c, n, order, mode, x.real.dtype) for c, n in zip(coordinates, sizes)]
    flat = x.reshape((math.prod(sizes), *batch))
    ones = (1,) * len(batch)

    def spread(points: Any) -> Any:
        return points.reshape((*points.shape, *ones)) if batch else points

    total = _sum_over_taps(flat, sizes, taps, cval, spread, order)
    valid = None
    for tap in taps:
        if tap.valid is not None:
            valid = tap.valid if valid is None else valid & tap.valid
    return total if valid is None else np.where(spread(valid), total, cval).astype(x.dtype)


def _sum_over_taps(
    flat: Any, sizes: tuple[int, ...], taps: list[_Taps], cval: Any, spread: Callable[[Any], Any], order: int
) -> Any:
    """The sum over all elements that values are made of, in a loop of its own where there are many."""
    if (order + 1) ** len(sizes) > _MOST_TAPS:
        return _sum_over_stacks(flat, sizes, taps, cval, spread)
    total: Any = None
    for choice in itertools.product(range(order + 1), repeat=len(sizes)):
        place, weight, inside = None, None, None
        for tap, n, k in zip(taps, sizes, choice):
            place = tap.positions[k] if place is None else place * np.int32(n) + tap.positions[k]
            weight = tap.weights[k] if weight is None else weight * tap.weights[k]
            if tap.inside[k] is not None:
                inside = tap.inside[k] if inside is None else inside & tap.inside[k]
        value = taken(flat, place, 0)
        if inside is not None:
            value = np.where(spread(inside), value, cval).astype(flat.dtype)
        if not isinstance(weight, float):
            value = value * spread(weight)
        total = value if total is None else total + value
    return total


def _sum_over_stacks(
    flat: Any, sizes: tuple[int, ...], taps: list[_Taps], cval: Any, spread: Callable[[Any], Any]
) -> Any:
    """The same as sums over leading dimensions, one for each axis."""

    def stacked(values: list[Any], axis: int) -> Any:
        array = np.stack(np.broadcast_arrays(*values))
        return array.reshape((*(-1 if d == axis else 1 for d in range(len(sizes))), *array.shape[1:]))

    place: Any = 0
    weight: Any = 1
    inside: Any = True
    for axis, (tap, n) in enumerate(zip(taps, sizes)):
        place = place * np.int32(n) + stacked(tap.positions, axis)
        weight = weight * stacked(tap.weights, axis)
        if tap.inside[0] is not None:
            inside = inside & stacked(tap.inside, axis)
    value = taken(flat, place, 0)
    if inside is not True:
        value = np.where(spread(inside), value, cval).astype(flat.dtype)
    return np.sum(value * spread(weight), axis=tuple(range(len(sizes))))


def _floats(x: Any) -> Any:
    x = as_array(x)
    return x if x.dtype.kind == "f" and x.dtype.itemsize > 2 else x.astype(np.float64)


@public("input", "coordinates")
def map_coordinates(
    input: Any, coordinates: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:  # fmt: skip
    """The array at points: `coordinates` [ndim, ...] gives a result of the shape [...]."""
    x, out, order, mode, margin = _prepared("map_coordinates", input, output, order, mode, cval, prefilter)
    c = np.stack(coordinates) if isinstance(coordinates, (list, tuple)) else coordinates
    if as_array(c).dtype.kind == "c":
        raise DTypeError("map_coordinates: coordinates are real numbers")
    c = _floats(c)
    if c.ndim < 1 or c.shape[0] != x.ndim:
        raise ShapeError(f"map_coordinates: coordinates of shape {list(c.shape)} for {x.ndim} dimensions")
    if not x.size:
        return _of_nothing(x, out, c.shape[1:], cval)
    return _finished(_at_points(x, [c[d] + margin for d in range(x.ndim)], order, mode, cval), out)


def _of_nothing(x: Any, out: Output, shape: tuple[int, ...], cval: Any) -> Any:
    """A result that is made of no elements."""
    if math.prod(shape):
        raise ShapeError(f"{out.name}: there is nothing to interpolate, the array of shape {list(x.shape)} is empty")
    return out.store(np.full(shape, cval, x.dtype))


def _resampled(x: Any, coordinates: list[Any], order: int, mode: str, cval: Any, margin: int, out: Output) -> Any:
    """`_along_axes` for coordinates without the margin."""
    if not x.size:
        return _of_nothing(x, out, tuple(c.shape[0] for c in coordinates), cval)
    return _finished(_along_axes(x, [c + margin for c in coordinates], order, mode, cval), out)


@public("input", "shift")
def shift(
    input: Any, shift: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:  # fmt: skip
    """The array moved by a distance along each axis, or the same along all of them."""
    x, out, order, mode, margin = _prepared("shift", input, output, order, mode, cval, prefilter)
    distances = for_each(out.name, "shift", shift, x.ndim)
    sizes = as_array(input).shape
    places = [np.arange(n, dtype=np.float64) - _floats(s) for n, s in zip(sizes, distances)]
    return _resampled(x, places, order, mode, cval, margin, out)


@public("input")
def zoom(
    input: Any, zoom: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: Any = 0.0,
    prefilter: bool = True, *, grid_mode: bool = False,
) -> Any:  # fmt: skip
    """The array with a factor times as many elements along each axis, static ones.

    The first and last elements stay where they are; with `grid_mode` the edges around them do.
    """
    x, out, order, mode, margin = _prepared("zoom", input, output, order, mode, cval, prefilter)
    sizes = as_array(input).shape
    places = []
    for n, factor in zip(sizes, for_each(out.name, "zoom", zoom, x.ndim)):
        if isinstance(factor, Traced) and factor._known() is None:
            raise ShapeError("zoom: the shape of the result would depend on the data", help="make the factor static")
        count = round(n * float(factor))
        if count < 0:
            raise ShapeError(f"zoom: a factor of {float(factor)} makes a negative size")
        steps = n, count
        if not grid_mode:
            steps = n - 1, count - 1
        ratio = steps[0] / steps[1] if steps[1] else 1.0
        positions = np.arange(count, dtype=np.float64)
        places.append((positions + 0.5) * ratio - 0.5 if grid_mode else positions * ratio)
    return _resampled(x, places, order, mode, cval, margin, out)


@public("input", "matrix", "offset")
def affine_transform(
    input: Any, matrix: Any, offset: Any = 0.0, output_shape: Any = None, output: Any = None, order: int = 3,
    mode: str = "constant", cval: Any = 0.0, prefilter: bool = True,
) -> Any:  # fmt: skip
    """The array at `matrix @ index + offset` for each index of the result.

    `matrix` is [ndim, ndim], [ndim] for a diagonal one, or [ndim, ndim + 1] or [ndim + 1, ndim + 1] with the offset in
    its last column. The result has the shape of the input, if no other is given.
    """
    x, out, order, mode, margin = _prepared("affine_transform", input, output, order, mode, cval, prefilter)
    rank, m = x.ndim, _floats(matrix)
    shape = as_array(input).shape if out.array is None else out.array.shape
    if output_shape is not None:
        shape = tuple(
            integer(out.name, "output_shape", n) for n in for_each(out.name, "output_shape", output_shape, rank)
        )
    if m.shape in ((rank, rank + 1), (rank + 1, rank + 1)) and m.ndim == 2:
        offset, m = [m[d, rank] for d in range(rank)], m[:rank, :rank]
    if m.shape not in ((rank,), (rank, rank)):
        raise ShapeError(f"affine_transform: a matrix of shape {list(m.shape)} for {rank} dimensions")
    moved = [_floats(o) for o in for_each(out.name, "offset", offset, rank)]
    index = [np.arange(n, dtype=np.float64) for n in shape]
    if m.ndim == 1:
        return _resampled(x, [i * m[d] + moved[d] for d, i in enumerate(index)], order, mode, cval, margin, out)
    if not x.size:
        return _of_nothing(x, out, shape, cval)
    return _finished(_at_points(x, _points(m, moved, shape, margin), order, mode, cval), out)


def _points(m: Any, offset: list[Any], shape: tuple[int, ...], margin: int) -> list[Any]:
    """The coordinates `m @ index + offset + margin` for each index of a shape."""
    rank = len(shape)
    grid = [np.arange(n, dtype=np.float64).reshape([-1 if e == d else 1 for e in range(rank)])
            for d, n in enumerate(shape)]  # fmt: skip
    found = []
    for row in range(rank):
        total: Any = 0.0
        for d in range(rank):
            total = total + m[row, d] * grid[d]
        found.append(total + offset[row] + margin)
    return found


def _quarter(angle: Any) -> tuple[Any, Any]:
    """Cosine and sine of degrees, exact for quarters of a turn."""
    if not isinstance(angle, Traced) and float(angle) % 90 == 0:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[int(float(angle) // 90) % 4]
    return np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))


@public("input", "angle")
def rotate(
    input: Any, angle: Any, axes: Any = (1, 0), reshape: bool = True, output: Any = None, order: int = 3,
    mode: str = "constant", cval: Any = 0.0, prefilter: bool = True,
) -> Any:  # fmt: skip
    """The array turned by degrees in the plane of two axes, about its middle.

    With `reshape` the result has room for all of the array, and the angle is static.
    """
    whole, out = prepared("rotate", input, output)
    if whole.ndim < 2 or len(axes) != 2:
        raise ShapeError(f"rotate: needs two axes, not {axes!r} of {whole.ndim} dimensions")
    one, two = sorted(checked_axis("rotate", whole, a) for a in axes)
    if one == two:
        raise ShapeError("rotate: the axes of the plane are equal")
    if isinstance(angle, Traced) and angle._known() is not None:
        angle = float(angle)
    if reshape and isinstance(angle, Traced):
        raise ShapeError("rotate: the shape of the result would depend on the data", help="pass `reshape=False`")
    c, s = _quarter(angle)
    shape = [whole.shape[one], whole.shape[two]]
    if reshape:
        high, wide = shape
        sides = [
            sorted((0.0, s * wide, c * high, c * high + s * wide)),
            sorted((0.0, c * wide, -s * high, c * wide - s * high)),
        ]
        shape = [int(side[-1] - side[0] + 0.5) for side in sides]
    middle = [(n - 1) / 2 for n in shape]
    offset = [
        (whole.shape[one] - 1) / 2 - (c * middle[0] + s * middle[1]),
        (whole.shape[two] - 1) / 2 - (-s * middle[0] + c * middle[1]),
    ]
    planes = np.moveaxis(whole, (one, two), (0, 1))
    if not whole.size:
        return _of_nothing(whole, out, (*shape, *planes.shape[2:]), cval)
    order, mode = checked_order("rotate", order), _checked_mode("rotate", mode)
    x, margin = _coefficients(planes, 2, order, mode, cval, prefilter, out)
    rows = np.arange(shape[0], dtype=np.float64)[:, None]
    columns = np.arange(shape[1], dtype=np.float64)[None]
    places = [
        rows * c + columns * s + offset[0] + margin,
        rows * -s + columns * c + offset[1] + margin,
    ]
    return _finished(np.moveaxis(_at_points(x, places, order, mode, cval), (0, 1), (one, two)), out)

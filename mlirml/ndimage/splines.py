"""B-splines on a grid of points: their coefficients, and their weights at coordinates between the points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml.errors import ShapeError
from mlirml.ndimage.arguments import (
    PADDINGS,
    Output,
    checked_axis,
    checked_mode,
    extended,
    integer,
    part,
    prepared,
    public,
    working_dtype,
)

__all__ = ["spline_filter", "spline_filter1d"]

_POLES = {
    2: (math.sqrt(8) - 3,),
    3: (math.sqrt(3) - 2,),
    4: (
        math.sqrt(664 - math.sqrt(438976)) + math.sqrt(304) - 19,
        math.sqrt(664 + math.sqrt(438976)) - math.sqrt(304) - 19,
    ),
    5: (
        math.sqrt(67.5 - math.sqrt(4436.25)) + math.sqrt(26.25) - 6.5,
        math.sqrt(67.5 + math.sqrt(4436.25)) - math.sqrt(26.25) - 6.5,
    ),
}
"""The poles of the filter of each order (Unser, Splines: a perfect fit for signal and image processing, 1999)."""


def checked_order(name: str, order: Any) -> int:
    """The order of a spline."""
    found = integer(name, "order", order)
    if not 0 <= found <= 5:
        raise ShapeError(f"{name}: the order of a spline is 0 to 5, not {found}")
    return found


def border_of_coefficients(mode: str) -> str:
    """The mode in which the coefficients of a spline continue: those that have no exact filter are mirrored."""
    if mode in ("constant", "wrap", "grid-constant"):
        return "mirror"
    return "reflect" if mode == "nearest" else mode


def coefficients(x: Any, order: int, axis: int, mode: str) -> Any:
    """The coefficients of the spline through the elements along an axis, in the dtype of `x`.

    Each pole z is a recursive filter 1 / ((1 - z s) (1 - z / s)) of shifts s. The filter is written as the product of
    1 + z**k s**k for k = 1, 2, 4, ... up to where the power vanishes, in both directions: few passes, none of which
    depends on its own results. Borders are extended as far as the product reaches.
    """
    count = x.shape[axis]
    if order < 2 or not x.size or (count == 1 and PADDINGS[mode] != "constant"):
        return x
    small = np.finfo(x.dtype).eps / 4
    passes = [(z, math.ceil(math.log2(math.log(small) / math.log(-z)))) for z in _POLES[order]]
    reach = sum(2**steps - 1 for _, steps in passes)
    x = extended(x, {axis: (reach, reach)}, {axis: border_of_coefficients(mode)}, 0)
    for pole, steps in passes:
        for k in range(steps):
            step = 2**k
            rest = x.shape[axis] - step
            x = part(x, axis, step, rest) + pole**step * part(x, axis, 0, rest)
        for k in range(steps):
            step = 2**k
            rest = x.shape[axis] - step
            x = part(x, axis, 0, rest) + pole**step * part(x, axis, step, rest)
    return x * math.prod((1 - z) ** 2 for z in _POLES[order])


def filtered(x: Any, rank: int, order: int, mode: str) -> Any:
    """`coefficients` along the first `rank` axes."""
    for axis in range(rank):
        x = coefficients(x, order, axis, mode)
    return x


@public("input")
def spline_filter1d(input: Any, order: int = 3, axis: int = -1, output: Any = np.float64, mode: str = "mirror") -> Any:
    """The coefficients of the spline of an order through the elements along an axis."""
    x, out = prepared("spline_filter1d", input, output)
    order, mode = checked_order(out.name, order), checked_mode(out.name, mode)
    return out.store(coefficients(_as_floats(x, out), order, checked_axis(out.name, x, axis), mode))


@public("input")
def spline_filter(input: Any, order: int = 3, output: Any = np.float64, mode: str = "mirror") -> Any:
    """The coefficients of the spline of an order through the elements, along all axes."""
    x, out = prepared("spline_filter", input, output)
    return out.store(filtered(_as_floats(x, out), x.ndim, checked_order(out.name, order), checked_mode(out.name, mode)))


def _as_floats(x: Any, out: Output) -> Any:
    return x.astype(working_dtype(x.dtype, out.dtype))


def weights(fraction: Any, order: int) -> list[Any]:
    """The values of the order + 1 B-splines that are not zero at a fraction of the distance between two knots.

    By de Boor's recurrence for knots at distance 1 (de Boor, On calculating with B-splines, 1972).
    """
    values: list[Any] = [1.0]
    for degree in range(1, order + 1):
        rising: list[Any] = [0.0]
        for k, value in enumerate(values):
            share = value / degree
            rising[-1] = rising[-1] + (k + 1 - fraction) * share
            rising.append((fraction + (degree - k - 1)) * share)
        values = rising
    return values


def mapped(c: Any, count: int, mode: str) -> Any:
    """Coordinates moved to those of elements, as a mode continues an array of `count` elements.

    They stay as they are for modes "constant" and "grid-constant".
    """
    if mode in ("constant", "grid-constant"):
        return c
    if mode == "nearest":
        return np.clip(c, 0, count - 1)
    if count <= 1:
        return c * 0
    last = count - 1
    if mode in ("wrap", "grid-wrap"):
        period = last if mode == "wrap" else count
        below = c + period * (np.floor(-c / period) + 1)
        return np.where(c < 0, below, np.where(c > last, c - period * np.floor(c / period), c))
    if mode == "mirror":
        period = 2 * last
        below = c + period * np.floor(-c / period)
        below = np.where(below <= -last, below + period, -below)
        above = c - period * np.floor(c / period)
        return np.where(c < 0, below, np.where(above >= count, period - above, above))
    period = 2 * count
    below = c + period * np.floor(-c / period)
    below = np.where(below < -count, below + period, -below - 1)
    above = c - period * np.floor(c / period)
    return np.where(c < 0, below, np.where(above >= count, period - 1 - above, above))


def continued(i: Any, count: int, mode: str, order: int) -> Any:
    """The positions of elements for integers near them, as the coefficients continue."""
    border = border_of_coefficients(mode)
    if count == 1:
        return i * 0
    if mode in ("nearest", "grid-constant") or (order <= 1 and mode in ("constant", "wrap")):
        return np.clip(i, 0, count - 1)  # of the latter three, what lies outside has a weight of 0
    if border == "grid-wrap":
        return i % count
    if border == "mirror":
        return np.abs((i + count - 1) % (2 * count - 2) - (count - 1))
    i = i % (2 * count)
    return np.minimum(i, 2 * count - 1 - i)

"""Arrays at coordinates between their elements: order 0 takes the nearest element, order 1 interpolates linearly."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from mlirml.errors import ArgumentError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.frames import at_user_line
from mlirml.ndimage.borders import among, as_image, axes_of, computed_in, for_axes, stored_as

_MODES = (
    "reflect", "grid-mirror", "mirror", "nearest", "wrap", "grid-wrap", "constant", "grid-constant",
)  # fmt: skip


def map_coordinates(
    input: Any, coordinates: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: float = 0.0,
    prefilter: bool = True,
) -> Any:  # fmt: skip
    """The array at coordinates [D, ...], one row for each of its dimensions.

    Raises ArgumentError for another `order` than 0 and 1; SciPy's default is 3.
    """
    x = as_image("map_coordinates", input)
    at = coordinates if isinstance(coordinates, Traced) else np.asarray(coordinates)
    if at.ndim < 1 or at.shape[0] != x.ndim:
        with at_user_line():
            raise ShapeError(f"ndimage.map_coordinates: coordinates of shape {list(at.shape)} for {x.ndim} dimensions")
    return stored_as(x, _at("map_coordinates", x, [at[i] for i in range(x.ndim)], order, mode, cval), output)


def _at(name: str, x: Any, coordinates: list[Any], order: int, mode: str, cval: float) -> Any:
    if order not in (0, 1) or mode not in _MODES:
        with at_user_line():
            raise ArgumentError(
                f"ndimage.{name}: orders 0 and 1 are compiled, and the modes {', '.join(_MODES)}; "
                f"given are order {order!r} and mode {mode!r}",
                help="give `order=1`",
            )
    dtype = computed_in(x)
    wide = among(x.astype(dtype), coordinates)
    points = [_reflected(c.astype(np.float64), n, mode) for c, n in zip(coordinates, x.shape)]
    shape = coordinates[0].shape if coordinates else ()
    outside: Any = np.zeros(shape, bool)
    if mode == "constant":
        for c, n in zip(coordinates, x.shape):
            outside = outside | (c < 0) | (c > n - 1)
    corners = []
    for c in points:
        if order == 0:
            corners.append([(np.floor(c + 0.5).astype(np.int64), None)])
            continue
        low = np.floor(c)
        share = (c - low).astype(dtype)
        first = low.astype(np.int64)
        corners.append([(first, 1 - share), (first + 1, share)])
    total: Any = None
    for corner in itertools.product(*corners):
        index, lost = [], outside & False
        for (i, _), n in zip(corner, x.shape):
            if mode == "grid-constant":
                lost = lost | (i < 0) | (i >= n)
            index.append(_index(i, n, mode))
        value = wide[tuple(index)] if index else wide
        if mode == "grid-constant":
            value = np.where(lost, np.asarray(cval, dtype), value)
        for _, weight in corner:
            value = value if weight is None else value * weight
        total = value if total is None else total + value
    return np.where(outside, np.asarray(cval, dtype), total) if mode == "constant" else total


def _reflected(c: Any, n: int, mode: str) -> Any:
    """Coordinates within the array, of those beyond it by the rule of the mode."""
    last = n - 1
    if mode == "nearest":
        return np.clip(c, 0, last)
    if mode == "mirror":
        return np.zeros_like(c) if not last else last - np.abs(np.mod(c, 2 * last) - last)
    if mode in ("reflect", "grid-mirror"):
        return np.clip(n - 0.5 - np.abs(np.mod(c + 0.5, 2 * n) - n), -0.5, n - 0.5)
    if mode == "wrap":
        return np.zeros_like(c) if not last else np.where((c < 0) | (c > last), np.mod(c, last), c)
    if mode == "grid-wrap":
        return np.mod(c, n)
    if mode == "constant":
        return np.clip(c, 0, last)
    return np.clip(c, -2, n + 1)


def _index(i: Any, n: int, mode: str) -> Any:
    if mode == "grid-wrap":
        return np.mod(i, n)
    return np.clip(i, 0, n - 1)


def affine_transform(
    input: Any, matrix: Any, offset: Any = 0.0, output_shape: Any = None, output: Any = None, order: int = 3,
    mode: str = "constant", cval: float = 0.0, prefilter: bool = True,
) -> Any:  # fmt: skip
    """The array at matrix @ o + offset for each index o of the result; a vector is the diagonal of the matrix.

    A matrix of one more row and column, or one more column, has homogeneous coordinates, with the offset last.
    """
    x = as_image("affine_transform", input)
    m = matrix if isinstance(matrix, Traced) else np.asarray(matrix, np.float64)
    moved = offset if isinstance(offset, Traced) else np.asarray(offset, np.float64)
    if m.ndim == 2 and m.shape[1] == x.ndim + 1 and m.shape[0] in (x.ndim, x.ndim + 1):
        m, moved = m[: x.ndim, : x.ndim], m[: x.ndim, x.ndim]
    if m.shape not in ((x.ndim,), (x.ndim, x.ndim)):
        with at_user_line():
            raise ShapeError(f"ndimage.affine_transform: a matrix of shape {list(m.shape)} for {x.ndim} dimensions")
    shape = tuple(x.shape if output_shape is None else output_shape)
    grid = np.indices(shape).astype(np.float64)
    moved = np.broadcast_to(moved, (x.ndim,))
    coordinates = []
    for i in range(x.ndim):
        along = m[i] * grid[i] if m.ndim == 1 else sum(m[i, j] * grid[j] for j in range(x.ndim))
        coordinates.append(along + moved[i])
    return stored_as(x, _at("affine_transform", x, coordinates, order, mode, cval), output)


def shift(
    input: Any, shift: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: float = 0.0,
    prefilter: bool = True,
) -> Any:  # fmt: skip
    """The array moved by a number of elements along each axis."""
    x = as_image("shift", input)
    by = [shift] * x.ndim if np.ndim(shift) == 0 else [shift[i] for i in range(x.ndim)]
    grid = np.indices(tuple(x.shape)).astype(np.float64)
    return stored_as(x, _at("shift", x, [grid[i] - by[i] for i in range(x.ndim)], order, mode, cval), output)


def zoom(
    input: Any, zoom: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: float = 0.0,
    prefilter: bool = True, *, grid_mode: bool = False,
) -> Any:  # fmt: skip
    """The array with `zoom` times as many elements along each axis; the first and the last ones stay where they are."""
    x = as_image("zoom", input)
    factors = for_axes("zoom", x, zoom, range(x.ndim), "zoom")
    shape = [round(n * float(f)) for n, f in zip(x.shape, factors)]
    steps = []
    for n, m in zip(x.shape, shape):
        steps.append((n / m if grid_mode else (n - 1) / (m - 1)) if m > 1 else 1.0)
    grid = np.indices(tuple(shape)).astype(np.float64)
    half = 0.5 if grid_mode else 0.0
    coordinates = [(grid[i] + half) * step - half for i, step in enumerate(steps)]
    return stored_as(x, _at("zoom", x, coordinates, order, mode, cval), output)


def rotate(
    input: Any, angle: Any, axes: Any = (1, 0), reshape: bool = True, output: Any = None, order: int = 3,
    mode: str = "constant", cval: float = 0.0, prefilter: bool = True,
) -> Any:  # fmt: skip
    """The array turned by an angle in degrees in the plane of two axes; with `reshape` all of it is in the result.

    An angle that is not known at trace time needs `reshape=False`.
    """
    x = as_image("rotate", input)
    first, second = sorted(axes_of("rotate", x, axes))
    if reshape and isinstance(angle, Traced):
        with at_user_line():
            raise ArgumentError(
                "ndimage.rotate: the shape of the result would depend on the angle", help="give `reshape=False`"
            )
    radians = angle * (np.pi / 180)
    c, s = np.cos(radians), np.sin(radians)
    sizes = [x.shape[first], x.shape[second]]
    shape = list(x.shape)
    if reshape:
        corners = np.array([[c, s], [-s, c]]) @ [[0, 0, sizes[0], sizes[0]], [0, sizes[1], 0, sizes[1]]]
        shape[first], shape[second] = (int(n) for n in np.ptp(corners, axis=1) + 0.5)
    centre, middle = [(n - 1) / 2 for n in sizes], [(shape[first] - 1) / 2, (shape[second] - 1) / 2]
    grid = np.indices(tuple(shape)).astype(np.float64)
    y, z = grid[first] - middle[0], grid[second] - middle[1]
    coordinates = [grid[i] for i in range(x.ndim)]
    coordinates[first], coordinates[second] = c * y + s * z + centre[0], c * z - s * y + centre[1]
    return stored_as(x, _at("rotate", x, coordinates, order, mode, cval), output)

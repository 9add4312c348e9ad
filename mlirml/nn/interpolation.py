"""Images of other sizes, and images at given points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml.errors import ShapeError
from mlirml.nn.define import composite, floats, known, rounded, shown
from mlirml.nn.pooling import cells_reduced

__all__ = ["affine_grid", "grid_sample", "interpolate"]

_RANKS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
_MODES = ("nearest", "nearest-exact", "area", *_RANKS)
_CUBIC = -0.75
"""The parameter of Keys, "Cubic convolution interpolation for digital image processing", 1981."""


@composite(tolerance=64)
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Any:
    """The input [N, C, ...] with axes of other sizes: of `size`, or those of the input times `scale_factor`.

    `mode` is "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear" or "area". With `align_corners`
    the centers of the elements at the corners stay where they are, else the corners of these elements do.
    """
    (x,), dtype = floats("interpolate", input)
    rank = x.ndim - 2
    if mode not in _MODES or rank not in (1, 2, 3) or _RANKS.get(mode, rank) != rank:
        raise ShapeError(
            f"interpolate: mode {mode!r} does not fit the input {shown(x)}",
            help=f"the input is [N, C] and {_RANKS.get(mode, '1 to 3')} sizes; the modes are {', '.join(_MODES)}",
        )
    if align_corners is not None and mode not in _RANKS:
        raise ShapeError(f"interpolate: align_corners is for the modes {', '.join(_RANKS)}, not for {mode!r}")
    if (size is None) == (scale_factor is None):
        raise ShapeError("interpolate: give one of size and scale_factor")
    factors = None if scale_factor is None else _each("scale_factor", scale_factor, rank)
    old = x.shape[2:]
    if factors is not None:
        sizes = [math.floor(n * factor) for n, factor in zip(old, factors)]
    else:
        sizes = [int(n) for n in _each("size", size, rank)]
    if min(*sizes, *old) < 1:
        raise ShapeError(f"interpolate: sizes {sizes} of {shown(x)} must be from 1 on")
    if mode == "area":
        return rounded(cells_reduced("interpolate", rank, x, tuple(sizes), np.mean), dtype)
    if factors is None or recompute_scale_factor:
        steps = [n / m for n, m in zip(old, sizes)]
    else:
        steps = [1 / factor for factor in factors]
    half = np.float32(0.5 if mode == "nearest-exact" else 0)
    for axis, (n, m, step) in enumerate(zip(old, sizes, steps), 2):
        if mode in _RANKS:
            x = _resampled(x, axis, *_taps(n, m, step, mode == "bicubic", bool(align_corners)))
        else:
            at = ((np.arange(m, dtype=np.float32) + half) * np.float32(step)).astype(np.int64)
            x = np.take(x, np.minimum(at, n - 1), axis=axis)
    return rounded(x, dtype)


def _each(name: str, given: Any, rank: int) -> tuple[Any, ...]:
    values = tuple(given) if isinstance(given, (tuple, list)) else (given,) * rank
    if len(values) != rank or any(isinstance(v, bool) or not isinstance(v, (int, float, np.number)) for v in values):
        raise ShapeError(f"interpolate: {name} must be a number, or {rank} of them, got {given!r}")
    return values


def _taps(n: int, m: int, step: float, cubic: bool, align_corners: bool) -> tuple[np.ndarray, np.ndarray]:
    """Of each of `m` elements the positions among `n`, and their weights."""
    at = np.arange(m) * ((n - 1) / (m - 1) if m > 1 else 0.0) if align_corners else (np.arange(m) + 0.5) * step - 0.5
    if not cubic:
        at = np.maximum(at, 0)
    first = np.floor(at)
    t = at - first
    if cubic:
        positions, weights = first[:, None] + np.arange(-1, 3), _cubic_weights(t)
    else:
        positions, weights = first[:, None] + np.arange(2), [1 - t, t]
    return np.clip(positions, 0, n - 1).astype(np.int64), np.stack(weights, axis=1)


def _cubic_weights(t: Any) -> list[Any]:
    """The weights of the elements at -1, 0, 1 and 2 for a point at t of [0, 1)."""

    def near(d: Any) -> Any:
        return ((_CUBIC + 2) * d - (_CUBIC + 3)) * d * d + 1

    def far(d: Any) -> Any:
        return ((_CUBIC * d - 5 * _CUBIC) * d + 8 * _CUBIC) * d - 4 * _CUBIC

    return [far(1 + t), near(t), near(1 - t), far(2 - t)]


def _resampled(x: Any, axis: int, positions: np.ndarray, weights: np.ndarray) -> Any:
    shape = [-1 if d == axis else 1 for d in range(x.ndim)]
    taps = [
        np.take(x, positions[:, k], axis=axis) * known(weights[:, k].astype(x.dtype).reshape(shape))
        for k in range(positions.shape[1])
    ]
    return sum(taps[1:], taps[0])


@composite(tolerance=16)
def affine_grid(theta: Any, size: Any, align_corners: bool = False) -> Any:
    """The points [N, ..., D] for `grid_sample` of an output of `size` [N, C, ...], by affine maps theta [N, D, D + 1].

    D is 2 or 3. Coordinates are from -1 to 1, the centers of the first and last elements with `align_corners`, else
    the outer edges of these.
    """
    (theta,), dtype = floats("affine_grid", theta)
    sizes = tuple(int(n) for n in size)
    rank = len(sizes) - 2
    if rank not in (2, 3) or tuple(theta.shape) != (sizes[0], rank, rank + 1):
        raise ShapeError(
            f"affine_grid: theta must be [N, D, D + 1] for size [N, C, ...], got {shown(theta)} and {size!r}"
        )
    lines = []
    for n in sizes[2:]:
        line = (2 * np.arange(n) + 1) / n - 1
        if align_corners:
            line = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        lines.append(line)
    points = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(sizes[2:])], axis=-1).astype(theta.dtype)
    found = known(points.reshape(1, -1, rank + 1)) @ np.swapaxes(theta, 1, 2)
    return rounded(found.reshape(sizes[0], *sizes[2:], rank), dtype)


@composite(tolerance=64)
def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Any:
    """The input [N, C, H, W] at points `grid` [N, ..., 2], x before y, from -1 to 1; or [N, C, D, H, W] at [N, ..., 3].

    `mode` is "bilinear", "nearest" or, in two dimensions, "bicubic"; `padding_mode` is "zeros", "border" or
    "reflection".
    """
    (x, points), dtype = floats("grid_sample", input, grid)
    rank = x.ndim - 2
    if rank not in (2, 3) or points.ndim != x.ndim or points.shape[-1] != rank or points.shape[0] != x.shape[0]:
        raise ShapeError(f"grid_sample: {shown(x)} and {shown(points)} are not [N, C, ...] and [N, ..., D]")
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and rank != 2):
        raise ShapeError(f"grid_sample: mode {mode!r} is none in {rank} dimensions")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ShapeError(f"grid_sample: padding_mode must be zeros, border or reflection, got {padding_mode!r}")
    if 0 in x.shape[2:]:
        raise ShapeError(f"grid_sample: the input {shown(x)} has no elements")
    taps = []
    for d, n in enumerate(x.shape[2:]):
        at = points[..., rank - 1 - d]
        at = (at + 1) * (0.5 * (n - 1)) if align_corners else ((at + 1) * n - 1) * 0.5
        taps.append(_taps_at(at, n, mode, padding_mode, align_corners))
    flat = x.reshape(x.shape[0], x.shape[1], -1)
    found: Any = 0
    for corner in np.ndindex(*map(len, taps)):
        position: Any = 0
        weight: Any = None
        within: Any = None
        for n, axis_taps, k in zip(x.shape[2:], taps, corner):
            one, share, inner = axis_taps[k]
            position = position * n + one
            weight = share if weight is None else weight * share
            within = inner if within is None else within & inner
        position = np.broadcast_to(position.reshape(x.shape[0], 1, -1), (x.shape[0], x.shape[1], position[0].size))
        part = np.take_along_axis(flat, position, axis=2) * weight.reshape(x.shape[0], 1, -1)
        found = found + (np.where(within.reshape(x.shape[0], 1, -1), part, 0) if padding_mode == "zeros" else part)
    return rounded(found.reshape(*x.shape[:2], *points.shape[1:-1]), dtype)


def _taps_at(at: Any, n: int, mode: str, padding_mode: str, align_corners: bool) -> list[tuple[Any, Any, Any]]:
    """The positions along an axis, their weights, and which of them are not outside; NaN is none that is."""
    if mode != "bicubic":
        at = _within(at, n, padding_mode, align_corners)
    if mode == "nearest":
        pairs = [(np.rint(at), np.ones_like(at))]
    else:
        first = np.floor(at)
        t = at - first
        weights = _cubic_weights(t) if mode == "bicubic" else [1 - t, t]
        pairs = [(first + (k - (mode == "bicubic")), weight) for k, weight in enumerate(weights)]
    found = []
    for position, weight in pairs:
        if mode == "bicubic":
            position = _within(position, n, padding_mode, align_corners)
        inside = (position >= 0) & (position <= n - 1)
        nearest = np.where(inside, position, np.where(position > 0, n - 1, 0)).astype(np.int64)
        found.append((nearest, weight, np.logical_not((position < 0) | (position > n - 1))))
    return found


def _within(at: Any, n: int, padding_mode: str, align_corners: bool) -> Any:
    """Coordinates moved into the image, but for padding by zeros."""
    if padding_mode == "zeros":
        return at
    if padding_mode == "reflection":
        low, span = (0.0, float(n - 1)) if align_corners else (-0.5, float(n))
        if span == 0:
            return at * 0
        away = np.abs(at - low)
        turns = np.floor(away / span)
        rest = away - turns * span
        at = np.where(turns - 2 * np.floor(turns / 2) == 0, rest + low, span - rest + low)
    return np.clip(at, 0, n - 1)

"""Padding, and pixels moved between channels and positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.errors import ShapeError
from mlirml.nn.define import as_array, composite, shown
from mlirml.ops.registry import ALL, COMPLEX


@composite(dtypes=ALL + COMPLEX)
def pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """The input with elements added at both ends of its last axes.

    `pad` has their numbers before and after each axis, the last axis first; negative numbers crop. `mode` is "constant"
    (of `value`, or 0), "reflect", "replicate" or "circular".
    """
    x, widths = as_array(input), tuple(pad)
    if len(widths) % 2 or len(widths) > 2 * x.ndim or any(not isinstance(w, (int, np.integer)) for w in widths):
        raise ShapeError(f"pad: pad must be pairs of integers, one for an axis at most, got {pad!r} for {shown(x)}")
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise ShapeError(f"pad: mode must be constant, reflect, replicate or circular, got {mode!r}")
    for number, (before, after) in enumerate(zip(widths[::2], widths[1::2]), 1):
        if before or after:
            x = _padded(x, x.ndim - number, int(before), int(after), mode, value)
    return x


def _padded(x: Any, axis: int, before: int, after: int, mode: str, value: Any) -> Any:
    """An array with one axis padded."""
    given, size = x, x.shape[axis]
    fits = size + before + after >= 0
    if mode in ("constant", "circular") and fits:  # what is cropped is no part of the period
        x = x[(slice(None),) * axis + (slice(max(-before, 0), size - max(-after, 0)),)]
        before, after, size = max(before, 0), max(after, 0), x.shape[axis]
    limit = {"reflect": size - 1, "circular": size}.get(mode, max(before, after))
    if not fits or max(before, after) > limit or (mode != "constant" and not size):
        raise ShapeError(f"pad: {before} and {after} do not fit axis {axis} of {shown(given)} with mode {mode!r}")
    if mode == "constant":
        ends = [(before, after) if d == axis else (0, 0) for d in range(x.ndim)]
        return np.pad(x, ends, constant_values=x.dtype.type(0 if value is None else value))
    at = np.arange(-before, size + after)
    if mode == "reflect":
        at = size - 1 - np.abs(size - 1 - np.abs(at))
    return np.take(x, at % size if mode == "circular" else np.clip(at, 0, size - 1), axis=axis)


@composite(dtypes=ALL + COMPLEX)
def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """[..., C, H * r, W * r] of [..., C * r**2, H, W], where r is `upscale_factor`."""
    x, r = as_array(input), upscale_factor
    if len(x.shape) < 3 or r < 1 or x.shape[-3] % (r * r):
        raise ShapeError(f"pixel_shuffle: the channels must be a multiple of {r}**2, got {shown(x)}")
    *lead, c, h, w = x.shape
    n = len(lead)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return x.reshape(*lead, c // (r * r), r, r, h, w).transpose(order).reshape(*lead, c // (r * r), h * r, w * r)


@composite(dtypes=ALL + COMPLEX)
def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """[..., C * r**2, H, W] of [..., C, H * r, W * r], where r is `downscale_factor`."""
    x, r = as_array(input), downscale_factor
    if len(x.shape) < 3 or r < 1 or x.shape[-2] % r or x.shape[-1] % r:
        raise ShapeError(f"pixel_unshuffle: height and width must be multiples of {r}, got {shown(x)}")
    *lead, c, h, w = x.shape
    n = len(lead)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return x.reshape(*lead, c, h // r, r, w // r, r).transpose(order).reshape(*lead, c * r * r, h // r, w // r)

"""Padding, windows as columns, and elements moved between channels and positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.errors import ShapeError
from mlirml.nn.define import as_array, composite, floats, rounded, shown
from mlirml.ops.registry import ALL, COMPLEX

__all__ = ["channel_shuffle", "fold", "pad", "pixel_shuffle", "pixel_unshuffle", "unfold"]


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
    fits = size + min(before, 0) + min(after, 0) >= 0
    if mode in ("constant", "circular") and fits:  # what is cropped is no part of the period
        x = x[(slice(None),) * axis + (slice(max(-before, 0), size - max(-after, 0)),)]
        before, after, size = max(before, 0), max(after, 0), x.shape[axis]
    limit = {"reflect": size - 1, "circular": size}.get(mode, max(before, after))
    if not fits or max(before, after) > limit or (mode != "constant" and not size):
        raise ShapeError(
            f"pad: {before} and {after} do not fit axis {axis} of {shown(given)} with mode {mode!r}",
            help=f"at most {limit} elements are added" if fits and size else None,
        )
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


@composite(dtypes=ALL + COMPLEX)
def channel_shuffle(input: Any, groups: int) -> Any:
    """[N, C, ...] with the channels of `groups` groups taken in turns."""
    x = as_array(input)
    if x.ndim < 3 or groups < 1 or x.shape[1] % groups:
        raise ShapeError(f"channel_shuffle: the channels of {shown(x)} must be a multiple of {groups}")
    n, c, *rest = x.shape
    return np.swapaxes(x.reshape(n, groups, c // groups, *rest), 1, 2).reshape(x.shape)


def _pair(name: str, option: str, given: Any, least: int) -> tuple[int, int]:
    values = tuple(given) if isinstance(given, (tuple, list)) else (given, given)
    if len(values) != 2 or any(not isinstance(v, (int, np.integer)) or v < least for v in values):
        raise ShapeError(f"{name}: {option} must be an integer from {least} on, or two of them, got {given!r}")
    return int(values[0]), int(values[1])


def _windows(
    name: str, sizes: tuple[int, ...], kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> list[tuple[int, int, int, int, int]]:
    """Of both axes: the number of windows, their size, dilation, padding and stride."""
    options = [
        _pair(name, option, given, least)
        for option, given, least in (
            ("kernel_size", kernel_size, 1), ("dilation", dilation, 1), ("padding", padding, 0), ("stride", stride, 1),
        )
    ]  # fmt: skip
    found = []
    for n, k, d, p, s in zip(sizes, *options):
        count = (n + 2 * p - d * (k - 1) - 1) // s + 1
        if count < 1:
            raise ShapeError(f"{name}: windows of {kernel_size!r} do not fit sizes {list(sizes)}")
        found.append((count, k, d, p, s))
    return found


@composite(dtypes=ALL + COMPLEX)
def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """The windows of [N, C, H, W] as columns [N, C * kernel elements, windows]; N may be missing."""
    x = as_array(input)
    if x.ndim not in (3, 4):
        raise ShapeError(f"unfold: the input must be [N, C, H, W], N may be missing, got {shown(x)}")
    windows = _windows("unfold", x.shape[-2:], kernel_size, dilation, padding, stride)
    (rows, kh, _, ph, _), (columns, kw, _, pw, _) = windows
    lead, n = x.shape[:-2], x.ndim - 2
    if ph or pw:
        x = np.pad(x, [(0, 0)] * n + [(ph, ph), (pw, pw)])
    for axis, (count, k, d, _, s) in zip((n, n + 1), windows):
        at = np.arange(k)[:, None] * d + np.arange(count) * s
        x = np.take(x, at.reshape(-1), axis=axis)
    x = x.reshape(*lead, kh, rows, kw, columns).transpose(*range(n), n, n + 2, n + 1, n + 3)
    return x.reshape(*lead[:-1], lead[-1] * kh * kw, rows * columns)


@composite(tolerance=16)
def fold(input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """The sums [N, C, H, W] of overlapping windows, columns [N, C * kernel elements, windows]; N may be missing."""
    (x,), dtype = floats("fold", input)
    sizes = _pair("fold", "output_size", output_size, 1)
    windows = _windows("fold", sizes, kernel_size, dilation, padding, stride)
    (rows, kh, dh, ph, sh), (columns, kw, dw, pw, sw) = windows
    if x.ndim not in (2, 3) or x.shape[-2] % (kh * kw) or x.shape[-1] != rows * columns:
        raise ShapeError(
            f"fold: the input must be [N, C * {kh * kw}, {rows * columns}], N may be missing, got {shown(x)}"
        )
    lead = (*x.shape[:-2], x.shape[-2] // (kh * kw))
    x = x.reshape(*lead, kh, kw, rows, columns)
    total: Any = 0
    for i, j in np.ndindex(kh, kw):
        part = _spread(x[..., i, j, :, :], -2, i * dh, sh, sizes[0] + 2 * ph)
        total = total + _spread(part, -1, j * dw, sw, sizes[1] + 2 * pw)
    return rounded(total[..., ph : ph + sizes[0], pw : pw + sizes[1]], dtype)


def _spread(x: Any, axis: int, first: int, step: int, size: int) -> Any:
    """An axis with zeros between its elements, so that they are at `first`, `first + step`, ... of `size`."""
    axis %= x.ndim
    count = x.shape[axis]
    if step > 1:
        shape = (*x.shape[:axis], count * step, *x.shape[axis + 1 :])
        ends = [(0, step - 1) if d == axis + 1 else (0, 0) for d in range(x.ndim + 1)]
        x = np.pad(np.expand_dims(x, axis + 1), ends).reshape(shape)
        x = x[(slice(None),) * axis + (slice(0, (count - 1) * step + 1),)]
    rest = size - first - x.shape[axis]
    return np.pad(x, [(first, rest) if d == axis else (0, 0) for d in range(x.ndim)])

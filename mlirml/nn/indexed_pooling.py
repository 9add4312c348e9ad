"""Poolings whose windows are gathered by indices: with positions of the maxima, their inverse, and random windows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml import random
from mlirml.errors import DTypeError, ShapeError
from mlirml.frontend.current import current_trace
from mlirml.nn.define import as_array, composites, floats, known, refuse_random, rounded, shown
from mlirml.nn.pooling import cell_counts
from mlirml.ops.pooling import geometry
from mlirml.ops.registry import NUMBERS
from mlirml.ops.windows import Window, per_dimension, positive

__all__ = [
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d_with_indices",
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices", "max_pool1d_with_indices", "max_pool2d_with_indices",
    "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip


def _taps(windows: tuple[Window, ...]) -> np.ndarray:
    """The flat positions [windows, elements] of the elements of each window; one of its own in place of padding."""
    axes = []
    for w in windows:
        at = np.arange(w.count)[:, None] * w.stride - w.low + np.arange(w.kernel) * w.dilation
        inner = (at >= 0) & (at < w.size)
        first = np.take_along_axis(at, np.argmax(inner, axis=1)[:, None], axis=1)
        axes.append(np.where(inner, at, first))
    return _combined(tuple(w.size for w in windows), axes)


def _combined(sizes: tuple[int, ...], axes: list[np.ndarray]) -> np.ndarray:
    """The flat positions [windows, elements] in an array of `sizes` of windows with those of `axes` along each axis."""
    flat = np.zeros((1, 1), np.int64)
    for size, at in zip(sizes, axes):
        flat = flat[:, None, :, None] * size + at[None, :, None, :]
        flat = flat.reshape(flat.shape[0] * flat.shape[1], -1)
    return flat


def _largest(x: Any, taps: np.ndarray, counts: tuple[int, ...]) -> tuple[Any, Any]:
    """The largest elements of the windows at `taps`, and their flat positions."""
    rank = len(counts)
    front = tuple(x.shape[:-rank])
    lines = x.reshape(*front, math.prod(x.shape[-rank:]))
    gathered = np.take(lines, known(taps), axis=-1)
    chosen = np.argmax(gathered, axis=-1)[..., None]
    largest = np.take_along_axis(gathered, chosen, axis=-1)
    indices = np.take_along_axis(np.broadcast_to(known(taps), gathered.shape), chosen, axis=-1)
    return largest.reshape(*front, *counts), indices.reshape(*front, *counts)


def _max_with_indices(
    name: str,
    rank: int,
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Any, Any]:
    x = as_array(input)
    windows = geometry(name, rank, x, kernel_size, stride, padding, dilation, ceil_mode, floats=False)
    return _largest(x, _taps(windows), tuple(w.count for w in windows))


max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = composites(
    _max_with_indices,
    "max_pool{}d_with_indices",
    {
        1: "`max_pool1d`, and the positions of its elements: i64, counted along L.",
        2: "`max_pool2d`, and the positions of its elements: i64, counted along H and W as one dimension.",
        3: "`max_pool3d`, and the positions of its elements: i64, counted along D, H and W as one dimension.",
    },
    dtypes=NUMBERS,
)


def _adaptive_max_with_indices(name: str, rank: int, input: Any, output_size: Any) -> tuple[Any, Any]:
    x = as_array(input)
    if x.dtype.kind in "bc":
        raise DTypeError(f"{name}: the input must hold real numbers, got {shown(x)}")
    counts = cell_counts(name, rank, x, output_size)
    sizes, axes = tuple(x.shape[-rank:]), []
    for size, count in zip(sizes, counts):
        first = np.arange(count) * size // count
        last = -(-(np.arange(count) + 1) * size // count)
        at = first[:, None] + np.arange(np.max(last - first))
        axes.append(np.where(at < last[:, None], at, first[:, None]))  # cells of fewer elements repeat the first one
    return _largest(x, _combined(sizes, axes), counts)


adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices = composites(
    _adaptive_max_with_indices,
    "adaptive_max_pool{}d_with_indices",
    {
        1: "`adaptive_max_pool1d`, and the positions of its elements: i64, counted along L.",
        2: "`adaptive_max_pool2d`, and the positions of its elements: i64, counted along H and W as one dimension.",
        3: "`adaptive_max_pool3d`, and the positions of its elements: i64, counted along D, H and W as one dimension.",
    },
    dtypes=NUMBERS,
)


def _zeros(shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Zeros that are stored into, in the program that is traced if there is one."""
    trace = current_trace()
    return np.zeros(shape, dtype) if trace is None else trace.handlers.namespace(trace).zeros(shape, dtype)


def _max_unpool(
    name: str,
    rank: int,
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Any:
    x, at = as_array(input), as_array(indices)
    if len(x.shape) not in (rank + 1, rank + 2) or tuple(at.shape) != tuple(x.shape):
        raise ShapeError(
            f"{name}: the input must be [N, C] and {rank} sizes, N may be missing, and the indices of its shape, "
            f"got {shown(x)} and {shown(at)}"
        )
    if x.dtype.kind in "bc":
        raise DTypeError(f"{name}: the input must hold real numbers, got {shown(x)}")
    if at.dtype.kind not in "iu":
        raise DTypeError(f"{name}: the indices must be integers, got {shown(at)}")
    kernel = positive(name, "kernel_size", kernel_size, rank)
    strides = kernel if stride is None else positive(name, "stride", stride, rank)
    pads = per_dimension(name, "padding", padding, rank)
    sizes = tuple((n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[-rank:], strides, pads, kernel))
    if output_size is not None:
        given = tuple(output_size)[-rank:]
        if len(given) != rank or any(not n - s < m < n + s for n, m, s in zip(sizes, given, strides)):
            raise ShapeError(f"{name}: output_size must be {list(sizes)}, or differ by less than the stride, "
                             f"got {output_size!r}")  # fmt: skip
        sizes = given
    front = tuple(x.shape[:-rank])
    count = math.prod(x.shape[-rank:])
    result = _zeros((*front, math.prod(sizes)), x.dtype)
    np.put_along_axis(result, at.reshape(*front, count), x.reshape(*front, count), axis=-1)
    return result.reshape(*front, *sizes)


max_unpool1d, max_unpool2d, max_unpool3d = composites(
    _max_unpool,
    "max_unpool{}d",
    {
        1: """Zeros with the elements of [N, C, L] at the positions that `max_pool1d_with_indices` returned.

    `output_size` is that of the array which was pooled, where several have the same pooling. Raises
    `IndexOutOfBoundsError`, or `IndexError` on real arrays.
    """,
        2: "As `max_unpool1d`, for [N, C, H, W].",
        3: "As `max_unpool1d`, for [N, C, D, H, W].",
    },
    dtypes=NUMBERS,
)


def _fractional(
    name: str, rank: int, input: Any, kernel_size: Any, output_size: Any, samples: Any = None, key: Any = None
) -> tuple[Any, Any]:
    """The largest elements, and their flat positions."""
    (x,), dtype = floats(name, input)
    if len(x.shape) not in (rank + 1, rank + 2):
        raise ShapeError(f"{name}: the input must be [N, C] and {rank} sizes, N may be missing, got {shown(x)}")
    kernel = positive(name, "kernel_size", kernel_size, rank)
    counts = positive(name, "output_size", output_size, rank)
    sizes, front = tuple(x.shape[-rank:]), tuple(x.shape[:-rank])
    if any(m + k - 1 > n for n, m, k in zip(sizes, counts, kernel)):
        raise ShapeError(f"{name}: {list(counts)} windows of {list(kernel)} are more than {shown(x)} has")
    if samples is None:
        if key is None:
            refuse_random(name, "samples", "a `key` of `mlirml.random`")
        samples = random.uniform(key, (*front, rank), np.float64)
    drawn = as_array(samples)
    if tuple(drawn.shape) != (*front, rank):
        raise ShapeError(f"{name}: the samples must have shape {[*front, rank]}, got {shown(drawn)}")
    flat: Any = known(np.zeros((1,) * (len(front) + 2 * rank), np.int64))
    for axis, (n, m, k) in enumerate(zip(sizes, counts, kernel)):
        sample = drawn[..., 1 - axis if rank == 2 else axis, None]  # torch's order
        numbers = known(np.arange(m))
        step = (n - k) / (m - 1) if m > 1 else 0.0
        starts = np.floor((numbers + sample) * step).astype(np.int64) - np.floor(sample * step).astype(np.int64)
        starts = np.where(numbers == m - 1, n - k, starts)
        taps = starts[..., None] + known(np.arange(k))
        shape = [*front, *[1] * (2 * rank)]
        shape[len(front) + axis], shape[len(front) + rank + axis] = m, k
        flat = flat * n + taps.reshape(shape)
    lines = x.reshape(*front, math.prod(sizes))
    gathered = np.take_along_axis(lines, flat.reshape(*front, math.prod(counts) * math.prod(kernel)), axis=-1)
    gathered, flat = (one.reshape(*front, *counts, math.prod(kernel)) for one in (gathered, flat))
    chosen = np.argmax(gathered, axis=-1)[..., None]
    return rounded(np.max(gathered, axis=-1), dtype), np.take_along_axis(flat, chosen, axis=-1)[..., 0]


fractional_max_pool2d_with_indices, fractional_max_pool3d_with_indices = composites(
    _fractional,
    "fractional_max_pool{}d_with_indices",
    {
        2: "`fractional_max_pool2d`, and the positions of its elements: i64, counted along H and W as one dimension.",
        3: "`fractional_max_pool3d`, and the positions of its elements: i64, along D, H and W as one dimension.",
    },
)


def _fractional_alone(
    name: str, rank: int, input: Any, kernel_size: Any, output_size: Any, samples: Any = None, key: Any = None
) -> Any:
    return _fractional(name, rank, input, kernel_size, output_size, samples, key)[0]


fractional_max_pool2d, fractional_max_pool3d = composites(
    _fractional_alone,
    "fractional_max_pool{}d",
    {
        2: """The largest elements of `output_size` windows of [N, C, H, W], whose distances are drawn by `key`.

    `samples` [N, C, 2], numbers of [0, 1) for W and H, take the key's place (Graham, "Fractional max-pooling", section
    2, with torch's sequence).
    """,
        3: "As `fractional_max_pool2d`, for [N, C, D, H, W]; `samples` are [N, C, 3], for D, H and W.",
    },
)

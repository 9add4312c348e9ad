"""Poolings in one, two and three dimensions, as structured operations with an operand in the shape of the window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mlirml.core.sizes import is_dynamic_shape
from mlirml.errors import DTypeError, ShapeError
from mlirml.ir.combiners import operations_of
from mlirml.ir.text.builder import Body, Builder, Operand, Scalar, Value
from mlirml.ir.text.dtypes import describe, is_float, mlir_name
from mlirml.ops import elementwise as ew
from mlirml.ops.registry import FLOATS, NUMBERS, operation, operations
from mlirml.ops.windows import (
    Window,
    check_fits,
    input_index,
    padded,
    padded_array,
    per_dimension,
    positive,
    structured,
    windows_of,
)

_SINGLE = np.dtype(np.float32)


def geometry(
    name: str,
    rank: int,
    input: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    *,
    floats: bool,
) -> tuple[Window, ...]:
    """Check the arguments of a pooling; the window along each of the last `rank` dimensions."""
    shown = describe(tuple(input.shape), input.dtype)
    if input.dtype.kind in ("bciu" if floats else "bc"):
        help_ = "convert it with `.astype(np.float32)`" if input.dtype.kind in "iu" else None
        raise DTypeError(
            f"{name}: the input must hold {'floats' if floats else 'real numbers'}, got {shown}", help=help_
        )
    if len(input.shape) not in (rank + 1, rank + 2):
        spatial = "[N, C, " + ", ".join("DHW"[3 - rank :] if rank > 1 else "L") + "]"
        raise ShapeError(f"{name}: the input must be {spatial}, N may be missing, got {shown}")
    if 0 in input.shape[-rank:]:
        raise ShapeError(f"{name}: the input {shown} has no elements to pool")
    kernel = positive(name, "kernel_size", kernel_size, rank)
    strides = kernel if stride is None else positive(name, "stride", stride, rank)
    dilations = positive(name, "dilation", dilation, rank)
    pads = per_dimension(name, "padding", padding, rank)
    windows = []
    for size, k, s, d, p in zip(input.shape[-rank:], kernel, strides, dilations, pads):
        window = Window(size, k, s, d, p, p)
        if p < 0 or p > window.reach // 2:
            raise ShapeError(
                f"{name}: padding must lie between 0 and half of the kernel, got {padding!r} "
                f"with kernel_size {kernel_size!r}"
            )
        if ceil_mode:
            count = -(-(2 * p + size - window.reach) // s) + 1
            if (count - 1) * s >= size + p:  # a window that starts in the high padding is left out
                count -= 1
            window = Window(size, k, s, d, p, max(p, (count - 1) * s + window.reach - size - p))
        windows.append(window)
    check_fits(name, windows, shown)
    return tuple(windows)


def _pool(b: Builder, x: Value, windows: Sequence[Window], out: Value, op: str) -> Value:
    """`out = out op x` over the window."""
    rank, front = len(windows), len(x.shape) - len(windows)
    parallel = front + rank
    shape = b.empty([w.kernel for w in windows], x.dtype)
    indices = [input_index(w, front + i, parallel + i) for i, w in enumerate(windows)]
    x_map = [*(f"d{i}" for i in range(front)), *indices]
    taps = [f"d{parallel + i}" for i in range(rank)]
    kind = mlir_name(out.dtype)

    def body(block: Body, inputs: list[str], accumulator: str) -> str:
        return block.op(f"{op} {accumulator}, {block.cast(inputs[0], x.dtype, out.dtype)}", kind)

    return structured(b, [x, shape], [x_map, taps], out, parallel, rank, body)


def _output_sizes(shape: Sequence[int], windows: Sequence[Window]) -> tuple[int, ...]:
    return (*shape[: len(shape) - len(windows)], *(w.count for w in windows))


def lowest(dtype: np.dtype) -> Any:
    """The smallest value of a dtype, the identity of a maximum."""
    return -np.inf if is_float(dtype) or dtype.kind == "f" else np.iinfo(dtype).min


def _largest(
    name: str,
    rank: int,
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> np.ndarray:
    x = np.asarray(input)
    windows = geometry(name, rank, x, kernel_size, stride, padding, dilation, ceil_mode, floats=False)
    views = windows_of(padded_array(x, windows, lowest(x.dtype)), windows)
    return views.max(axis=tuple(range(-rank, 0)))


def _max_pool(
    name: str,
    rank: int,
    b: Builder,
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Value:
    x = input
    windows = geometry(name, rank, x, kernel_size, stride, padding, dilation, ceil_mode, floats=False)
    shape = _output_sizes(x.shape, windows)
    if 0 in shape:
        return b.empty(shape, x.dtype)
    out = b.filled(shape, x.dtype, lowest(x.dtype))
    op = operations_of("maximum")[ew.kind_of(x.dtype)]
    return _pool(b, padded(b, x, windows, lowest(x.dtype)), windows, out, op)


max_pool1d, max_pool2d, max_pool3d = operations(
    "nn",
    _max_pool,
    _largest,
    "max_pool{}d",
    {
        1: """The largest element in each window of [N, C, L]; `stride` is the kernel's size by default. NaN wins.

    With `ceil_mode`, windows may reach beyond the padding. Raises `ShapeError`.
    """,
        2: "The largest element in each window of [N, C, H, W]; options are as of `max_pool1d`, or pairs of them.",
        3: "The largest element in each window of [N, C, D, H, W]; options are as of `max_pool1d`, or three of them.",
    },
    dtypes=NUMBERS,
    arrays=1,
)


def divisors(windows: Sequence[Window], count_include_pad: bool, padding: Sequence[int]) -> np.ndarray:
    """The number of elements that each mean is taken of; elements beyond the padding, by `ceil_mode`, never count."""
    counts: np.ndarray = np.ones((), np.int64)
    for w, p in zip(windows, padding):
        starts = np.arange(w.count) * w.stride - w.low
        low, high = (-p, w.size + p) if count_include_pad else (0, w.size)
        along = np.minimum(starts + w.kernel, high) - np.maximum(starts, low)
        counts = counts[..., None] * along
    return counts


def _counted(
    b: Builder, windows: Sequence[Window], count_include_pad: bool, padding: Sequence[int], dtype: np.dtype
) -> Operand:
    """As `divisors`, for dynamic sizes: a number if all windows have as many elements, or sums over windows of ones."""
    counted = padding if count_include_pad else [0] * len(windows)
    if all(w.low == p and w.high == p for w, p in zip(windows, counted)):
        return Scalar(dtype.type(math.prod(w.kernel for w in windows)), weak=False)
    inner = [replace(w, size=w.size + 2 * p, low=w.low - p, high=w.high - p) for w, p in zip(windows, counted)]
    ones = padded(b, b.filled([w.size for w in inner], dtype, 1), inner, 0)
    return _pool(b, ones, inner, b.filled([w.count for w in windows], dtype, 0), "arith.addf")


def _whole_sum(b: Builder, x: Value, rank: int, dtype: np.dtype) -> Value:
    """The sum over the last `rank` dimensions, which a window covers: each keeps one element."""
    front, kind = len(x.shape) - rank, mlir_name(dtype)
    axes = range(front, len(x.shape))
    total = b.reduce(b.cast(x, dtype), axes, dtype, 0, lambda block, x, acc: block.op(f"arith.addf {acc}, {x}", kind))
    return b.reshape(total, (*x.shape[:front], *[1] * rank))


def _divided(b: Builder, total: Value, counts: np.ndarray, dtype: np.dtype) -> Value:
    if (counts == counts.flat[0]).all():
        number = Scalar(dtype.type(counts.flat[0]), weak=False)
        return ew.divide.build(b, total, number)
    return ew.divide.build(b, total, b.constant(counts.astype(dtype)))


def _counts(
    name: str, windows: Sequence[Window], count_include_pad: bool, padding: Sequence[int], divisor: Any
) -> np.ndarray:
    if divisor is None:
        return divisors(windows, count_include_pad, padding)
    if not isinstance(divisor, (int, np.integer)) or divisor == 0:
        raise ShapeError(f"{name}: divisor_override must be an integer other than 0, got {divisor!r}")
    return np.full([1] * len(windows), divisor)


def _mean(
    name: str,
    rank: int,
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> np.ndarray:
    x = np.asarray(input)
    windows = geometry(name, rank, x, kernel_size, stride, padding, 1, ceil_mode, floats=True)
    wide = _SINGLE if x.dtype.itemsize == 2 else x.dtype
    views = windows_of(padded_array(x.astype(wide), windows, 0), windows)
    counts = _counts(name, windows, count_include_pad, per_dimension(name, "padding", padding, rank), divisor_override)
    total = views.sum(axis=tuple(range(-rank, 0)))
    return (total / counts.astype(wide)).astype(x.dtype)


def _average_pool(
    name: str,
    rank: int,
    b: Builder,
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    x = input
    windows = geometry(name, rank, x, kernel_size, stride, padding, 1, ceil_mode, floats=True)
    shape = _output_sizes(x.shape, windows)
    if 0 in shape:
        return b.empty(shape, x.dtype)
    wide = _SINGLE if x.dtype.itemsize == 2 else x.dtype
    x = padded(b, x, windows, 0)
    if all(w.kernel == size for w, size in zip(windows, x.shape[-rank:])):
        total = _whole_sum(b, x, rank, wide)
    else:
        total = _pool(b, x, windows, b.filled(shape, wide, 0), "arith.addf")
    pads = per_dimension(name, "padding", padding, rank)
    if divisor_override is None and is_dynamic_shape(tuple(w.size for w in windows)):
        return b.cast(ew.divide.build(b, total, _counted(b, windows, count_include_pad, pads, wide)), x.dtype)
    counts = _counts(name, windows, count_include_pad, pads, divisor_override)
    return b.cast(_divided(b, total, counts, wide), x.dtype)


avg_pool1d, avg_pool2d, avg_pool3d = operations(
    "nn",
    _average_pool,
    _mean,
    "avg_pool{}d",
    {
        1: "The mean of each window of [N, C, L]; `count_include_pad` says whether the padding's zeros count.",
        2: "The mean of each window of [N, C, H, W]; `divisor_override` divides the sums in place of the count.",
        3: "The mean of each window of [N, C, D, H, W]; the arguments are as of `avg_pool2d`.",
    },
    dtypes=FLOATS,
    arrays=1,
    tolerance=8,
)


def _adaptive(
    name: str, rank: int, input: Any, output_size: Any
) -> tuple[tuple[int, ...], list[list[tuple[int, int]]]]:
    """The output sizes, and the bounds of each cell along each dimension (as torch cuts them)."""
    shape = tuple(input.shape)
    if not is_float(input.dtype) and input.dtype.kind != "f":
        raise DTypeError(f"{name}: the input must be a float, not {describe(shape, input.dtype)}")
    if len(shape) not in (rank + 1, rank + 2):
        raise ShapeError(
            f"{name}: the input must have {rank + 1} or {rank + 2} dimensions, got {describe(shape, input.dtype)}"
        )
    wanted = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * rank
    sizes = [n if size is None else size for n, size in zip(shape[-rank:], wanted)]
    counts = positive(name, "output_size", sizes if len(wanted) == rank else output_size, rank)
    if 0 in shape[-rank:]:
        raise ShapeError(f"{name}: the input {describe(shape, input.dtype)} has nothing to take a mean of")
    cells = [[(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in zip(shape[-rank:], counts)]
    return counts, cells


def _adaptive_mean(input: Any, output_size: Any) -> np.ndarray:
    x = np.asarray(input)
    counts, (rows, columns) = _adaptive("adaptive_avg_pool2d", 2, x, output_size)
    wide = x.astype(_SINGLE if x.dtype.itemsize == 2 else x.dtype)
    result = np.empty((*x.shape[:-2], *counts), x.dtype)
    for i, (top, bottom) in enumerate(rows):
        for j, (left, right) in enumerate(columns):
            result[..., i, j] = wide[..., top:bottom, left:right].mean(axis=(-2, -1)).astype(x.dtype)
    return result


@operation("nn", _adaptive_mean, dtypes=FLOATS, arrays=1, tolerance=8)
def adaptive_avg_pool2d(b: Builder, input: Operand, output_size: Any) -> Value:
    """Means over the cells of a grid of `output_size` laid over [N, C, H, W]; None keeps a size, 1 is a global mean.

    Cell i of m over n elements goes from floor(i * n / m) to ceil((i + 1) * n / m), as in torch.
    """
    x = input
    assert isinstance(x, Value)
    counts, cells = _adaptive("adaptive_avg_pool2d", 2, x, output_size)
    shape = (*x.shape[:-2], *counts)
    if 0 in shape:
        return b.empty(shape, x.dtype)
    if all(n % m == 0 for n, m in zip(x.shape[-2:], counts)):
        kernel = [n // m for n, m in zip(x.shape[-2:], counts)]
        return _average_pool("adaptive_avg_pool2d", 2, b, x, kernel)
    wide = _SINGLE if x.dtype.itemsize == 2 else x.dtype
    value = b.cast(x, wide)
    rank = len(shape)
    for axis, bounds in zip((rank - 2, rank - 1), cells):
        parts = [_slice_sum(b, value, axis, low, high) for low, high in bounds]
        out = b.empty((*value.shape[:axis], len(bounds), *value.shape[axis + 1 :]), wide)
        for i, part in enumerate(parts):
            out = b.insert_slice(part, out, [i if d == axis else 0 for d in range(rank)], part.shape, [1] * rank)
        value = out
    areas = [[high - low for low, high in bounds] for bounds in cells]
    return b.cast(_divided(b, value, np.multiply.outer(*map(np.array, areas)), wide), x.dtype)


def _slice_sum(b: Builder, value: Value, axis: int, low: int, high: int) -> Value:
    rank = len(value.shape)
    sizes = [high - low if d == axis else n for d, n in enumerate(value.shape)]
    part = b.extract_slice(value, [low if d == axis else 0 for d in range(rank)], sizes, [1] * rank)
    kind = mlir_name(value.dtype)
    total = b.reduce(part, [axis], value.dtype, 0, lambda block, x, acc: block.op(f"arith.addf {acc}, {x}", kind))
    return b.reshape(total, tuple(1 if d == axis else n for d, n in enumerate(value.shape)))

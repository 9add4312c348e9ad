"""Convolutions in one, two and three dimensions: `tensor.pad`, then a named operation, or a generic one for groups.

The meaning and the names of the arguments are those of `torch.nn.functional`: inputs [N, C, spatial...], weights
[F, C / groups, kernel...], results [N, F, spatial...]; the dimension N may be missing. A convolution whose kernel is a
single point is written as the contraction that it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.errors import DTypeError, ShapeError
from mlirml.ir.text.builder import Body, Builder, Operand, Value
from mlirml.ir.text.dtypes import describe, is_float, mlir_name
from mlirml.ops import elementwise as ew
from mlirml.ops import promotion
from mlirml.ops.contractions import contract
from mlirml.ops.registry import NUMBERS, operation
from mlirml.ops.windows import (
    Window,
    check_fits,
    input_index,
    padded,
    padded_array,
    paddings,
    per_dimension,
    positive,
    structured,
    windows_of,
)

_NAMED = {1: "linalg.conv_1d_ncw_fcw", 2: "linalg.conv_2d_nchw_fchw", 3: "linalg.conv_3d_ncdhw_fcdhw"}
_DEPTHWISE = {1: "linalg.depthwise_conv_1d_ncw_cw", 2: "linalg.depthwise_conv_2d_nchw_chw"}


@dataclass(frozen=True)
class Geometry:
    """A checked convolution: sizes, and the window along each spatial dimension."""

    batch: int
    channels: int
    filters: int
    groups: int
    windows: tuple[Window, ...]
    batched: bool

    @property
    def out(self) -> tuple[int, ...]:
        """The shape of the result, batch included."""
        return (self.batch, self.filters, *(w.count for w in self.windows))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result as the user sees it."""
        return self.out if self.batched else self.out[1:]


def geometry(
    name: str, rank: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Geometry:
    """Check the arguments of a convolution, which need no more than `shape` and `dtype`."""
    x, w = tuple(input.shape), tuple(weight.shape)
    for what, array in (("input", input), ("weight", weight), *([("bias", bias)] if bias is not None else [])):
        if array.dtype.kind in "bc":
            raise DTypeError(f"{name}: the {what} must hold real numbers, got {_describe(array)}")
    spatial = "[N, C, " + ", ".join("DHW"[3 - rank :] if rank > 1 else "L") + "]"
    if len(x) not in (rank + 1, rank + 2):
        raise ShapeError(f"{name}: the input must be {spatial}, N may be missing, got {_describe(input)}")
    if len(w) != rank + 2:
        raise ShapeError(
            f"{name}: the weight must have {rank + 2} dimensions [F, C / groups, kernel], got {_describe(weight)}"
        )
    batched = len(x) == rank + 2
    batch, channels, sizes = (x[0] if batched else 1), x[-rank - 1], x[-rank:]
    if isinstance(groups, bool) or not isinstance(groups, (int, np.integer)) or groups < 1:
        raise ShapeError(f"{name}: groups must be a positive integer, got {groups!r}")
    if channels % groups:
        raise ShapeError(
            f"{name}: the {channels} channels of the input {_describe(input)} do not divide into {groups} groups"
        )
    if w[0] % groups:
        raise ShapeError(
            f"{name}: the {w[0]} filters of the weight {_describe(weight)} do not divide into {groups} groups"
        )
    if w[1] * groups != channels:
        many = f"{w[1]} channel{'s' * (w[1] != 1)}" + (f" in each of {groups} groups" if groups > 1 else "")
        help_ = None
        if channels % w[1] == 0 and w[1] and w[0] % (channels // w[1]) == 0:
            help_ = f"did you mean `groups={channels // w[1]}`?"
        elif w[0] * groups == channels:
            help_ = "the weight is [F, C / groups, kernel]: its first two dimensions look exchanged"
        raise ShapeError(
            f"{name}: the weight {_describe(weight)} has {many}, the input {_describe(input)} has {channels}",
            help=help_,
        )
    if bias is not None and tuple(bias.shape) != (w[0],):
        raise ShapeError(
            f"{name}: the bias must have one element for each of the {w[0]} filters, got {_describe(bias)}"
        )
    if 0 in w[2:]:
        raise ShapeError(f"{name}: the kernel of the weight {_describe(weight)} is empty")
    strides = positive(name, "stride", stride, rank)
    dilations = positive(name, "dilation", dilation, rank)
    pads = paddings(name, padding, w[2:], strides, dilations)
    windows = tuple(Window(n, k, s, d, *p) for n, k, s, d, p in zip(sizes, w[2:], strides, dilations, pads))
    check_fits(name, windows, _describe(input))
    return Geometry(batch, channels, w[0], int(groups), windows, batched)


def _describe(array: Any) -> str:
    return describe(tuple(array.shape), array.dtype)


def _dtypes(*operands: Operand) -> tuple[np.dtype, np.dtype]:
    """The dtype of the result, and the one to accumulate in."""
    result = promotion.result_type(*map(promotion.strong, operands))
    return result, np.dtype(np.float32) if is_float(result) and result.itemsize == 2 else result


def convolution(
    b: Builder, name: str, rank: int, operands: Sequence[Any], stride: Any, padding: Any, dilation: Any, groups: Any
) -> Value:
    """A convolution of any rank; `operands` are input, weight and bias or None."""
    x, w, bias = operands
    g = geometry(name, rank, x, w, bias, stride, padding, dilation, groups)
    result, accumulate = _dtypes(*(o for o in operands if o is not None))
    x, w = b.cast(b.cast(x, result), accumulate), b.cast(b.cast(w, result), accumulate)
    x = b.reshape(x, (g.batch, g.channels, *x.shape[-rank:]))
    if 0 in g.out or g.channels == 0:
        start = _start(b, g, bias, accumulate, ())
        return b.reshape(b.cast(start, result), g.shape)
    if g.groups == 1 and all(w_ == Window(w_.size, 1, 1, w_.dilation, 0, 0) for w_ in g.windows):
        value = _pointwise(b, g, x, w, bias, accumulate)
    else:
        value = _sliding(b, g, x, w, bias)
    return b.reshape(b.cast(value, result), g.shape)


def _start(b: Builder, g: Geometry, bias: Value | None, dtype: np.dtype, groups: tuple[int, ...]) -> Value:
    """The initial value of the sums: zeros, or the bias of each filter; filters are split by `groups`."""
    filters = (*groups, g.filters // int(np.prod(groups, dtype=np.int64)))
    shape = (g.batch, *filters, *g.out[2:])
    if bias is None:
        return b.filled(shape, dtype, 0)
    return b.broadcast(b.reshape(b.cast(bias, dtype), (*filters, *[1] * len(g.windows))), shape, dtype)


def _pointwise(b: Builder, g: Geometry, x: Value, w: Value, bias: Value | None, accumulate: np.dtype) -> Value:
    """A kernel of one point: a contraction over the channels."""
    pixels = int(np.prod([window.count for window in g.windows], dtype=np.int64))
    sizes = {"n": g.batch, "f": g.filters, "c": g.channels, "p": pixels}
    many = "n" if g.batch > 1 else ""
    x = b.reshape(x, (*([g.batch] if many else []), g.channels, pixels))
    w = b.reshape(w, (g.filters, g.channels))
    value = contract(b, w, x, ("fc", f"{many}cp", f"{many}fp"), sizes, accumulate)
    value = b.reshape(value, g.out)
    if bias is None:
        return value
    total: Value = ew.add.build(b, value, b.reshape(b.cast(bias, accumulate), (g.filters, *[1] * len(g.windows))))
    return total


def _sliding(b: Builder, g: Geometry, x: Value, w: Value, bias: Value | None) -> Value:
    """The input padded, and the structured operation on it."""
    rank = len(g.windows)
    name = _NAMED[rank] if g.groups == 1 else None
    if g.groups == g.channels == g.filters and rank in _DEPTHWISE and g.groups > 1:
        name, w = _DEPTHWISE[rank], b.reshape(w, (g.filters, *w.shape[2:]))
    if name is not None:
        x, start = padded(b, x, g.windows, 0), _start(b, g, bias, x.dtype, ())
        attributes = ", ".join(
            f"{what} = dense<[{', '.join(map(str, values))}]> : tensor<{rank}xi64>"
            for what, values in (
                ("dilations", [window.dilation for window in g.windows]),
                ("strides", [window.stride for window in g.windows]),
            )
        )
        return b.op(
            f"{name} {{{attributes}}} ins({x.name}, {w.name} : {x.type}, {w.type}) "
            f"outs({start.name} : {start.type}) -> {start.type}",
            start.shape,
            start.dtype,
        )
    return _grouped(b, g, x, w, _start(b, g, bias, x.dtype, (g.groups,)))


def _grouped(b: Builder, g: Geometry, x: Value, w: Value, start: Value) -> Value:
    """A grouped convolution: parallel loops over batch, group, filter of the group and pixels; reduction loops over
    channels of the group and taps.
    """
    rank = len(g.windows)
    each, inner = g.filters // g.groups, g.channels // g.groups
    x = padded(b, b.reshape(x, (g.batch, g.groups, inner, *x.shape[2:])), g.windows, 0)
    w = b.reshape(w, (g.groups, each, inner, *w.shape[2:]))
    parallel, channel = 3 + rank, f"d{3 + rank}"
    taps = [4 + rank + i for i in range(rank)]
    x_map = ["d0", "d1", channel, *(input_index(window, 3 + i, taps[i]) for i, window in enumerate(g.windows))]
    w_map = ["d1", "d2", channel, *(f"d{tap}" for tap in taps)]
    kind = mlir_name(start.dtype)
    letter = "f" if is_float(start.dtype) else "i"

    def body(block: Body, inputs: list[str], accumulator: str) -> str:
        product = block.op(f"arith.mul{letter} {inputs[0]}, {inputs[1]}", kind)
        return block.op(f"arith.add{letter} {accumulator}, {product}", kind)

    value = structured(b, [x, w], [x_map, w_map], start, parallel, 1 + rank, body)
    return b.reshape(value, g.out)


# The same in NumPy.


def convolve(
    name: str, rank: int, operands: Sequence[Any], stride: Any, padding: Any, dilation: Any, groups: Any
) -> np.ndarray:
    """A convolution of real arrays, group by group as one matrix product of windows and weights."""
    x, w, bias = (None if o is None else np.asarray(o) for o in operands)
    assert x is not None and w is not None
    g = geometry(name, rank, x, w, bias, stride, padding, dilation, groups)
    result = np.result_type(*(o for o in (x, w, bias) if o is not None))
    compute = np.dtype(np.float32) if is_float(result) and result.itemsize == 2 else result
    x = x.astype(compute).reshape(g.batch, g.channels, *x.shape[-rank:])
    views = windows_of(padded_array(x, g.windows, 0), g.windows)
    each, inner = g.filters // g.groups, g.channels // g.groups
    taps = tuple(range(2 + rank, 2 + 2 * rank))
    parts = []
    for group in range(g.groups):
        part = w[group * each : (group + 1) * each].astype(compute)
        seen = views[:, group * inner : (group + 1) * inner]
        axes = ((1, *taps), tuple(range(1, 2 + rank)))
        parts.append(np.moveaxis(np.tensordot(seen, part, axes), -1, 1))
    total = np.concatenate(parts, 1)
    if bias is not None:
        total = total + bias.astype(compute).reshape(-1, *[1] * rank)
    return total.astype(result).reshape(g.shape)


def _convolve1d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> np.ndarray:
    return convolve("conv1d", 1, (input, weight, bias), stride, padding, dilation, groups)


def _convolve2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> np.ndarray:
    return convolve("conv2d", 2, (input, weight, bias), stride, padding, dilation, groups)


def _convolve3d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> np.ndarray:
    return convolve("conv3d", 3, (input, weight, bias), stride, padding, dilation, groups)


@operation("nn", _convolve1d, dtypes=NUMBERS, arrays=3, tolerance=8)
def conv1d(
    b: Builder,
    input: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Value:
    """Cross-correlation of `input` [N, C, L] with `weight` [F, C / groups, K], plus `bias` [F].

    The result is [N, F, (L + 2 * padding - dilation * (K - 1) - 1) // stride + 1]. `padding` is a number, "valid" or
    "same"; with `groups`, filters see the channels of their own group only. Raises `ShapeError`.
    """
    return convolution(b, "conv1d", 1, (input, weight, bias), stride, padding, dilation, groups)


@operation("nn", _convolve2d, dtypes=NUMBERS, arrays=3, tolerance=8)
def conv2d(
    b: Builder,
    input: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Value:
    """Cross-correlation of `input` [N, C, H, W] with `weight` [F, C / groups, KH, KW], plus `bias` [F].

    `stride`, `padding` and `dilation` are numbers or pairs of them, `padding` also "valid" or "same"; sizes are as of
    `conv1d`. `groups=C` with F = C is a depthwise convolution. Raises `ShapeError`.
    """
    return convolution(b, "conv2d", 2, (input, weight, bias), stride, padding, dilation, groups)


@operation("nn", _convolve3d, dtypes=NUMBERS, arrays=3, tolerance=8)
def conv3d(
    b: Builder,
    input: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Value:
    """Cross-correlation of `input` [N, C, D, H, W] with `weight` [F, C / groups, KD, KH, KW], plus `bias` [F].

    The arguments are as of `conv2d`, with three numbers in place of pairs. Raises `ShapeError`.
    """
    return convolution(b, "conv3d", 3, (input, weight, bias), stride, padding, dilation, groups)


def _transposed_arguments(
    input: Any, weight: Any, stride: Any, padding: Any, output_padding: Any, groups: Any, dilation: Any
) -> tuple[tuple[int, ...], tuple[int, ...], list[tuple[int, int]]]:
    """Stride, dilation, and the low and high padding of the input after it is dilated by the stride."""
    name = "conv_transpose2d"
    if len(input.shape) not in (3, 4):
        raise ShapeError(f"{name}: the input must be [N, C, H, W], N may be missing, got {_describe(input)}")
    if len(weight.shape) != 4:
        raise ShapeError(f"{name}: the weight must have 4 dimensions [C, F / groups, KH, KW], got {_describe(weight)}")
    if not isinstance(groups, (int, np.integer)) or groups < 1 or weight.shape[0] % groups:
        raise ShapeError(f"{name}: the {weight.shape[0]} channels of the weight do not divide into {groups!r} groups")
    if input.shape[-3] != weight.shape[0]:
        raise ShapeError(
            f"{name}: the weight {_describe(weight)} has {weight.shape[0]} channels, "
            f"the input {_describe(input)} has {input.shape[-3]}",
            help="the weight is [C, F / groups, KH, KW]",
        )
    strides, dilations = positive(name, "stride", stride, 2), positive(name, "dilation", dilation, 2)
    given = per_dimension(name, "padding", padding, 2)
    more = per_dimension(name, "output_padding", output_padding, 2)
    if any(m < 0 or m >= max(s, d) for m, s, d in zip(more, strides, dilations)):
        raise ShapeError(f"{name}: output_padding must be smaller than stride or dilation, got {output_padding!r}")
    full = [d * (k - 1) for k, d in zip(weight.shape[2:], dilations)]
    return strides, dilations, [(f - p, f - p + m) for f, p, m in zip(full, given, more)]


def _convolve_transposed(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> np.ndarray:
    x, w = np.asarray(input), np.asarray(weight)
    strides, dilations, pads = _transposed_arguments(x, w, stride, padding, output_padding, groups, dilation)
    spread = [(n - 1) * s + 1 for n, s in zip(x.shape[-2:], strides)]
    sizes = [low + n + high for n, (low, high) in zip(spread, pads)]
    whole = [max(low, 0) + n + max(high, 0) for n, (low, high) in zip(spread, pads)]
    room = np.zeros((*x.shape[:-2], *whole), x.dtype)
    tops = [max(low, 0) for low, _ in pads]
    middle: Any = (..., *(slice(t, t + n, s) for t, n, s in zip(tops, spread, strides)))
    room[middle] = x
    kept: Any = (..., *(slice(max(-low, 0), max(-low, 0) + n) for (low, _), n in zip(pads, sizes)))
    room = room[kept]
    turned = w.reshape(groups, w.shape[0] // groups, *w.shape[1:]).swapaxes(1, 2)[..., ::-1, ::-1]
    turned = turned.reshape(-1, *turned.shape[2:])
    return convolve("conv_transpose2d", 2, (room, turned, bias), 1, 0, dilations, groups)


@operation("nn", _convolve_transposed, dtypes=NUMBERS, arrays=3, tolerance=8)
def conv_transpose2d(
    b: Builder,
    input: Operand,
    weight: Operand,
    bias: Operand | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Value:
    """The transpose of `conv2d` with the same arguments: `input` [N, C, H, W], `weight` [C, F / groups, KH, KW].

    The result is [N, F, (H - 1) * stride - 2 * padding + dilation * (KH - 1) + output_padding + 1, ...]. It is written
    as a convolution of the input, spread by the stride, with the kernel turned around (Dumoulin and Visin, "A guide
    to convolution arithmetic for deep learning", section 4). Raises `ShapeError`.
    """
    x, w = input, weight
    strides, dilations, pads = _transposed_arguments(x, w, stride, padding, output_padding, groups, dilation)
    assert isinstance(x, Value) and isinstance(w, Value)
    sizes = x.shape[-2:]
    if 0 not in x.shape and (max(strides) > 1 or min(min(p) for p in pads) < 0 or max(max(p) for p in pads) > 0):
        x = _spread(b, x, sizes, strides, pads)
    inner = w.shape[0] // groups
    w = b.reshape(w, (groups, inner, *w.shape[1:]))
    w = b.transpose(w, (0, 2, 1, 3, 4))

    def turn(block: Body, loops: list[str]) -> list[str]:
        result = list(loops)
        for axis in (3, 4):
            last = block.op(f"arith.constant {w.shape[axis] - 1}", "index")
            result[axis] = block.op(f"arith.subi {last}, {loops[axis]}", "index")
        return result

    if max(w.shape[3:]) > 1 and w.size:
        w = b.gather(w, w.shape, turn)
    w = b.reshape(w, (groups * w.shape[1], *w.shape[2:]))
    return convolution(b, "conv_transpose2d", 2, (x, w, bias), 1, 0, dilations, groups)


def _spread(
    b: Builder, x: Value, sizes: tuple[int, ...], strides: tuple[int, ...], pads: list[tuple[int, int]]
) -> Value:
    """The input with `stride - 1` zeros between its pixels, padded, or cropped where the padding is negative."""
    front = x.shape[:-2]
    spread = [(n - 1) * s + 1 for n, s in zip(sizes, strides)]
    whole = [max(low, 0) + n + max(high, 0) for n, (low, high) in zip(spread, pads)]
    zeros = [0] * len(front)
    room = b.filled((*front, *whole), x.dtype, 0)
    room = b.insert_slice(x, room, [*zeros, *(max(low, 0) for low, _ in pads)], x.shape, [*[1] * len(front), *strides])
    cut = [low + n + high for n, (low, high) in zip(spread, pads)]
    if cut == whole:
        return room
    if min(cut) < 1:
        raise ShapeError(f"conv_transpose2d: the padding leaves nothing of the input {x}")
    starts = [*zeros, *(max(-low, 0) for low, _ in pads)]
    return b.extract_slice(room, starts, (*front, *cut), [1] * len(room.shape))

"""Convolutions in one, two and three dimensions: `tensor.pad`, then a named operation, or a generic one for groups.

The meaning and the names of the arguments are those of `torch.nn.functional`: inputs [N, C, spatial...], weights
[F, C / groups, kernel...], results [N, F, spatial...]; the dimension N may be missing. A convolution whose kernel is a
single point is written as the contraction that it is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass, replace
from mlirml.errors import DTypeError, ShapeError
from mlirml.ir.text.builder import Body, Builder, Operand, Value
from mlirml.ir.text.dtypes import describe, is_float, mlir_name
from mlirml.ops import elementwise as ew
from mlirml.ops import promotion
from mlirml.ops.contractions import contract
from mlirml.ops.registry import NUMBERS, operations
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
_MANY_PARTS, _MOST_PARTS = 4, 16
"""From more parts of a transposed convolution on, they are computed at once, as each takes time to compile."""
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
        if w[1] and channels and channels % w[1] == 0 and w[0] % (channels // w[1]) == 0:
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


def convolve(
    name: str,
    rank: int,
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> np.ndarray:
    """A convolution of real arrays, group by group as one matrix product of windows and weights."""
    x, w, bias = (None if o is None else np.asarray(o) for o in (input, weight, bias))
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


def convolution(
    name: str,
    rank: int,
    b: Builder,
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Value:
    """A convolution of any rank."""
    x, w = input, weight
    g = geometry(name, rank, x, w, bias, stride, padding, dilation, groups)
    result, accumulate = _dtypes(*(o for o in (x, w, bias) if o is not None))
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
    filters = (*groups, g.filters // math.prod(groups))
    shape = (g.batch, *filters, *g.out[2:])
    if bias is None:
        return b.filled(shape, dtype, 0)
    return b.broadcast(b.reshape(b.cast(bias, dtype), (*filters, *[1] * len(g.windows))), shape, dtype)


def _pointwise(b: Builder, g: Geometry, x: Value, w: Value, bias: Value | None, accumulate: np.dtype) -> Value:
    """A kernel of one point: a contraction over the channels."""
    pixels = math.prod([window.count for window in g.windows])
    sizes = {"n": g.batch, "f": g.filters, "c": g.channels, "p": pixels}
    many = "n" if g.batch > 1 else ""
    x = b.reshape(x, (*([g.batch] if many else []), g.channels, pixels))
    w = b.reshape(w, (g.filters, g.channels))
    value = contract(b, w, x, ("fc", f"{many}cp", f"{many}fp"), sizes, accumulate)
    value = b.reshape(value, g.out)
    if bias is None:
        return value
    return ew.add.build(b, value, b.reshape(b.cast(bias, accumulate), (g.filters, *[1] * len(g.windows))))


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


conv1d, conv2d, conv3d = operations(
    "nn",
    convolution,
    convolve,
    "conv{}d",
    {
        1: """Cross-correlation of `input` [N, C, L] with `weight` [F, C / groups, K], plus `bias` [F].

    The result is [N, F, (L + 2 * padding - dilation * (K - 1) - 1) // stride + 1]. `padding` is a number, "valid" or
    "same"; with `groups`, filters see the channels of their own group only. Raises `ShapeError`.
    """,
        2: """Cross-correlation of `input` [N, C, H, W] with `weight` [F, C / groups, KH, KW], plus `bias` [F].

    `stride`, `padding` and `dilation` are numbers or pairs of them, `padding` also "valid" or "same"; sizes are as of
    `conv1d`. `groups=C` with F = C is a depthwise convolution. Raises `ShapeError`.
    """,
        3: """Cross-correlation of `input` [N, C, D, H, W] with `weight` [F, C / groups, KD, KH, KW], plus `bias` [F].

    The arguments are as of `conv2d`, with three numbers in place of pairs. Raises `ShapeError`.
    """,
    },
    dtypes=NUMBERS,
    arrays=3,
    tolerance=8,
)


@dataclass(frozen=True)
class TransposedWindow:
    """A transposed convolution along one dimension: element i goes to outputs i * stride + tap * dilation - padding."""

    size: int
    kernel: int
    stride: int
    dilation: int
    padding: int
    count: int

    @property
    def reach(self) -> int:
        """The extent of the outputs of one element."""
        return (self.kernel - 1) * self.dilation + 1

    def part(self, start: int) -> Part:
        """The outputs from `start` on that are `stride` apart, as a convolution of the input.

        Their taps are those of one residue of tap * dilation modulo the stride, every `step`-th of the kernel.
        """
        common = math.gcd(self.stride, self.dilation)
        step, whole = self.stride // common, start + self.padding
        base, residue = divmod(whole, self.stride)
        taps = [k for k in range(self.kernel) if (k * self.dilation - residue) % self.stride == 0]
        count = -(-(self.count - start) // self.stride)
        if not taps:
            return Part(start, count, 0, 1, Window(self.size, 0, 1, 1, 0, 0))
        # The last tap meets the first of the input elements that an output is a sum of.
        first = base - (taps[-1] * self.dilation - residue) // self.stride
        spacing = self.dilation // common
        window = Window(self.size, len(taps), 1, spacing, -first, 0)
        step = step if len(taps) > 1 else 1
        return Part(start, count, self.kernel - 1 - taps[-1], step, replace(window, high=count - window.count))

    def parts(self) -> list[Part]:
        """One part for each residue of the output's index modulo the stride, without empty ones."""
        return [self.part(start) for start in range(min(self.stride, self.count))]


@dataclass(frozen=True)
class Part:
    """Outputs that are `stride` apart: `count` of them from `start` on.

    The taps are every `step`-th of the kernel turned around, from `tap` on. The padding of the window may be negative.
    """

    start: int
    count: int
    tap: int
    step: int
    window: Window


@dataclass(frozen=True)
class Transposed(Geometry):
    """A checked transposed convolution."""

    windows: tuple[TransposedWindow, ...]  # type: ignore[assignment]


def transposed_geometry(
    name: str, rank: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any,
    groups: Any, dilation: Any,
) -> Transposed:  # fmt: skip
    """Check the arguments of a transposed convolution, which need no more than `shape` and `dtype`."""
    x, w, letters = tuple(input.shape), tuple(weight.shape), list("DHW"[3 - rank :] if rank > 1 else "L")
    kernel = [f"K{letter}" for letter in letters] if rank > 1 else ["K"]
    for what, array in (("input", input), ("weight", weight), *([("bias", bias)] if bias is not None else [])):
        if array.dtype.kind in "bc":
            raise DTypeError(f"{name}: the {what} must hold real numbers, got {_describe(array)}")
    if len(x) not in (rank + 1, rank + 2):
        spatial = ", ".join(["N", "C", *letters])
        raise ShapeError(f"{name}: the input must be [{spatial}], N may be missing, got {_describe(input)}")
    layout = ", ".join(["C", "F / groups", *kernel])
    if len(w) != rank + 2:
        raise ShapeError(f"{name}: the weight must have {rank + 2} dimensions [{layout}], got {_describe(weight)}")
    if isinstance(groups, bool) or not isinstance(groups, (int, np.integer)) or groups < 1 or w[0] % groups:
        raise ShapeError(f"{name}: the {w[0]} channels of the weight do not divide into {groups!r} groups")
    if x[-rank - 1] != w[0]:
        raise ShapeError(
            f"{name}: the weight {_describe(weight)} has {w[0]} channels, the input {_describe(input)} has "
            f"{x[-rank - 1]}",
            help=f"the weight is [{layout}]",
        )
    if bias is not None and tuple(bias.shape) != (w[1] * groups,):
        raise ShapeError(
            f"{name}: the bias must have one element for each of the {w[1] * groups} filters, got {_describe(bias)}"
        )
    if 0 in w[2:]:
        raise ShapeError(f"{name}: the kernel of the weight {_describe(weight)} is empty")
    strides, dilations = positive(name, "stride", stride, rank), positive(name, "dilation", dilation, rank)
    given = per_dimension(name, "padding", padding, rank)
    more = per_dimension(name, "output_padding", output_padding, rank)
    if any(m < 0 or m >= max(s, d) for m, s, d in zip(more, strides, dilations)):
        raise ShapeError(f"{name}: output_padding must be smaller than stride or dilation, got {output_padding!r}")
    sizes = zip(x[-rank:], w[2:], strides, dilations, given, more)
    windows = tuple(
        TransposedWindow(n, k, s, d, p, (n - 1) * s - 2 * p + d * (k - 1) + m + 1) for n, k, s, d, p, m in sizes
    )
    if 0 in x[-rank:] or min(window.count for window in windows) < 1:
        raise ShapeError(f"{name}: the padding leaves nothing of the input {_describe(input)}")
    batched = len(x) == rank + 2
    return Transposed(x[0] if batched else 1, w[0], w[1] * int(groups), int(groups), windows, batched)


def convolve_transposed(
    name: str,
    rank: int,
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> np.ndarray:
    """A transposed convolution of real arrays: each tap of the kernel times the input, added where it goes.

    Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", section 4.
    """
    x, w, bias = (None if o is None else np.asarray(o) for o in (input, weight, bias))
    assert x is not None and w is not None
    g = transposed_geometry(name, rank, x, w, bias, stride, padding, output_padding, groups, dilation)
    result = np.result_type(*(o for o in (x, w, bias) if o is not None))
    compute = np.dtype(np.float32) if is_float(result) and result.itemsize == 2 else result
    inner, each = g.channels // g.groups, g.filters // g.groups
    x = x.astype(compute).reshape(g.batch, g.groups, inner, -1)
    w = w.astype(compute).reshape(g.groups, inner, each, *w.shape[2:])
    sizes = [window.size for window in g.windows]
    room = np.zeros((g.batch, g.groups, each, *((v.size - 1) * v.stride + v.reach for v in g.windows)), compute)
    for tap in np.ndindex(*w.shape[3:]):
        one: Any = (..., *tap)
        product = np.swapaxes(w[one], 1, 2) @ x
        starts = [k * v.dilation for k, v in zip(tap, g.windows)]
        ends = [start + (v.size - 1) * v.stride + 1 for start, v in zip(starts, g.windows)]
        at: Any = (..., *(slice(a, z, v.stride) for a, z, v in zip(starts, ends, g.windows)))
        room[at] += product.reshape(*room.shape[:3], *sizes)
    total = np.zeros((*room.shape[:3], *g.out[2:]), compute)
    source: Any = [...]
    target: Any = [...]
    for window, extent in zip(g.windows, room.shape[3:]):
        low, high = max(window.padding, 0), min(window.padding + window.count, extent)
        source.append(slice(low, max(low, high)))
        target.append(slice(low - window.padding, max(low, high) - window.padding))
    total[tuple(target)] = room[tuple(source)]
    total = total.reshape(g.out)
    if bias is not None:
        total = total + bias.astype(compute).reshape(-1, *[1] * rank)
    return total.astype(result).reshape(g.shape)


def convolution_transposed(
    name: str,
    rank: int,
    b: Builder,
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Value:
    """A transposed convolution of any rank.

    Outputs whose index has the same remainder by the stride are a convolution of the input with some taps of the
    kernel; each is computed by itself, and stored `stride` apart, or all at once. So no zero is multiplied.
    """
    x, w = input, weight
    g = transposed_geometry(name, rank, x, w, bias, stride, padding, output_padding, groups, dilation)
    result, accumulate = _dtypes(*(o for o in (x, w, bias) if o is not None))
    x, w = b.cast(b.cast(x, result), accumulate), b.cast(b.cast(w, result), accumulate)
    parts = [window.parts() for window in g.windows]
    x = b.reshape(x, (g.batch, g.channels, *x.shape[-rank:]))
    plain = Geometry(g.batch, g.channels, g.filters, g.groups, _plain_windows(g.out[2:]), True)
    if 0 in (g.batch, g.filters, g.channels):
        return b.reshape(b.cast(_start(b, plain, bias, accumulate, ()), result), g.shape)
    if _is_one_convolution(g.windows, math.prod(map(len, parts))):
        return b.reshape(b.cast(_at_once(b, g, x, w, bias, accumulate), result), g.shape)
    kernel = _turned(b, w, g.groups, [v.kernel for v in g.windows])
    whole = None
    for chosen in itertools.product(*parts):
        value = _part(b, g, x, kernel, bias, chosen, accumulate)
        if value.shape == g.out:
            return b.reshape(b.cast(value, result), g.shape)
        whole = b.empty(g.out, accumulate) if whole is None else whole
        offsets = [0, 0, *(part.start for part in chosen)]
        strides = [1, 1, *(v.stride if part.count > 1 else 1 for v, part in zip(g.windows, chosen))]
        whole = b.insert_slice(value, whole, offsets, value.shape, strides)
    assert whole is not None
    return b.reshape(b.cast(whole, result), g.shape)


def _is_one_convolution(windows: Sequence[TransposedWindow], parts: int) -> bool:
    """True if all parts are better computed at once: many take long to compile, and single points are one product.

    That multiplies zeros where the stride does not divide the kernel, at most half as many as there are others unless
    there are very many parts.
    """
    if any(v.dilation > 1 for v in windows):
        return False
    products = math.prod(-(-v.kernel // v.stride) * v.stride for v in windows)
    few_zeros = products <= 1.5 * math.prod(v.kernel for v in windows)
    points = all(v.kernel <= v.stride for v in windows) and parts > 1
    return parts > _MOST_PARTS or (few_zeros and (points or parts > _MANY_PARTS))


def _plain_windows(counts: Sequence[int]) -> tuple[Window, ...]:
    return tuple(Window(count, 1, 1, 1, 0, 0) for count in counts)


def _turned(b: Builder, w: Value, groups: int, kernel: Sequence[int]) -> Value:
    """The weight [C, F / groups, kernel..., rest...] as [F, C / groups, kernel..., rest...], turned around."""
    inner, after = w.shape[0] // groups, len(w.shape) + 1
    w = b.reshape(w, (groups, inner, *w.shape[1:]))
    w = b.transpose(w, (0, 2, 1, *range(3, after)))

    def turn(block: Body, loops: list[str]) -> list[str]:
        result = list(loops)
        for axis, size in enumerate(kernel, 3):
            last = block.op(f"arith.constant {size - 1}", "index")
            result[axis] = block.op(f"arith.subi {last}, {loops[axis]}", "index")
        return result

    if max(kernel) > 1 and w.size:
        w = b.gather(w, w.shape, turn)
    return b.reshape(w, (groups * w.shape[1], *w.shape[2:]))


def _at_once(b: Builder, g: Transposed, x: Value, w: Value, bias: Value | None, accumulate: np.dtype) -> Value:
    """All parts as one convolution with filters for each, whose results are interleaved by a transpose.

    The kernel is extended with zeros to a multiple of the stride: tap u * stride + r is tap u of the filters of part r.
    Shi et al., "Is the deconvolution layer the same as a convolutional layer?", section 2.
    """
    rank, each = len(g.windows), g.filters // g.groups
    strides = [v.stride for v in g.windows]
    taps = [-(-v.kernel // v.stride) for v in g.windows]
    more = [Window(v.kernel, 1, 1, 1, 0, u * v.stride - v.kernel) for u, v in zip(taps, g.windows)]
    w = padded(b, w, more, 0)
    w = b.reshape(w, (*w.shape[:2], *(n for pair in zip(taps, strides) for n in pair)))
    taps_first = [*range(2, 2 + 2 * rank, 2), *range(3, 3 + 2 * rank, 2)]
    w = _turned(b, b.transpose(w, (0, 1, *taps_first)), g.groups, taps)  # [F, C / groups, taps..., strides...]
    w = b.reshape(w, (g.groups, each, *w.shape[1:]))
    w = b.transpose(w, (0, *range(3 + rank, 3 + 2 * rank), 1, 2, *range(3, 3 + rank)))
    filters = g.filters * math.prod(strides)
    w = b.reshape(w, (filters, g.channels // g.groups, *taps))
    if bias is not None:
        spread = (g.groups, *strides, each)
        shaped = b.reshape(b.cast(bias, accumulate), (g.groups, *[1] * rank, each))
        bias = b.reshape(b.broadcast(shaped, spread, accumulate), (filters,))
    first = [v.padding // v.stride for v in g.windows]
    counts = [(v.padding + v.count - 1) // v.stride - q + 1 for v, q in zip(g.windows, first)]
    windows = []
    for v, u, q, count in zip(g.windows, taps, first, counts):
        windows.append(Window(v.size, u, 1, 1, u - 1 - q, q + count - v.size))
    every = Geometry(g.batch, g.channels, filters, g.groups, _plain_windows(counts), True)
    value = _convolved(b, every, x, w, bias, windows, accumulate)
    value = b.reshape(value, (g.batch, g.groups, *strides, each, *counts))
    pairs = [axis for i in range(rank) for axis in (3 + rank + i, 2 + i)]
    value = b.transpose(value, (0, 1, 2 + rank, *pairs))
    value = b.reshape(value, (g.batch, g.filters, *(n * stride for n, stride in zip(counts, strides))))
    if value.shape == g.out:
        return value
    offsets = [v.padding - q * v.stride for v, q in zip(g.windows, first)]
    return b.extract_slice(value, [0, 0, *offsets], g.out, [1] * (2 + rank))


def _convolved(
    b: Builder, g: Geometry, x: Value, w: Value, bias: Value | None, windows: Sequence[Window], accumulate: np.dtype
) -> Value:
    """A convolution with windows of stride 1 whose padding may be negative; `g` has the sizes of its result."""
    cut = [replace(v, size=v.size + min(v.low, 0) + min(v.high, 0)) for v in windows]
    if min(v.size for v in cut) < 1:
        return _start(b, g, bias, accumulate, ())
    if cut != windows:
        offsets = [max(-v.low, 0) for v in windows]
        x = b.extract_slice(x, [0, 0, *offsets], (*x.shape[:2], *(v.size for v in cut)), [1] * len(x.shape))
    sliding = tuple(replace(v, low=max(v.low, 0), high=max(v.high, 0)) for v in cut)
    if g.groups == 1 and all(v.kernel == 1 for v in windows):
        return _pointwise(b, g, padded(b, x, sliding, 0), w, bias, accumulate)
    g = replace(g, windows=sliding)
    return b.reshape(_sliding(b, g, x, w, bias), g.out)


def _part(
    b: Builder, g: Transposed, x: Value, kernel: Value, bias: Value | None, chosen: Sequence[Part],
    accumulate: np.dtype,
) -> Value:  # fmt: skip
    """The outputs of one part of each dimension, [N, F, counts...]."""
    counts, windows = [part.count for part in chosen], [part.window for part in chosen]
    taps = [window.kernel for window in windows]
    if 0 in taps:
        none = Geometry(g.batch, g.channels, g.filters, g.groups, _plain_windows(counts), True)
        return _start(b, none, bias, accumulate, ())
    if taps != list(kernel.shape[2:]):
        offsets, steps = [part.tap for part in chosen], [part.step for part in chosen]
        kernel = b.extract_slice(kernel, [0, 0, *offsets], (*kernel.shape[:2], *taps), [1, 1, *steps])
    # Each part is padded by itself: so the derivative is a sum of parts too, without one that is stored into zeros.
    plain = Geometry(g.batch, g.channels, g.filters, g.groups, _plain_windows(counts), True)
    return _convolved(b, plain, x, kernel, bias, windows, accumulate)


conv_transpose1d, conv_transpose2d, conv_transpose3d = operations(
    "nn",
    convolution_transposed,
    convolve_transposed,
    "conv_transpose{}d",
    {
        1: """The transpose of `conv1d` with the same arguments: `input` [N, C, L], `weight` [C, F / groups, K].

    The result is [N, F, (L - 1) * stride - 2 * padding + dilation * (K - 1) + output_padding + 1]. Raises `ShapeError`.
    """,
        2: """The transpose of `conv2d` with the same arguments: `input` [N, C, H, W], `weight` [C, F / groups, KH, KW].

    Sizes are as of `conv_transpose1d`. It is written as a convolution for each remainder of the output's indices by the
    strides, and the results are interleaved (Dumoulin and Visin, "A guide to convolution arithmetic for deep learning",
    section 4.5, without the zeros). Raises `ShapeError`.
    """,
        3: """The transpose of `conv3d` with the same arguments: `input` [N, C, D, H, W], `weight`
    [C, F / groups, KD, KH, KW].

    Sizes are as of `conv_transpose1d`. Raises `ShapeError`.
    """,
    },
    dtypes=NUMBERS,
    arrays=3,
    tolerance=64,
)

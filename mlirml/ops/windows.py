"""Sliding windows of convolutions and poolings: their geometry, padding, and structured operations over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.errors import ShapeError
from mlirml.ir.text.builder import LOC, Body, Builder, Value
from mlirml.ir.text.dtypes import mlir_name, tensor_type


@dataclass(frozen=True)
class Window:
    """A window along one dimension: it covers `kernel` elements `dilation` apart, and moves by `stride`.

    `low` and `high` are the elements of padding before and after the `size` elements of the input.
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    low: int
    high: int

    @property
    def reach(self) -> int:
        """The extent of a window: the distance from its first element to one past its last."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def count(self) -> int:
        """The number of positions of the window."""
        return (self.low + self.size + self.high - self.reach) // self.stride + 1


def per_dimension(name: str, what: str, given: Any, rank: int) -> tuple[int, ...]:
    """One integer for each spatial dimension, from one for all or a sequence of them."""
    values = tuple(given) if isinstance(given, (tuple, list)) else (given,) * rank
    try:
        numbers = tuple(int(v.__index__()) for v in values)
    except (AttributeError, TypeError):
        numbers = ()
    if len(numbers) == 1:
        numbers *= rank
    if len(numbers) != rank:
        many = "an integer" if rank == 1 else f"an integer or {rank} of them"
        raise ShapeError(f"{name}: {what} must be {many}, got {given!r}")
    return numbers


def positive(name: str, what: str, given: Any, rank: int) -> tuple[int, ...]:
    """As `per_dimension`, for numbers from 1 on."""
    numbers = per_dimension(name, what, given, rank)
    if min(numbers) < 1:
        raise ShapeError(f"{name}: {what} must be at least 1, got {given!r}")
    return numbers


def paddings(
    name: str, given: Any, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> list[tuple[int, int]]:
    """The low and high padding of each dimension, from numbers, "valid" or "same"."""
    rank = len(kernel)
    if isinstance(given, str):
        if given == "valid":
            return [(0, 0)] * rank
        if given != "same":
            raise ShapeError(f"{name}: padding must be 'same', 'valid' or integers, got {given!r}")
        if max(stride) > 1:
            raise ShapeError(
                f"{name}: padding='same' has no meaning with stride {_shown(stride)}",
                help="give the padding as numbers",
            )
        totals = [d * (k - 1) for k, d in zip(kernel, dilation)]
        return [(total // 2, total - total // 2) for total in totals]
    numbers = per_dimension(name, "padding", given, rank)
    if min(numbers) < 0:
        raise ShapeError(f"{name}: padding must not be negative, got {given!r}")
    return [(n, n) for n in numbers]


def check_fits(name: str, windows: Sequence[Window], operand: object) -> None:
    """Refuse a window that is larger than the padded input."""
    if any(w.reach > w.low + w.size + w.high for w in windows):
        kernel, dilation = [w.kernel for w in windows], [w.dilation for w in windows]
        size = f"{kernel}, dilated by {_shown(dilation)}," if max(dilation) > 1 else f"{kernel}"
        raise ShapeError(
            f"{name}: a kernel of size {size} is larger than the padded input",
            notes=(f"the input is {operand}, padded to {[w.low + w.size + w.high for w in windows]}",),
            help="pad more, or take a smaller kernel",
        )


def _shown(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(set(numbers)) == 1 else str(tuple(numbers))


def padded(b: Builder, value: Value, windows: Sequence[Window], filler: object) -> Value:
    """The value with the padding of its last dimensions; `tensor.pad`."""
    if not any(w.low or w.high for w in windows):
        return value
    front = len(value.shape) - len(windows)
    low, high = [0] * front + [w.low for w in windows], [0] * front + [w.high for w in windows]
    shape = tuple(a + n + c for a, n, c in zip(low, value.shape, high))
    scalar, result = b.scalar(filler, value.dtype), tensor_type(shape, value.dtype)
    indices = ", ".join(f"%p{i}: index{LOC}" for i in range(len(shape)))
    return b.op(
        f"tensor.pad {value.name} low{b.sizes.listed(low)} high{b.sizes.listed(high)} {{\n^bb0({indices}):\n"
        f"tensor.yield {scalar} : {mlir_name(value.dtype)}{LOC}\n}} : {value.type} to {result}",
        shape,
        value.dtype,
    )


def input_index(window: Window, out: int, tap: int) -> str:
    """The input index of element `tap` of the window at output index `out`; both name loop dimensions."""
    terms = [(f"d{out}", window.stride), (f"d{tap}", window.dilation)]
    return " + ".join(name if factor == 1 else f"{name} * {factor}" for name, factor in terms)


def structured(
    b: Builder,
    inputs: Sequence[Value],
    maps: Sequence[Sequence[str]],
    out: Value,
    parallel: int,
    reduced: int,
    body: Callable[[Body, list[str], str], str],
) -> Value:
    """A `linalg.generic` whose maps are given as texts; the output is indexed by the `parallel` loops in order."""
    block = Body()
    names = [f"%a{i}" for i in range(len(inputs))]
    result = body(block, names, "%acc")
    block.lines.append(f"linalg.yield {result} : {mlir_name(out.dtype)}{LOC}")
    dims = ", ".join(f"d{i}" for i in range(parallel + reduced))
    texts = [f"affine_map<({dims}) -> ({', '.join(m)})>" for m in [*maps, [f"d{i}" for i in range(parallel)]]]
    kinds = ", ".join(['"parallel"'] * parallel + ['"reduction"'] * reduced)
    signature = [f"{n}: {mlir_name(v.dtype)}{LOC}" for n, v in zip([*names, "%acc"], [*inputs, out])]
    return b.op(
        f"linalg.generic {{indexing_maps = [{', '.join(texts)}], iterator_types = [{kinds}]}} "
        f"ins({', '.join(v.name for v in inputs)} : {', '.join(v.type for v in inputs)}) "
        f"outs({out.name} : {out.type}) {{\n^bb0({', '.join(signature)}):\n"
        + "\n".join(block.lines)
        + f"\n}} -> {out.type}",
        out.shape,
        out.dtype,
    )


# The same in NumPy.


def padded_array(array: np.ndarray, windows: Sequence[Window], filler: object) -> np.ndarray:
    """A real array with the padding of its last dimensions."""
    front = array.ndim - len(windows)
    shape = (*array.shape[:front], *(w.low + w.size + w.high for w in windows))
    result = np.full(shape, filler, array.dtype)
    inner: Any = (..., *(slice(w.low, w.low + w.size) for w in windows))
    result[inner] = array
    return result


def windows_of(array: np.ndarray, windows: Sequence[Window]) -> np.ndarray:
    """A view of a padded array: its last dimensions are the window positions, followed by the elements of a window."""
    rank = len(windows)
    axes = tuple(range(array.ndim - rank, array.ndim))
    view = np.lib.stride_tricks.sliding_window_view(array, tuple(w.reach for w in windows), axes)
    positions = [slice(None, None, w.stride) for w in windows]
    taps = [slice(None, None, w.dilation) for w in windows]
    index: Any = (..., *positions, *taps)
    return view[index]

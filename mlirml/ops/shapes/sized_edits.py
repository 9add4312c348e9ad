"""Pads, deletions and insertions along an axis of dynamic size: slices of the array that are joined with others.

Comparisons of the size become conditions of the program; a size for which they do not hold has a static one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirml.core.sizes import static_needed
from mlirml.ir.text.builder import Builder, Value
from mlirml.ops.shapes.joins import concat


def part(b: Builder, value: Value, axis: int, start: Any, size: Any) -> Value:
    """The elements from `start` on along an axis."""
    starts = [start if i == axis else 0 for i in range(len(value.shape))]
    sizes = [size if i == axis else n for i, n in enumerate(value.shape)]
    return b.extract_slice(value, starts, sizes, [1] * len(sizes))


def elements(b: Builder, value: Value, axis: int, starts: Sequence[Any]) -> list[Value]:
    """The slices of one element at some indices along an axis."""
    return [part(b, value, axis, start, 1) for start in starts]


def joined(b: Builder, pieces: Sequence[Value], axis: int) -> Value:
    """The pieces one after another along an axis."""
    return concat.build(b, pieces, axis)


def check_at_least(size: Any, least: int, why: str) -> None:
    """Raise `StaticSizeError` for a size that is smaller, so that it has a static program."""
    if not size >= least:
        raise static_needed(size, why)


def padded(b: Builder, value: Value, axis: int, pair: tuple[int, int], mode: str) -> Value:
    """The array with its own elements added at both ends of an axis: edge, reflect, symmetric or wrap."""
    n: Any = value.shape[axis]
    before, after = pair
    first = 1 if mode == "reflect" else 0
    if mode != "edge":
        check_at_least(n, max(pair) + first, f"a table of the padded indices for mode {mode!r}")
    if mode == "edge":
        left, right = [0] * before, [n - 1] * after
    elif mode == "wrap":
        left, right = [n - before + i for i in range(before)], list(range(after))
    else:
        left = [before - 1 - i + first for i in range(before)]
        right = [n - 1 - first - i for i in range(after)]
    pieces = [*elements(b, value, axis, left), value, *elements(b, value, axis, right)]
    return joined(b, pieces, axis)


def positions(size: Any, index: Any, last: int) -> list[tuple[Any, int]]:
    """The indices, in their order along the axis, with their numbers; negative ones are counted from the end.

    `last` is the least size minus the greatest index that it allows. Raises `StaticSizeError` where the order or the
    number of the indices depends on the size.
    """
    why = "a table of the indices that stay"
    if isinstance(index, slice):
        start, stop, step = index.start, index.stop, index.step
        from_end = start is not None and start < 0 and (stop is None or stop < 0)
        from_start = (start is None or start >= 0) and stop is not None and stop >= 0
        if step not in (None, 1) or not (from_end or from_start):
            raise static_needed(size, why)
        index = np.arange(start or 0, (stop or 0) if from_end else stop)
    if index.dtype.kind == "b":
        raise static_needed(size, why)
    given = [int(i) for i in np.atleast_1d(index)]
    order = sorted(range(len(given)), key=lambda k: (given[k] < 0, given[k]))
    first = max((i + last for i in given if i >= 0), default=0)
    rest = max((-i for i in given if i < 0), default=0)
    check_at_least(size, first + rest, why)
    return [(given[k] if given[k] >= 0 else size + given[k], k) for k in order]


def without(b: Builder, value: Value, axis: int, index: Any) -> Value:
    """The array without the elements at these indices along an axis."""
    n: Any = value.shape[axis]
    pieces, start = [], 0
    known: list[Any] = []
    for at, _ in positions(n, index, 1):
        if at in known:
            continue
        known.append(at)
        pieces.append(part(b, value, axis, start, at - start))
        start = at + 1
    pieces.append(part(b, value, axis, start, n - start))
    return joined(b, pieces, axis)


def with_inserted(b: Builder, value: Value, new: Value, axis: int, index: Any) -> Value:
    """The array with the elements of another one before these indices along an axis, or all of them before one."""
    n: Any = value.shape[axis]
    pieces, start = [], 0
    is_one = not isinstance(index, slice) and np.size(index) == 1
    for at, number in positions(n, index, 0):
        pieces.append(part(b, value, axis, start, at - start))
        pieces.append(new if is_one else part(b, new, axis, number, 1))
        start = at
    pieces.append(part(b, value, axis, start, n - start))
    return joined(b, pieces, axis)

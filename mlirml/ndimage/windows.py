"""Sums and extrema of windows along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlirml.ndimage.arguments import part

_FEW = 6
"""The greatest window of which each element is a slice of its own."""


def combined(combine: Callable[[Any, Any], Any], x: Any, axis: int, size: int, *, repeats: bool = False) -> Any:
    """`combine` of each `size` consecutive elements along an axis, of which there are size - 1 fewer windows.

    Larger windows are made of windows of the powers of two: about log2(size) passes. With `repeats` an element may be
    combined twice, as a maximum's may.
    """
    count = x.shape[axis] - size + 1
    if size <= _FEW:
        result = part(x, axis, 0, count)
        for k in range(1, size):
            result = combine(result, part(x, axis, k, count))
        return result
    result, start, width = None, 0, 1
    while True:
        if size & width and not repeats:
            piece = part(x, axis, start, count)
            result, start = piece if result is None else combine(result, piece), start + width
        if 2 * width > size:
            break
        length = x.shape[axis] - width
        x, width = combine(part(x, axis, 0, length), part(x, axis, width, length)), 2 * width
    return combine(part(x, axis, 0, count), part(x, axis, size - width, count)) if repeats else result

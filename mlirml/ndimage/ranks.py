"""Filters by order: minima, maxima, medians and other ranks of windows, and the morphology of grey images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.errors import ArgumentError, ShapeError
from mlirml.frontend.frames import at_user_line
from mlirml.ndimage.borders import as_image, axes_of, for_axes, padded, placed, reach, stored_as


def _window(
    name: str, x: Any, size: Any, footprint: Any, mode: Any, origin: Any, axes: Any, *, by_axis: bool = False
) -> tuple[np.ndarray, list[str], list[int]]:  # fmt: skip
    """The elements of a window that count, as an array of bools, and the modes and origins of all axes.

    SciPy takes sizes in the order of the axes for extremes only (`by_axis`).
    """
    chosen = axes_of(name, x, axes)
    if footprint is None:
        if size is None:
            with at_user_line():
                raise ArgumentError(f"ndimage.{name}: give `size` or `footprint`")
        footprint = np.ones([int(n) for n in for_axes(name, x, size, chosen, "size")], bool)
        if by_axis:
            footprint = np.transpose(footprint, np.argsort(chosen))
    footprint = np.asarray(footprint, bool)
    if footprint.ndim != len(chosen) or not footprint.any():
        with at_user_line():
            raise ShapeError(f"ndimage.{name}: a footprint of shape {list(footprint.shape)} for {len(chosen)} axes")
    shape, modes, origins = placed(name, x, footprint.shape, chosen, mode, origin)
    return footprint.reshape(shape), modes, origins


def _extreme(
    name: str, choose: Callable[[Any, Any], Any], input: Any, size: Any, footprint: Any, output: Any, mode: Any,
    cval: float, origin: Any, axes: Any,
) -> Any:  # fmt: skip
    x = as_image(name, input)
    window, modes, origins = _window(name, x, size, footprint, mode, origin, axes, by_axis=True)
    if not window.all():
        parts = _parts(name, x, window, modes, cval, origins)
        result = parts[0]
        for part in parts[1:]:
            result = choose(result, part)
        return stored_as(x, result, output)
    result = x
    for axis, count in enumerate(window.shape):
        if count == 1 and not origins[axis]:
            continue
        line = [count if i == axis else 1 for i in range(x.ndim)]
        parts = _parts(
            name, result, np.ones(line, bool), modes, cval, [o if i == axis else 0 for i, o in enumerate(origins)]
        )
        result = parts[0]
        for part in parts[1:]:
            result = choose(result, part)
    return stored_as(x, result, output)


def _parts(name: str, x: Any, window: np.ndarray, modes: list[str], cval: float, origins: list[int]) -> list[Any]:
    """The array moved by each position of a window that counts."""
    widths = [reach(name, size, origin) for size, origin in zip(window.shape, origins)]
    source = padded(name, x, widths, modes, cval)
    return [
        source[tuple(slice(i, i + n) for i, n in zip(index, x.shape))]
        for index in np.ndindex(*window.shape)
        if window[index]
    ]


def minimum_filter(
    input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect", cval: float = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The least element of a window."""
    return _extreme("minimum_filter", np.minimum, input, size, footprint, output, mode, cval, origin, axes)


def maximum_filter(
    input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect", cval: float = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The greatest element of a window."""
    return _extreme("maximum_filter", np.maximum, input, size, footprint, output, mode, cval, origin, axes)


def _ranked(
    name: str, choose: Callable[[int], int], input: Any, size: Any, footprint: Any, output: Any, mode: Any, cval: float,
    origin: Any, axes: Any,
) -> Any:  # fmt: skip
    x = as_image(name, input)
    window, modes, origins = _window(name, x, size, footprint, mode, origin, axes)
    count = int(window.sum())
    rank = choose(count)
    if not 0 <= rank < count:
        with at_user_line():
            raise ArgumentError(f"ndimage.{name}: rank {rank} of {count} elements")
    return stored_as(x, element_of_rank(_parts(name, x, window, modes, cval, origins), rank), output)


def element_of_rank(parts: list[Any], rank: int) -> Any:
    """The element of a rank at each position, by a network of comparisons of which the others are left out.

    Batcher's odd-even merge sort (Knuth, "The art of computer programming", volume 3, 5.2.2, algorithm M). Windows of
    more than 49 elements are sorted.
    """
    count = len(parts)
    if count > _MOST_COMPARED:
        return np.sort(np.stack(parts, axis=-1), axis=-1)[..., rank]
    wanted = {rank}
    needed: list[tuple[int, int]] = []
    for low, high in reversed(_comparisons(count)):
        if low in wanted or high in wanted:
            wanted |= {low, high}
            needed.append((low, high))
    values = list(parts)
    for low, high in reversed(needed):
        a, b = values[low], values[high]
        values[low], values[high] = np.minimum(a, b), np.maximum(a, b)
    return values[rank]


_MOST_COMPARED = 49


def _comparisons(count: int) -> list[tuple[int, int]]:
    """The pairs of positions that a network of Batcher's compares, in order."""
    found: list[tuple[int, int]] = []
    top = 1 << max(0, (count - 1).bit_length() - 1)
    step = top
    while step:
        distance, start, size = step, 0, top
        while True:
            found += [(i, i + distance) for i in range(count - distance) if i & step == start]
            if size == step:
                break
            distance, start, size = size - step, step, size // 2
        step //= 2
    return found


def rank_filter(
    input: Any, rank: int, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
    cval: float = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The element of a rank of a window; negative ranks count from the greatest."""
    return _ranked(
        "rank_filter",
        lambda n: rank + n if rank < 0 else rank,
        input,
        size,
        footprint,
        output,
        mode,
        cval,
        origin,
        axes,
    )


def percentile_filter(
    input: Any, percentile: float, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
    cval: float = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The element of a window below which a part of the others are, in percent."""
    share = percentile + 100 if percentile < 0 else percentile

    def rank(count: int) -> int:
        return count - 1 if share == 100 else int(count * share / 100.0)

    return _ranked("percentile_filter", rank, input, size, footprint, output, mode, cval, origin, axes)


def median_filter(
    input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect", cval: float = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The median of a window."""
    return _ranked("median_filter", lambda n: n // 2, input, size, footprint, output, mode, cval, origin, axes)


def grey_erosion(
    input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect", cval: float = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The least element of a window, by a flat structuring element."""
    return minimum_filter(input, size, footprint, output, mode, cval, origin, axes=axes)


def grey_dilation(
    input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect", cval: float = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The greatest element of a window that is reversed, by a flat structuring element."""
    x = as_image("grey_dilation", input)
    window, _, origins = _window("grey_dilation", x, size, footprint, mode, origin, axes, by_axis=True)
    chosen = axes_of("grey_dilation", x, axes)
    moved = [-origins[axis] - (1 - window.shape[axis] % 2) for axis in chosen]
    window = window.reshape([window.shape[axis] for axis in sorted(chosen)])[(slice(None, None, -1),) * len(chosen)]
    return maximum_filter(x, None, window, output, mode, cval, moved, axes=axes)


def grey_opening(input: Any, size: Any = None, footprint: Any = None, **options: Any) -> Any:
    """The dilation of the erosion."""
    return grey_dilation(grey_erosion(input, size, footprint, **options), size, footprint, **options)


def grey_closing(input: Any, size: Any = None, footprint: Any = None, **options: Any) -> Any:
    """The erosion of the dilation."""
    return grey_erosion(grey_dilation(input, size, footprint, **options), size, footprint, **options)

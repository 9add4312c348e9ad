"""Filters of the order of elements: minimum, maximum, median, percentiles, and grey morphology.

Medians and other ranks of small windows are selection networks: the comparators of Batcher's odd-even merge sort
(Batcher, Sorting networks and their applications, 1968) that the chosen rank depends on. Those of larger windows sort.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from mlirml.errors import DTypeError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.ndimage.arguments import (
    PADDINGS,
    Output,
    checked_axes,
    checked_axis,
    checked_mode,
    extended,
    for_each,
    integer,
    part,
    prepared,
    public,
    window,
    working_dtype,
)
from mlirml.ndimage.windows import combined
from mlirml.ops.functions import library
from mlirml.special.floats import as_array

__all__ = [
    "grey_closing", "grey_dilation", "grey_erosion", "grey_opening", "maximum_filter", "maximum_filter1d",
    "median_filter", "minimum_filter", "minimum_filter1d", "morphological_gradient", "percentile_filter", "rank_filter",
]  # fmt: skip

_MOST_IN_NETWORKS = 49


def _comparable(x: Any, out: Output, modes: Any, cval: Any) -> Any:
    """The array in a dtype that has the numbers of the border, too."""
    if x.dtype.kind == "c":
        raise DTypeError(f"{out.name}: complex numbers have no order")
    padded = any(PADDINGS[mode] == "constant" for mode in modes)
    if padded and x.dtype.kind in "biu" and (isinstance(cval, Traced) or np.array(cval).astype(x.dtype) != cval):
        return x.astype(np.float64)
    return x


def _extremum(x: Any, size: int, axis: int, mode: str, cval: Any, origin: Any, out: Output, largest: bool) -> Any:
    """The largest or smallest element of windows along an axis."""
    size = integer(out.name, "size", size)
    if size < 1:
        raise ShapeError(f"{out.name}: the window must have elements, got size {size}")
    margin, mode = window(out.name, size, origin), checked_mode(out.name, mode)
    if not x.size:
        return out.cast(x)
    padded = extended(_comparable(x, out, [mode], cval), {axis: margin}, {axis: mode}, cval)
    return out.cast(combined(np.maximum if largest else np.minimum, padded, axis, size, repeats=True))


def _extremum1d(
    name: str, input: Any, size: int, axis: int, output: Any, mode: str, cval: Any, origin: int, largest: bool
) -> Any:
    x, out = prepared(name, input, output)
    return out.store(_extremum(x, size, checked_axis(name, x, axis), mode, cval, origin, out, largest))


@public("input")
def maximum_filter1d(
    input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
    origin: int = 0,
) -> Any:  # fmt: skip
    """The largest of `size` neighbours along an axis; NaN is the largest."""
    return _extremum1d("maximum_filter1d", input, size, axis, output, mode, cval, origin, True)


@public("input")
def minimum_filter1d(
    input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
    origin: int = 0,
) -> Any:  # fmt: skip
    """The smallest of `size` neighbours along an axis; NaN is the smallest."""
    return _extremum1d("minimum_filter1d", input, size, axis, output, mode, cval, origin, False)


def _footprint(name: str, size: Any, footprint: Any, axes: tuple[int, ...]) -> np.ndarray:
    """The elements of a window that count, a static array of booleans with a dimension for each axis."""
    if footprint is None:
        if size is None:
            raise ShapeError(f"{name}: no size or footprint of the window")
        sizes = tuple(integer(name, "size", n) for n in for_each(name, "size", size, len(axes)))
        if min(sizes, default=1) < 1:
            raise ShapeError(f"{name}: the window must have elements, got size {size}")
        return np.ones(sizes, np.bool_)
    if isinstance(footprint, Traced) and footprint._known() is None:
        raise ShapeError(f"{name}: the footprint must be known when the function is traced")
    found = np.asarray(footprint, dtype=np.bool_)
    if found.ndim != len(axes):
        raise ShapeError(f"{name}: a footprint of {found.ndim} dimensions for {len(axes)} axes")
    if not found.any():
        raise ShapeError(f"{name}: all elements of the footprint are zero")
    return found


def _taps(x: Any, footprint: np.ndarray, mode: Any, cval: Any, origin: Any, axes: tuple[int, ...], out: Output) -> Any:
    """The array with its border, shifted to each element of the window, with its position in the window."""
    modes = dict(zip(axes, for_each(out.name, "mode", mode, len(axes))))
    for name in modes.values():
        checked_mode(out.name, name)
    origins = for_each(out.name, "origin", origin, len(axes))
    margins = {a: window(out.name, n, o) for a, n, o in zip(axes, footprint.shape, origins)}
    padded = extended(x, margins, modes, cval)
    for position in itertools.product(*map(range, footprint.shape)):
        if footprint[position]:
            tap = padded
            for axis, k in zip(axes, position):
                tap = part(tap, axis, k, x.shape[axis])
            yield position, tap


def _extremum_of_window(
    x: Any, size: Any, footprint: Any, structure: Any, mode: Any, cval: Any, origin: Any, axes: Any, out: Output,
    largest: bool,
) -> Any:  # fmt: skip
    """The largest of x + structure, or the smallest of x - structure, in windows; along axes if the window is a box."""
    chosen = checked_axes(out.name, x, axes)
    if structure is not None:
        structure = as_array(structure)
        if footprint is None:
            footprint = np.ones(structure.shape, np.bool_)
        if structure.shape != np.shape(footprint):
            raise ShapeError(
                f"{out.name}: a structure of shape {list(structure.shape)}, a footprint of {list(np.shape(footprint))}"
            )
    fp = _footprint(out.name, size, footprint, chosen)
    modes = for_each(out.name, "mode", mode, len(chosen))
    origins = for_each(out.name, "origin", origin, len(chosen))
    for name, count, start in zip(modes, fp.shape, origins):
        checked_mode(out.name, name)
        window(out.name, count, start)
    if not x.size:
        return out.cast(x)
    if structure is None and fp.all():
        for axis, count, name, start in zip(chosen, fp.shape, modes, origins):
            if count > 1:
                x = _extremum(x, count, axis, name, cval, start, out, largest)
        return out.cast(x)
    x = _comparable(x, out, modes, cval)
    if structure is not None:
        x = x.astype(working_dtype(x.dtype)) if x.dtype.kind in "biu" else x
    combine = np.maximum if largest else np.minimum
    result: Any = None
    for position, tap in _taps(x, fp, modes, cval, origins, chosen, out):
        if structure is not None:
            height = structure[position] if isinstance(structure, Traced) else structure[position].item()
            tap = tap + height if largest else tap - height
        result = tap if result is None else combine(result, tap)
    return out.cast(result)


@public("input")
def maximum_filter(
    input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect", cval: Any = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The largest element of the window around each one; NaN is the largest."""
    x, out = prepared("maximum_filter", input, output)
    return out.store(_extremum_of_window(x, size, footprint, None, mode, cval, origin, axes, out, True))


@public("input")
def minimum_filter(
    input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect", cval: Any = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The smallest element of the window around each one; NaN is the smallest."""
    x, out = prepared("minimum_filter", input, output)
    return out.store(_extremum_of_window(x, size, footprint, None, mode, cval, origin, axes, out, False))


@public("input")
def grey_erosion(
    input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
    mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The smallest difference to the structure in the window around each element; `minimum_filter` without one."""
    x, out = prepared("grey_erosion", input, output)
    return out.store(_extremum_of_window(x, size, footprint, structure, mode, cval, origin, axes, out, False))


@public("input")
def grey_dilation(
    input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
    mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The largest sum with the mirrored structure in the mirrored window around each element."""
    x, out = prepared("grey_dilation", input, output)
    chosen = checked_axes(out.name, x, axes)
    shape = [n for n in (structure, footprint) if n is not None]
    sizes = np.shape(shape[0]) if shape else for_each(out.name, "size", size, len(chosen))
    turned = [None if a is None else as_array(a) for a in (footprint, structure)]
    footprint, structure = (None if a is None else a[(slice(None, None, -1),) * a.ndim] for a in turned)
    given = for_each(out.name, "origin", origin, len(chosen))
    if size is None and not shape:
        raise ShapeError("grey_dilation: no size, footprint or structure of the window")
    origins = tuple(-integer(out.name, "origin", o) - (n + 1) % 2 for o, n in zip(given, sizes))
    return out.store(_extremum_of_window(x, size, footprint, structure, mode, cval, origins, axes, out, True))


@library("mlirml.ndimage", "input")
def grey_opening(
    input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
    mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The dilation of the erosion."""
    eroded = grey_erosion(input, size, footprint, structure, None, mode, cval, origin, axes=axes)
    return grey_dilation(eroded, size, footprint, structure, output, mode, cval, origin, axes=axes)


@library("mlirml.ndimage", "input")
def grey_closing(
    input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
    mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The erosion of the dilation."""
    dilated = grey_dilation(input, size, footprint, structure, None, mode, cval, origin, axes=axes)
    return grey_erosion(dilated, size, footprint, structure, output, mode, cval, origin, axes=axes)


@public("input")
def morphological_gradient(
    input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
    mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The dilation less the erosion."""
    x, out = prepared("morphological_gradient", input, output)
    options = size, footprint, structure, out.dtype, mode, cval, origin
    return out.store(grey_dilation(x, *options, axes=axes) - grey_erosion(x, *options, axes=axes))


@functools.cache
def comparators(count: int, rank: int) -> tuple[tuple[int, int, bool, bool], ...]:
    """The comparators of a sorting network that the element at position `rank` depends on.

    Each is two positions, of which the first gets the smaller element, and whether that and the larger one are read.
    """
    pairs = []
    span = 1
    while span < count:
        step = span
        while step:
            for start in range(step % span, count - step, 2 * step):
                for i in range(start, min(start + step, count - step)):
                    if i // (2 * span) == (i + step) // (2 * span):
                        pairs.append((i, i + step))
            step //= 2
        span *= 2
    needed, kept = {rank}, []
    for low, high in reversed(pairs):
        reads = low in needed, high in needed
        if any(reads):
            kept.append((low, high, *reads))
            needed |= {low, high}
    return tuple(reversed(kept))


def _element_of_rank(elements: list[Any], rank: int) -> Any:
    """The element at a position of the order."""
    if len(elements) > _MOST_IN_NETWORKS:
        return np.sort(np.stack(elements, axis=-1), axis=-1)[..., rank]
    elements = list(elements)
    for low, high, reads_low, reads_high in comparators(len(elements), rank):
        one, two = elements[low], elements[high]
        if reads_low:
            elements[low] = np.minimum(one, two)
        if reads_high:
            elements[high] = np.maximum(one, two)
    return elements[rank]


def _ranked(
    input: Any, rank: Any, size: Any, footprint: Any, output: Any, mode: Any, cval: Any, origin: Any, axes: Any,
    name: str,
) -> Any:  # fmt: skip
    """The element at the position `rank(count)` in the order of each window."""
    x, out = prepared(name, input, output)
    chosen = checked_axes(name, x, axes)
    fp = _footprint(name, size, footprint, chosen)
    count = int(fp.sum())
    found = rank(count)
    if not 0 <= found < count:
        raise ShapeError(f"{name}: rank {found} in a window of {count} elements")
    if found in (0, count - 1):
        return out.store(_extremum_of_window(x, None, fp, None, mode, cval, origin, chosen, out, bool(found)))
    modes = for_each(name, "mode", mode, len(chosen))
    for border, n, start in zip(modes, fp.shape, for_each(name, "origin", origin, len(chosen))):
        checked_mode(name, border)
        window(name, n, start)
    if not x.size:
        return out.store(x)
    x = _comparable(x, out, modes, cval)
    taps = [tap for _, tap in _taps(x, fp, modes, cval, origin, chosen, out)]
    return out.store(_element_of_rank(taps, found))


@public("input")
def rank_filter(
    input: Any, rank: int, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
    cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The element at the position `rank` in the order of the window around each element; negative from the largest."""
    given = integer("rank_filter", "rank", rank)

    def position(count: int) -> int:
        return given + count if given < 0 else given

    return _ranked(input, position, size, footprint, output, mode, cval, origin, axes, "rank_filter")


@public("input")
def median_filter(
    input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect", cval: Any = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The middle element of the window around each one, of an even number the larger of two; NaN has no order."""

    def position(count: int) -> int:
        return count // 2

    return _ranked(input, position, size, footprint, output, mode, cval, origin, axes, "median_filter")


@public("input")
def percentile_filter(
    input: Any, percentile: float, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
    cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Any:  # fmt: skip
    """The element of the window around each one below which a percentage of it lies; negative from the largest."""
    share = percentile + 100.0 if percentile < 0 else percentile
    if not 0 <= share <= 100:
        raise ShapeError(f"percentile_filter: percentiles lie between -100 and 100, not {percentile}")

    def position(count: int) -> int:
        return count - 1 if share == 100.0 else int(float(count) * share / 100.0)

    return _ranked(input, position, size, footprint, output, mode, cval, origin, axes, "percentile_filter")

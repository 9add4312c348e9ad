"""What a filter reads beyond the border of an array, and the arguments that filters have in common."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirml.errors import ArgumentError, DTypeError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.current import current_trace
from mlirml.frontend.frames import at_user_line

_PADDINGS = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap",
    "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant",
}  # fmt: skip
"""The mode of `np.pad` for each of SciPy's."""


def as_image(name: str, x: Any) -> Any:
    """An array, traced or real, of real numbers."""
    x = x if isinstance(x, Traced) else np.asarray(x)
    if x.dtype.kind not in "biuf":
        with at_user_line():
            raise DTypeError(f"ndimage.{name}: filters take real numbers, not {x.dtype}")
    return x


def computed_in(x: Any) -> np.dtype:
    """The dtype that a filter computes in: that of floats from f32 on, otherwise f64."""
    return np.dtype(x.dtype) if x.dtype.kind == "f" and x.dtype.itemsize >= 4 else np.dtype(np.float64)


def stored_as(x: Any, result: Any, output: Any) -> Any:
    """The result in the dtype `output`, or in that of the input, to which floats are truncated as SciPy does."""
    dtype = np.dtype(x.dtype if output is None else output)
    return result if result.dtype == dtype else result.astype(dtype)


def padded(name: str, x: Any, widths: Sequence[tuple[int, int]], modes: Sequence[str], cval: float) -> Any:
    """The array with elements beyond its borders, by a mode for each axis."""
    for axis, (width, mode) in enumerate(zip(widths, modes)):
        if mode not in _PADDINGS:
            with at_user_line():
                raise ArgumentError(f"ndimage.{name}: the mode is one of {', '.join(_PADDINGS)}, not {mode!r}")
        if width == (0, 0) or not x.shape[axis]:
            continue
        options: dict[str, Any] = {"mode": _PADDINGS[mode]}
        if options["mode"] == "reflect" and x.shape[axis] == 1:
            options["mode"] = "edge"
        elif options["mode"] == "constant":
            options["constant_values"] = cval
        x = np.pad(x, [width if i == axis else (0, 0) for i in range(x.ndim)], **options)
    return x


def for_axes(name: str, x: Any, value: Any, axes: Sequence[int], what: str) -> list[Any]:
    """A value for each of the axes, of one for all of them or a sequence."""
    if isinstance(value, (str, int, float, np.generic)) or np.ndim(value) == 0:
        return [value] * len(axes)
    if len(value) != len(axes):
        with at_user_line():
            raise ShapeError(f"ndimage.{name}: {len(value)} entries of `{what}` for {len(axes)} axes")
    return list(value)


def axes_of(name: str, x: Any, axes: Any) -> list[int]:
    """Axes counted from the front, all of them by default."""
    chosen = range(x.ndim) if axes is None else [axes] if np.ndim(axes) == 0 else axes
    found = [operator.index(axis) for axis in chosen]
    if any(not -x.ndim <= axis < x.ndim for axis in found) or len({axis % x.ndim for axis in found}) != len(found):
        with at_user_line():
            raise ShapeError(f"ndimage.{name}: axes {axes} of an array of shape {list(x.shape)}")
    return [axis % x.ndim for axis in found]


def reach(name: str, size: int, origin: int) -> tuple[int, int]:
    """The numbers of elements before and after its own that a window of `size` elements reads."""
    before = size // 2 + origin
    if size < 1 or not 0 <= before < size:
        with at_user_line():
            raise ArgumentError(f"ndimage.{name}: a window of size {size} has no origin {origin}")
    return before, size - 1 - before


def placed(
    name: str, x: Any, sizes: Sequence[int], axes: Sequence[int], mode: Any, origin: Any
) -> tuple[list[int], list[str], list[int]]:
    """The shape of a window, whose dimensions are those of the axes from the first on, and the modes and origins.

    These are given in the order of the axes.
    """
    shape, modes, origins = [1] * x.ndim, ["reflect"] * x.ndim, [0] * x.ndim
    for axis, size in zip(sorted(axes), sizes):
        shape[axis] = size
    for axis, one, moved in zip(axes, for_axes(name, x, mode, axes, "mode"), for_axes(name, x, origin, axes, "origin")):
        modes[axis], origins[axis] = one, moved
    return shape, modes, origins


def among(x: Any, others: Sequence[Any]) -> Any:
    """The array, traced where one of the others is."""
    trace = current_trace()
    if trace is None or isinstance(x, Traced) or not any(isinstance(other, Traced) for other in others):
        return x
    return trace.known(x)

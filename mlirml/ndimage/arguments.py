"""The arguments that filters share: arrays, dtypes of results, borders, axes and numbers for each axis."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.errors import DTypeError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.current import current_trace
from mlirml.frontend.frames import at_user_line
from mlirml.ops.functions import library
from mlirml.ops.reductions import normalized_axes
from mlirml.special.floats import as_array

PADDINGS = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "constant": "constant", "grid-constant": "constant",
    "nearest": "edge", "mirror": "reflect", "wrap": "wrap", "grid-wrap": "wrap",
}  # fmt: skip
"""The mode of `np.pad` for each mode of a border."""


_Function = TypeVar("_Function", bound=Callable[..., Any])


def public(*derivatives: str, **options: Any) -> Callable[[_Function], _Function]:
    """Decorator: enter the record of a function (`mlirml.ops.functions`), whose errors are at the user's line."""

    def enter(function: _Function) -> _Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with at_user_line():
                return function(*args, **kwargs)

        return cast(_Function, library("mlirml.ndimage", *derivatives, **options)(call))

    return enter


def taken(x: Any, positions: Any, axis: int) -> Any:
    """Elements at positions along an axis, which are in bounds; those of a real array may be dynamic."""
    trace = current_trace()
    if isinstance(positions, Traced) and not isinstance(x, Traced) and trace is not None:
        x = trace.array(x, copy=False)
    return np.take(x, positions, axis=axis, mode="clip")


def stored_into(x: Any) -> Any:
    """A new real array, as an array of the program that is traced, so that dynamic values can be stored into it."""
    trace = current_trace()
    return x if trace is None else trace.array(x)


@dataclass(frozen=True)
class Output:
    """The result of a function: its dtype, and the array that it is stored into, if one is passed."""

    name: str
    dtype: Any
    array: Any

    def cast(self, x: Any) -> Any:
        """The numbers in the dtype of the result; fractions of integers are cut off, and overflows wrap around."""
        dtype = self.dtype
        if x.dtype == dtype:
            return x
        if x.dtype.kind == "c" and dtype.kind != "c":
            raise DTypeError(f"{self.name}: complex numbers cannot be stored as {dtype.name}")
        if dtype.kind in "biu" and x.dtype.kind not in "biu" and dtype.itemsize < 8:
            x = x.astype(np.int64)
        return x.astype(dtype)

    def store(self, x: Any) -> Any:
        """The result `x`, in the array that was passed for it."""
        x = self.cast(x)
        if self.array is None:
            return x
        if self.array.shape != x.shape:
            raise ShapeError(f"{self.name}: the output has shape {list(self.array.shape)}, the result {list(x.shape)}")
        self.array[...] = x
        return self.array


def prepared(name: str, input: Any, output: Any = None, *, is_complex: bool = False) -> tuple[Any, Output]:
    """The input as an array, and the output that an argument is: None, a dtype or an array."""
    x = as_array(input)
    if x.dtype.kind not in "biufcV" or x.dtype.itemsize > (16 if x.dtype.kind == "c" else 8):
        raise DTypeError(f"{name}: not defined for {x.dtype}")
    if hasattr(output, "shape") and hasattr(output, "dtype") and not isinstance(output, type):
        return x, Output(name, output.dtype, output)
    dtype = x.dtype if output is None else np.dtype(output)
    if output is None and is_complex and dtype.kind != "c":
        dtype = np.promote_types(dtype, np.complex64)
    return x, Output(name, dtype, None)


def working_dtype(*dtypes: Any) -> Any:
    """The dtype that is computed in: f64 for integers, f32 for f16 and bf16."""
    floats = []
    for dtype in map(np.dtype, dtypes):
        exact = dtype.kind in "biu"
        floats.append(np.float64 if exact else np.float32 if dtype.itemsize == 2 else dtype)
    return np.result_type(*floats)


def computed_dtype(x: Any, out: Output) -> Any:
    """The dtype that a filter of `x` computes in; a wider dtype of the result is one to compute in, too."""
    return working_dtype(x.dtype) if out.dtype.kind in "biu" else working_dtype(x.dtype, out.dtype)


def checked_mode(name: str, mode: Any) -> str:
    """The mode of a border, or an error that lists them."""
    if mode not in PADDINGS:
        raise ShapeError(f"{name}: there is no mode {mode!r}", help=f"modes are {', '.join(PADDINGS)}")
    return str(mode)


def checked_axes(name: str, x: Any, axes: Any) -> tuple[int, ...]:
    """The axes, all of them by default, in the order they are passed in."""
    if axes is None:
        return tuple(range(x.ndim))
    chosen = tuple(axes) if isinstance(axes, (tuple, list, np.ndarray)) else (axes,)
    found = tuple(normalized_axes(name, x.shape, axis)[0] for axis in chosen)
    if len(set(found)) != len(found):
        raise ShapeError(f"{name}: an axis is repeated in {list(chosen)}")
    return found


def checked_axis(name: str, x: Any, axis: int) -> int:
    """One axis, counted from the first."""
    (found,) = normalized_axes(name, x.shape, int(axis))
    return found


def for_each(name: str, what: str, given: Any, count: int) -> tuple[Any, ...]:
    """One value for each axis, from one for all or a sequence of them."""
    if isinstance(given, str) or not (isinstance(given, Sequence) or np.ndim(given)):
        return (given,) * count
    if len(given) != count:
        raise ShapeError(f"{name}: {len(given)} values of {what} for {count} axes")
    return tuple(given[i] for i in range(count))


def integer(name: str, what: str, value: Any) -> int:
    """A Python integer."""
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise ShapeError(f"{name}: {what} must be an integer, got {value!r}") from None


def window(name: str, size: int, origin: Any) -> tuple[int, int]:
    """The elements of a window before and after the one that it is centred on."""
    before = size // 2 + integer(name, "origin", origin)
    if not 0 <= before < size:
        raise ShapeError(
            f"{name}: invalid origin {origin} of a window of {size} elements",
            help="the window must cover its own element",
        )
    return before, size - 1 - before


def extended(x: Any, margins: dict[int, tuple[int, int]], modes: dict[int, str], cval: Any) -> Any:
    """The array with margins along axes, filled as the modes say.

    Axes are extended in order, which makes no difference but where one is extended by a constant.
    """
    for axis, margin in margins.items():
        if any(margin):
            widths = [margin if d == axis else (0, 0) for d in range(x.ndim)]
            options = {"constant_values": cval} if PADDINGS[modes[axis]] == "constant" else {}
            x = np.pad(x, widths, mode=PADDINGS[modes[axis]], **options)  # type: ignore[call-overload]
    return x


def part(x: Any, axis: int, start: int, count: int) -> Any:
    """`count` elements along an axis."""
    index = (*[slice(None)] * axis, slice(start, start + count))
    return x[index]

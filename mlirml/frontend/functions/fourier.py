"""`np.fft`: discrete Fourier transforms along axes, of which the target `cpu` has ducc0's, as SciPy does.

Each function is one `mlirml.fft` (`ir/library_calls.py`). Input is cropped or padded with zeros before. f32 is computed
in f32, f16 in f32, and integers in f64, as in NumPy.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.errors import ArgumentError, DTypeError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.tracing.trace import Trace, value_of
from mlirml.ir import library_calls as modes
from mlirml.ir.text.library_calls import library_call
from mlirml.ops.functions import library

_NORMS = ("backward", "ortho", "forward")


@library("numpy.fft", "a")
def fft(trace: Trace, a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The transform of complex or real numbers along one axis."""
    return _complex(trace, "fft", a, n, axis, norm, out, forward=True)


@library("numpy.fft", "a")
def ifft(trace: Trace, a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `fft`."""
    return _complex(trace, "ifft", a, n, axis, norm, out, forward=False)


@library("numpy.fft", "a")
def rfft(trace: Trace, a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The first n // 2 + 1 bins of the transform of n real numbers along one axis."""
    return _to_bins(trace, "rfft", a, n, axis, norm, out, forward=True)


@library("numpy.fft", "a")
def irfft(trace: Trace, a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `rfft`: n real numbers, 2 * (m - 1) for m bins by default."""
    return _from_bins(trace, "irfft", a, n, axis, norm, out, forward=False)


@library("numpy.fft", "a")
def hfft(trace: Trace, a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The transform, n real numbers, of numbers that are conjugates of each other, of which the first half is given."""
    return _from_bins(trace, "hfft", a, n, axis, norm, out, forward=True)


@library("numpy.fft", "a")
def ihfft(trace: Trace, a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `hfft`: n // 2 + 1 bins."""
    return _to_bins(trace, "ihfft", a, n, axis, norm, out, forward=False)


@library("numpy.fft", "a")
def fftn(trace: Trace, a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """The transform along several axes, all of them by default."""
    return _complex(trace, "fftn", a, s, axes, norm, out, forward=True)


@library("numpy.fft", "a")
def ifftn(trace: Trace, a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `fftn`."""
    return _complex(trace, "ifftn", a, s, axes, norm, out, forward=False)


@library("numpy.fft", "a")
def rfftn(trace: Trace, a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """The transform of real numbers along several axes, with the first n // 2 + 1 bins along the last one."""
    return _to_bins(trace, "rfftn", a, s, axes, norm, out, forward=True)


@library("numpy.fft", "a")
def irfftn(trace: Trace, a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `rfftn`."""
    return _from_bins(trace, "irfftn", a, s, axes, norm, out, forward=False)


@library("numpy.fft", "a")
def fft2(trace: Trace, a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """The transform along two axes."""
    return _complex(trace, "fft2", a, s, axes, norm, out, forward=True)


@library("numpy.fft", "a")
def ifft2(trace: Trace, a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """The inverse of `fft2`."""
    return _complex(trace, "ifft2", a, s, axes, norm, out, forward=False)


@library("numpy.fft", "a")
def rfft2(trace: Trace, a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """The transform of real numbers along two axes, with the first n // 2 + 1 bins along the second one."""
    return _to_bins(trace, "rfft2", a, s, axes, norm, out, forward=True)


@library("numpy.fft", "a")
def irfft2(trace: Trace, a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """The inverse of `rfft2`."""
    return _from_bins(trace, "irfft2", a, s, axes, norm, out, forward=False)


@library("numpy.fft", "x")
def fftshift(trace: Trace, x: Any, axes: Any = None) -> Any:
    """The bins along axes with that of frequency zero in the middle."""
    return _shifted(trace, "fftshift", x, axes, lambda n: n // 2)


@library("numpy.fft", "x")
def ifftshift(trace: Trace, x: Any, axes: Any = None) -> Any:
    """The inverse of `fftshift`."""
    return _shifted(trace, "ifftshift", x, axes, lambda n: -(n // 2))


def _shifted(trace: Trace, name: str, x: Any, axes: Any, by: Callable[[int], int]) -> Any:
    x = trace.array(x, copy=False)
    chosen = tuple(range(x.ndim)) if axes is None else axes
    chosen = tuple(chosen) if isinstance(chosen, Sequence) else (chosen,)
    positions = [_axis(name, x, axis) for axis in chosen]
    return np.roll(x, [by(x.shape[i]) for i in positions], positions)


def _axis(name: str, x: Any, axis: Any) -> int:
    """An axis counted from the front."""
    position = operator.index(axis)
    if not -x.ndim <= position < x.ndim:
        raise ShapeError(f"{name}: axis {axis} is out of bounds for {x._describe()}")
    return int(position % x.ndim)


def _prepared(trace: Trace, name: str, a: Any, s: Any, axes: Any) -> tuple[Any, list[int], list[int]]:
    """The array in a dtype that is transformed, the axes, and the number of points along each of them."""
    a = trace.array(a, copy=False)
    if a.dtype.name == "bfloat16":
        raise DTypeError(f"{name}: not defined for bfloat16", help="convert with `.astype(np.float32)`")
    if a.dtype == np.float16:
        a = a.astype(np.float32)
    elif a.dtype.kind in "biu":
        a = a.astype(np.float64)
    several = name.endswith(("n", "2"))
    if not several:
        s, axes = None if s is None else (s,), (axes,)
    elif axes is None:
        axes = range(-len(s), 0) if s is not None else range(a.ndim)
    positions = [_axis(name, a, axis) for axis in axes]
    if not positions:
        raise ArgumentError(f"{name}: at least one axis is transformed")
    if len({*positions}) < len(positions):
        raise ShapeError(
            f"{name}: an axis is given more than once, {tuple(axes)}",
            help="transform it by `fft` one time after another",
        )
    if s is None:
        return a, positions, [a.shape[i] for i in positions]
    if len(s) != len(positions):
        raise ShapeError(f"{name}: {len(s)} sizes are given for {len(positions)} axes")
    counts = [a.shape[i] if n is None or n == -1 else operator.index(n) for n, i in zip(s, positions)]
    return a, positions, counts


def _resized(name: str, a: Any, positions: list[int], counts: list[int]) -> Any:
    """The array cropped, or padded with zeros at the end, along axes."""
    for i, count in zip(positions, counts):
        if count < 1:
            raise ShapeError(f"{name}: invalid number of data points ({count}) specified.")
        if a.shape[i] > count:
            a = a[(slice(None),) * i + (slice(count),)]
        elif a.shape[i] < count:
            a = np.pad(a, [(0, count - a.shape[i]) if k == i else (0, 0) for k in range(a.ndim)])
    return a


def _scale(name: str, norm: Any, forward: bool) -> int:
    if norm is not None and norm not in _NORMS:
        raise ArgumentError(f"{name}: the norm is None, {', '.join(map(repr, _NORMS))}, not {norm!r}")
    if norm == "ortho":
        return modes.BY_ROOT
    return modes.BY_COUNT if (norm == "forward") == forward else 0


def _complex(trace: Trace, name: str, a: Any, s: Any, axes: Any, norm: Any, out: Any, *, forward: bool) -> Any:
    mode = modes.C2C | (0 if forward else modes.BACKWARD) | _scale(name, norm, forward)
    a, positions, counts = _prepared(trace, name, a, s, axes)
    a = _resized(name, a, positions, counts)
    return _stored(_transformed(trace, a.astype(np.result_type(a.dtype, np.complex64)), positions, mode), out)


def _to_bins(trace: Trace, name: str, a: Any, s: Any, axes: Any, norm: Any, out: Any, *, forward: bool) -> Any:
    mode = modes.R2C | (0 if forward else modes.BACKWARD) | _scale(name, norm, forward)
    a, positions, counts = _prepared(trace, name, a, s, axes)
    if a.dtype.kind == "c":
        raise DTypeError(
            f"{name}: takes real numbers, not {a._describe()}", help="take `fft`, or the real part `x.real`"
        )
    return _stored(_last_axis_last(trace, _resized(name, a, positions, counts), positions, mode), out)


def _from_bins(trace: Trace, name: str, a: Any, s: Any, axes: Any, norm: Any, out: Any, *, forward: bool) -> Any:
    mode = modes.C2R | (0 if forward else modes.BACKWARD) | _scale(name, norm, forward)
    half = getattr(a, "dtype", None) == np.float16
    a, positions, counts = _prepared(trace, name, a, s, axes)
    last = positions[-1]
    given = s is not None and (not isinstance(s, Sequence) or s[-1] not in (None, -1))
    count = counts[-1] if given else 2 * (a.shape[last] - 1)
    if count < 1:
        raise ShapeError(f"{name}: invalid number of data points ({count}) specified.")
    resized = _resized(name, a, positions, [*counts[:-1], count // 2 + 1])
    mode |= modes.ODD if count % 2 else 0
    found = _last_axis_last(trace, resized.astype(np.result_type(a.dtype, np.complex64)), positions, mode)
    # As NumPy's result is, which has no other axes in f16.
    return _stored(found.astype(np.float16) if half and len(positions) == 1 else found, out)


def _last_axis_last(trace: Trace, a: Any, positions: list[int], mode: int) -> Any:
    """A transform of which the last of the given axes has the bins: it has to come after the others."""
    last = positions[-1]
    if last == max(positions):
        return _transformed(trace, a, positions, mode)
    moved = np.moveaxis(a, last, -1)
    axes = [i - (i > last) for i in positions[:-1]]
    return np.moveaxis(_transformed(trace, moved, [*axes, a.ndim - 1], mode), -1, last)


def _transformed(trace: Trace, a: Any, positions: list[int], mode: int) -> Any:
    """`mlirml.fft` of an array; neighbouring dimensions that are not transformed are one."""
    if not a.size:
        return _of_nothing(trace, a, positions, mode)
    shape, axes = [1], []  # the batch comes first
    grouped: list[list[int]] = [[]]
    for i, size in enumerate(a.shape):
        if i in positions:
            axes.append(len(shape))
            shape.append(size)
            grouped.append([i])
        elif axes and axes[-1] == len(shape) - 1:
            shape.append(size)
            grouped.append([i])
        else:
            shape[-1] *= size
            grouped[-1].append(i)
    if len(shape) > modes.MOST_DIMENSIONS:
        first, rest = positions[:-1], positions[-1:]
        if mode & modes.TRANSFORM == modes.C2R:
            inner = mode & ~(modes.TRANSFORM | modes.ODD)
            return _transformed(trace, _transformed(trace, a, first, inner), rest, mode)
        inner = mode & ~modes.TRANSFORM
        return _transformed(trace, _transformed(trace, a, rest, mode), first, inner)
    with at_user_line():
        whole = mode | sum(1 << modes.AXES_SHIFT + axis for axis in axes)
        value = value_of(trace, a.reshape(shape), "the array")
        found: Any = Traced(trace, Cell(library_call(trace.builder, "fft", [value], whole), owned=True))
    sizes = [0] * a.ndim
    for number, group in enumerate(grouped):
        for i in group:
            sizes[i] = found.shape[number] if number in axes else a.shape[i]
    return found.reshape(sizes)


def _of_nothing(trace: Trace, a: Any, positions: list[int], mode: int) -> Any:
    """The transform of an array without elements, whose transformed axes have some."""
    shape, last, kind = list(a.shape), positions[-1], mode & modes.TRANSFORM
    dtype = a.dtype
    if kind == modes.R2C:
        shape[last] = shape[last] // 2 + 1
        dtype = np.result_type(dtype, np.complex64)
    elif kind == modes.C2R:
        shape[last] = 2 * (shape[last] - 1) + bool(mode & modes.ODD)
        dtype = np.zeros((), dtype).real.dtype
    return trace.array(np.zeros(shape, dtype))


def _stored(found: Any, out: Any) -> Any:
    """The result, or `out` with it."""
    if out is None:
        return found
    if out.shape != found.shape or out.dtype != found.dtype:
        raise ShapeError(f"the array `out` has shape {list(out.shape)}, and the result is {found._describe()}")
    out[...] = found
    return out

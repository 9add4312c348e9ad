"""Cosine and sine transforms under the names of `scipy.fft`, compiled or not.

They are computed by the Fourier transforms of `np.fft`, and have derivatives. Compiled functions may call those of
`scipy.fft` themselves.

>>> import numpy as np, mlirml as ml
>>> ml.compile(ml.fft.dct)(np.array([1.0, 2.0, 3.0]))
array([12.        , -3.46410162,  0.        ])
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirml.errors import ArgumentError, ShapeError
from mlirml.frontend.frames import at_user_line
from mlirml.ops.functions import library_family
from mlirml.signal.filters import axis_of, floats

__all__ = ["dct", "dctn", "dst", "dstn", "idct", "idctn", "idst", "idstn"]

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
_NORMS = ("backward", "ortho", "forward")


def _along_all(
    name: str, x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: str | None = None,
    orthogonalize: Any = None,
) -> Any:  # fmt: skip
    rank = np.ndim(x)
    sizes = None if s is None else [operator.index(size) for size in np.atleast_1d(s)]
    if axes is None:
        axes = range(rank) if sizes is None else range(rank - len(sizes), rank)
    axes = [operator.index(axis) for axis in np.atleast_1d(axes)]
    if sizes is not None and len(sizes) != len(axes):
        with at_user_line():
            raise ShapeError(f"{name}: there are {len(sizes)} sizes in `s` for {len(axes)} axes")
    for position, axis in enumerate(axes):
        size = None if sizes is None else sizes[position]
        x = _along(name[:-1], x, type, size, axis, norm, orthogonalize)
    return x


def _along(
    name: str, x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
    orthogonalize: Any = None,
) -> Any:  # fmt: skip
    (x,) = floats(x)
    axis = axis_of(name, x, axis)
    norm = "backward" if norm is None else norm
    with at_user_line():
        if type not in _INVERSE:
            raise ArgumentError(f"{name}: the type is 1, 2, 3 or 4, not {type!r}")
        if norm not in _NORMS:
            raise ArgumentError(f"{name}: norm is 'backward', 'ortho' or 'forward', not {norm!r}")
        count = x.shape[axis] if n is None else operator.index(n)
        if count < (2 if type == 1 and name.endswith("dct") else 1):
            raise ShapeError(f"{name}: {count} elements are too few for type {type}")
    x = np.moveaxis(x, axis, -1)[..., :count]
    missing = count - x.shape[-1]
    if missing:
        x = np.concatenate([x, np.zeros((*x.shape[:-1], missing), x.dtype)], axis=-1)
    if name.startswith("i"):
        type, norm = _INVERSE[type], _NORMS[2 - _NORMS.index(norm)]
    is_orthogonal = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    transform = _cosines if name.endswith("dct") else _sines
    parts = [transform(part, type, norm, is_orthogonal) for part in ([x.real, x.imag] if x.dtype.kind == "c" else [x])]
    return np.moveaxis(parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1], -1, axis)


def _cosines(x: Any, type: int, norm: str, is_orthogonal: bool) -> Any:
    """The cosine transform along the last axis of real numbers."""
    count = x.shape[-1]
    if is_orthogonal and type in (1, 3):
        x = x * _edges(count, math.sqrt(2), x.dtype, both=type == 1)
    y = (_cosines_1, _cosines_2, _cosines_3, _cosines_4)[type - 1](x)
    if is_orthogonal and type in (1, 2):
        y = y * _edges(count, math.sqrt(0.5), x.dtype, both=type == 1)
    return _scaled(y, 2 * (count - 1) if type == 1 else 2 * count, norm)


def _sines(x: Any, type: int, norm: str, is_orthogonal: bool) -> Any:
    """The sine transform along the last axis of real numbers, by a cosine transform unless it is of type 1."""
    count = x.shape[-1]
    if type == 1:
        zero = np.zeros((*x.shape[:-1], 1), x.dtype)
        spectrum = np.fft.rfft(np.concatenate([zero, x, zero, -x[..., ::-1]], axis=-1))
        return _scaled(-spectrum.imag[..., 1 : count + 1], 2 * (count + 1), norm)
    signs = np.where(np.arange(count) % 2, -1, 1).astype(x.dtype)
    if type == 2:
        return _cosines(x * signs, 2, norm, is_orthogonal)[..., ::-1]
    return _cosines(x[..., ::-1], type, norm, is_orthogonal) * signs


def _edges(count: int, factor: float, dtype: Any, *, both: bool) -> np.ndarray:
    """Ones, and a factor for the first element, or for the first and the last."""
    found = np.ones(count, dtype)
    found[[0, -1] if both else [0]] = factor
    return found


def _scaled(y: Any, length: int, norm: str) -> Any:
    """A transform whose square is `length` times the identity, under a norm."""
    return y * {"backward": 1.0, "ortho": 1 / math.sqrt(length), "forward": 1 / length}[norm]


def _turns(phases: Any, dtype: Any) -> Any:
    """exp(i pi phases), constants of the complex dtype for real numbers of `dtype`."""
    return np.exp(1j * math.pi * np.asarray(phases)).astype(np.result_type(dtype, np.complex64))


def _cosines_1(x: Any) -> Any:
    """By the transform of the even extension."""
    return np.fft.rfft(np.concatenate([x, x[..., -2:0:-1]], axis=-1)).real


def _order(count: int) -> Sequence[int]:
    """The even positions, then the odd ones from the last."""
    return [*range(0, count, 2), *range(1, count, 2)[::-1]]


def _cosines_2(x: Any) -> Any:
    count = x.shape[-1]
    spectrum = np.fft.fft(x[..., _order(count)])
    return 2 * (spectrum * _turns(np.arange(count) / (-2 * count), x.dtype)).real


def _cosines_3(x: Any) -> Any:
    count = x.shape[-1]
    mirrored = np.concatenate([np.zeros((*x.shape[:-1], 1), x.dtype), x[..., :0:-1]], axis=-1)
    y = np.fft.ifft((x - 1j * mirrored) * _turns(np.arange(count) / (2 * count), x.dtype)).real * count
    return y[..., np.argsort(_order(count))]


def _cosines_4(x: Any) -> Any:
    count = x.shape[-1]
    spectrum = np.fft.fft(x * _turns(np.arange(count) / (-2 * count), x.dtype), 2 * count)[..., :count]
    return 2 * (spectrum * _turns((2 * np.arange(count) + 1) / (-4 * count), x.dtype)).real


dct, idct, dst, idst = library_family(
    "mlirml.fft",
    _along,
    {
        "dct": """The cosine transform of type 1, 2, 3 or 4 along an axis of real or complex numbers, cropped or padded
    to `n`.

    By J. Makhoul, A fast cosine transform in one and two dimensions, IEEE TASSP 28, 1980.
    """,
        "idct": "The inverse of `dct`.",
        "dst": """The sine transform of type 1, 2, 3 or 4 along an axis of real or complex numbers, cropped or padded
    to `n`.
    """,
        "idst": "The inverse of `dst`.",
    },
    "x",
)
dctn, idctn, dstn, idstn = library_family(
    "mlirml.fft",
    _along_all,
    {
        "dctn": "`dct` along several axes, all of them by default.",
        "idctn": "The inverse of `dctn`.",
        "dstn": "`dst` along several axes, all of them by default.",
        "idstn": "The inverse of `dstn`.",
    },
    "x",
)

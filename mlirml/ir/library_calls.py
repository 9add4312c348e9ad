"""Operations of the `mlirml` dialect that functions of libraries compute: operands, modes, shapes of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlirml.core.dataclass import dataclass

Shape = tuple[int, ...]


@dataclass(frozen=True)
class LibraryCall:
    """An operation that a function of a library computes (`ir/text/library_calls.py`).

    It reads its first `inputs` operands, of `rank` dimensions, and overwrites the last one, the init of its only
    result. Dimension 0 of all of them is a batch. Complex arrays have a further dimension of 2.

    `result` returns the shape of the result, less this dimension, for the shapes of the inputs and the attribute
    `mode`; it raises ValueError where they do not fit together. `complex_result` is whether the result is complex,
    depending on whether the inputs are and on the mode. A rank of 0 is any, up to `MOST_DIMENSIONS`.
    """

    routines: str  # the names of the functions in the library
    result: Callable[[Sequence[Shape], int], Shape]
    inputs: int = 1
    has_mode: bool = False
    complex_result: Callable[[bool, int], bool] = lambda inputs, mode: inputs
    rank: int = 3

    def sizes(self, shapes: Sequence[Sequence[Any]]) -> list[Any]:
        """The sizes that the function takes: the batch, the rows, and the columns of the last input.

        For a call without a fixed rank those of the input, with ones up to `MOST_DIMENSIONS`.
        """
        if not self.rank:
            return [*shapes[0], *[1] * (MOST_DIMENSIONS - len(shapes[0]))]
        return [*shapes[0][:2], shapes[-1][2]]


def _as_given(shapes: Sequence[Shape], mode: int) -> Shape:
    _square(shapes[0])
    return shapes[0]


def _as_right_side(shapes: Sequence[Shape], mode: int) -> Shape:
    count, size = _square(shapes[0])
    if shapes[1][:2] != (count, size):
        raise ValueError(f"{size} equations have right sides of shape {list(shapes[1])}")
    return shapes[1]


def _diagonal(shapes: Sequence[Shape], mode: int) -> Shape:
    count, size = _square(shapes[0])
    return count, size + 1


def _lu(shapes: Sequence[Shape], mode: int) -> Shape:
    count, rows, columns = shapes[0]
    return count, rows * columns + min(rows, columns) + rows


def _spectrum(shapes: Sequence[Shape], mode: int) -> Shape:
    count, size = _square(shapes[0])
    return count, (size * (size + 1) if mode & VECTORS else size) + 1


def _qr(shapes: Sequence[Shape], mode: int) -> Shape:
    count, rows, columns = shapes[0]
    least = min(rows, columns)
    sizes = {
        QR_REDUCED: least * (rows + columns),
        QR_COMPLETE: rows * (rows + columns),
        QR_R: least * columns,
        QR_RAW: rows * columns + least,
    }
    if mode not in sizes:
        raise ValueError(f"mode {mode} is not one of {list(sizes)}")
    return count, sizes[mode]


def _svd(shapes: Sequence[Shape], mode: int) -> Shape:
    count, rows, columns = shapes[0]
    least = min(rows, columns)
    sizes = {SVD_VALUES: 0, SVD_REDUCED: least * (rows + columns), SVD_FULL: rows * rows + columns * columns}
    if mode not in sizes:
        raise ValueError(f"mode {mode} is not one of {list(sizes)}")
    return count, least + sizes[mode] + 1


def _transform(shapes: Sequence[Shape], mode: int) -> Shape:
    (shape,) = shapes
    axes, kind = axes_of(mode), mode & TRANSFORM
    if not axes or axes[0] == 0 or axes[-1] >= len(shape) or len(shape) > MOST_DIMENSIONS or kind > C2R:
        raise ValueError(f"mode {mode} transforms the axes {axes} of {len(shape)} dimensions")
    if 0 in shape:
        raise ValueError("the array is empty")
    result = list(shape)
    if kind == R2C:
        result[axes[-1]] = shape[axes[-1]] // 2 + 1
    elif kind == C2R:
        result[axes[-1]] = 2 * (shape[axes[-1]] - 1) + bool(mode & ODD)
        if not result[axes[-1]]:
            raise ValueError("the result is empty")
    return tuple(result)


def axes_of(mode: int) -> list[int]:
    """The axes that a mode of `mlirml.fft` transforms, in order."""
    mask = mode >> AXES_SHIFT
    return [axis for axis in range(mask.bit_length()) if mask >> axis & 1]


def _square(shape: Shape) -> tuple[int, int]:
    count, rows, columns = shape
    if rows != columns:
        raise ValueError(f"a square matrix is needed, not {rows} rows of {columns}")
    return count, rows


QR_REDUCED, QR_COMPLETE, QR_R, QR_RAW = range(4)
"""Modes of `mlirml.qr`, as NumPy names them."""
SVD_VALUES, SVD_REDUCED, SVD_FULL = range(3)
"""Modes of `mlirml.svd`: singular values only; with the first columns of U and rows of Vh; with all of them."""
VECTORS, UPPER = 1, 2
"""Bits of the mode of `mlirml.eigh`: eigenvectors, too; read the upper triangle. `mlirml.eig` has the first one."""
LOWER, UNIT, TRANSPOSED, CONJUGATED = 1, 2, 4, 8
"""Bits of the mode of `mlirml.triangular_solve`: the triangle that is read, a diagonal of ones that is not read, and
whether the transpose, or with both bits the adjoint, is solved with.
"""
C2C, R2C, C2R = range(3)
"""The transforms of `mlirml.fft`, in the bits `TRANSFORM` of the mode: of complex numbers; of real ones, with the bins
that are no conjugates of others along the last axis; and of such bins.
"""
TRANSFORM, BACKWARD, BY_COUNT, BY_ROOT, ODD, AXES_SHIFT = 3, 4, 8, 16, 32, 6
"""Bits of the mode of `mlirml.fft`: a positive exponent; division by the number of points, or by its root; an odd
number of real numbers along the last axis. Bit `AXES_SHIFT + i` is set where axis i is transformed, which is never 0.
"""
MOST_DIMENSIONS = 8
FACTORIZATIONS: dict[str, LibraryCall] = {
    "mlirml.cholesky": LibraryCall("potrf", _as_given),
    "mlirml.eig": LibraryCall("geev", _spectrum, has_mode=True, complex_result=lambda inputs, mode: True),
    "mlirml.eigh": LibraryCall("syevd, heevd", _spectrum, has_mode=True),
    "mlirml.inverse": LibraryCall("getrf, getri", _as_given),
    "mlirml.lu": LibraryCall("getrf", _lu),
    "mlirml.lu_diagonal": LibraryCall("getrf", _diagonal),
    "mlirml.qr": LibraryCall("geqrf, orgqr", _qr, has_mode=True),
    "mlirml.solve": LibraryCall("getrf, getrs", _as_right_side, 2),
    "mlirml.svd": LibraryCall("gesdd", _svd, has_mode=True),
    "mlirml.triangular_solve": LibraryCall("trsm", _as_right_side, 2, has_mode=True),
}
"""Factorizations of stacks of matrices by LAPACK."""
TRANSFORMS: dict[str, LibraryCall] = {
    "mlirml.fft": LibraryCall(
        "ducc0", _transform, has_mode=True, complex_result=lambda inputs, mode: mode & TRANSFORM != C2R, rank=0
    )
}
LIBRARY_CALLS = {**FACTORIZATIONS, **TRANSFORMS}
"""All operations that functions of libraries compute."""

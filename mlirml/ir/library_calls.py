"""Operations of the `mlirml` dialect that functions of libraries compute: operands, modes, shapes of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlirml.core.dataclass import dataclass

Shape = tuple[int, ...]


@dataclass(frozen=True)
class LibraryCall:
    """An operation that a function of a library computes (`ir/text/library_calls.py`).

    It reads its first `inputs` operands, of `rank` dimensions, and overwrites the last one, the init of its only
    result. Dimension 0 of all of them is a batch. Complex arrays have a further dimension of 2.

    `result` returns the shape of the result, less this dimension, for the shapes of the inputs and the attribute
    `mode`; it raises ValueError where they do not fit together.
    """

    routines: str  # the names of the functions in the library
    result: Callable[[Sequence[Shape], int], Shape]
    inputs: int = 1
    has_mode: bool = False
    complex_result: bool = False  # for real inputs, too
    rank: int = 3

    def sizes(self, shapes: Sequence[Shape]) -> list[int]:
        """The sizes that the function takes: the batch, the rows, and the columns of the last input."""
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
FACTORIZATIONS: dict[str, LibraryCall] = {
    "mlirml.cholesky": LibraryCall("potrf", _as_given),
    "mlirml.eig": LibraryCall("geev", _spectrum, has_mode=True, complex_result=True),
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
LIBRARY_CALLS = {**FACTORIZATIONS}
"""All operations that functions of libraries compute."""

"""`np.linalg`: QR, singular values, eigenvalues, pseudoinverses and least squares; LU and triangular systems.

The host calls LAPACK where NumPy is linked to it, as NumPy does, and else NumPy itself. Several results of a
factorization are in one array (`ir/library_calls.py`), of which they are slices here. Derivatives are formulae (Giles,
An extended collection of matrix derivative results, 2008; Golub and Pereyra, The differentiation of pseudo-inverses,
1973; Walter and Lehmann, Algorithmic differentiation of linear algebra functions, 2012; for complex matrices as JAX has
them). They do not exist where they divide by differences of equal eigenvalues or equal singular values, or by
a singular value of zero: the result is NaN or infinite there.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirml.errors import MatrixShapeError, NoDerivativeError, ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.functions.linear_algebra import adjoint, check, float_dtype, inverse_of, ruled, stacked
from mlirml.frontend.tracing import host_calls
from mlirml.frontend.tracing.trace import Trace, value_of
from mlirml.ir import library_calls as modes
from mlirml.ir.numpy_factorizations import factorization
from mlirml.ir.text.library_calls import library_call
from mlirml.ops.functions import library
from mlirml.runtime import HAS_LAPACK

_Shape = tuple[int, ...]
_Qr: Any = type(np.linalg.qr(np.eye(1)))
_Svd: Any = type(np.linalg.svd(np.eye(1)))
_Eigh: Any = type(np.linalg.eigh(np.eye(1)))
_Eig: Any = type(np.linalg.eig(np.eye(1)))
"""NumPy's named tuples."""


def _results(trace: Trace, name: str, mode: int, arrays: Sequence[Any], *shapes: _Shape) -> list[Any]:
    """`mlirml.<name>` of stacks of matrices, as arrays of these shapes for each matrix."""
    call = modes.LIBRARY_CALLS[f"mlirml.{name}"]
    dtype = np.result_type(arrays[0].dtype, np.complex64) if name == "eig" else arrays[0].dtype
    packed = call.result([x.shape for x in arrays], mode)
    with at_user_line():
        b = trace.builder
        if HAS_LAPACK:
            value = library_call(b, name, [value_of(trace, x, name) for x in arrays], mode)
            whole: Any = Traced(trace, Cell(value, owned=True))
        else:
            (whole,) = host_calls.call(trace, factorization(name, mode), tuple(arrays), {}, [(dtype, packed)], name)
    if len(shapes) == 1:
        return [whole.reshape((packed[0], *shapes[0]))]
    found, start = [], 0
    for shape in shapes:
        size = math.prod(shape)
        found.append(whole[:, start : start + size].reshape((packed[0], *shape)))
        start += size
    return found


def _matrices(trace: Trace, name: str, a: Any, *, square: bool = False) -> Any:
    a = trace.array(a, copy=False)
    if a.ndim < 2 or (square and a.shape[-1] != a.shape[-2]):
        what = "square matrices" if square else "matrices"
        raise MatrixShapeError(f"{name}: needs {what} in the last two dimensions, not {a._describe()}")
    return a.astype(float_dtype(name, a))


def _zeros(trace: Trace, shape: _Shape, dtype: Any) -> Any:
    return trace.array(np.zeros(shape, dtype))


def _eye(trace: Trace, batch: _Shape, rows: int, columns: int, dtype: Any) -> Any:
    return trace.array(np.broadcast_to(np.eye(rows, columns, dtype=dtype), (*batch, rows, columns)).copy())


def _triangular_inverse(trace: Trace, a: Any, mode: int) -> Any:
    identity = _eye(trace, a.shape[:1], a.shape[-1], a.shape[-1], a.dtype)
    return _triangular(trace, a, identity, mode)


# QR.


@library("numpy.linalg", "a")
def qr(trace: Trace, a: Any, mode: str = "reduced") -> Any:
    """Q with orthonormal columns and the upper triangular R of Q @ R = a, in each of NumPy's modes.

    "reduced" and "r" have derivatives, at matrices whose first columns are linearly independent; "complete" has them
    where it is the same.
    """
    a = _matrices(trace, "qr", a)
    rows, columns = a.shape[-2:]
    wanted = {"reduced": modes.QR_REDUCED, "complete": modes.QR_COMPLETE, "r": modes.QR_R, "raw": modes.QR_RAW}
    if mode not in wanted:
        raise ShapeError(f"qr: the mode is one of {', '.join(map(repr, wanted))}, not {mode!r}")
    least = min(rows, columns)
    if not a.size:
        return _qr_of_nothing(trace, a, mode)
    if mode == "raw":
        shapes = ((columns, rows), (least,))
        return tuple(stacked(lambda a: tuple(_results(trace, "qr", modes.QR_RAW, [a], *shapes)), a))
    if mode == "r" and not trace.derivatives:
        return stacked(lambda a: _results(trace, "qr", modes.QR_R, [a], (least, columns))[0], a)
    if mode == "complete" and rows > columns:
        q, r = stacked(functools.partial(_completed_qr, trace), a)
    else:
        q, r = stacked(functools.partial(_reduced_qr, trace), a)
    return r if mode == "r" else _Qr(q, r)


def _qr_of_nothing(trace: Trace, a: Any, mode: str) -> Any:
    *batch, rows, columns = a.shape
    if mode == "raw":
        return _zeros(trace, (*batch, columns, rows), a.dtype), _zeros(trace, (*batch, min(rows, columns)), a.dtype)
    kept = rows if mode == "complete" else min(rows, columns)
    q, r = _eye(trace, tuple(batch), rows, kept, a.dtype), _zeros(trace, (*batch, kept, columns), a.dtype)
    return r if mode == "r" else _Qr(q, r)


def _completed_qr(trace: Trace, a: Any) -> Any:
    rows, columns = a.shape[1:]

    def factors(a: Any) -> Any:
        return tuple(_results(trace, "qr", modes.QR_COMPLETE, [a], (rows, rows), (rows, columns)))

    def refused(primals: Any, tangents: Any) -> Any:
        raise NoDerivativeError(
            "qr: mode 'complete' has no derivative where there are more rows than columns, as Q is not unique",
            help="use mode='reduced'",
        )

    return ruled(trace, factors, refused, "qr", a)


def _reduced_qr(trace: Trace, a: Any) -> Any:
    rows, columns = a.shape[1:]
    least = min(rows, columns)

    def factors(a: Any) -> Any:
        return tuple(_results(trace, "qr", modes.QR_REDUCED, [a], (rows, least), (least, columns)))

    return ruled(trace, factors, functools.partial(_move_qr, trace), "qr", a)


def _move_qr(trace: Trace, primals: Any, tangents: Any) -> Any:
    (a,), (change,) = primals, tangents
    least = min(a.shape[1:])
    q, r = _reduced_qr(trace, a)
    inverse = _triangular_inverse(trace, r[:, :, :least], 0)
    moved = change[:, :, :least] @ inverse
    inner = adjoint(q) @ moved
    lower = np.tril(inner, -1)
    turn = lower - adjoint(lower)
    if a.dtype.kind == "c":
        turn = turn + (inner - inner.real) * np.eye(least)
    return (q, r), (q @ (turn - inner) + moved, adjoint(q) @ change - turn @ r)


# Singular values.


@library("numpy.linalg", "a")
def svd(trace: Trace, a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """U, the singular values in descending order, and Vh with (U * s) @ Vh = a; only s without `compute_uv`.

    There are derivatives of the singular values, and of U and Vh where they are not completed to square matrices. With
    `hermitian` the lower triangle of the matrix is read, as by `eigh`.

    Raises LinAlgError where the iteration does not converge.
    """
    a = _matrices(trace, "svd", a, square=bool(hermitian))
    rows, columns = a.shape[-2:]
    least = min(rows, columns)
    real = _real_dtype(a.dtype)
    if not a.size:
        kept = (rows, columns) if full_matrices else (least, least)
        batch = a.shape[:-2]
        values = _zeros(trace, (*batch, least), real)
        if not compute_uv:
            return values
        u, vh = (_eye(trace, batch, m, n, a.dtype) for m, n in ((rows, kept[0]), (kept[1], columns)))
        return _Svd(u, values, vh)
    if hermitian:
        u, values, vh = _hermitian_svd(trace, a)
        return _Svd(u, values, vh) if compute_uv else values
    if not compute_uv and not trace.derivatives:
        values, status = stacked(lambda a: tuple(_results(trace, "svd", modes.SVD_VALUES, [a], (least,), ())), a)
        check(trace, status == 0, "SVD did not converge")
        return values.real
    form = modes.SVD_FULL if compute_uv and full_matrices and rows != columns else modes.SVD_REDUCED
    u, values, vh, status = stacked(functools.partial(_singular, trace, form), a)
    check(trace, status == 0, "SVD did not converge")
    return _Svd(u, values, vh) if compute_uv else values


def _hermitian_svd(trace: Trace, a: Any) -> tuple[Any, Any, Any]:
    """U, the singular values and Vh of Hermitian matrices, from their eigenvalues and eigenvectors."""
    values, vectors = _hermitian_spectrum(trace, "svd", a, "L", modes.VECTORS)
    order = np.argsort(np.abs(values), axis=-1)[..., ::-1]
    values, u = np.take_along_axis(values, order, -1), np.take_along_axis(vectors, order[..., None, :], -1)
    return u, np.abs(values), adjoint(u * np.sign(values)[..., None, :])


@library("numpy.linalg", "x")
def svdvals(trace: Trace, x: Any, /) -> Any:
    """The singular values of matrices, in descending order."""
    return svd(trace, x, compute_uv=False)


def _real_dtype(dtype: np.dtype) -> np.dtype:
    return np.zeros((), dtype).real.dtype


def _singular(trace: Trace, mode: int, a: Any) -> Any:
    """U, the singular values, Vh and the status of matrices."""
    _, rows, columns = a.shape
    least = min(rows, columns)
    left, right = (rows, columns) if mode == modes.SVD_FULL else (least, least)

    def factors(a: Any) -> Any:
        s, u, vh, status = _results(trace, "svd", mode, [a], (least,), (rows, left), (right, columns), ())
        return u, s.real, vh, status.real

    return ruled(trace, factors, functools.partial(_move_svd, trace, mode), "svd", a)


def _move_svd(trace: Trace, mode: int, primals: Any, tangents: Any) -> Any:
    if mode == modes.SVD_FULL:
        raise NoDerivativeError(
            "svd: the completion of U or Vh to a square matrix is not unique and has no derivative",
            help="use `full_matrices=False`",
        )
    (a,), (change,) = primals, tangents
    u, s, vh, status = _singular(trace, mode, a)
    v = adjoint(vh)
    inner = adjoint(u) @ change @ v
    d_s = np.einsum("bii->bi", inner).real
    size = s.shape[-1]
    identity = np.eye(size, dtype=s.dtype)
    columns, rows = s[:, None, :], s[:, :, None]
    gaps = 1 / ((columns + rows) * (columns - rows) + identity) - identity
    right, left = columns * inner, rows * inner
    d_u = u @ (gaps * (right + adjoint(right)))
    d_v = v @ (gaps * (left + adjoint(left)))
    if a.dtype.kind == "c":
        phase = (inner - adjoint(inner)) * identity / 2 / np.where(columns == 0, 1, columns)
        d_u = d_u + u @ phase
    if a.shape[1] > size:
        moved = change @ v
        d_u = d_u + (moved - u @ (adjoint(u) @ moved)) / columns
    if a.shape[2] > size:
        moved = adjoint(change) @ u
        d_v = d_v + (moved - v @ (vh @ moved)) / columns
    return (u, s, vh, status), (d_u, d_s, adjoint(d_v), status * 0)


# Eigenvalues.


@library("numpy.linalg", "a")
def eigh(trace: Trace, a: Any, UPLO: str = "L") -> Any:
    """The eigenvalues in ascending order and the eigenvectors, as columns, of Hermitian matrices.

    One triangle of the matrices is read. Raises LinAlgError where the iteration does not converge.
    """
    values, vectors = _hermitian_spectrum(trace, "eigh", a, UPLO, modes.VECTORS)
    return _Eigh(values, vectors)


@library("numpy.linalg", "a")
def eigvalsh(trace: Trace, a: Any, UPLO: str = "L") -> Any:
    """The eigenvalues of Hermitian matrices in ascending order."""
    return _hermitian_spectrum(trace, "eigvalsh", a, UPLO, modes.VECTORS if trace.derivatives else 0)[0]


def _hermitian_spectrum(trace: Trace, name: str, a: Any, triangle: str, mode: int) -> tuple[Any, Any]:
    a = _matrices(trace, name, a, square=True)
    if not isinstance(triangle, str) or triangle.upper() not in ("L", "U"):
        raise ShapeError(f"{name}: UPLO is 'L' or 'U', not {triangle!r}")
    mode |= modes.UPPER if triangle.upper() == "U" else 0
    if not a.size:
        return _zeros(trace, a.shape[:-1], _real_dtype(a.dtype)), a.copy()
    values, vectors, status = stacked(functools.partial(_spectrum, trace, "eigh", mode), a)
    check(trace, status == 0, "Eigenvalues did not converge")
    return values, vectors


def _spectrum(trace: Trace, name: str, mode: int, a: Any) -> Any:
    """The eigenvalues, the eigenvectors (without them, the status again), and the status."""
    size = a.shape[-1]
    shapes: list[_Shape] = [(size,), *([(size, size)] if mode & modes.VECTORS else []), ()]

    def parts(a: Any) -> Any:
        values, *vectors, status = _results(trace, name, mode, [a], *shapes)
        return values.real if name == "eigh" else values, (vectors[0] if vectors else status.real), status.real

    return ruled(trace, parts, functools.partial(_move_eigh if name == "eigh" else _move_eig, trace, mode), name, a)


def _move_eigh(trace: Trace, mode: int, primals: Any, tangents: Any) -> Any:
    (a,), (change,) = primals, tangents
    values, vectors, status = _spectrum(trace, "eigh", mode, a)
    half = np.triu(change, 1) if mode & modes.UPPER else np.tril(change, -1)
    whole = half + adjoint(half) + change.real * np.eye(a.shape[-1], dtype=_real_dtype(a.dtype))
    inner = adjoint(vectors) @ whole @ vectors
    d_values = np.einsum("bii->bi", inner).real
    return (values, vectors, status), (d_values, vectors @ (_gaps(values) * inner), status * 0)


def _gaps(values: Any) -> Any:
    """1 / (w[j] - w[i]), and zero on the diagonal."""
    identity = np.eye(values.shape[-1], dtype=_real_dtype(values.dtype))
    return 1 / (values[:, None, :] - values[:, :, None] + identity) - identity


@library("numpy.linalg", "a")
def eig(trace: Trace, a: Any) -> Any:
    """The eigenvalues and the eigenvectors, as columns, of square matrices.

    Both are complex for real matrices, too: whether all eigenvalues are real is not known when the function is
    compiled. Raises LinAlgError where the iteration does not converge.
    """
    values, vectors = _general_spectrum(trace, "eig", a, modes.VECTORS)
    return _Eig(values, vectors)


@library("numpy.linalg", "a")
def eigvals(trace: Trace, a: Any) -> Any:
    """The eigenvalues of square matrices, as complex numbers."""
    return _general_spectrum(trace, "eigvals", a, modes.VECTORS if trace.derivatives else 0)[0]


def _general_spectrum(trace: Trace, name: str, a: Any, mode: int) -> tuple[Any, Any]:
    a = _matrices(trace, name, a, square=True)
    if not a.size:
        made = np.result_type(a.dtype, np.complex64)
        return _zeros(trace, a.shape[:-1], made), _zeros(trace, a.shape, made)
    check(trace, np.all(np.isfinite(a.reshape((-1, a.shape[-1] ** 2))), axis=1), "Array must not contain infs or NaNs")
    wide = a.astype(np.result_type(a.dtype, np.float64))  # as NumPy does, which the order of the eigenvalues depends on
    values, vectors, status = stacked(functools.partial(_spectrum, trace, "eig", mode), wide)
    check(trace, status == 0, "Eigenvalues did not converge")
    made = np.result_type(a.dtype, np.complex64)
    return values.astype(made), vectors.astype(made)


def _move_eig(trace: Trace, mode: int, primals: Any, tangents: Any) -> Any:
    """LAPACK's eigenvectors have a norm of 1, and their component of largest magnitude is real."""
    (a,), (change,) = primals, tangents
    values, vectors, status = _spectrum(trace, "eig", mode, a)
    inner = inverse_of(trace, vectors) @ change.astype(vectors.dtype) @ vectors
    d_values = np.einsum("bii->bi", inner)
    moved = vectors @ (_gaps(values) * inner)
    largest = np.argmax(np.abs(vectors), axis=1)[:, None, :]
    phase = (np.take_along_axis(moved, largest, 1) / np.take_along_axis(vectors, largest, 1)).imag
    moved = moved - vectors * phase * 1j
    moved = moved - vectors * np.sum(vectors.conj() * moved, axis=1, keepdims=True).real
    return (values, vectors, status), (d_values, moved, status * 0)


# Pseudoinverses and least squares.


@library("numpy.linalg", "a")
def pinv(trace: Trace, a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    """The Moore-Penrose pseudoinverse; singular values below `rcond` times the greatest one count as zero."""
    a = _matrices(trace, "pinv", a, square=bool(hermitian))
    if rcond is None:
        least = max(a.shape[-2:]) * np.finfo(a.dtype).eps
        rcond = 1e-15 if rtol is np._NoValue else least if rtol is None else rtol
    if not a.size:
        return _zeros(trace, (*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    if hermitian:
        u, s, vh = _hermitian_svd(trace, a)
        limit = np.max(s, axis=-1, keepdims=True) * (rcond[..., None] if np.ndim(rcond) else rcond)
        reciprocals = np.where(s > limit, 1 / np.where(s > limit, s, 1), 0)
        return adjoint(vh) @ (reciprocals[..., :, None] * adjoint(u))
    cutoff = np.asarray(rcond) if not isinstance(rcond, Traced) else rcond
    limits = np.broadcast_to(cutoff, a.shape[:-2]).reshape(-1, 1)
    inverse, status = stacked(functools.partial(_pseudoinverse, trace, limits), a)
    check(trace, status == 0, "SVD did not converge")
    return inverse


def _pseudoinverse(trace: Trace, limits: Any, a: Any) -> Any:
    """The pseudoinverses and the status of matrices."""

    def value(a: Any) -> Any:
        u, s, vh, status = _singular(trace, modes.SVD_REDUCED, a)
        return adjoint(vh) @ (_reciprocals(s, limits)[:, :, None] * adjoint(u)), status

    def rule(primals: Any, tangents: Any) -> Any:
        (a,), (change,) = primals, tangents
        p, status = _pseudoinverse(trace, limits, a)
        inner = adjoint(change)
        moved = p @ adjoint(p) @ (inner - inner @ a @ p) + (inner - p @ a @ inner) @ adjoint(p) @ p
        return (p, status), (moved - p @ change @ p, status * 0)

    return ruled(trace, value, rule, "pinv", a)


def _reciprocals(s: Any, limits: Any) -> Any:
    """1 / s, and zero where s is not above the limit, a share of the greatest one."""
    large = s > np.asarray(limits, s.dtype) * s[:, :1] if not isinstance(limits, Traced) else s > limits * s[:, :1]
    return np.where(large, 1 / np.where(large, s, 1), 0)


@library("numpy.linalg", "a", "b")
def lstsq(trace: Trace, a: Any, b: Any, rcond: Any = None) -> Any:
    """The x of least norm that minimizes the norm of b - a @ x; the squared residuals, the rank of a, and its singular
    values.

    With more rows than columns there are residuals, whatever the rank is: NumPy returns none for a matrix of lower
    rank, which is not known when the function is compiled.
    """
    a, b = _matrices(trace, "lstsq", a), trace.array(b, copy=False)
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        given = f"{a._describe()} and {b._describe()}"
        raise MatrixShapeError(f"lstsq: {given} are not a matrix and right sides of as many rows")
    dtype = np.result_type(a.dtype, float_dtype("lstsq", b))
    a, b = a.astype(dtype), b.astype(dtype)
    columns = b[:, None] if b.ndim == 1 else b
    rows, size = a.shape
    limit = np.finfo(dtype).eps * max(rows, size) if rcond is None else rcond
    if isinstance(limit, (int, float)) and limit < 0:
        limit = np.finfo(dtype).eps
    real = _real_dtype(dtype)
    if not a.size or not columns.size:
        x = _zeros(trace, (size, columns.shape[1]), dtype)
        s = _zeros(trace, (min(rows, size),), real)
        rank: Any = trace.array(np.asarray(0, np.int32))
        if a.size:
            s = svdvals(trace, a)
            rank = np.sum(s > limit * s[0], dtype=np.int32)
    else:
        limits = np.asarray([[limit]]) if not isinstance(limit, Traced) else limit.reshape(1, 1)
        x, s, status = _least_squares(trace, limits, a[None], columns[None])
        converged = (status == 0) & np.all(np.isfinite(s), axis=-1)
        check(trace, converged, "SVD did not converge in Linear Least Squares")
        x, s = x[0], s[0]
        rank = np.sum(s > limit * s[0], dtype=np.int32)
    off = columns - a @ x
    residuals = np.sum((off * off.conj()).real, axis=0) if rows > size else _zeros(trace, (0,), real)
    return (x[:, 0] if b.ndim == 1 else x), residuals, rank, s


def _least_squares(trace: Trace, limits: Any, a: Any, b: Any) -> Any:
    """The solutions, the singular values and the status of systems of equations."""

    def value(a: Any, b: Any) -> Any:
        u, s, vh, status = _singular(trace, modes.SVD_REDUCED, a)
        return adjoint(vh) @ (_reciprocals(s, limits)[:, :, None] * (adjoint(u) @ b)), s, status

    def rule(primals: Any, tangents: Any) -> Any:
        (a, b), (d_a, d_b) = primals, tangents
        x, s, status = _least_squares(trace, limits, a, b)
        p, _ = _pseudoinverse(trace, limits, a)
        off, moved = b - a @ x, adjoint(d_a)
        change = p @ (d_b - d_a @ x) + p @ (adjoint(p) @ (moved @ off))
        outside = moved @ (adjoint(p) @ x)
        u, _, vh, _ = _singular(trace, modes.SVD_REDUCED, a)
        d_s = np.sum((u.conj() * (d_a @ adjoint(vh))).real, axis=-2)
        return (x, s, status), (change + outside - p @ (a @ outside), d_s, status * 0)

    return ruled(trace, value, rule, "lstsq", a, b)


# LU and triangular systems.


def lu_factor(trace: Trace, a: Any) -> tuple[Any, Any]:
    """The factors of matrices in one matrix, L below the diagonal, and the row that each row was exchanged with."""
    factors, changes, _ = _lu(trace, "lu_factor", a)
    return factors, changes


def lu(trace: Trace, a: Any, permute_l: bool = False, p_indices: bool = False) -> Any:
    """P, L and U with P @ L @ U = a; with `permute_l` P @ L and U; with `p_indices` P as an array of indices."""
    factors, _, permutation = _lu(trace, "lu", a)
    rows, columns = factors.shape[-2:]
    least = min(rows, columns)
    lower = np.tril(factors[..., :least], -1) + np.eye(rows, least, dtype=_real_dtype(factors.dtype))
    upper = np.triu(factors[..., :least, :])
    positions = np.argsort(permutation, axis=-1)
    if permute_l:
        return np.take_along_axis(lower, positions[..., None], -2), upper
    if p_indices:
        return positions.astype(np.int32), lower, upper
    matrix = (positions[..., None] == np.arange(rows)).astype(_real_dtype(factors.dtype))
    return matrix, lower, upper


def _lu(trace: Trace, name: str, a: Any) -> tuple[Any, Any, Any]:
    a = _matrices(trace, name, a)
    rows, columns = a.shape[-2:]
    least = min(rows, columns)
    if not a.size:
        batch = a.shape[:-2]
        permutation = np.broadcast_to(np.arange(rows, dtype=np.int32), (*batch, rows)).copy()
        return a.copy(), _zeros(trace, (*batch, least), np.int32), trace.array(permutation)
    shapes: tuple[_Shape, ...] = ((rows, columns), (least,), (rows,))

    def parts(a: Any) -> Any:
        return tuple(_results(trace, "lu", 0, [a], *shapes))

    def factored(a: Any) -> Any:
        return ruled(trace, parts, rule, name, a)

    def rule(primals: Any, tangents: Any) -> Any:
        found, changes, permutation = factored(*primals)
        moved = np.take_along_axis(tangents[0], permutation.real.astype(np.int64)[:, :, None], 1)
        lower = np.eye(rows, dtype=a.dtype) + _padded(np.tril(found[:, :, :least], -1), rows, rows)
        upper = _padded(np.triu(found[:, :least]), columns, columns) + np.diag(np.arange(columns) >= least).astype(
            a.dtype
        )
        inner = _triangular_inverse(trace, lower, modes.LOWER | modes.UNIT) @ moved
        inner = inner @ _triangular_inverse(trace, upper, 0)
        change = lower @ np.tril(inner, -1) + np.triu(inner) @ upper
        return (found, changes, permutation), (change, changes * 0, permutation * 0)

    found, changes, permutation = stacked(factored, a)
    return found, changes.real.astype(np.int32), permutation.real.astype(np.int32)


def _padded(x: Any, rows: int, columns: int) -> Any:
    return np.pad(x, ((0, 0), (0, rows - x.shape[1]), (0, columns - x.shape[2])))


def solve_triangular(
    trace: Trace, a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False
) -> Any:
    """x with op(a) @ x = b for a triangle of `a`; op is the identity (0, "N"), transpose (1, "T") or adjoint (2, "C").

    Raises LinAlgError where a number on the diagonal is zero.
    """
    a, b = _matrices(trace, "solve_triangular", a, square=True), trace.array(b, copy=False)
    dtype = np.result_type(a.dtype, float_dtype("solve_triangular", b))
    columns = b[:, None] if b.ndim == 1 else b
    if columns.ndim < 2 or columns.shape[-2] != a.shape[-1]:
        raise ShapeError(f"solve_triangular: {a.shape[-1]} equations, but {b._describe()} on the right side")
    ways = {0: 0, "N": 0, 1: modes.TRANSPOSED, "T": modes.TRANSPOSED}
    ways |= dict.fromkeys((2, "C"), modes.TRANSPOSED | modes.CONJUGATED)
    if trans not in ways:
        raise ShapeError(f"solve_triangular: trans is 0, 1, 2, 'N', 'T' or 'C', not {trans!r}")
    mode = ways[trans] | (modes.LOWER if lower else 0) | (modes.UNIT if unit_diagonal else 0)
    batch = np.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    a = np.broadcast_to(a.astype(dtype), (*batch, *a.shape[-2:]))
    columns = np.broadcast_to(columns.astype(dtype), (*batch, *columns.shape[-2:]))
    if not columns.size:
        return b.astype(dtype)
    if not unit_diagonal:
        check(trace, np.einsum("...ii->...i", a) != 0, "singular matrix")
    found = stacked(lambda a, b: _triangular(trace, a, b, mode), a, columns)
    return found[..., 0] if b.ndim == 1 else found


def _triangular(trace: Trace, a: Any, b: Any, mode: int) -> Any:
    def solution(a: Any, b: Any) -> Any:
        return _results(trace, "triangular_solve", mode, [a, b], b.shape[1:])[0]

    return ruled(trace, solution, functools.partial(_move_triangular, trace, mode), "solve_triangular", a, b)


def _move_triangular(trace: Trace, mode: int, primals: Any, tangents: Any) -> Any:
    (a, b), (d_a, d_b) = primals, tangents
    x = _triangular(trace, a, b, mode)
    offset = 1 if mode & modes.UNIT else 0
    d_a = np.tril(d_a, -offset) if mode & modes.LOWER else np.triu(d_a, offset)
    if mode & modes.TRANSPOSED:
        d_a = adjoint(d_a) if mode & modes.CONJUGATED else np.swapaxes(d_a, -1, -2)
    return x, _triangular_inverse(trace, a, mode) @ (d_b - d_a @ x)

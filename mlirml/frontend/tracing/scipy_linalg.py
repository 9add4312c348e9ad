"""The functions of `scipy.linalg` that NumPy has too, with SciPy's parameters and results."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlirml.errors import UnsupportedSyntaxError
from mlirml.frontend.frames import at_user_line

__all__ = [
    "cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "norm", "pinv", "qr", "solve", "svd",
    "svdvals",
]  # fmt: skip


def _refuse(name: str, given: bool, option: str) -> None:
    if given:
        with at_user_line():
            raise UnsupportedSyntaxError(
                f"`scipy.linalg.{name}` is not compiled with {option}", help="write it with functions of `np.linalg`"
            )


def inv(a: Any) -> Any:
    """The inverse of a matrix."""
    return np.linalg.inv(a)


def det(a: Any) -> Any:
    """The determinant of a matrix."""
    return np.linalg.det(a)


def pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False) -> Any:
    """The pseudo-inverse; singular values below `rtol` of the largest one are taken for 0."""
    _refuse("pinv", bool(atol) or return_rank, "`atol` or `return_rank`")
    if rtol is None:
        rtol = max(a.shape[-2:]) * np.finfo(np.result_type(a.dtype, np.float32)).eps
    return np.linalg.pinv(a, rtol=rtol)


def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of a matrix or vector."""
    return np.linalg.norm(a, ord, axis, keepdims)


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """The singular value decomposition."""
    return tuple(np.linalg.svd(a, full_matrices)) if compute_uv else svdvals(a)


def svdvals(a: Any) -> Any:
    """The singular values."""
    return np.linalg.svd(a, compute_uv=False)


def eig(a: Any, b: Any = None, left: bool = False, right: bool = True) -> Any:
    """Eigenvalues, which are complex, and right eigenvectors."""
    _refuse("eig", b is not None or left, "`b` or `left`")
    if not right:
        return eigvals(a)
    values, vectors = np.linalg.eig(a)
    return values.astype(np.result_type(values.dtype, np.complex64)), vectors


def eigvals(a: Any, b: Any = None) -> Any:
    """Eigenvalues, which are complex."""
    _refuse("eigvals", b is not None, "`b`")
    values = np.linalg.eigvals(a)
    return values.astype(np.result_type(values.dtype, np.complex64))


def eigh(a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, subset_by_index: Any = None) -> Any:
    """Eigenvalues and eigenvectors of a symmetric or Hermitian matrix, or of a pair with a positive definite one.

    A pair is the problem of one matrix, from both sides of which the inverse of the factor of b is multiplied.
    """
    chosen = slice(None) if subset_by_index is None else slice(subset_by_index[0], subset_by_index[1] + 1)
    if b is None and eigvals_only:
        return np.linalg.eigvalsh(a, "L" if lower else "U")[..., chosen]
    if b is None:
        values, vectors = np.linalg.eigh(a, "L" if lower else "U")
        return values[..., chosen], vectors[..., chosen]
    factor = np.linalg.cholesky(b) if lower else _adjoint(np.linalg.cholesky(b, upper=True))
    whole = np.tril(a) + _adjoint(np.tril(a, -1)) if lower else np.triu(a) + _adjoint(np.triu(a, 1))
    inner = np.linalg.solve(factor, _adjoint(np.linalg.solve(factor, whole)))
    if eigvals_only:
        return np.linalg.eigvalsh(inner)[..., chosen]
    values, vectors = np.linalg.eigh(inner)
    return values[..., chosen], np.linalg.solve(_adjoint(factor), vectors[..., chosen])


def _adjoint(a: Any) -> Any:
    return np.swapaxes(a, -1, -2).conj()


def eigvalsh(a: Any, b: Any = None, *, lower: bool = True, subset_by_index: Any = None) -> Any:
    """Eigenvalues of a symmetric or Hermitian matrix, or of a pair with a positive definite one."""
    return eigh(a, b, lower=lower, eigvals_only=True, subset_by_index=subset_by_index)


def cholesky(a: Any, lower: bool = False) -> Any:
    """The Cholesky factor, the upper one by default, from that triangle of the matrix."""
    return np.linalg.cholesky(a, upper=not lower)


def qr(a: Any, lwork: Any = None, mode: str = "full", pivoting: bool = False) -> Any:
    """The QR decomposition."""
    _refuse("qr", pivoting or mode == "raw", '`pivoting` or `mode="raw"`')
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"qr: mode is 'full', 'r', 'economic' or 'raw', not {mode!r}")
    q, r = np.linalg.qr(a, "reduced" if mode == "economic" else "complete")
    return (r,) if mode == "r" else (q, r)


def lstsq(a: Any, b: Any, cond: Any = None) -> Any:
    """The solution of least squares, the residuals, the rank, and the singular values."""
    x, residuals, rank, values = np.linalg.lstsq(a, b, cond)
    return x, residuals[0] if b.ndim == 1 and residuals.shape[0] else residuals, rank, values


def solve(a: Any, b: Any, lower: bool = False, assume_a: Any = None, transposed: bool = False) -> Any:
    """The solution of linear equations; the structure that is assumed is not used."""
    _refuse("solve", a.ndim != 2 or b.ndim > 2, "stacks of matrices")
    return np.linalg.solve(a.T if transposed else a, b)

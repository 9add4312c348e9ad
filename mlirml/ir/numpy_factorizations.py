"""Factorizations of matrices by NumPy, in the form of the operations that libraries compute (`ir/library_calls.py`)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from mlirml.ir.library_calls import (
    CONJUGATED,
    LIBRARY_CALLS,
    LOWER,
    SVD_FULL,
    SVD_VALUES,
    TRANSPOSED,
    UNIT,
    UPPER,
    VECTORS,
)

_Array = np.ndarray[Any, Any]


def eliminated(a: _Array) -> tuple[_Array, list[int]]:
    """The factors of the LU decomposition in one matrix, and the row that each row was exchanged with."""
    a, changes = a.copy(), []
    for k in range(min(a.shape)):
        pivot = k + int(np.argmax(np.abs(a[k:, k].real) + np.abs(a[k:, k].imag)))  # as LAPACK does
        changes.append(pivot)
        a[[k, pivot]] = a[[pivot, k]]
        if a[k, k] != 0:
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a, changes


def _lu_diagonal(mode: int, a: _Array) -> _Array:
    factors, changes = eliminated(a)
    sign = (-1.0) ** sum(k != pivot for k, pivot in enumerate(changes))
    return np.append(np.diagonal(factors), np.asarray(sign, a.dtype))


def _lu(mode: int, a: _Array) -> _Array:
    factors, changes = eliminated(a)
    permutation = np.arange(len(a))
    for k, pivot in enumerate(changes):
        permutation[[k, pivot]] = permutation[[pivot, k]]
    return np.concatenate((factors.ravel(), changes, permutation))


def _qr(mode: int, a: _Array) -> _Array:
    names: tuple[Literal["reduced", "complete", "r", "raw"], ...] = ("reduced", "complete", "r", "raw")
    found: Any = np.linalg.qr(a, names[mode])
    parts = found if isinstance(found, tuple) else (found,)
    return np.concatenate([part.ravel() for part in parts])


def _check_finite(a: _Array) -> None:
    """Raise LinAlgError for NaN and infinities: LAPACK's iteration does not end for some of them."""
    if not np.isfinite(a).all():
        raise np.linalg.LinAlgError("Array must not contain infs or NaNs")


def _svd(mode: int, a: _Array) -> _Array:
    _check_finite(a)
    if mode == SVD_VALUES:
        return np.append(np.linalg.svd(a, compute_uv=False), 0)
    u, s, vh = np.linalg.svd(a, full_matrices=mode == SVD_FULL)
    return np.concatenate((s, u.ravel(), vh.ravel(), [0]))


def _eigh(mode: int, a: _Array) -> _Array:
    triangle: Literal["L", "U"] = "U" if mode & UPPER else "L"
    _check_finite(np.triu(a) if mode & UPPER else np.tril(a))
    if not mode & VECTORS:
        return np.append(np.linalg.eigvalsh(a, triangle), 0)
    values, vectors = np.linalg.eigh(a, triangle)
    return np.concatenate((values, vectors.ravel(), [0]))


def _eig(mode: int, a: _Array) -> _Array:
    if not mode & VECTORS:
        return np.append(np.linalg.eigvals(a), 0)
    values, vectors = np.linalg.eig(a)
    return np.concatenate((values, vectors.ravel(), [0]))


def _triangular_solve(mode: int, a: _Array, b: _Array) -> _Array:
    a = np.tril(a) if mode & LOWER else np.triu(a)
    if mode & UNIT:
        np.fill_diagonal(a, 1)
    if mode & TRANSPOSED:
        a = a.T.conj() if mode & CONJUGATED else a.T
    return np.linalg.solve(a, b)


_FUNCTIONS: dict[str, Callable[..., _Array]] = {
    "cholesky": lambda mode, a: np.linalg.cholesky(a), "eig": _eig, "eigh": _eigh,
    "inverse": lambda mode, a: np.linalg.inv(a), "lu": _lu, "lu_diagonal": _lu_diagonal, "qr": _qr,
    "solve": lambda mode, a, b: np.linalg.solve(a, b), "svd": _svd, "triangular_solve": _triangular_solve,
}  # fmt: skip
"""The functions of the mode and of one matrix of each operand."""
_HAVE_STATUS = ("eig", "eigh", "svd")


@functools.cache  # programs that call the same function are alike
def factorization(name: str, mode: int = 0) -> Callable[..., _Array]:
    """The function that computes `mlirml.<name>` of stacks of matrices: NaN where NumPy raises an error."""
    call = LIBRARY_CALLS[f"mlirml.{name}"]

    def of_stacks(*stacks: _Array) -> _Array:
        dtype = np.result_type(stacks[0].dtype, np.complex64) if name == "eig" else stacks[0].dtype
        result = np.empty(call.result([stack.shape for stack in stacks], mode), dtype)
        for number, matrices in enumerate(zip(*stacks)):
            try:
                result[number] = _FUNCTIONS[name](mode, *matrices)
            except np.linalg.LinAlgError:
                result[number] = np.nan
                if name in _HAVE_STATUS:
                    result[number, -1] = 1
        return result

    return of_stacks

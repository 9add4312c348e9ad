"""Rules of the reference interpreter for what libraries compute, on tensors and on memrefs: NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from mlirml.interpreter.program import Function, Kernel, evaluates
from mlirml.interpreter.values import Array, Buffer, Value
from mlirml.ir.bindings import mlir
from mlirml.ir.library_calls import (
    CONJUGATED,
    FACTORIZATIONS,
    LIBRARY_CALLS,
    LOWER,
    SVD_FULL,
    SVD_VALUES,
    TRANSPOSED,
    UNIT,
    UPPER,
    VECTORS,
)
from mlirml.ir.text.dtypes import from_short_name


def _cholesky(mode: int, a: Array) -> Array:
    return np.linalg.cholesky(a)


def _inverse(mode: int, a: Array) -> Array:
    return np.linalg.inv(a)


def _solve(mode: int, a: Array, b: Array) -> Array:
    return np.linalg.solve(a, b)


def _eliminated(a: Array) -> tuple[Array, list[int]]:
    """The factors of the LU decomposition in one matrix, and the row that each row was exchanged with."""
    a, changes = a.copy(), []
    for k in range(min(a.shape)):
        pivot = k + int(np.argmax(np.abs(a[k:, k])))
        changes.append(pivot)
        a[[k, pivot]] = a[[pivot, k]]
        if a[k, k] != 0:
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a, changes


def _lu_diagonal(mode: int, a: Array) -> Array:
    factors, changes = _eliminated(a)
    sign = (-1.0) ** sum(k != pivot for k, pivot in enumerate(changes))
    return np.append(np.diagonal(factors), np.asarray(sign, a.dtype))


def _lu(mode: int, a: Array) -> Array:
    factors, changes = _eliminated(a)
    permutation = np.arange(len(a))
    for k, pivot in enumerate(changes):
        permutation[[k, pivot]] = permutation[[pivot, k]]
    return np.concatenate((factors.ravel(), changes, permutation)).astype(a.dtype)


def _qr(mode: int, a: Array) -> Array:
    found: Any = np.linalg.qr(a, ("reduced", "complete", "r", "raw")[mode])
    parts = found if isinstance(found, tuple) else (found,)
    return np.concatenate([part.ravel() for part in parts])


def _svd(mode: int, a: Array) -> Array:
    if mode == SVD_VALUES:
        return np.append(np.linalg.svd(a, compute_uv=False), 0).astype(a.dtype)
    u, s, vh = np.linalg.svd(a, full_matrices=mode == SVD_FULL)
    return np.concatenate((s, u.ravel(), vh.ravel(), [0])).astype(a.dtype)


def _eigh(mode: int, a: Array) -> Array:
    triangle: Literal["L", "U"] = "U" if mode & UPPER else "L"
    if not mode & VECTORS:
        return np.append(np.linalg.eigvalsh(a, triangle), 0).astype(a.dtype)
    values, vectors = np.linalg.eigh(a, triangle)
    return np.concatenate((values, vectors.ravel(), [0])).astype(a.dtype)


def _eig(mode: int, a: Array) -> Array:
    dtype = np.result_type(a.dtype, np.complex64)
    if not mode & VECTORS:
        return np.append(np.linalg.eigvals(a), 0).astype(dtype)
    values, vectors = np.linalg.eig(a)
    return np.concatenate((values, vectors.ravel(), [0])).astype(dtype)


def _triangular_solve(mode: int, a: Array, b: Array) -> Array:
    a = np.tril(a) if mode & LOWER else np.triu(a)
    if mode & UNIT:
        np.fill_diagonal(a, 1)
    if mode & TRANSPOSED:
        a = a.T.conj() if mode & CONJUGATED else a.T
    return np.linalg.solve(a, b)


_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "mlirml.cholesky": _cholesky, "mlirml.eig": _eig, "mlirml.eigh": _eigh, "mlirml.inverse": _inverse,
    "mlirml.lu": _lu, "mlirml.lu_diagonal": _lu_diagonal, "mlirml.qr": _qr, "mlirml.solve": _solve,
    "mlirml.svd": _svd, "mlirml.triangular_solve": _triangular_solve,
}  # fmt: skip
"""The functions of the mode and of one matrix of each operand."""
_HAVE_STATUS = ("mlirml.eig", "mlirml.eigh", "mlirml.svd")


def _of_each(op: mlir.Operation, mode: int, shape: tuple[int, ...], dtype: Any, stacks: list[Array]) -> Array:
    """The factorization of each matrix of a stack; NaN where NumPy raises an error, and a status of 1."""
    result = np.empty(shape, dtype)
    for number, matrices in enumerate(zip(*stacks)):
        try:
            result[number] = _FUNCTIONS[op.name](mode, *matrices)
        except np.linalg.LinAlgError:
            result[number] = np.nan
            if op.name in _HAVE_STATUS:
                result[number, -1] = 1
    return result


@evaluates(*FACTORIZATIONS)
def factorization_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The factorization of each matrix of a stack."""
    call, dtype = LIBRARY_CALLS[op.name], from_short_name(mlir.StringAttr(op.attributes["kind"]).value)
    mode = mlir.IntegerAttr(op.attributes["mode"]).value if call.has_mode else 0
    shape = tuple(list(op.operands)[-1].type.shape)
    made = np.result_type(dtype, np.complex64) if call.complex_result else dtype

    def kernel(*operands: Value) -> Value:
        arrays = [np.ascontiguousarray(x.array if isinstance(x, Buffer) else x) for x in operands[:-1]]
        if dtype.kind == "c":
            arrays = [x.view(dtype)[..., 0] for x in arrays]
        result = _of_each(op, mode, shape[:-1] if made.kind == "c" else shape, made, arrays)
        if made.kind == "c":
            result = result[..., None].view(result.real.dtype)
        if len(op.results):
            return result
        assert isinstance(operands[-1], Buffer)
        operands[-1].array[...] = result
        return None

    return kernel

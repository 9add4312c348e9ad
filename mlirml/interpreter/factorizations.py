"""Rules of the reference interpreter for the factorizations of the mlirml dialect, on tensors and on memrefs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.dialects.mlirml import FACTORIZATIONS
from mlirml.interpreter.program import Function, Kernel, evaluates
from mlirml.interpreter.values import Array, Buffer, Value
from mlirml.ir.bindings import mlir
from mlirml.ir.text.dtypes import from_short_name


def _of_each(function: Callable[..., Array], *stacks: Array) -> Array:
    """Apply a function to each matrix of a stack; NaN where NumPy raises an error."""
    found: list[Any] = []
    for matrices in zip(*stacks):
        try:
            found.append(function(*matrices))
        except np.linalg.LinAlgError:
            found.append(np.full(matrices[-1].shape, np.nan, matrices[-1].dtype))
    return np.stack(found)


def _lu_diagonal(a: Array) -> Array:
    """The diagonal of the upper factor, by elimination, and the sign of the permutation."""
    a, sign = a.copy(), 1.0
    for k in range(len(a)):
        pivot = k + int(np.argmax(np.abs(a[k:, k])))
        if pivot != k:
            a[[k, pivot]], sign = a[[pivot, k]], -sign
        if a[k, k] != 0:
            a[k + 1 :, k:] -= np.outer(a[k + 1 :, k] / a[k, k], a[k, k:])
    return np.append(np.diagonal(a), np.asarray(sign, a.dtype))


_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "mlirml.cholesky": np.linalg.cholesky,
    "mlirml.inverse": np.linalg.inv,
    "mlirml.lu_diagonal": _lu_diagonal,
    "mlirml.solve": np.linalg.solve,
}


@evaluates(*FACTORIZATIONS)
def factorization_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The factorization of each matrix of a stack."""
    dtype = from_short_name(mlir.StringAttr(op.attributes["kind"]).value)
    function = _FUNCTIONS[op.name]

    def kernel(*operands: Value) -> Value:
        arrays = [np.ascontiguousarray(x.array if isinstance(x, Buffer) else x) for x in operands[:-1]]
        if dtype.kind == "c":
            arrays = [x.view(dtype)[..., 0] for x in arrays]
        result = np.ascontiguousarray(_of_each(function, *arrays))
        if dtype.kind == "c":
            result = result[..., None].view(result.real.dtype)
        if len(op.results):
            return result
        assert isinstance(operands[-1], Buffer)
        operands[-1].array[...] = result
        return None

    return kernel

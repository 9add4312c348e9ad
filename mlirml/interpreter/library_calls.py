"""Rules of the reference interpreter for what libraries compute, on tensors and on memrefs: NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.interpreter.program import Function, Kernel, evaluates
from mlirml.interpreter.values import Array, Buffer, Value
from mlirml.ir import library_calls as modes
from mlirml.ir.bindings import mlir
from mlirml.ir.library_calls import FACTORIZATIONS, LIBRARY_CALLS, TRANSFORMS
from mlirml.ir.numpy_factorizations import factorization
from mlirml.ir.text.dtypes import from_short_name


@evaluates(*FACTORIZATIONS)
def factorization_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The factorization of each matrix of a stack."""
    call, dtype = LIBRARY_CALLS[op.name], from_short_name(mlir.StringAttr(op.attributes["kind"]).value)
    mode = mlir.IntegerAttr(op.attributes["mode"]).value if call.has_mode else 0
    return _kernel(op, dtype, factorization(op.name.removeprefix("mlirml."), mode))


@evaluates(*TRANSFORMS)
def transform_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The Fourier transform, by `np.fft`."""
    dtype = from_short_name(mlir.StringAttr(op.attributes["kind"]).value)
    mode = mlir.IntegerAttr(op.attributes["mode"]).value
    kind, forward, axes = mode & modes.TRANSFORM, not mode & modes.BACKWARD, modes.axes_of(mode)

    def function(x: Array) -> Array:
        sizes = [x.shape[axis] for axis in axes]
        found: Any
        if kind == modes.C2R:
            sizes[-1] = 2 * (sizes[-1] - 1) + bool(mode & modes.ODD)
            found = np.fft.irfftn(x.conj() if forward else x, sizes, axes, "forward")
        elif kind == modes.R2C:
            found = np.fft.rfftn(x, axes=axes)
            found = found if forward else found.conj()
        else:
            found = np.fft.fftn(x, axes=axes) if forward else np.fft.ifftn(x, axes=axes, norm="forward")
        count = float(np.prod(sizes))
        factor = 1 / count if mode & modes.BY_COUNT else 1 / count**0.5 if mode & modes.BY_ROOT else 1.0
        return found * found.real.dtype.type(factor)

    return _kernel(op, dtype, function)


def _kernel(op: mlir.Operation, dtype: np.dtype, function: Callable[..., Array]) -> Kernel:
    """A kernel of complex arrays from operands whose last dimension has the real and imaginary parts."""

    def kernel(*operands: Value) -> Value:
        arrays = [np.ascontiguousarray(x.array if isinstance(x, Buffer) else x) for x in operands[:-1]]
        if dtype.kind == "c":
            arrays = [x.view(dtype)[..., 0] for x in arrays]
        result = function(*arrays)
        if result.dtype.kind == "c":
            result = result[..., None].view(result.real.dtype)
        if len(op.results):
            return result
        assert isinstance(operands[-1], Buffer)
        operands[-1].array[...] = result
        return None

    return kernel

"""Rules of the reference interpreter for what libraries compute, on tensors and on memrefs: NumPy's functions."""

from __future__ import annotations

import numpy as np

from mlirml.interpreter.program import Function, Kernel, evaluates
from mlirml.interpreter.values import Buffer, Value
from mlirml.ir.bindings import mlir
from mlirml.ir.library_calls import FACTORIZATIONS, LIBRARY_CALLS
from mlirml.ir.numpy_factorizations import factorization
from mlirml.ir.text.dtypes import from_short_name


@evaluates(*FACTORIZATIONS)
def factorization_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The factorization of each matrix of a stack."""
    call, dtype = LIBRARY_CALLS[op.name], from_short_name(mlir.StringAttr(op.attributes["kind"]).value)
    mode = mlir.IntegerAttr(op.attributes["mode"]).value if call.has_mode else 0
    function = factorization(op.name.removeprefix("mlirml."), mode)

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

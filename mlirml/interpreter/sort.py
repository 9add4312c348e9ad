"""Rules of the reference interpreter for the sorts of the mlirml dialect, on tensors and on memrefs."""

from __future__ import annotations

import numpy as np

from mlirml.interpreter.program import Function, Kernel, evaluates
from mlirml.interpreter.values import Array, Buffer, Value
from mlirml.ir.bindings import mlir
from mlirml.ir.text.dtypes import from_short_name


@evaluates("mlirml.sort", "mlirml.argsort")
def sort_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Each row sorted, or the indices that sort it, as many as the result has."""
    dtype = from_short_name(mlir.StringAttr(op.attributes["kind"]).value)
    descending = mlir.BoolAttr(op.attributes["descending"]).value
    in_place, positions = not op.results, op.name == "mlirml.argsort"

    def order(rows: Array) -> Array:
        keys = rows.view(dtype)
        keys = keys.astype(np.float32) if dtype.name == "bfloat16" else keys
        if not descending:
            return np.argsort(keys, axis=1, kind="stable")
        found = keys.shape[1] - 1 - np.argsort(keys[:, ::-1], axis=1, kind="stable")
        return found[:, ::-1]

    def kernel(source: Value, out: Value) -> Value:
        rows = np.ascontiguousarray(source.array if isinstance(source, Buffer) else source)
        found = order(rows)
        result = found[:, : out.shape[1]] if positions else np.take_along_axis(rows, found, axis=1)
        if not in_place:
            return np.ascontiguousarray(result)
        assert isinstance(out, Buffer)
        out.array[...] = result
        return None

    return kernel


@evaluates("mlirml.barrier")
def barrier_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The operand."""

    def kernel(value: Value) -> Value:
        return value

    return kernel

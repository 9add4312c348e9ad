"""Rules of the reference interpreter for the compactions of the mlirml dialect, on tensors and on memrefs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.interpreter.program import Function, Kernel, evaluates
from mlirml.interpreter.values import Array, Buffer, Value
from mlirml.ir.bindings import mlir
from mlirml.ir.compactions import CHUNK, COMPACTIONS

_PADDING = 0x5A
"""What the undefined bytes of a result are filled with, so that a program that reads them shows it."""


@evaluates(*COMPACTIONS)
def compaction_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The counts of a mask, the positions of its true elements, or the slices there."""
    functions: dict[str, Callable[..., Array]] = {
        "mlirml.mask_counts": _counts,
        "mlirml.positions": _positions,
        "mlirml.compress": _compressed,
    }
    compute = functions[op.name]
    in_place = not op.results

    def kernel(*operands: Value) -> Value:
        arrays = [np.asarray(x.array if isinstance(x, Buffer) else x) for x in operands]
        result = compute(*arrays)
        if not in_place:
            return result
        out = operands[-1]
        assert isinstance(out, Buffer)
        out.array[...] = result
        return None

    return kernel


def _counts(mask: Array, out: Array) -> Array:
    result = np.zeros(out.shape, np.int64)
    for number in range(1, out.shape[1]):
        result[:, number] = np.count_nonzero(mask[:, : number * CHUNK], axis=1)
    return result


def _positions(mask: Array, _: Array, out: Array) -> Array:
    return _filled(mask, out, np.flatnonzero)


def _compressed(mask: Array, _: Array, values: Array, out: Array) -> Array:
    rows = iter(values)
    return _filled(mask, out, lambda row: next(rows)[row.astype(bool)])


def _filled(mask: Array, out: Array, function: Callable[[Array], Any]) -> Array:
    """The results of `function` for each row of the mask, followed by padding."""
    result = np.full(out.nbytes, _PADDING, np.uint8)
    if out.dtype == np.bool_:
        result[:] = 1
    array: Array = result.view(out.dtype).reshape(out.shape)
    for target, row in zip(array, mask):
        found = function(row)
        target[: len(found)] = found
    return array

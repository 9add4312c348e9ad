"""Reductions by an associative operation: of two values, or of an array along some axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirml.interpreter.scalar import binary_kernel, lowest_bit, signed_bits, unsigned_bits
from mlirml.interpreter.values import Array, Value, is_narrow, unsigned
from mlirml.ir.bindings import mlir
from mlirml.ir.combiners import COMBINERS

_OF_KIND = {(row.vector_kind, row.is_float): op for op, row in COMBINERS.items()}


def kind_of(op: mlir.Operation, dtype: np.dtype[Any]) -> str:
    """The `arith` operation of a `#vector.kind` for a dtype."""
    name = str(op.attributes["kind"]).removeprefix("#vector.kind<").removesuffix(">")
    return _OF_KIND[name, dtype.kind not in "ib"]


class Reduction:
    """A reduction by one associative operation in one element type.

    Floats of 16 bits are reduced in f32 and rounded at the end; sums of floats are pairwise.
    """

    def __init__(self, name: str, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.pair = binary_kernel(name, dtype)
        """The operation on two values."""
        self._ufunc: np.ufunc = getattr(np, COMBINERS[name].ufunc)
        self._compute = np.dtype(np.float32) if is_narrow(dtype) else dtype
        self._wide_pair = binary_kernel(name, self._compute)
        self._unsigned = name in ("arith.maxui", "arith.minui")

    def fold(self, initial: Value, values: Array, axes: Sequence[int]) -> Value:
        """`initial` combined with `values` along `axes`, which become axes of size one."""
        kept = [axis for axis in range(values.ndim) if axis not in axes]
        shape = [1 if axis in axes else size for axis, size in enumerate(values.shape)]
        count = int(np.prod([values.shape[axis] for axis in axes], dtype=np.int64))
        if count == 0:
            return initial
        # Sums are pairwise only along the last axis of contiguous memory.
        last = np.ascontiguousarray(values.transpose([*kept, *axes]))
        rows = last.reshape([values.shape[axis] for axis in kept] + [count])
        if self.dtype.kind == "b":
            rows = unsigned_bits(rows) if self._unsigned else signed_bits(rows)
        else:
            rows = rows.view(unsigned(self.dtype)) if self._unsigned else rows.astype(self._compute, copy=False)
        # Without a dtype NumPy adds and multiplies small integers in 64 bits.
        total = self._ufunc.reduce(rows, axis=-1, dtype=rows.dtype)
        total = lowest_bit(total) if self.dtype.kind == "b" else np.asarray(total).view(self._compute)
        total = np.asarray(total).reshape(shape)
        return self._wide_pair(initial.astype(self._compute), total).astype(self.dtype)

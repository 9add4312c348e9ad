"""Reductions by an associative operation: of two values, or of an array along some axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirml.interpreter.scalar import binary_kernel
from mlirml.interpreter.values import Array, Value, is_narrow, unsigned
from mlirml.ir.bindings import mlir

_UFUNCS: dict[str, np.ufunc] = {
    "arith.addf": np.add, "arith.mulf": np.multiply, "arith.maximumf": np.maximum, "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax, "arith.minnumf": np.fmin, "arith.addi": np.add, "arith.muli": np.multiply,
    "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor, "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum, "arith.maxui": np.maximum, "arith.minui": np.minimum,
}  # fmt: skip

# Signed, true is -1 and so the lesser value of i1.
_UFUNCS_OF_I1: dict[str, np.ufunc] = {
    "arith.addi": np.bitwise_xor, "arith.muli": np.bitwise_and, "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor, "arith.maxsi": np.bitwise_and,
    "arith.minsi": np.bitwise_or, "arith.maxui": np.bitwise_or, "arith.minui": np.bitwise_and,
}  # fmt: skip

ASSOCIATIVE = frozenset(_UFUNCS)
"""The operations that a reduction may apply in any order."""

_OF_KIND = {
    "and": "andi", "or": "ori", "xor": "xori", "maxs": "maxsi", "maxu": "maxui", "mins": "minsi", "minu": "minui",
}  # fmt: skip


def kind_of(op: mlir.Operation, dtype: np.dtype[Any]) -> str:
    """The `arith` operation of a `#vector.kind` for a dtype."""
    name = str(op.attributes["kind"]).removeprefix("#vector.kind<").removesuffix(">")
    if name in ("add", "mul"):
        return f"arith.{name}{'i' if dtype.kind in 'ib' else 'f'}"
    return f"arith.{_OF_KIND.get(name, name)}"


class Reduction:
    """A reduction by one associative operation in one element type.

    Floats of 16 bits are reduced in f32 and rounded at the end; sums of floats are pairwise.
    """

    def __init__(self, name: str, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.pair = binary_kernel(name, dtype)
        """The operation on two values."""
        self._ufunc = _UFUNCS_OF_I1[name] if dtype.kind == "b" else _UFUNCS[name]
        self._compute = np.dtype(np.float32) if is_narrow(dtype) else dtype
        self._wide_pair = binary_kernel(name, self._compute)
        self._unsigned = name in ("arith.maxui", "arith.minui") and dtype.kind == "i"

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
        rows = rows.view(unsigned(self.dtype)) if self._unsigned else rows.astype(self._compute, copy=False)
        # Without a dtype NumPy adds and multiplies small integers in 64 bits.
        total = self._ufunc.reduce(rows, axis=-1, dtype=rows.dtype)
        total = np.asarray(total).view(self._compute).reshape(shape)
        return self._wide_pair(initial.astype(self._compute), total).astype(self.dtype)

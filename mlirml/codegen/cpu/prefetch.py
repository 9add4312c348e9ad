"""Prefetch the start of the next row during the computation of a row: hardware prefetchers stop at a page boundary.

    for i in rows: m[i] = mean(x[i])                for i in rows: m[i] = mean(x[i])
                   v[i] = variance(x[i], m[i])  ->                 prefetch x[i + 1]
                                                                   v[i] = variance(x[i], m[i])

It pays after the first operation on a row, whose loads are all outstanding by then, and before one that finds the row
in cache.
"""

from __future__ import annotations

from mlirml.codegen.cpu.frame import Frame
from mlirml.codegen.cpu.nest import Access, Nest
from mlirml.ir import emit
from mlirml.ir.bindings import mlir

LINE_BYTES = 64
BYTES = 1024
"""The prefetched bytes of a row: a core has no more than 16 outstanding loads, and hardware prefetchers do the rest."""


def prefetch_next_row(frame: Frame, nest: Nest, i: mlir.Value, rows: int) -> None:
    """Prefetch row `i + 1` of the operands that an operation reads; the row after the last one is the last one."""
    last = frame.index(rows - 1)
    following = emit.same_type("arith.minsi", frame.add(i, frame.index(1)), last)
    for access in dict.fromkeys(
        access for access in nest.accesses[: -nest.num_outputs] if access and is_read_once(access)
    ):
        start = frame.multiply(following, access.strides[0])
        if access.base:
            start = frame.add(access.base[0], start)
        for element in range(0, min(BYTES // access.bytes, access.strides[0]), LINE_BYTES // access.bytes):
            offset = access.offset + element
            prefetch(frame.flat(access.operand), frame.add(start, frame.index(offset)) if offset else start)


def is_read_once(access: Access) -> bool:
    """True if the rows of an access are dense, long and disjoint."""
    return access.strides[0] * access.bytes >= BYTES and access.strides[-1] == 1


def prefetch(memref: mlir.Value, position: mlir.Value) -> None:
    """Prefetch one line to all cache levels."""
    flags = {"isWrite": mlir.BoolAttr.get(False), "isDataCache": mlir.BoolAttr.get(True)}
    hint = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(32), 3)
    emit.create("memref.prefetch", [memref, position], (), {"localityHint": hint, **flags})

"""Prefetch what a row reads from memory some lines later: hardware prefetchers stop at the end of each page.

    for i in row by vectors:                for i in row by vectors:
        total += x[i]                 ->        prefetch x[i + 4 KiB] to the second-level cache
                                                total += x[i]

The lines are for the second-level cache: in the first-level one they would replace the next elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.costs import costs
from mlirml.codegen.cpu import cost
from mlirml.codegen.cpu.frame import Cursor
from mlirml.codegen.cpu.nest import Access, Nest
from mlirml.ir import emit
from mlirml.ir.bindings import mlir

LINE_BYTES = 64
AHEAD_BYTES = 4096
"""The distance in bytes."""
_LEVEL_2 = 2
_LAST_CACHE = 32
"""The last cache as a multiple of that of a core."""


def comes_from_memory(nest: Nest) -> bool:
    """True if a nest reads more than the last cache holds: what is in one comes faster without."""
    return cost.footprint(nest) > _LAST_CACHE * costs().cache_bytes


def prefetch_ahead(cursor: Cursor, count: int) -> None:
    """Prefetch for the `count` elements from the cursor on, in each dense operand that the nest reads once."""
    nest = cursor.nest
    reads = dict.fromkeys(each for each in nest.accesses[: -nest.num_outputs] if each and is_read_once(each))
    prefetch_lines(cursor, list(reads), count, AHEAD_BYTES)


def prefetch_lines(cursor: Cursor, accesses: Sequence[Access], count: int, distance: int = 0) -> None:
    """Prefetch `count` elements of operands, from `distance` bytes after the cursor on."""
    for access in accesses:
        flat, start = cursor.frame.flat(access.operand), cursor.address(access)
        for line in range(0, count * access.bytes, LINE_BYTES):
            offset = cursor.frame.index((distance + line) // access.bytes)
            prefetch(flat, cursor.frame.add(start, offset))


def is_read_once(access: Access) -> bool:
    """True if the elements of an access follow each other, and no loop reads them again."""
    return access.strides[-1] == 1 and all(access.strides)


def prefetch(memref: mlir.Value, position: mlir.Value) -> None:
    """Prefetch one line; its position may be outside of the memref."""
    flags = {"isWrite": mlir.BoolAttr.get(False), "isDataCache": mlir.BoolAttr.get(True)}
    hint = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(32), _LEVEL_2)
    emit.create("memref.prefetch", [memref, position], (), {"localityHint": hint, **flags})

"""Terms of the work of a program of dynamic sizes: an estimate of its time for any values of the sizes.

A term is a number and the indices of the sizes that it is multiplied by. The unit is the time of a flop of a product of
matrices; another flop takes that of several, and so does a byte.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.traits import COUNTED_LOOPS
from mlirml.analysis.work import FUNCTION_FLOPS, work_of
from mlirml.dialects.mlirml import SORTS
from mlirml.ir.bindings import block_ops, mlir
from mlirml.ir.marked_sizes import Marks, UnknownSizeError

WORK = "mlirml.work_terms"
Term = tuple[int, ...]
_PASSES = 16
"""How often a sort or a transform goes through its elements, about."""
_SLOWER = 4
"""The time of a flop of other operations than products, or of a byte."""
_WHILE = 1 << 25
"""The work of a loop whose trip count depends on values: a millisecond."""
_MOST = 1 << 40
"""A greater factor is no product of marks: a formula has divided it."""


def work_terms(main: mlir.Operation, marks: Marks) -> list[Term]:
    """The terms of the operations of a function whose types have marks, those of equal sizes added up."""
    totals: dict[tuple[int, ...], int] = {}
    for op in block_ops(main.regions[0].blocks[0]):
        for count in counts_of(op):
            try:
                factor, numbers = marks.factors(count)
            except UnknownSizeError:
                continue
            if 0 < factor < _MOST:
                key = tuple(sorted(numbers))
                totals[key] = totals.get(key, 0) + factor
    return [(factor, *numbers) for numbers, factor in totals.items()]


def counts_of(op: mlir.Operation) -> Iterable[int]:
    """The times of the flops and of the bytes of an operation, each of them a product of sizes and a number."""
    if op.name.startswith("mlirml."):
        return library_counts(op)
    if op.name == "scf.while":
        return (_WHILE,)
    if not op.name.startswith("linalg.") and op.name not in COUNTED_LOOPS:
        return ()
    work = work_of(op)
    flops, functions = work.count.flops or 0, work.count.functions or 0
    moved = [*work.reads.values(), *work.writes.values(), functions * FUNCTION_FLOPS]
    is_fast = op.name in CONTRACTIONS or op.name.startswith("linalg.conv")
    return (flops if is_fast else flops * _SLOWER, *(count * _SLOWER for count in moved))


def library_counts(op: mlir.Operation) -> Iterable[int]:
    """The times of a sort, a transform or a factorization."""
    shapes = [tuple(value.type.shape) for value in op.operands if isinstance(value.type, mlir.RankedTensorType)]
    short = op.name in SORTS or op.name == "mlirml.fft"
    return [math.prod(shape) * _SLOWER * (_PASSES if short else shape[-1]) for shape in shapes if shape]

"""Prove parallel: mark loops over elements whose iterations are independent.

Before:
    scf.for %i = %c0 to %c4096 step %c1 {
      %x = memref.load %a[%i] : memref<4096xf32>
      memref.store %x, %b[%i] : memref<4096xf32>
    }
After:
    scf.for %i = %c0 to %c4096 step %c1 {
      %x = memref.load %a[%i] : memref<4096xf32>
      memref.store %x, %b[%i] : memref<4096xf32>
    } {mlirml.parallel}

Every array that is stored to must be indexed by the loop variable plus one constant, in the same dimension of all its
loads and stores. Buffers of different roots do not overlap. `mlirml-parallelize-loops` decides which loops run on the
pool.
"""

from __future__ import annotations

from mlirml.analysis.constants import constant_of
from mlirml.analysis.traits import INTEGER_STEPS
from mlirml.ir.bindings import defining_op, mlir, named_operations, operations
from mlirml.passes import Pass, register

INDEPENDENT = "mlirml.parallel"
"""Marks loops whose iterations may run concurrently."""


@register(when=("scf.for",), optional=True)
class ProveParallelPass(Pass):
    """Mark loops without loop-carried dependences."""

    def run(self, module: mlir.Operation) -> None:
        for loop in [op for op in named_operations(module, ("scf.for",)) if not op.results]:
            if INDEPENDENT not in loop.attributes and is_independent(loop, list(operations(loop))[1:]):
                with loop.context:
                    loop.attributes[INDEPENDENT] = mlir.UnitAttr.get()


def root_of(value: mlir.Value) -> mlir.Value:
    """The buffer that a value is a view of."""
    op = defining_op(value)
    while op is not None and op.operands and isinstance(op.operands[0].type, mlir.MemRefType):
        value = op.operands[0]
        op = defining_op(value)
    return value


def is_independent(loop: mlir.Operation, ops: list[mlir.Operation]) -> bool:
    """True if each stored array is always indexed by the loop variable plus one constant in one dimension."""
    variable = loop.regions[0].blocks[0].arguments[0]
    dimensions: dict[mlir.Value, set[tuple[int, int]]] = {}
    stored: set[mlir.Value] = set()
    for op in ops:
        if op.name not in ("memref.load", "memref.store"):
            if any(isinstance(value.type, mlir.MemRefType) for value in (*op.operands, *op.results)):
                return False
            continue
        first = 0 if op.name == "memref.load" else 1
        array, *indices = list(op.operands)[first:]
        if root_of(array) != array:
            return False
        if first:
            stored.add(array)
        distances = ((d, distance(index, variable)) for d, index in enumerate(indices))
        found = {(d, steps) for d, steps in distances if steps is not None}
        dimensions[array] = dimensions[array] & found if array in dimensions else found
    return bool(stored) and all(dimensions[array] for array in stored)


def distance(index: mlir.Value, variable: mlir.Value) -> int | None:
    """The constant difference between an index and the loop variable; None if it is not constant."""
    if index == variable:
        return 0
    op = defining_op(index)
    if op is None or op.name not in INTEGER_STEPS:
        return None
    one, other = op.operands
    if op.name == "arith.addi" and constant_of(other) is None:
        one, other = other, one
    number, start = constant_of(other), distance(one, variable)
    if number is None or start is None:
        return None
    return start + number if op.name == "arith.addi" else start - number

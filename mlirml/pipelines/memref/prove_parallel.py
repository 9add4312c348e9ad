"""Prove parallel: mark loops over elements whose rounds do not depend on each other.

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

Every array that is stored into must be indexed by the loop variable plus one number, in the same dimension wherever it
is read or stored. Buffers of different roots do not overlap. `mlirml-parallelize-loops` decides what runs on the pool.
"""

from __future__ import annotations

from mlirml.analysis.trip_counts import constant_of
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import defining_op, mlir, named_operations, operations
from mlirml.passes import Pass, register

INDEPENDENT = "mlirml.parallel"
"""Marks loops whose rounds may run at the same time."""


@register
@dataclass(frozen=True)
class ProveParallelPass(Pass):
    """Find loops without dependences between their rounds."""

    name = "mlirml-prove-parallel"

    def run(self, module: mlir.Operation) -> None:
        for loop in [op for op in named_operations(module, ("scf.for",)) if not op.results]:
            if INDEPENDENT not in loop.attributes and is_independent(loop, list(operations(loop))[1:]):
                with loop.context:
                    loop.attributes[INDEPENDENT] = mlir.UnitAttr.get()


def root_of(value: mlir.Value) -> mlir.Value:
    """The buffer that a view is one of."""
    op = defining_op(value)
    while op is not None and op.operands and isinstance(op.operands[0].type, mlir.MemRefType):
        value = op.operands[0]
        op = defining_op(value)
    return value


def is_independent(loop: mlir.Operation, inside: list[mlir.Operation]) -> bool:
    """True if every array that is stored into is indexed by the loop variable in one dimension, always equally."""
    variable = loop.regions[0].blocks[0].arguments[0]
    places: dict[mlir.Value, set[tuple[int, int]]] = {}
    stored: set[mlir.Value] = set()
    for op in inside:
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
        places[array] = places[array] & found if array in places else found
    return bool(stored) and all(places[array] for array in stored)


def distance(index: mlir.Value, variable: mlir.Value) -> int | None:
    """How far an index is from the loop variable; None where that is not a constant."""
    if index == variable:
        return 0
    op = defining_op(index)
    if op is None or op.name not in ("arith.addi", "arith.subi"):
        return None
    one, other = op.operands
    if op.name == "arith.addi" and constant_of(other) is None:
        one, other = other, one
    number, start = constant_of(other), distance(one, variable)
    if number is None or start is None:
        return None
    return start + number if op.name == "arith.addi" else start - number

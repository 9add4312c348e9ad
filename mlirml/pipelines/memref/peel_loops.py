"""Peel loops: the first and last iterations of a serial loop, for which conditions differ, are peeled.

Before:
    scf.for %i = %c0 to %c100 step %c1 {
      %before = arith.subi %i, %c1 : index
      %is_there = arith.cmpi sge, %before, %c0 : index
      %place = arith.maxsi %before, %c0 : index
      %old = memref.load %y[%place] : memref<100xf64>
      %sum = arith.addf %x, %old : f64
      %new = arith.select %is_there, %sum, %x : f64
      memref.store %new, %y[%i] : memref<100xf64>
    }
After:
    scf.for %i = %c0 to %c1 step %c1 {
      memref.store %x, %y[%i] : memref<100xf64>
    }
    scf.for %i = %c1 to %c100 step %c1 {
      %before = arith.subi %i, %c1 : index
      %old = memref.load %y[%before] : memref<100xf64>
      %new = arith.addf %x, %old : f64
      memref.store %new, %y[%i] : memref<100xf64>
    }

This is index set splitting (M. Wolfe, High performance compilers for parallel computing, 1996, chapter 9) at
comparisons of the loop variable with constants near its bounds. It exposes loads of values that the previous iteration
has stored, and leaves no selects in the body of the main loop.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

from mlirml.analysis.affine import Reader
from mlirml.analysis.constants import constant_of
from mlirml.analysis.ranges import CLAMPS, Ranges, returned_operand
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, mlir, named_operations, operations, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import PROGRAM_LOOP

_PREDICATES = {0: (0, 1), 1: (0, 1), 2: (0,), 3: (1,), 4: (1,), 5: (0,)}
"""The offsets from the constant at which a comparison changes, by predicate: eq, ne, slt, sle, sgt, sge."""


@register(when=PROGRAM_LOOP, optional=True)
class PeelLoopsPass(Pass):
    """Peel at most `most` iterations from either end of innermost serial loops of at most `longest` operations."""

    most: int = 4
    longest: int = 64

    def run(self, module: mlir.Operation) -> None:
        for loop in named_operations(module, ("scf.for",)):
            with suppress(NoMatch):
                build(loop, match(loop, self.most, self.longest))


def match(loop: mlir.Operation, most: int, longest: int) -> list[int]:
    """The bounds at which to split; raises `NoMatch` if no comparison depends on being near an end."""
    lower, upper, step = map(constant_of, list(loop.operands)[:3])
    if lower is None or upper is None or step != 1 or upper - lower <= 4 * most:
        raise NoMatch("not a long loop of known bounds")
    ops = [op for op in operations(loop) if op != loop]
    if len(ops) > longest or any(op.name in ("scf.for", "scf.while", "scf.parallel") for op in ops):
        raise NoMatch("not a small innermost loop")
    changes = {change for op in ops if op.name == "arith.cmpi" for change in changes_of(op, loop)}
    found = sorted(p for p in changes if lower < p <= lower + most or upper - most <= p < upper)
    if not found:
        raise NoMatch("no condition that changes near an end")
    return [lower, *found, upper]


def changes_of(op: mlir.Operation, loop: mlir.Operation) -> list[int]:
    """The values of the loop variable at which the result of a comparison changes."""
    variable, (a, b) = loop.regions[0].blocks[0].arguments[0], op.operands
    predicate = mlir.IntegerAttr(op.attributes["predicate"]).value
    number, offset = constant_of(b), offset_of(a, variable)
    if number is None or offset is None or predicate not in _PREDICATES:
        return []
    return [number - offset + after for after in _PREDICATES[predicate]]


def offset_of(value: mlir.Value, variable: mlir.Value) -> int | None:
    """The constant difference between a value and the loop variable; None if it is not constant."""
    reader = Reader(lambda _: True)
    found, base = reader.read(value), reader.read(variable)
    if found is None or base is None or not (found - base).is_constant:
        return None
    return (found - base).constant


def build(loop: mlir.Operation, bounds: list[int]) -> None:
    """Replace a loop by consecutive loops between the bounds."""
    attributes = {name: loop.attributes[name] for name in loop.attributes}
    step, *values = list(loop.operands)[2:]
    with loop.location, mlir.InsertionPoint(loop):
        for first, end in pairwise(bounds):
            types = [value.type for value in values]
            operands = [emit.index(first), emit.index(end), step, *values]
            part = emit.create("scf.for", operands, types, attributes, regions=1)
            block = emit.block(part, [mlir.IndexType.get(), *types])
            with mlir.InsertionPoint(block):
                known = dict(zip(loop.regions[0].blocks[0].arguments, block.arguments))
                for op in block_ops(loop.regions[0].blocks[0]):
                    clone_with(op, known)
            fold_in(part, Ranges())
            values = list(part.results)
    replace_op(loop, *values)


def fold_in(loop: mlir.Operation, ranges: Ranges) -> None:
    """Fold the comparisons, selects and clamps that integer ranges decide."""
    folded = []
    for op in list(operations(loop)):
        value = decided_value(op, ranges)
        if value is not None:
            op.results[0].replace_all_uses_with(value)
            folded.append(op)
    for op in reversed(folded):  # not earlier, as `ranges` looks up their results
        op.erase()


def decided_value(op: mlir.Operation, ranges: Ranges) -> mlir.Value | None:
    """The operand that an operation returns, if integer ranges decide it."""
    if not op.results or isinstance(op.results[0].type, mlir.ShapedType):
        return None
    operand = returned_operand(op, ranges)
    if operand is not None or op.name in ("arith.select", *CLAMPS):
        return operand
    holds = ranges.decides(op.results[0])
    if holds is None or all(use.owner.operation.name == "arith.select" for use in op.results[0].uses):
        return None
    with op.location, mlir.InsertionPoint(op):
        return emit.number(op.results[0].type, int(holds))

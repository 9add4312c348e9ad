"""Annotate loops: loops that LLVM should unroll, because of recurrences or gathers of bytes, get an annotation.

Before:
    scf.for %i = %c0 to %c512 step %c1 {
      %pixel = memref.load %image[%i] : memref<512xi8>
      %bin = arith.index_castui %pixel : i8 to index
      %old = memref.load %counts[%bin] : memref<256xi64>
      %new = arith.addi %old, %one : i64
      memref.store %new, %counts[%bin] : memref<256xi64>
    }
After:
    scf.for %i = %c0 to %c512 step %c1 {
      ...
    } {llvm.loop_annotation = #llvm.loop_annotation<unroll = <count = 8 : i32>>}

LLVM unrolls no other loops: those that it vectorises do not need it. In a loop that is not vectorised, unrolled
iterations forward stored values in registers, and stores to the same address are predicted better. There is no gather
instruction for bytes and words at loaded indices either: a vector of them is assembled from scalar loads. The pass runs
a second time after the conversion to the llvm dialect, to move the attribute to the loop's branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from mlirml.analysis.constants import constant_of
from mlirml.analysis.memory import array_of
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations, operations
from mlirml.ir.combiners import COMBINERS
from mlirml.passes import NoMatch, Pass, register

ANNOTATION = "llvm.loop_annotation"
_OF_BRANCH = "loop_annotation"
_SMALL, _MOST = 12, 48
_FEW = 8
_COUNTS = {_SMALL: 8, _MOST: 4}
_PLAIN = ("arith.", "math.", "memref.load", "memref.store", "cf.assert")
_REORDERED, _NUMBERS = ("reassoc", "fast>"), ("nnan", "fast>")


@register(when=("scf.for", "llvm.br"), optional=True)
class AnnotateLoopsPass(Pass):
    """Make LLVM unroll small loops that it cannot vectorise, or that gather elements of less than 32 bits."""

    def run(self, module: mlir.Operation) -> None:
        for loop in named_operations(module, ("scf.for",)):
            if ANNOTATION not in loop.attributes:  # by a schedule
                with suppress(NoMatch):
                    loop.attributes[ANNOTATION] = mlir.Attribute.parse(match_loop(loop))
        for branch in named_operations(module, ("llvm.br",)):
            if ANNOTATION in branch.attributes:
                branch.attributes[_OF_BRANCH] = branch.attributes[ANNOTATION]
                del branch.attributes[ANNOTATION]


def match_loop(loop: mlir.Operation) -> str:
    """The annotation of a loop, as text; raises `NoMatch` for a loop that LLVM vectorises."""
    block = loop.regions[0].blocks[0]
    *ops, end = block_ops(block)
    if is_branching(loop):
        return f"#llvm.loop_annotation<unroll = <count = {_COUNTS[_MOST]} : i32>>"
    if any(op.regions or not op.name.startswith(_PLAIN) for op in ops):
        raise NoMatch("not an innermost loop of scalars")
    size = sum(op.name != "arith.constant" for op in ops)
    if size > _MOST or any(isinstance(result.type, mlir.VectorType) for op in ops for result in op.results):
        raise NoMatch("a large loop, or one of vectors")
    if any(is_narrow(op) and is_computed(list(op.operands)[1:], block) for op in ops if op.name == "memref.load"):
        return "#llvm.loop_annotation<vectorize = <width = 1 : i32>, unroll = <count = 4 : i32>>"
    lower, upper, step = map(constant_of, list(loop.operands)[:3])
    few = lower is not None and upper is not None and step and (upper - lower) // step <= _FEW
    recurrent = is_recurrent(ops, end, block) or (few and has_integer_recurrence(end, block))
    if not recurrent and not stores_what_it_loads(ops):
        raise NoMatch("LLVM may vectorise it")
    if few:
        return "#llvm.loop_annotation<unroll = <full = true>>"
    count = next(count for most, count in _COUNTS.items() if size <= most)
    return f"#llvm.loop_annotation<unroll = <count = {count} : i32>>"


def is_branching(loop: mlir.Operation) -> bool:
    """True for a small loop of scalars with branches whose values are loop-carried: LLVM does not vectorise it."""
    inner = [op for op in operations(loop) if op != loop and op.name not in ("arith.constant", "scf.yield")]
    branches = [op for op in inner if op.name == "scf.if"]
    if not branches or len(inner) > _SMALL or not all(op.name.startswith((*_PLAIN, "scf.if")) for op in inner):
        return False
    ends = block_ops(loop.regions[0].blocks[0])[-1].operands
    return any(result in list(ends) for branch in branches for result in branch.results)


def is_narrow(load: mlir.Operation) -> bool:
    """True if a load is of an integer of less than 32 bits, for which no processor has gathers."""
    loaded_type = load.results[0].type
    return isinstance(loaded_type, mlir.IntegerType) and mlir.IntegerType(loaded_type).width < 32


def is_computed(indices: Sequence[mlir.Value], block: mlir.Block) -> bool:
    """True if an index depends on an element that the block loads."""
    todo, seen = list(indices), set[mlir.Value]()
    while todo:
        value = todo.pop()
        op = defining_op(value)
        if op is None or op.block != block or value in seen:
            continue
        if op.name == "memref.load":
            return True
        seen.add(value)
        todo += op.operands
    return False


def is_recurrent(ops: Sequence[mlir.Operation], end: mlir.Operation, block: mlir.Block) -> bool:
    """True if a loop-carried float is computed by an operation that must not be reassociated."""
    for carried, value in zip(list(block.arguments)[1:], end.operands, strict=True):
        op = defining_op(value)
        if isinstance(carried.type, mlir.FloatType) and op is not None and op in ops and not is_reordered(op):
            return True
    return False


def has_integer_recurrence(end: mlir.Operation, block: mlir.Block) -> bool:
    """True if a loop-carried integer is not a plain reduction, which LLVM can vectorise."""
    for carried, value in zip(list(block.arguments)[1:], end.operands, strict=True):
        users, op = [use.owner.operation for use in carried.uses], defining_op(value)
        simple = op is not None and op.name in COMBINERS and users == [op]
        if isinstance(carried.type, (mlir.IntegerType, mlir.IndexType)) and users and not simple:
            return True
    return False


def is_reordered(op: mlir.Operation) -> bool:
    """True if fast-math flags allow the operands of a sum to be reassociated, or say that an extreme meets no NaN."""
    flags = str(op.attributes["fastmath"]) if "fastmath" in op.attributes else ""
    combiner = COMBINERS.get(op.name)
    return any(flag in flags for flag in (_NUMBERS if combiner is not None and combiner.is_extreme else _REORDERED))


def stores_what_it_loads(ops: Sequence[mlir.Operation]) -> bool:
    """True if a loop loads from an array that it stores to, at another index or at a loaded one."""
    stores = [(array_of(op.operands[1]), list(op.operands)) for op in ops if op.name == "memref.store"]
    for load in (op for op in ops if op.name == "memref.load"):
        array, *indices = load.operands
        for stored, (_, into, *stored_indices) in stores:
            if stored == array_of(array) and (
                (array, indices) != (into, stored_indices) or is_computed(indices, load.block)
            ):
                return True
    return False

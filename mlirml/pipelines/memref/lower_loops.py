"""Lower loops: linalg operations and copies on memrefs become loop nests suited to LLVM's vectoriser.

Before:
    linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i, j)], ["parallel", "parallel"]}
        ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>) {
    ^bb0(%a: f32, %out: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    }
After:
    %flat_x = memref.collapse_shape %x [[0, 1]] : memref<4x8xf32> into memref<32xf32>
    %flat_y = memref.collapse_shape %y [[0, 1]] : memref<4x8xf32> into memref<32xf32>
    scf.for %i = %c0 to %c32 step %c1 {
      %a = memref.load %flat_x[%i] : memref<32xf32>
      %n = arith.negf %a : f32
      memref.store %n, %flat_y[%i] : memref<32xf32>
    }

Loops are ordered by stride, adjacent loops that are contiguous in all operands are collapsed, and an outermost parallel
loop with enough work becomes `scf.parallel` with the attribute `mlirml.grain`. `codegen/cpu/reduce` describes how
reductions are split. A fill of an init before a reduction is folded into it. Adjacent operations on the same rows are
fused along the loop over the rows (`codegen/cpu/reduce/rows.py`).

A copy of a few bytes between contiguous memory, with no adjacent operation to fuse with, stays a `memref.copy`, which
becomes LLVM's `memcpy`: LLVM would recognize that in a loop, too, in ten times the time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.memory import VIEWS
from mlirml.codegen.cpu.contract.problem import row_major
from mlirml.codegen.cpu.elementwise.rows import groups, lower_group
from mlirml.codegen.cpu.frame import Frame
from mlirml.codegen.cpu.loop_schedule import DEFAULT, annotate, schedule_of, using
from mlirml.codegen.cpu.structured import Structured, lower, match_structured
from mlirml.errors import LoweringError
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir, named_operations
from mlirml.ir.location import source_location
from mlirml.passes import NoMatch, Pass, register
from mlirml.targets.machine import Processor

_HARMLESS = ("memref.alloc", "memref.get_global", *VIEWS)


@register
class LowerLoopsPass(Pass):
    """Lower every linalg operation and memref.copy to loops for a processor.

    Copies of up to `copy_bytes` of contiguous memory stay copies.
    """

    processor: Processor = Processor()
    copy_bytes: int = 0

    def run(self, module: mlir.Operation) -> None:
        for copy in named_operations(module, ("memref.copy",)):
            as_generic(copy)
        for op in [op for op in named_operations(module, ("linalg.generic",)) if has_dynamic_copy(op)]:
            lower_dynamic_copy(op)
        for block in blocks_with_loops(module):
            for neighbours in runs(block):
                for group in groups(neighbours):
                    self.lower_scheduled(group)
                    for item in group:
                        item.op.erase()

    def lower_scheduled(self, group: list[Structured]) -> None:
        """Build the loops of a group before its last operation, by the schedule that a tuner has found for it."""
        chosen = schedule_of(group[-1].op)
        if chosen == DEFAULT:
            self.lower_group(group)
            return
        last = group[-1].op
        first = block_ops(last.block).index(last)
        with using(chosen):
            self.lower_group(group)
        ops = block_ops(last.block)
        annotate(ops[first : ops.index(last)], chosen)

    def lower_group(self, group: list[Structured]) -> None:
        """Build the loops of a group before its last operation."""
        with group[-1].op.location, mlir.InsertionPoint(group[-1].op):
            if len(group) > 1:
                lower_group(group, self.processor.vector_bits)
            elif is_short_copy(group[0], self.copy_bytes):
                emit.create("memref.copy", group[0].op.operands)
            else:
                lower(group[0], Frame(group[0].op), self.processor.vector_bits)


def is_structured(op: mlir.Operation) -> bool:
    return op.name.startswith("linalg.") and bool(op.regions)


def blocks_with_loops(module: mlir.Operation) -> list[mlir.Block]:
    """Every block that contains structured operations."""
    found, todo = [], [block for region in module.regions for block in region.blocks]
    while todo:
        block = todo.pop(0)
        ops = block_ops(block)
        if any(map(is_structured, ops)):
            found.append(block)
        for op in ops:
            if not is_structured(op):
                todo += [inner for region in op.regions for inner in region.blocks]
    return found


def runs(block: mlir.Block) -> list[list[Structured]]:
    """Runs of consecutive structured operations of a block, ended by operations that may access memory."""
    matched = iter([read(op) for op in block_ops(block) if is_structured(op) and op.name != "linalg.fill"])
    found: list[list[Structured]] = [[]]
    for op in block_ops(block):
        if is_structured(op):
            found[-1].append(read(op) if op.name == "linalg.fill" else next(matched))
        elif op.name not in _HARMLESS and not op.name.startswith("arith."):
            found.append([])
    return found


def read(op: mlir.Operation) -> Structured:
    """The operation in the form of the loop schedules; raises LoweringError."""
    try:
        return match_structured(op)
    except NoMatch as reason:
        error = LoweringError(f"no loops for `{op.name}`: {reason}", location=source_location(op.location))
        error.op = op.name
        raise error from None


def has_dynamic_copy(op: mlir.Operation) -> bool:
    """True if an operation copies elements to the same indices, of as many as is known at run time only."""
    block = op.regions[0].blocks[0]
    (final, *others), maps = block_ops(block), [attribute.value for attribute in op.attributes["indexing_maps"]]
    if others or len(maps) != 2 or len(op.results) or final.operands[0] != block.arguments[0]:
        return False
    is_same = maps[0] == maps[1] == mlir.AffineMap.get_identity(maps[0].n_dims)
    return is_same and not all(mlir.ShapedType(value.type).has_static_shape for value in op.operands)


def lower_dynamic_copy(op: mlir.Operation) -> None:
    """Loops up to the sizes of the target."""
    source, target = op.operands
    shape = mlir.ShapedType(target.type)
    with op.location, mlir.InsertionPoint(op):
        sizes = [
            emit.value("memref.dim", [target, emit.index(d)], mlir.IndexType.get())
            if shape.is_dynamic_dim(d)
            else emit.index(shape.get_dim_size(d))
            for d in range(shape.rank)
        ]
        _copy_loops(source, target, sizes, [])
    op.erase()


def _copy_loops(source: mlir.Value, target: mlir.Value, sizes: Sequence[mlir.Value], indices: list[mlir.Value]) -> None:
    if len(indices) == len(sizes):
        element = emit.value("memref.load", [source, *indices], mlir.MemRefType(source.type).element_type)
        emit.create("memref.store", [element, target, *indices])
        return

    def body(index: mlir.Value, _: Sequence[mlir.Value]) -> None:
        _copy_loops(source, target, sizes, [*indices, index])

    emit.for_loop(emit.index(0), sizes[len(indices)], emit.index(1), body)


def is_short_copy(item: Structured, most: int) -> bool:
    """True if an operation copies at most `most` bytes between contiguous memory."""
    op, (final, *others) = item.op, block_ops(item.op.regions[0].blocks[0])
    if op.name != "linalg.generic" or others or len(op.operands) != 2 or len(final.operands) != 1:
        return False
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    if final.operands[0] != op.regions[0].blocks[0].arguments[0] or maps[0] != maps[1] or not maps[0].is_permutation:
        return False
    access = item.nest.out(0)
    source, target = (value.type for value in op.operands)
    return (
        source.shape == target.shape
        and 0 < math.prod(source.shape) * access.bytes <= most
        and is_contiguous(source)
        and is_contiguous(target)
    )


def is_contiguous(memref_type: mlir.MemRefType) -> bool:
    """True if a memref with dimensions is contiguous in row-major order."""
    if not memref_type.rank or memref_type.memory_space is not None:
        return False
    return tuple(memref_type.get_strides_and_offset()[0]) == row_major(memref_type.shape)


def as_generic(copy: mlir.Operation) -> None:
    """Replace a copy by a structured operation; erase a copy of a buffer onto itself."""
    source, target = copy.operands
    if source == target:
        copy.erase()
        return
    with copy.location, mlir.InsertionPoint(copy):
        identity = mlir.AffineMap.get_identity(source.type.rank)
        emit.generic([source], [target], [identity] * 2, ["parallel"] * identity.n_dims, lambda b: b[:1])
    copy.erase()

"""Share buffers: a loop nest that contains the last reads of a buffer writes its result into that buffer.

Before:
    %a = memref.alloc() : memref<8x9xf64>
    %b = memref.alloc() : memref<8x9xf64>
    ...                                       // stores into %a
    scf.for %i = ... {
      scf.for %j = ... {
        %x = memref.load %a[%i, %j]           // nothing reads %a later
        memref.store %y, %b[%i, %j]           // nothing has been stored into %b before
      }
    }
After:
    %a = memref.alloc() : memref<8x9xf64>
    ...
    scf.for %i = ... {
      scf.for %j = ... {
        %x = memref.load %a[%i, %j]
        memref.store %y, %a[%i, %j]
      }
    }

Each element is read before it is stored, in the same iteration, and no other iteration accesses it. Bufferization does
so for elementwise operations only; fused ones may contain reductions as well.
"""

from __future__ import annotations

import math

from mlirml.analysis.affine import flat_index
from mlirml.analysis.constants import constant_of
from mlirml.analysis.traits import COUNTED_LOOPS
from mlirml.analysis.values import ancestor_in, is_within
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import matched
from mlirml.ir.bindings import block_ops, defining_op, main_function, mlir, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import Several
from mlirml.pipelines.bufferize.inits import tensor_blocks
from mlirml.pipelines.memref.plan_buffers import users

_VIEWS = ("memref.collapse_shape", "memref.expand_shape", "memref.cast")


@register(when=Several(2, ("memref.alloc",)), optional=True)
class ShareBuffersPass(Pass):
    """Reuse buffers of at least `least` bytes after their last reads."""

    least: int = 256

    def run(self, module: mlir.Operation) -> None:
        for block in tensor_blocks(main_function(module)):
            self._share(block)

    def _share(self, block: mlir.Block) -> None:
        ops = block_ops(block)
        numbers = {op: number for number, op in enumerate(ops)}  # before any change, as it changes hashes
        large = [op for op in ops if op.name == "memref.alloc" and bytes_of(op) >= self.least]
        found = [buffer for _, buffer in matched(match_buffer, large, numbers)]
        found.sort(key=lambda buffer: buffer.begin)
        kept: list[Buffer] = []
        for buffer in found:
            before = [b for b in kept if b.end == buffer.begin and may_follow(b, buffer, ops[buffer.begin])]
            if before:
                other = before[0]
                replace_op(buffer.alloc, other.alloc.results[0])
                kept.remove(other)
                buffer = Buffer(other.alloc, other.place, other.first, other.begin, buffer.end, buffer.accesses)
            kept.append(buffer)


@dataclass(frozen=True, eq=False)
class Buffer:
    """An allocation, and the last top-level operation that contains all of its users.

    The numbers are the positions of operations in its block: the allocation, the first use of it or of a view, the
    first and the last access.
    """

    alloc: mlir.Operation
    place: int
    first: int
    begin: int
    end: int
    accesses: tuple[mlir.Operation, ...]


def bytes_of(alloc: mlir.Operation) -> int:
    kind = mlir.MemRefType(alloc.results[0].type)
    element = kind.element_type
    width = element.width // 8 if isinstance(element, (mlir.FloatType, mlir.IntegerType)) else 0
    return math.prod(kind.shape) * width if kind.has_static_shape else 0


def match_buffer(alloc: mlir.Operation, numbers: dict[mlir.Operation, int]) -> Buffer:
    """The lifetime of a buffer; raises `NoMatch` if it is not known."""
    touching = users(alloc)
    positions = []
    for user in touching:
        position = ancestor_in(user, alloc.block)
        if position is None or user.name in ("scf.yield", "scf.condition", "func.return"):
            raise NoMatch("it is passed on")
        positions.append(numbers[position])
    accessed = [position for position, user in zip(positions, touching) if not is_view(user)]
    if not accessed:
        raise NoMatch("it is not used")
    return Buffer(alloc, numbers[alloc], min(positions), min(accessed), max(accessed), tuple(touching))


def is_view(op: mlir.Operation) -> bool:
    return any(isinstance(result.type, mlir.MemRefType) for result in op.results)


def may_follow(old: Buffer, new: Buffer, nest: mlir.Operation) -> bool:
    """True if each element of `new` is stored after the only iteration that reads the element of `old`."""
    if nest.name not in COUNTED_LOOPS or old.alloc.results[0].type != new.alloc.results[0].type:
        return False
    if old.place > new.first or old.begin == old.end:
        return False
    loads = [op for op in old.accesses if is_within(op, nest) and not is_view(op)]
    stores = [op for op in new.accesses if is_within(op, nest) and not is_view(op)]
    if not loads or not stores or any(op.name != "memref.load" for op in loads):
        return False
    if any(op.name != "memref.store" for op in stores):
        return False
    inner, index_lists = (
        loads[0].block,
        [list(op.operands)[1:] for op in loads] + [list(op.operands)[2:] for op in stores],
    )
    views = [op.operands[0] for op in loads] + [op.operands[1] for op in stores]
    if any(op.block != inner for op in (*loads, *stores)) or any(indices != index_lists[0] for indices in index_lists):
        return False
    if any(view.type != views[0].type or not is_whole(view) for view in views):
        return False
    if not all(load.is_before_in_block(store) for load in loads for store in stores):
        return False
    return visits_each_element_once(index_lists[0], views[0].type, inner, nest)


def is_whole(value: mlir.Value) -> bool:
    """True if a view has all elements of its buffer, in their order."""
    op = defining_op(value)
    while op is not None and op.name in _VIEWS:
        op = defining_op(op.operands[0])
    return op is not None and op.name == "memref.alloc"


def visits_each_element_once(
    indices: list[mlir.Value], memref_type: mlir.MemRefType, block: mlir.Block, nest: mlir.Operation
) -> bool:
    """True if every iteration of the nest accesses another element."""
    try:
        loops = steps_and_trip_counts(block, nest)
        steps = flat_index(indices, mlir.MemRefType(memref_type).shape).factors
    except NoMatch:
        return False
    reached = 0
    moved = sorted((abs(steps.get(v, 0)) * step, count) for v, (step, count) in loops.items() if count > 1)
    for step, count in moved:
        if step <= reached:
            return False
        reached += step * (count - 1)
    return all(variable in loops for variable in steps)


def steps_and_trip_counts(block: mlir.Block, nest: mlir.Operation) -> dict[mlir.Value, tuple[int, int]]:
    """The variables of the loops around a block up to `nest`, with their steps and trip counts."""
    found: dict[mlir.Value, tuple[int, int]] = {}
    while True:
        loop = block.owner.operation
        if loop.name not in COUNTED_LOOPS or len(block.arguments) < 1:
            raise NoMatch("not a loop")
        lower, upper, step = (constant_of(value) for value in list(loop.operands)[:3])
        if lower is None or upper is None or not step or (loop.name == "scf.parallel" and len(loop.operands) > 3):
            raise NoMatch("bounds that are not known")
        found[block.arguments[0]] = step, max(0, -(-(upper - lower) // step))
        if loop == nest:
            return found
        block = loop.block

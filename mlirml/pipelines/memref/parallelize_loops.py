"""Parallelize loops: outer loops over elements with independent iterations run on the thread pool.

Before:
    scf.for %i = %c0 to %c4096 step %c1 {
      %x = memref.load %a[%i] : memref<4096xf32>
      %n = scf.while ...                                  // too much for a structured operation
      memref.store %n, %b[%i] : memref<4096xf32>
    } {mlirml.parallel}
After:
    scf.parallel (%i) = (%c0) to (%c4096) step (%c1) {
      ...
      scf.reduce
    } {mlirml.grain = 64 : i64}

The loop must be marked as independent (`mlirml.parallel`): by the user, by raising, or by `mlirml-prove-parallel`.
Structured operations have been lowered to loops already. A loop that contains parallel ones stays sequential, as those
are big enough. So does a loop with local buffers that are too big for the stack, or with too little work.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mlirml.analysis.costs import costs
from mlirml.analysis.trip_counts import trip_count
from mlirml.analysis.values import is_within
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations, replace_op
from mlirml.passes import Pass, register
from mlirml.pipelines.memref.prove_parallel import INDEPENDENT, root_of

_ALLOWED = ("arith.", "math.", "vector.", "memref.", "scf.", "ub.")
_STACK_BYTES = 16 << 10
_UNKNOWN_ROUNDS = 16
_EXPENSIVE_NS, _CHEAP_NS = 6.0, 0.4


@register(when=("#mlirml.parallel",), optional=True)
class ParallelizeLoopsPass(Pass):
    """Replace sequential loops over elements by parallel ones."""

    def run(self, module: mlir.Operation) -> None:
        for loop in outermost(module):
            each = body_ns(loop.regions[0].blocks[0])
            count = trip_count(loop)
            if count is None or count * each >= costs().parallel_ns:
                parallelize(loop, min(max(1, math.ceil(costs().chunk_ns / each)), count or 1 << 30))


def outermost(root: mlir.Operation) -> Iterator[mlir.Operation]:
    """The outermost loops to parallelize."""
    for region in root.regions:
        for block in region.blocks:
            for op in block_ops(block):
                if op.name == "scf.for" and may_run_in_parallel(op):
                    yield op
                elif op.name != "scf.parallel":
                    yield from outermost(op)


def may_run_in_parallel(loop: mlir.Operation) -> bool:
    """True if the iterations of a loop are independent, and all of its operations may run on any thread."""
    if loop.results or INDEPENDENT not in loop.attributes:
        return False
    ops = list(operations(loop))[1:]
    if not all(op.name.startswith(_ALLOWED) for op in ops) or any(op.name == "scf.parallel" for op in ops):
        return False
    buffers = [op for op in ops if op.name == "memref.alloc"]
    if any(not op.results[0].type.has_static_shape for op in buffers):
        return False
    if sum(map(buffer_bytes, buffers)) > _STACK_BYTES:
        return False
    return not any(is_scratch(value, loop) for value in stored_into(ops))


def buffer_bytes(allocation: mlir.Operation) -> int:
    kind = allocation.results[0].type
    element = kind.element_type
    width = 64 if isinstance(element, mlir.IndexType) else element.width
    return int(math.prod(kind.shape) * max(8, width) // 8)


def stored_into(ops: list[mlir.Operation]) -> Iterator[mlir.Value]:
    """The buffers that operations write to."""
    for op in ops:
        if op.name in ("memref.store", "vector.store", "vector.maskedstore", "vector.transfer_write"):
            for value in op.operands:
                if isinstance(value.type, mlir.MemRefType):
                    yield root_of(value)


def is_scratch(buffer: mlir.Value, loop: mlir.Operation) -> bool:
    """True if a buffer from outside is used in a loop only: concurrent iterations would overwrite each other's data."""
    op = defining_op(buffer)
    if op is None or op.name != "memref.alloc" or is_within(op, loop):
        return False
    return all(is_view_inside(use.owner.operation, loop) for use in buffer.uses)


def is_view_inside(user: mlir.Operation, loop: mlir.Operation) -> bool:
    """True if a user of a buffer is in a loop, or is a view whose users are."""
    if is_within(user, loop):
        return True
    views = [result for result in user.results if isinstance(result.type, mlir.MemRefType)]
    return bool(views) and all(is_view_inside(use.owner.operation, loop) for view in views for use in view.uses)


def body_ns(block: mlir.Block) -> float:
    """Estimate of the time of a loop body in nanoseconds."""
    total = 0.0
    for op in block_ops(block):
        inner = sum(body_ns(b) for region in op.regions for b in region.blocks)
        if op.name == "scf.for":
            count = trip_count(op)
            inner *= _UNKNOWN_ROUNDS if count is None else count
        elif op.name == "scf.while":
            inner *= _UNKNOWN_ROUNDS
        expensive = op.name.startswith("math.") or op.name in ("arith.divf", "arith.remf", "arith.divsi", "arith.remsi")
        total += inner + (_EXPENSIVE_NS if expensive else _CHEAP_NS)
    return total


def parallelize(loop: mlir.Operation, grain: int) -> None:
    """Replace a loop by a parallel one; its buffers are moved to the stack."""
    block = loop.regions[0].blocks[0]
    lower, upper, step = loop.operands
    for op in [op for op in operations(loop) if op.name == "memref.alloc"]:
        attributes = {"operandSegmentSizes": emit.segments(0, 0), "alignment": emit.i64(64)}
        with op.location, mlir.InsertionPoint(op):
            stack = emit.create("memref.alloca", (), [op.results[0].type], attributes)
        replace_op(op, stack.results[0])
    *ops, final = block_ops(block)
    with loop.location, mlir.InsertionPoint(loop):
        parallel = emit.parallel_loop(lower, upper, step, lambda _: None)
    parallel.attributes["mlirml.grain"] = emit.i64(grain)
    inner = parallel.regions[0].blocks[0]
    (end,) = block_ops(inner)
    block.arguments[0].replace_all_uses_with(inner.arguments[0])
    for op in ops:
        op.move_before(end)
    final.erase()
    loop.erase()

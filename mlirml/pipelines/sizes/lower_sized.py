"""Lower sized: structured operations and copies on memrefs become loops whose trip counts are dynamic.

Before:
    linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i)], ["parallel", "reduction"]}
        ins(%x : memref<?x8xf32>) outs(%y : memref<?xf32>) {
    ^bb0(%a: f32, %total: f32):
      %sum = arith.addf %a, %total : f32
      linalg.yield %sum : f32
    }
After:
    scf.for %i = %c0 to %n step %c1 {
      %sum = scf.for %j = %c0 to %c8 step %c1 iter_args(%t = %zero) -> (f32) {
        %a = memref.load %x[%i, %j] : memref<?x8xf32>
        %sum = arith.addf %t, %a fastmath<reassoc> : f32
        scf.yield %sum : f32
      }
      %init = memref.load %y[%i] : memref<?xf32>
      %total = arith.addf %init, %sum : f32
      memref.store %total, %y[%i] : memref<?xf32>
    }

The loop along which most operands are contiguous is innermost, where LLVM vectorises it. Reduced loops are innermost,
too, and carry their results in registers, unless the innermost one is parallel. Adjacent operations on the same rows
are lowered row by row (`row_groups.py`), transposed operands are read in tiles (`transposed_loops.py`). A loop that
indexes the output runs in parallel chunks (`chunks.py`).
"""  # fmt: skip

from __future__ import annotations

from mlirml.analysis.memref_sizes import fold_dims
from mlirml.ir import emit
from mlirml.ir.bindings import mlir, named_operations
from mlirml.passes import Pass, register
from mlirml.pipelines.sizes.chunks import cost_without, elements_without, in_chunks, may_run_in_chunks
from mlirml.pipelines.sizes.row_groups import Group, groups_of
from mlirml.pipelines.sizes.sized_loops import Loops
from mlirml.pipelines.sizes.split_batches import IMAGES
from mlirml.pipelines.tensor.fuse import tensor_blocks
from mlirml.targets.machine import Processor


@register
class LowerSizedPass(Pass):
    """Lower every structured operation and copy to loops, which run on one thread unless they are `parallel`."""

    processor: Processor = Processor()
    parallel: bool = True

    def run(self, module: mlir.Operation) -> None:
        for copy in named_operations(module, ("memref.copy",)):
            if not is_of_image(copy.parent):
                lower_copy(copy)
        for block in tensor_blocks(module):
            if is_of_image(block.owner):
                continue
            for group in groups_of(block, self.processor.vector_bits):
                lower_group(group, self.parallel)
        fold_dims(module)


def is_of_image(op: mlir.Operation) -> bool:
    """True for a loop over images, whose sizes are static."""
    return IMAGES in op.attributes


def lower_group(group: Group, parallel: bool) -> None:
    """Replace a group by loops over its rows, or an operation alone by its own loops."""
    last = group.members[-1].op
    depth = group.depth if len(group.members) > 1 else 0
    with last.location, mlir.InsertionPoint(last):
        if not parallel or not may_run_in_chunks(group.members):
            rows_of(group, depth, [])
        elif depth:
            rows_in_chunks(group, depth)
        else:
            loops_in_chunks(group.members[0])
    for member in group.members:
        member.op.erase()


def rows_in_chunks(group: Group, depth: int) -> None:
    """The first shared loop in parallel chunks."""
    rows = [member.rows()[0] for member in group.members]
    costs = [cost_without(member, row) for member, row in zip(group.members, rows, strict=True)]

    def chunk(lower: mlir.Value, upper: mlir.Value) -> None:
        for member in group.members:
            with member.op.location:
                member.prepare()
        if depth == 1:
            rows_by_blocks(group, rows, lower, upper)
        else:
            emit.for_loop(lower, upper, emit.index(1), lambda i, _: rows_of(group, depth, [i]))

    in_chunks(group.members[0].size(rows[0]), costs, chunk)


def rows_by_blocks(group: Group, rows: list[int], lower: mlir.Value, upper: mlir.Value) -> None:
    """Blocks of rows that fit the cache, in which one operation after another goes through all rows.

    Each operation waits for the sums of the one before it in a row; those of several rows are independent.
    """
    lengths = [elements_without(member, row) for member, row in zip(group.members, rows, strict=True)]
    longest = lengths[0]
    for length in lengths[1:]:
        longest = emit.same_type("arith.maxsi", longest, length)
    fit = emit.same_type("arith.divsi", emit.index(_ELEMENTS), emit.same_type("arith.maxsi", longest, emit.index(1)))
    count = emit.same_type("arith.minsi", emit.same_type("arith.maxsi", fit, emit.index(1)), emit.index(_ROWS))

    def block(first: mlir.Value, _: list[mlir.Value]) -> None:
        last = emit.same_type("arith.minsi", emit.same_type("arith.addi", first, count), upper)
        for member in group.members:
            with member.op.location:
                rows_alone(member, first, last)

    emit.for_loop(lower, upper, count, block)


def rows_alone(member: Loops, first: mlir.Value, last: mlir.Value) -> None:
    """The rows of one operation from the first up to the last one."""
    emit.for_loop(first, last, emit.index(1), lambda i, _: rows_of(Group([member], 1), 1, [i]))


_ELEMENTS, _ROWS = 2048, 16
"""The elements of a block of rows, and the rows, at most."""


def loops_in_chunks(loops: Loops) -> None:
    """The loops of an operation, of which one that indexes the output goes in parallel chunks."""
    rows = loops.rows()
    if not rows:
        with loops.op.location:
            loops.build()
        return

    def chunk(lower: mlir.Value, upper: mlir.Value) -> None:
        loops.bounds = {rows[0]: (lower, upper)}
        loops.prepare()
        loops.build()

    in_vectors = [loops.innermost(), loops.transposition and loops.transposition.a]
    multiple = _VECTORS if rows[0] in in_vectors else 1
    in_chunks(loops.size(rows[0]), [cost_without(loops, rows[0])], chunk, multiple)


_VECTORS = 64
"""Chunks of a loop that is vectorised begin at multiples of so many iterations."""


def rows_of(group: Group, depth: int, indices: list[mlir.Value]) -> None:
    """The shared loops from the next one on, and the operations in them."""
    if len(indices) == depth:
        for member in group.members:
            with member.op.location:
                member.build(indices)
        return
    first = group.members[0]
    size = first.size(first.rows()[len(indices)])

    def body(i: mlir.Value, _: list[mlir.Value]) -> None:
        rows_of(group, depth, [*indices, i])

    emit.for_loop(emit.index(0), size, emit.index(1), body)


def lower_copy(copy: mlir.Operation) -> None:
    """Replace a copy by a structured operation; erase a copy of a buffer onto itself."""
    source, target = copy.operands
    if source != target:
        with copy.location, mlir.InsertionPoint(copy):
            identity = mlir.AffineMap.get_identity(source.type.rank)
            emit.generic([source], [target], [identity] * 2, ["parallel"] * identity.n_dims, lambda b: b[:1])
    copy.erase()

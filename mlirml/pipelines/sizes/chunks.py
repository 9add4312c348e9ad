"""Parallel chunks of a loop of dynamic trip count, as many iterations each as are worth a task of the thread pool.

    %rows = ...                                     // by the time of an iteration, which depends on other sizes
    %chunks = arith.ceildivsi %n, %rows
    scf.parallel (%c) = (%c0) to (%chunks) step (%c1) {
      %lower = arith.muli %c, %rows
      %upper = arith.minsi (%lower + %rows), %n
      ... the iterations from %lower to %upper
    } {mlirml.grain = 1 : i64}

A loop with little work is one chunk, which the calling thread runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mlirml.analysis.costs import costs as machine_costs
from mlirml.codegen.cpu.cost import vector_ns
from mlirml.ir import emit
from mlirml.ir.bindings import mlir, operations
from mlirml.pipelines.sizes.sized_loops import Loops

_ALLOWED = ("arith.", "math.", "linalg.", "memref.load", "complex.", "scf.", "tensor.", "ub.")
UNITS = 64
"""Costs are integers, in this part of a nanosecond."""
_BYTES_PER_NS = 16


def may_run_in_chunks(loops: Iterable[Loops]) -> bool:
    """True if the bodies of these operations may run on any thread: they make no checks and call nothing."""
    return all(op.name.startswith(_ALLOWED) for each in loops for op in list(operations(each.op))[1:])


def element_cost(loops: Loops) -> int:
    """The cost of one iteration of all loops of an operation, vectorised."""
    arithmetic = sum(vector_ns(op) for op in list(operations(loops.op))[1:])
    widths = [getattr(operand.type, "element_type", operand.type) for operand in loops.operands]
    moved = sum(getattr(width, "width", 64) for width in widths) / 8
    return max(1, round(UNITS * (arithmetic + moved / _BYTES_PER_NS)))


def cost_without(loops: Loops, row: int) -> mlir.Value:
    """The cost of one iteration of the loop `row` of an operation, as a value of type `index`."""
    return emit.same_type("arith.muli", emit.index(element_cost(loops)), elements_without(loops, row))


def elements_without(loops: Loops, row: int) -> mlir.Value:
    """The iterations of the loops of an operation other than `row`, as a value of type `index`."""
    total = emit.index(1)
    for d in range(len(loops.reduced)):
        if d != row:
            total = emit.same_type("arith.muli", total, loops.size(d))
    return total


def in_chunks(
    size: mlir.Value, costs: Iterable[mlir.Value], body: Callable[[mlir.Value, mlir.Value], None], multiple: int = 1
) -> None:
    """A parallel loop over chunks of `size` iterations with these costs; `body` builds what is from a lower to an
    upper bound. Chunks begin at multiples of `multiple`.
    """
    first, *others = costs
    for other in others:
        first = emit.same_type("arith.addi", first, other)
    one = emit.index(1)
    first = emit.same_type("arith.maxsi", first, one)
    rows = emit.same_type("arith.ceildivsi", emit.index(machine_costs().chunk_ns * UNITS), first)
    if multiple > 1:
        step = emit.index(multiple)
        rows = emit.same_type("arith.muli", emit.same_type("arith.ceildivsi", rows, step), step)
    chunks = emit.same_type("arith.ceildivsi", size, rows)

    def chunk(c: mlir.Value) -> None:
        lower = emit.same_type("arith.muli", c, rows)
        body(lower, emit.same_type("arith.minsi", emit.same_type("arith.addi", lower, rows), size))

    loop = emit.parallel_loop(emit.index(0), chunks, one, chunk)
    loop.attributes["mlirml.grain"] = emit.i64(1)

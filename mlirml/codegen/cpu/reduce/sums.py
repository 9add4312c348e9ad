"""Sums of long rows in lanes: each lane has a sum with compensation, and the lanes are added at the end of the row.

For each block of a row:
    part = sum of the vectors of the block               each lane for itself
    total, error = two_sum(total, error, part)           the same
sum = all lanes of total, and of error, added up

Such loops prefetch what comes from memory, which loops that LLVM vectorises cannot. Rows in a cache are left to it.
"""  # fmt: skip

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.cost import element_bytes
from mlirml.codegen.cpu.frame import Cursor
from mlirml.codegen.cpu.nest import Body, Nest
from mlirml.codegen.cpu.prefetch import comes_from_memory, prefetch_ahead
from mlirml.codegen.cpu.reduce.combiners import Reducer, corrected, two_sum
from mlirml.codegen.cpu.reduce.lanes import Lanes, check_lanes
from mlirml.codegen.cpu.reduce.task import Reduction
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

VECTORS = 4
"""The number of vectors that are summed at the same time: each waits for its own addition."""
STEPS = 16
"""The number of terms that a lane adds without compensation."""


def sum_lanes(nest: Nest, body: Body, reducers: Sequence[Reducer], vector_bits: int) -> Lanes | None:
    """The lanes for sums of floats of one type along contiguous rows from memory; None for other reductions."""
    types = {reducer.type for reducer in reducers}
    if not nest.rank or not nest.reduction[-1] or len(types) != 1 or len(reducers) != len(body.yields):
        return None
    if not all(reducer.is_float_sum for reducer in reducers) or not comes_from_memory(nest):
        return None
    try:
        check_lanes(nest, body, [reducer.value for reducer in reducers])
    except NoMatch:
        return None
    vectors = max(1, VECTORS // len(reducers))
    return Lanes(vectors * vector_bits // (8 * element_bytes(types.pop())), body)


def block_length(vectors: Lanes) -> int:
    """The number of elements of a block."""
    return STEPS * vectors.count


def shortest(vectors: Lanes) -> int:
    """The length of the shortest row that is summed in lanes."""
    return 2 * block_length(vectors)


def sum_row(task: Reduction, vectors: Lanes, cursor: Cursor, whole: int) -> list[mlir.Value]:
    """The sum of the first `whole` elements of a row, which are whole blocks, for each reducer."""
    frame, wanted = task.frame, [reducer.value for reducer in task.reducers]
    zeros = [vectors.splat(reducer.identity()) for reducer in task.reducers]

    def step(i: mlir.Value, parts: list[mlir.Value]) -> list[mlir.Value]:
        here = cursor.enter(task.nest.rank - 1, i)
        prefetch_ahead(here, vectors.count)
        values = vectors.values(here, wanted)
        return [emit.same_type("arith.addf", part, value) for part, value in zip(parts, values, strict=True)]

    def block(i: mlir.Value, state: list[mlir.Value]) -> list[mlir.Value]:
        end = frame.add(i, frame.index(block_length(vectors)))
        parts = emit.for_loop(i, end, frame.index(vectors.count), step, zeros)
        return [new for n, part in enumerate(parts) for new in two_sum(state[2 * n], state[2 * n + 1], part)]

    start = [zero for zero in zeros for _ in range(2)]
    state = emit.for_loop(frame.index(0), frame.index(whole), frame.index(block_length(vectors)), block, start)
    return [corrected(add_lanes(state[2 * n]), add_lanes(state[2 * n + 1])) for n in range(len(task.reducers))]


def add_lanes(vector: mlir.Value) -> mlir.Value:
    """The sum of all lanes."""
    attributes = {"kind": mlir.Attribute.parse("#vector.kind<add>")}
    attributes["fastmath"] = mlir.Attribute.parse("#arith.fastmath<reassoc>")
    return emit.value("vector.reduction", [vector], mlir.VectorType(vector.type).element_type, **attributes)

"""The time of a chain of elementwise operations and reductions by each of its schedules, estimated from its operations.

The estimates are in nanoseconds of a core and only compared with each other: a tuner measures the best of them. They
are the arithmetic of the bodies in vectors, the iterations that are too few for a vector, what an iteration and a loop
cost, and the traffic of memory (`analysis/costs.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mlirml.analysis.cost import bytes_of, element_bytes, vector_cycles
from mlirml.analysis.costs import costs
from mlirml.analysis.structured import indexing_maps, reductions_of, sizes_of
from mlirml.codegen.cpu.loop_schedule import ALWAYS, NEVER, LoopSchedule
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, mlir
from mlirml.targets.machine import Processor

_FREE = ("arith.constant", "linalg.index", "linalg.yield")
_ACCESS = 0.5
"""Cycles of loading or storing a vector that the first cache has."""
_ITERATION, _ROW = 1.0, 12.0
"""Cycles of an iteration, and of the start and end of a loop."""
_REST = 0.5
"""The cost of an element after the last whole iteration, part of which LLVM vectorises too, to that of a vector."""
_INTERLEAVE, _SHORT_BODY = 4, 8
"""The vectors of an iteration that LLVM chooses for bodies of at most so many operations."""
_READ_FIRST = 2.0
"""The traffic of a plain store beyond the caches, which reads the line first, to that of one past the caches."""
_STREAM_BYTES = 8 << 20
"""The results that are stored past the caches where a schedule leaves it to their size."""
_TOGETHER, _STREAMS, _STREAM = 8, 16, 0.1
"""The rows that are added at a time by default, those that prefetchers keep track of, and the cost of each other."""


@dataclass(frozen=True)
class _Loops:
    """An operation: its points, the length of its rows, element bytes, the cycles of its body for 64 bytes, reads."""

    points: int
    length: int
    size: int
    cycles: float
    ops: int
    reads: tuple[mlir.Value, ...]
    sums_rows: bool


def estimate(members: Sequence[mlir.Operation], machine: Processor) -> Callable[[LoopSchedule], float]:
    """A function that returns the estimated nanoseconds of a chain by a schedule."""
    members = [op for op in members if op.name == "linalg.generic"]
    loops = [_read(op) for op in members]
    own = [result for op in members for result in op.results]
    stored = sum(bytes_of(v) for v in own if any(use.owner.operation not in members for use in v.uses))
    arrays = {value for each in loops for value in each.reads if value not in own}
    outside = sum(map(bytes_of, arrays))
    between = sum(bytes_of(value) for each in loops for value in each.reads if value in own)
    repeated = sum(bytes_of(value) for each in loops for value in each.reads) - outside - between
    rows = max(1, min((each.points // each.length for each in loops), default=1))

    def nanoseconds(schedule: LoopSchedule) -> float:
        work = sum(_work_cycles(each, schedule, machine) for each in loops) / costs().ghz
        everything = outside + between + stored
        rate = costs().level_byte_ns(everything)
        past = schedule.stream == ALWAYS or (schedule.stream != NEVER and stored >= _STREAM_BYTES)
        is_far = rate > costs().cache_byte_ns
        storing = stored * (costs().memory_byte_ns if past else rate * (_READ_FIRST if is_far else 1.0))
        near = schedule.join and (everything / rows) * schedule.rows <= machine.l2_bytes
        inner = (2 * between + repeated) * (costs().cache_byte_ns if near else rate)
        return max(work, outside * rate + storing + inner)

    return nanoseconds


def _read(op: mlir.Operation) -> _Loops:
    sizes, reduced = sizes_of(op), reductions_of(op)
    body = [inner.name for inner in block_ops(op.regions[0].blocks[0]) if inner.name not in _FREE]
    accessed = [value for value in op.operands if isinstance(value.type, mlir.RankedTensorType)]
    real = [(size, is_sum) for size, is_sum in zip(sizes, reduced, strict=True) if size != 1] or [(1, False)]
    points = max(1, math.prod(sizes))
    # The dims of operations on whole arrays are collapsed.
    whole = not any(reduced) and all(map_.is_permutation for map_ in indexing_maps(op))
    return _Loops(
        points=points,
        length=points if whole else max(1, real[-1][0]),
        size=max((element_bytes(value.type.element_type) for value in accessed), default=4),
        cycles=sum(map(vector_cycles, body)),
        ops=len(body),
        reads=tuple(dict.fromkeys(v for v in accessed[: len(accessed) - len(op.results)] if v.type.rank)),
        sums_rows=any(reduced) and not real[-1][1],
    )


def _work_cycles(loops: _Loops, schedule: LoopSchedule, machine: Processor) -> float:
    """The cycles of an operation whose arrays the first cache has."""
    widest = max(1, machine.vector_bits // 8 // loops.size)
    lanes = schedule.width or widest
    copies = schedule.interleave or (_INTERLEAVE if loops.ops <= _SHORT_BODY else 1)
    # A vector of several registers is as many operations; a part of a register takes nearly as long as all of it.
    registers = max(lanes / widest, 1.0 if machine.vector_bits < 512 else costs().kernels.narrow * 0.5)
    together = schedule.together or _TOGETHER
    accesses = _ACCESS * (len(loops.reads) + (2 / together if loops.sums_rows else 1))
    vector = (loops.cycles * machine.vector_bits / 512 + accesses) * registers
    spilled = max(0.0, copies * registers * min(loops.ops + 1, 6) - machine.vector_registers)
    count, rest = divmod(loops.length, lanes * copies)
    row = count * (copies * vector + spilled + _ITERATION) + rest * _REST * (vector + _ITERATION) + _ROW
    if loops.sums_rows:
        row *= 1 + _STREAM * max(0, together * len(loops.reads) - _STREAMS)
    return row * (loops.points // loops.length)

"""The cost model of a machine that was measured."""

from __future__ import annotations

from mlirml.analysis.costs import STATIC, Costs
from mlirml.core.dataclass import replace
from mlirml.targets.measured import MeasuredMachine

_FORKS = 8
"""The forks that work which is split among threads is worth."""


def costs_of(machine: MeasuredMachine) -> Costs:
    """The description of a measured machine that passes decide by."""
    peak, memory, cache = machine.peak("f32"), machine.rate_of("memory"), machine.rate_of("L2")
    if not peak or not memory or not cache:
        return STATIC
    cycles = STATIC.ghz * 1e9
    kernels = replace(
        STATIC.kernels,
        l2_bytes=cache / cycles,
        l3_bytes=(machine.rate_of("L3") or memory) / cycles,
        memory_bytes=memory / cycles,
    )
    parallel = max(STATIC.parallel_ns // 4, round(_FORKS * machine.fork_seconds * 1e9))
    return replace(
        STATIC,
        parallel_ns=parallel,
        chunk_ns=parallel // 2,
        cache_bytes=machine.levels["L2"].size or STATIC.cache_bytes,
        cache_byte_ns=1e9 / cache,
        memory_byte_ns=1e9 / memory,
        flop_bytes=memory / peak / 4,
        products=round(peak / 2 * parallel * 1e-9),
        kernels=kernels,
    )

"""The estimated time of each schedule of a space: arithmetic, the traffic of each level of the caches, and packing.

The estimates are in cycles of a core and only compared with each other: a tuner measures the best of them. The terms
are those of an analytical model of a packed product (Low et al., Analytical Modeling Is Enough for High-Performance
BLIS, 2016): the tile's multiply-adds and loads for each element of k, the panels that tiles read from the second-level
cache, the blocks that come from the third or from memory, the output that blocks of k read and write, and packing. The
numbers are those of `analysis/costs.py`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mlirml.analysis.costs import costs
from mlirml.codegen.cpu.contract.plan import BITS, TILE_K, required_packing
from mlirml.codegen.cpu.contract.problem import Problem
from mlirml.codegen.cpu.contract.space import COLUMNS, KERNELS, PACKS, SPLITS, Space

Cycles = npt.NDArray[np.float64]


def cycles(space: Space, threads: int = 1) -> Cycles:
    """The estimated cycles of each candidate of a space, with so many threads."""
    result = np.empty(len(space))
    kernel = space.column("kernel")
    for number, name in enumerate(KERNELS):
        chosen = kernel == number
        if chosen.any():
            columns = {each: space.rows[chosen][:, index].astype(float) for index, each in enumerate(COLUMNS)}
            result[chosen] = _ESTIMATES[name](space, columns, threads)
    return result


def _tile_cycles(space: Space, columns: dict[str, Cycles], threads: int) -> Cycles:
    """The kernels "direct" and "packed"."""
    problem, machine = space.problem, space.machine
    m, n, k = problem.m.size, problem.n.size, problem.k_size
    mr, nr, kc, mc, nc = (columns[name] for name in ("mr", "nr", "kc", "mc", "nc"))
    packed_a, packed_b = (np.isin(columns["pack"], _packing(letter)) for letter in "ab")
    panels = packed_a & packed_b
    size: Cycles = np.where(columns["pairs"] > 1, 2.0, BITS[problem.compute] / 8)
    tiles = np.ceil(m / mr) * np.ceil(n / nr)
    # Tiles at the edges of packed panels are whole ones, others have code of their own.
    arithmetic = np.where(panels, 1.0, np.maximum(m / (np.ceil(m / mr) * mr), 0.7))
    inner = _inner_cycles(space, columns) * arithmetic
    blocks = np.ceil(k / kc)
    work = tiles * (k * inner + blocks * (costs().kernels.around + mr * np.ceil(nr / columns["lanes"])))
    b_panel, a_block, b_block = kc * nr * size, mc * kc * size, nc * kc * size
    misses_b = ~packed_b | (b_panel > 0.6 * machine.l1_bytes)
    misses_a = ~panels | (a_block + b_panel > 0.8 * machine.l1_bytes)
    l2 = tiles * k * size * (nr * misses_b + mr * misses_a) / costs().kernels.l2_bytes
    spills_a = a_block > 0.6 * machine.l2_bytes
    spills_b = b_block > 0.5 * machine.l2_bytes
    beyond = np.where(spills_a, np.ceil(n / nr) * m * k, np.ceil(n / nc) * m * k)
    beyond = (beyond + np.where(spills_b, np.ceil(m / mc), 1.0) * n * k) * size
    l3 = beyond / _level(beyond * 0 + (m * k + n * k) * size, machine.l2_bytes)
    out_bytes = m * n * BITS[problem.compute] / 8
    output = out_bytes * (2 * blocks - 1) / _level(np.full_like(kc, out_bytes), machine.l2_bytes)
    packing = packed_a * np.ceil(n / nc) * _packing_cycles(problem, "a", size, columns)
    packing = packing + packed_b * _packing_cycles(problem, "b", size, columns)
    # Rows that are a multiple of 2 KiB apart take each other's lines in the first cache.
    stride = problem.k[-1].b * size
    apart = 1.0 + 0.15 * (stride >= 2048) + 0.35 * (stride % 2048 == 0)
    far = np.where(packed_b | (n * k * size < machine.l1_bytes), 1.0, apart)
    total: Cycles = np.maximum(work * far, l2) + 0.25 * np.minimum(work, l2) + 0.6 * l3 + output + packing
    fetched = np.where((n * k * size > machine.l2_bytes) & (columns["prefetch"] > 0), 0.99, 1.0)
    return total * fetched * problem.repeats / _speedup(problem, columns, threads)


def _packing(letter: str) -> list[int]:
    return [number for number, pack in enumerate(PACKS) if letter in pack]


def _inner_cycles(space: Space, columns: dict[str, Cycles]) -> Cycles:
    """The cycles of a whole tile for one element of k."""
    bits = BITS[space.problem.compute]
    wide = columns["lanes"] * bits >= space.machine.vector_bits
    vectors = np.ceil(columns["nr"] / columns["lanes"])
    full = 1.0 if space.machine.vector_bits == 512 else 2.0
    rate = np.where(wide, full, costs().kernels.narrow * 2.0)
    pairs = np.where(columns["pairs"] == TILE_K, 16.0, columns["pairs"])
    products = columns["mr"] * vectors / rate / pairs
    loads = (vectors + columns["mr"] * 0.5) / 2.0 / np.minimum(pairs, 2.0)
    chains = costs().kernels.latency / columns["unroll"] / pairs
    return np.maximum(np.maximum(products, loads), chains) + 0.05 * columns["mr"] / pairs


def _level(footprint: Cycles, l2_bytes: int) -> Cycles:
    """The bytes a cycle of the level that data of so many bytes is in."""
    beyond = np.where(
        footprint > costs().kernels.shared_cache * l2_bytes, costs().kernels.memory_bytes, costs().kernels.l3_bytes
    )
    return np.where(footprint > 0.7 * l2_bytes, beyond, costs().kernels.l2_bytes)


def _packing_cycles(problem: Problem, letter: str, size: Cycles, columns: dict[str, Cycles]) -> Cycles:
    """The cycles of packing an operand: copies of rows, or transposed squares where a row's elements lie apart."""
    axis = problem.m if letter == "a" else problem.n
    along, across = getattr(axis, letter), getattr(problem.k[-1], letter)
    factor = 1.0 if along == 1 else 2.0 if across == 1 else 8.0
    return axis.size * problem.k_size * (2.5 * factor / columns["lanes"] + size / 16)


def _speedup(problem: Problem, columns: dict[str, Cycles], threads: int) -> Cycles:
    """The factor by which threads are faster than one."""
    if threads == 1:
        return np.ones_like(columns["mr"])
    rows, panels = np.ceil(problem.m.size / columns["mr"]), np.ceil(problem.n.size / columns["nr"])
    chunks = np.where(columns["split"] == SPLITS.index("rows"), rows, panels)
    chunks = np.where(columns["split"] == 0, np.maximum(rows, panels), chunks) * problem.repeats
    share = np.ceil(chunks / threads) / chunks
    return np.where(columns["split"] == SPLITS.index("none"), 1.0, np.maximum(1.0, 0.95 / share))


def _symmetric_cycles(space: Space, columns: dict[str, Cycles], threads: int) -> Cycles:
    """Half of the tiles of a product with both operands packed, and the mirrored half of the output."""
    both = columns | {"pack": np.full_like(columns["mr"], PACKS.index("ab"))}
    return 0.55 * _tile_cycles(space, both, threads)


def _dot_cycles(space: Space, columns: dict[str, Cycles], threads: int) -> Cycles:
    """Vectors along k: loads of the many rows, and sums over lanes."""
    problem = space.problem
    few, many = sorted((problem.m.size, problem.n.size))
    steps = np.ceil(problem.k_size / columns["lanes"])
    chains = costs().kernels.latency / np.maximum(columns["unroll"], 1) + 0 * steps
    each = np.maximum(columns["mr"] * few * 0.5, chains) + 0.5 * (columns["mr"] + few)
    total = np.ceil(many / columns["mr"]) * (steps * each + 4.0 * columns["mr"] * few)
    return _with_memory(space, total) * problem.repeats / min(threads, max(1, many))


def _stream_cycles(space: Space, columns: dict[str, Cycles], threads: int) -> Cycles:
    """One pass over b; the rows of the output are read and written for each block of rows of b."""
    problem = space.problem
    m, n, k = problem.m.size, problem.n.size, problem.k_size
    vectors = m * n * k / columns["lanes"]
    total = vectors * 0.6 + 2.0 * m * n * k / columns["kc"] / columns["lanes"]
    return _with_memory(space, total) * problem.repeats / min(threads, 4)


def _with_memory(space: Space, total: Cycles) -> Cycles:
    """Cycles of arithmetic with those of reading the operands once."""
    problem, size = space.problem, BITS[space.problem.compute] / 8
    operands = (problem.m.size + problem.n.size) * problem.k_size * size
    return np.maximum(total, operands / _level(np.full_like(total, operands), space.machine.l2_bytes))


def _small_cycles(space: Space, columns: dict[str, Cycles], threads: int) -> Cycles:
    """Straight-line code for few products."""
    return np.full_like(columns["mr"], 4.0 + 0.5 * space.problem.work)


def _loop_cycles(space: Space, columns: dict[str, Cycles], threads: int) -> Cycles:
    """Loops that LLVM vectorises, whose operands are read once for each row of the output."""
    problem = space.problem
    strided = 4.0 if required_packing(problem) else 1.0
    lanes = space.machine.lanes(BITS[problem.compute])
    total = np.full_like(columns["mr"], problem.work / problem.repeats * strided * 2.0 / lanes)
    return _with_memory(space, total) * problem.repeats


_ESTIMATES = {
    "direct": _tile_cycles,
    "packed": _tile_cycles,
    "symmetric": _symmetric_cycles,
    "dot": _dot_cycles,
    "stream": _stream_cycles,
    "small": _small_cycles,
    "loops": _loop_cycles,
}

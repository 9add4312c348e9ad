"""The choice of the kernel of a contraction, its register tile and its blocks, from sizes, strides and the machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from mlirml.analysis.costs import costs
from mlirml.codegen.cpu.contract.library import match_library
from mlirml.codegen.cpu.contract.problem import Operand, Problem
from mlirml.core.dataclass import dataclass, replace
from mlirml.core.no_match import applies
from mlirml.passes import NoMatch
from mlirml.targets.machine import Processor

BITS = {"f32": 32, "f64": 64, "i32": 32, "i64": 64}
KERNELS = ("packed", "symmetric", "direct", "dot", "stream", "small", "loops", "library")
SMALL = 64
"""The maximal number of multiplications that are unrolled completely."""
FEW = 8
"""The maximal number of rows or columns that the dot kernel keeps in cache."""
DOT_STREAMS = 8
"""The number of long rows that the dot kernel reads at the same time, for as many streams from memory."""
STREAM_BYTES = 1 << 14
"""The block of columns of the stream kernel, in bytes of a row: as many of the result stay in the L1 cache."""
DOT_K_BLOCK, LONG_K_BLOCK = 128, 2048
"""The block of k for which the few rows of the dot kernel, and the block of the others, stay in the L1 cache; and the
longest one for which accumulators of all rows stay in registers."""
K_BLOCK = 384
"""The longest chain of additions in a register: longer ones lose accuracy (OpenBLAS has the same block for f32)."""
TILE_K_BLOCK = 2048
"""The longest block of k for tile registers, which add 32 products to a sum at a time."""
CHUNKS = 32
"""The maximal number of chunks with private packing buffers."""
TILE_K = 32
"""The number of bf16 elements adjacent along k in a tile."""
TILES = ((32, 32), (16, 48))
"""Rows and columns of the output in tile registers at a time, with the others used for tiles of a and of b."""
TILE_WORK, FEWEST_TILE_K = 1 << 12, 8
"""With fewer multiply-adds, or shorter sums, the overhead of tile registers exceeds their savings."""
_PANEL_TILES = {32: ((8, 3), (6, 4), (12, 2)), 16: ((6, 2), (4, 3))}
"""Rows and vectors of the register tiles for packed panels, by the number of vector registers."""
_SYMMETRIC_TILES = {32: ((8, 3),), 16: ((4, 3), (4, 2))}
"""The same for symmetric products."""
MASK_REGISTER_BITS = 512
"""The width of vectors that come with mask registers: AVX2 stores masked vectors a few times slower than others."""
HALVED_ROWS, HALVED_K = 48, 16
"""The minimal sizes of a product of which only one half is computed; its rows make at least two panels."""
SHORT_BYTES, FEWEST_PANELS = 384, 8
"""The longest rows of a, and the fewest panels of them, of a product that takes its time for stores."""
BIG_WORK = 1 << 27
"""Multiply-adds that are worth a separate register tile, which other kernels of the module do not share."""


@dataclass(frozen=True)
class Schedule:
    """The attribute `mlirml.schedule` of a contraction.

    `kernel`: "packed" or "direct" (a register tile of `mr` x `nr`, where `pack` names the operands that are packed),
    "symmetric" (a matrix times its own transpose is packed once, and tiles above the diagonal are copies of those below
    it), "dot" (vectors along k), "stream" (few rows of the output stay in cache while b is read once), "small"
    (completely unrolled), "loops" (left to mlirml-lower-loops) or "library" (OpenBLAS, where it is). `unroll`: sets of
    accumulators over k. `kc`, `mc`, `nc`: blocks of k, rows and columns. `pairs`: the number of elements adjacent along
    k that one instruction multiplies and adds: 2 for bf16 if the processor has such an instruction, 32 if it multiplies
    tiles of 16 x 32 elements (AMX). `prefetch`: how many rows of b prefetches are ahead, or blocks of k in "dot".
    `parallel`: "none", or the loops that are split: "outer", "rows", "columns". `chunks`: the maximal number of chunks,
    if chunks have private buffers. `grain`: the iterations that are worth a thread. `group`: the blocks of rows that a
    thread packs at a time.
    """

    kernel: str
    lanes: int = 8
    mr: int = 1
    nr: int = 1
    unroll: int = 1
    kc: int = 1
    mc: int = 1
    nc: int = 1
    pack: str = ""
    prefetch: int = 0
    parallel: str = "none"
    chunks: int = 1
    grain: int = 1
    group: int = 1
    pairs: int = 1

    @property
    def packs_words(self) -> bool:
        """True if packed operands are i32 that contain two bf16, adjacent along k."""
        return self.pairs > 1

    @property
    def tiles(self) -> bool:
        """True if tile registers contain the operands and the accumulators."""
        return self.pairs == TILE_K


@dataclass(frozen=True)
class Piece:
    """A vector of a register tile's width: `valid` columns from `offset`, in a vector of `lanes`."""

    offset: int
    lanes: int
    valid: int


def pieces(width: int, lanes: int) -> tuple[Piece, ...]:
    """`width` columns as whole vectors and one narrower vector for the rest."""
    whole = [Piece(offset, lanes, lanes) for offset in range(0, width - lanes + 1, lanes)]
    rest = width % lanes
    if rest:
        whole.append(Piece(width - rest, power_of_two(rest), rest))
    return tuple(whole)


def padded(width: int, lanes: int) -> int:
    """The columns of `pieces`, including unused lanes."""
    return sum(piece.lanes for piece in pieces(width, lanes))


def power_of_two(size: int) -> int:
    """The least power of two that is not less than `size`."""
    return 1 << (size - 1).bit_length()


def round_up(size: int, step: int) -> int:
    """The least multiple of `step` that is not less than `size`."""
    return -(-size // step) * step


def check(problem: Problem, schedule: Schedule) -> None:
    """Raises `NoMatch` if the kernel of `schedule` cannot compute `problem`."""
    one_k = len(problem.k) == 1
    if schedule.pairs not in (1, 2, TILE_K):
        raise NoMatch(f"pairs are 1, 2 or {TILE_K}")
    if schedule.packs_words and (not has_pairs(problem) or schedule.kernel != "packed" or schedule.pack != "ab"):
        raise NoMatch("its operands are no pairs of bf16")
    odd_blocks = schedule.kc % schedule.pairs != 0 and several_k(problem, schedule)
    if schedule.packs_words and (schedule.lanes != 16 or schedule.nr % 16 or odd_blocks):
        raise NoMatch("pairs of bf16 come in vectors of 16, and blocks of k end with a pair")
    if schedule.tiles and not fits_tiles(schedule.mr, schedule.nr):
        raise NoMatch("eight tile registers of 16 x 16 do not hold that many rows and columns")
    tiles = -(-problem.m.size // schedule.mr), -(-problem.n.size // schedule.nr)
    several_blocks = bool(problem.outer_m) or schedule.nc // schedule.nr < tiles[1]
    panels = schedule.kernel == "packed" and schedule.pack == "ab" and one_k and 1 in (problem.n.c, problem.n.size)
    several_blocks |= not panels and schedule.mc // schedule.mr < tiles[0]
    if schedule.parallel == "columns" and schedule.kernel in ("packed", "direct") and several_blocks:
        raise NoMatch("columns can be split only when all rows are one block")
    if schedule.kernel == "direct" and ("a" in required_packing(problem) or "b" in required_packing(problem)):
        raise NoMatch("an operand must be packed")
    if schedule.kernel == "packed" and not set(required_packing(problem)) <= set(schedule.pack):
        raise NoMatch("an operand that must be packed is not")
    if schedule.kernel == "symmetric":
        if not problem.symmetric or not one_k or problem.n.c != 1:
            raise NoMatch("it is no product of a matrix with its own transpose")
        if schedule.nr % schedule.mr or schedule.mr != power_of_two(schedule.mr) or schedule.pack != "b":
            raise NoMatch("a panel is no whole number of squares")
    if schedule.kernel == "dot":
        few, many = (problem.m, problem.k[-1].b) if problem.m.size <= problem.n.size else (problem.n, problem.k[-1].a)
        if not one_k or many != 1 or few.size > FEW:
            raise NoMatch("no operand has few rows, the other contiguous along k")
    if schedule.kernel == "small" and not is_small(problem):
        raise NoMatch("it has many products, or converts numbers")
    if schedule.kernel == "library":
        match_library(problem)
    if schedule.kernel == "stream":
        contiguous = problem.n.b == problem.n.c == 1
        if not one_k or not contiguous or problem.c.element != problem.compute:
            raise NoMatch("b cannot pass by: it or out is not contiguous, or out is narrower than its sums")


def fits_tiles(mr: int, nr: int) -> bool:
    """True if accumulators of this size, and the tiles of a and b for them, fit the tile registers."""
    down, across = mr // 16, nr // 16
    return mr % 16 == nr % 16 == 0 and down * across + down + across <= 8


def several_k(problem: Problem, schedule: Schedule) -> bool:
    """True if k is split into blocks."""
    return schedule.kc < problem.k_size


def required_packing(problem: Problem) -> str:
    """The operands that the register tile cannot read without packing: "", "a", "b" or "ab"."""
    many_k = len(problem.k) > 1
    scattered = problem.n.size > 1 and problem.n.b != 1
    return ("a" if many_k else "") + ("b" if many_k or scattered else "")


def plan(problem: Problem, machine: Processor, kernel: str | None = None) -> Schedule:
    """The schedule of a problem; of the kernel `kernel` if it is given. Raises `NoMatch` if that is impossible."""
    if not machine.vector_bits:
        return plan_loops(problem, machine)
    if kernel is not None:
        schedule = _PLANS[kernel](problem, machine)
        check(problem, schedule)
        return schedule
    name = "symmetric" if is_worth_halving(problem, machine) else choose_kernel(problem, machine)
    if name == "direct":
        if stores_most(problem, machine):
            return plan_stores(problem, machine)
        pack = wanted_packing(problem, machine)
        if pack == "ab" and reads_rows_in_place(problem, machine):
            return plan_rows(problem, machine)
        return (
            plan_panels(problem, machine) if pack == "ab" and len(problem.k) == 1 else plan_tile(problem, machine, pack)
        )
    return _PLANS[name](problem, machine)


def choose_kernel(problem: Problem, machine: Processor) -> str:
    """The fastest kernel; "direct" is the register tile, packed or not."""
    few, many = sorted((problem.m.size, problem.n.size))
    lanes, size = machine.lanes(BITS[problem.compute]), BITS[problem.compute] // 8
    if few > 1 and is_small(problem):  # other kernels are as fast for a vector times a matrix, with less code
        return "small"
    if len(problem.k) == 1 and _is_dot(problem, few, lanes):
        return "dot"
    if many == 1 or (problem.n.size > 1 and problem.n.c != 1 and any(axis.c == 1 for axis in problem.outer)):
        return "loops"
    b_bytes = problem.k_size * problem.n.size * size
    in_cache = machine.l2_bytes if problem.m.size <= 2 else 16 * machine.l2_bytes
    if problem.m.size <= 8 and problem.n.size >= 8 * lanes and b_bytes > in_cache:
        try:
            check(problem, Schedule("stream"))
            return "stream"
        except NoMatch:
            pass
    return "direct"


def is_small(problem: Problem) -> bool:
    """True if a problem has few products, of floats that are not converted."""
    elements = {operand.element for operand in (problem.a, problem.b, problem.c)}
    return problem.work <= SMALL and elements == {problem.compute} and problem.compute in ("f32", "f64")


def _is_dot(problem: Problem, few: int, lanes: int) -> bool:
    return applies(check, problem, Schedule("dot")) and (
        few == 1 or problem.n.size > problem.m.size or problem.k_size >= 2 * lanes
    )


def plan_dot(problem: Problem, machine: Processor) -> Schedule:
    """Enough accumulators to hide the latency of additions, and streams from memory to hide that of loads."""
    few, many = sorted((problem.m.size, problem.n.size))
    lanes = min(machine.lanes(BITS[problem.compute]), power_of_two(problem.k_size))
    size = BITS[problem.compute] // 8
    if few > 4 and few * problem.k_size * size > machine.l1_bytes and problem.k_size >= 2 * DOT_K_BLOCK:
        # The second-level cache has the few rows in time for rows from memory, three of which are read beside all of
        # them; else they are read from the first one, some of them at a time.
        registers, far = machine.vector_registers * 3 // 4, many * problem.k_size * size / machine.l2_bytes
        whole = far > 4 and registers >= 3 * few
        group, block = (few, min(LONG_K_BLOCK, problem.k_size)) if whole else (4, DOT_K_BLOCK)
        rows = max(1, min(many, registers // group))
        ahead = -(-costs().kernels.ahead_bytes // (block * size)) if far > 1 else 0
        schedule = Schedule("dot", lanes, mr=rows, nr=group, kc=block // lanes * lanes, prefetch=ahead)
        return split(problem, machine, schedule, {"rows": many // rows})
    rows = max(1, min(many, lanes // few if problem.k_size <= 512 else DOT_STREAMS))
    # Vectors of more than four of the few rows are reloaded in every iteration: only accumulators stay in registers.
    registers = machine.vector_registers - few - 1 if few <= 4 else machine.vector_registers * 3 // 4
    rows = max(1, min(rows if few <= 4 else many, registers // few))
    steps = max(1, problem.k_size // lanes)
    unroll = max(1, min(8 // (rows * few), steps, registers // (rows * few)))
    schedule = Schedule("dot", lanes, mr=rows, unroll=unroll)
    return split(problem, machine, schedule, {"rows": many // rows})


def plan_stream(problem: Problem, machine: Processor) -> Schedule:
    """Whole rows of b if they are not too long, eight of them at a time."""
    lanes, rows = machine.lanes(BITS[problem.compute]), problem.m.size
    size = BITS[problem.compute] // 8
    # Long contiguous reads matter more than the L1 cache: a thread reads half of a block of each row at least.
    columns = round_up(max(1, min(problem.n.size, STREAM_BYTES // size)), 2 * lanes)
    schedule = Schedule("stream", lanes, mr=rows, nr=2 * lanes, kc=8, nc=columns)
    groups, least = -(-problem.n.size // (2 * lanes)), STREAM_BYTES // 2 // (2 * lanes * size)
    schedule = split(problem, machine, schedule, {"columns": groups if groups >= 2 * least else 1})
    return replace(schedule, grain=max(schedule.grain, least)) if schedule.parallel == "columns" else schedule


def plan_loops(problem: Problem, machine: Processor) -> Schedule:
    """The kernel "loops" has no parameters."""
    return Schedule("loops")


def wanted_packing(problem: Problem, machine: Processor) -> str:
    """The operands that are worth packing, or must be packed.

    b is packed if enough rows of a reuse it and it fills a good part of the L2 cache (its rows are on many pages there,
    and vectors across lines), or if its rows map to the same few sets of the L1 cache. Packing a is cheap as soon as
    there are many columns. Operands that must be converted are packed, so that each element is converted once.
    """
    required, size = required_packing(problem), BITS[problem.compute] // 8
    m, n, k = problem.m.size, problem.n.size, problem.k_size
    collides = problem.k[-1].b * size % 2048 == 0 and k * size * 32 > machine.l1_bytes
    panels = costs().kernels.panels
    pack_b = panels.packs_columns(m, n, k * n * size, machine.l2_bytes, collides=collides)
    pack_a = panels.packs_rows(m, n, m * k * size, machine.l2_bytes, beside=pack_b)
    pack_a = pack_a or "a" in required or bool(problem.a.casts)
    pack_b = pack_b or "b" in required or (bool(problem.b.casts) and m > panels.converted_rows)
    return ("a" if pack_a else "") + ("b" if pack_b else "")


def plan_tile(problem: Problem, machine: Processor, pack: str) -> Schedule:
    """The register tile and the blocks around it."""
    lanes, size = machine.lanes(BITS[problem.compute]), BITS[problem.compute] // 8
    mr, nr = register_tile(problem, machine, "b" in pack)
    one_sum = is_narrow_float(problem.c, problem.compute) or len(problem.k) > 1
    blocks = 1 if one_sum else -(-problem.k_size // K_BLOCK)
    kc = problem.k_size if blocks == 1 else round_up(-(-problem.k_size // blocks), lanes)
    mc = max(mr, min(problem.m.size + mr - 1, machine.l2_bytes // (2 * size * kc)) // mr * mr)
    panels = costs().kernels.panels
    nc = max(nr, min(problem.n.size + nr - 1, panels.whole_bytes // (kc * size)) // nr * nr)
    accumulators = mr * len(pieces(nr, lanes))
    unroll = max(1, min(8, machine.vector_registers - 4) // accumulators) if blocks == 1 and len(problem.k) == 1 else 1
    kernel = "packed" if pack else "direct"
    prefetch = panels.prefetched_rows(problem.k_size * problem.n.size * size, machine.l2_bytes)
    schedule = Schedule(kernel, lanes, mr, nr, unroll, kc, mc, nc, pack, prefetch)
    return split(problem, machine, schedule, tile_loops(problem, schedule))


def plan_panels(problem: Problem, machine: Processor) -> Schedule:
    """Both operands packed: a as a whole if it is not too large, a panel of b at a time; else blocks of rows."""
    enough = problem.work > TILE_WORK and problem.k_size >= FEWEST_TILE_K
    if machine.has_tiles and has_pairs(problem) and enough:
        return plan_tiles(problem, machine)
    lanes, size = machine.lanes(BITS[problem.compute]), BITS[problem.compute] // 8
    m, n, k = problem.m.size, problem.n.size, problem.k_size
    mr, nr = panel_tile(problem, machine)
    panels = costs().kernels.panels
    prefetch = panels.prefetched_rows(k * n * size, machine.l2_bytes)
    rows, columns = round_up(m, mr), round_up(n, nr)
    # Each block of k reads and writes the whole output, which takes longer than reads of a part of the panel of a from
    # the L2 cache.
    most = panels.depth(machine.l1_bytes, machine.l2_bytes, rows, (mr, nr), size)
    if l1_panels(machine):
        most = panels.longest(machine.l1_bytes, panels.near, nr * size)
    if is_narrow_float(problem.c, problem.compute):
        most = k
    blocks = -(-k // (most if l1_panels(machine) else max(most, K_BLOCK)))
    kc = k if blocks == 1 else round_up(-(-k // blocks), lanes)
    schedule = Schedule("packed", lanes, mr, nr, 1, kc, rows, columns, "ab", prefetch)
    if machine.has_bf16_pairs and has_pairs(problem):
        schedule = replace(schedule, pairs=2)
    return _block_panels(problem, machine, schedule, size, int(machine.l2_bytes * panels.block))


def reads_rows_in_place(problem: Problem, machine: Processor) -> bool:
    """True if packing a large f64 product's rows of a takes more time than it saves: they are contiguous already.

    Sums of f64 may be as long as the caches allow, so that the output is not written often. Those of f32 are `K_BLOCK`
    long for accuracy; tiles of packed panels are stored to memory, where that takes no second pass over the output.
    Few rows do not take long to pack, and threads that split columns share them.
    Small tiles need their panel of b in the L1 cache (`l1_panels`), where it fits only if sums are short.
    """
    plain = len(problem.k) == 1 and not problem.a.casts and not problem.b.casts and not problem.outer_m
    contiguous = problem.k[-1].a == 1 and problem.n.b == problem.n.c == 1
    many = problem.m.size >= costs().kernels.panels.rows_in_place
    big = problem.compute == "f64" and problem.work >= BIG_WORK and many
    if not (plain and contiguous and big):
        return False
    panel = problem.k_size * panel_tile(problem, machine)[1] * BITS[problem.compute] // 8
    return not l1_panels(machine) or 2 * panel <= machine.l1_bytes


def stores_most(problem: Problem, machine: Processor) -> bool:
    """True if sums are short and the output is larger than the L2 cache, where half of it has space for all of b."""
    size, n = BITS[problem.compute] // 8, problem.n.size
    plain = len(problem.k) == 1 and not problem.outer_m and problem.n.b == problem.n.c == 1
    paired = (machine.has_bf16_pairs or machine.has_tiles) and has_pairs(problem)
    if not plain or paired or problem.k_size * size > SHORT_BYTES:
        return False
    panels = problem.m.size // register_tile(problem, machine, packed_b=True)[0]
    stores = problem.m.size * n * size > machine.l2_bytes and 2 * problem.k_size * n * size <= machine.l2_bytes
    return stores and panels >= FEWEST_PANELS


def plan_stores(problem: Problem, machine: Processor) -> Schedule:
    """All panels of b packed, and one panel of rows at a time: whole rows of the output are stored in their order.

    Blocks of rows, whose part of b stays in the L1 cache, would store short pieces of many rows in turn, on as many
    pages: of 4096 x 4096 x 8 in f32 they take three times as long.
    """
    lanes = machine.lanes(BITS[problem.compute])
    mr, nr = register_tile(problem, machine, packed_b=True)
    schedule = Schedule("packed", lanes, mr, nr, 1, problem.k_size, mr, round_up(problem.n.size, nr), "b")
    return split(problem, machine, schedule, {"rows": -(-problem.m.size // mr)})


def l1_panels(machine: Processor) -> bool:
    """True if panels of b are short enough to stay in the L1 cache, and blocks of rows of a in the L2 cache.

    With 16 registers a tile takes in two elements for three multiply-adds of vectors, which is more than the second
    cache has to give where it is asked for both operands. BLIS: Low et al., Analytical Modeling Is Enough for
    High-Performance BLIS, 2016.
    """
    return machine.vector_registers < 32


def plan_rows(problem: Problem, machine: Processor) -> Schedule:
    """A few packed panels of b, and as many rows of a as leave space for them in the L2 cache."""
    lanes, size = machine.lanes(BITS[problem.compute]), BITS[problem.compute] // 8
    mr, nr = panel_tile(problem, machine)
    # Each block of k reads and writes the whole output.
    panels = costs().kernels.panels
    most = max(K_BLOCK, panels.longest(machine.l2_bytes, panels.columns, nr * size))
    blocks = 1 if is_narrow_float(problem.c, problem.compute) else -(-problem.k_size // most)
    kc = problem.k_size if blocks == 1 else round_up(-(-problem.k_size // blocks), lanes)
    nc = max(1, panels.longest(machine.l2_bytes, panels.columns, kc * size * nr)) * nr
    mc = max(1, panels.longest(machine.l2_bytes, panels.rows, kc * size * mr)) * mr
    prefetch = panels.prefetched_rows(problem.k_size * problem.n.size * size, machine.l2_bytes)
    schedule = Schedule(
        "packed", lanes, mr, nr, 1, kc, min(mc, round_up(problem.m.size, mr)), min(nc, round_up(problem.n.size, nr)),
        "b", prefetch,
    )  # fmt: skip
    return split(problem, machine, schedule, tile_loops(problem, schedule))


def is_worth_halving(problem: Problem, machine: Processor) -> bool:
    """True if a product is symmetric, and so large that half of its tiles take more time than mirroring them."""
    if not problem.symmetric or len(problem.k) != 1 or problem.n.c != 1:
        return False
    if machine.has_bf16_pairs and has_pairs(problem):
        return False
    return problem.n.size >= max(HALVED_ROWS, 2 * symmetric_tile(problem, machine)[1]) and problem.k_size >= HALVED_K


def symmetric_tile(problem: Problem, machine: Processor) -> tuple[int, int]:
    """Rows and columns of a register tile, a multiple of whose rows is as wide as the tile."""
    lanes = machine.lanes(BITS[problem.compute])
    tiles = _SYMMETRIC_TILES[32 if machine.vector_registers >= 32 else 16]
    mr, vectors = next(tile for tile in tiles if tile[1] * lanes % tile[0] == 0)
    return mr, vectors * lanes


def plan_symmetric(problem: Problem, machine: Processor) -> Schedule:
    """One packed operand, of whose panels tiles take their rows, too; `nc` columns stay in the L2 cache."""
    lanes, size = machine.lanes(BITS[problem.compute]), BITS[problem.compute] // 8
    (mr, nr), k = symmetric_tile(problem, machine), problem.k_size
    # Tiles read a row's elements from lines of the L1 cache that contain those of `mr` rows.
    line = max(mr * size, 64)
    panels = costs().kernels.panels
    most = max(K_BLOCK, panels.longest(machine.l1_bytes, panels.squares, line))
    blocks = 1 if is_narrow_float(problem.c, problem.compute) else -(-k // most)
    kc = k if blocks == 1 else round_up(-(-k // blocks), lanes)
    nc = symmetric_columns(problem, nr, kc, machine.l2_bytes)
    schedule = Schedule("symmetric", lanes, mr, nr, 1, kc, round_up(problem.m.size, mr), nc, "b")
    return split(problem, machine, schedule, {"columns": -(-problem.n.size // nr)})


def symmetric_columns(problem: Problem, nr: int, kc: int, l2_bytes: int) -> int:
    """The number of packed columns that leave half of the L2 cache to other data."""
    size = BITS[problem.compute] // 8
    return max(nr, min(round_up(problem.n.size, nr), l2_bytes // (2 * size * kc) // nr * nr))


def plan_tiles(problem: Problem, machine: Processor) -> Schedule:
    """As `plan_panels`, with tile registers: 32 products are added before they are added to a sum, so k may be long."""
    mr, nr = min(TILES, key=lambda tile: round_up(problem.m.size, tile[0]) * round_up(problem.n.size, tile[1]))
    k = problem.k_size
    most = k if is_narrow_float(problem.c, problem.compute) else TILE_K_BLOCK
    kc = k if k <= most else round_up(-(-k // -(-k // most)), TILE_K)
    rows, columns = round_up(problem.m.size, mr), round_up(problem.n.size, nr)
    # Rows of b are on separate pages, mostly: the hardware prefetcher does not predict the next one.
    schedule = Schedule("packed", 16, mr, nr, 1, kc, rows, columns, "ab", 16, pairs=TILE_K)
    # Tiles read so much at a time that a must be in the L2 cache; b is read once for each block of rows.
    a_bytes = min(machine.l2_bytes // 2, max(machine.l2_bytes // 4, 256 * 2 * kc))
    return _block_panels(problem, machine, schedule, 2, a_bytes)


def _block_panels(problem: Problem, machine: Processor, schedule: Schedule, size: int, a_bytes: int) -> Schedule:
    """Blocks of rows and columns around panels, whose packed elements have `size` bytes, and the parallel loop.

    `a_bytes`: the size of the packed part of a if it is not packed as a whole.
    """
    mr, nr, kc, rows, columns = schedule.mr, schedule.nr, schedule.kc, schedule.mc, schedule.nc
    panels = costs().kernels.panels
    count, most = columns // nr, a_bytes if schedule.tiles or l1_panels(machine) else 2 * panels.whole_bytes
    if not problem.outer_m and (count >= 8 or count >= rows // mr) and rows * kc * size <= most:
        schedule = replace(schedule, chunks=min(count, CHUNKS // 2))
        if problem.n.b == 1 and schedule.pairs == 1:
            few = problem.m.size <= panels.cached_rows
            mc = _cached_rows(problem, machine, schedule) if few else round_up(problem.m.size, mr)
            schedule = replace(schedule, mc=mc)
        return split(problem, machine, schedule, {"columns": count} if count > 1 else {})
    mc = max(mr, min(rows, a_bytes // (size * kc)) // mr * mr)
    nc = max(nr, min(columns, panels.whole_bytes // (kc * size)) // nr * nr)
    schedule = replace(schedule, mc=mc, nc=nc)
    return split(problem, machine, schedule, tile_loops(problem, schedule))


def _cached_rows(problem: Problem, machine: Processor, schedule: Schedule) -> int:
    """Rows of a, in few blocks of equal size, that leave half of the L2 cache to panels of b and of the output."""
    size, mr = BITS[problem.compute] // 8, schedule.mr
    panels = costs().kernels.panels
    most = max(panels.turn, panels.longest(machine.l2_bytes, panels.block, size * schedule.kc * mr))
    tiles = -(-problem.m.size // mr)
    blocks = -(-tiles // most) if tiles > most * 5 // 4 else 1
    if tiles // blocks < panels.turn:
        blocks = max(1, tiles // panels.turn)
    return -(-tiles // blocks) * mr


def has_pairs(problem: Problem) -> bool:
    """True if the operands are bf16, or are rounded to it as they are read, and the products are added in f32.

    They must be contiguous along rows or k.
    """
    k = problem.k[-1]
    walks = 1 in (k.a, problem.m.a) and 1 in (k.b, problem.n.b)
    narrow = all(x.casts and x.casts[-1].source == "bf16" for x in (problem.a, problem.b))
    return narrow and walks and len(problem.k) == 1 and problem.compute == "f32"


def panel_tile(problem: Problem, machine: Processor) -> tuple[int, int]:
    """The register tile with the fewest lanes beyond the output, and whose panel of b fits the cache."""
    lanes, size = machine.lanes(BITS[problem.compute]), BITS[problem.compute] // 8
    panels = costs().kernels.panels
    options = _PANEL_TILES[32 if machine.vector_registers >= 32 else 16]

    def cost(tile: tuple[int, int]) -> float:
        mr, nr = tile[0], tile[1] * lanes
        elements = round_up(problem.m.size, mr) * round_up(problem.n.size, nr)
        panel = nr * size * problem.k_size
        return elements * (1.0 if panel <= int(machine.l2_bytes * panels.near) else panels.far)

    most = min(map(cost, options)) * (1.02 if problem.work >= BIG_WORK else 1.12)
    mr, vectors = next(tile for tile in options if cost(tile) <= most)
    return mr, vectors * lanes


def is_narrow_float(out: Operand, compute: str) -> bool:
    """True if the output has a narrower float type than the sums, so that it cannot store partial sums."""
    return out.element != compute and "f" in compute


def register_tile(problem: Problem, machine: Processor, packed_b: bool) -> tuple[int, int]:
    """Rows and columns of the register tile: the cheapest tiling of the output."""
    lanes, size = machine.lanes(BITS[problem.compute]), BITS[problem.compute] // 8
    options = list(_tiles(problem.m.size, problem.n.size, lanes, machine.vector_registers))
    # Rows of b at such distances evict each other from all caches before the next tile of rows reads them.
    collides = problem.k[-1].b * size % 4096 == 0 and problem.k_size * problem.n.size * size > machine.l2_bytes
    line = 64 // size if collides and not packed_b else 0
    kernels = costs().kernels
    load = kernels.packed_load if packed_b else kernels.load_in_place * machine.vector_bits / 512
    return min(options, key=lambda tile: _cost(problem, lanes, tile, line, load))


def _tiles(rows: int, columns: int, lanes: int, registers: int) -> Iterator[tuple[int, int]]:
    """Tiles that fit the registers, with a row of b, one element of a and one spare register."""
    widths = [vectors * lanes for vectors in range(1, 9) if vectors * lanes < columns]
    for nr in [*widths, columns]:
        vectors = len(pieces(nr, lanes))
        for mr in range(1, min(rows, 14) + 1):
            if vectors <= 8 and (mr + 1) * vectors + 2 <= registers:
                yield mr, nr


def _cost(problem: Problem, lanes: int, tile: tuple[int, int], line: int, load: float) -> float:
    """Approximate cycles per iteration of k: arithmetic, the latency of sums, loads, and the overhead of a tile.

    If `line` is not zero, every tile of rows reads b from memory, in lines of so many elements. Tiles of another size
    at the edges are more code to compile, which has a small cost, and less where there is much work.
    """
    cost, num_tiles = 0.0, 0
    for count, rows in _cut(problem.m.size, tile[0]):
        for panels, width in _cut(problem.n.size, tile[1]):
            parts = pieces(width, lanes)
            arithmetic = rows * sum(max(part.lanes / lanes, 0.5) for part in parts)
            around = (8 + rows * len(parts)) / problem.k_size
            memory = 2.0 * -(-width // line) if line else 0.0
            inner = costs().kernels.tile_cost(arithmetic, rows, len(parts), load)
            cost += count * panels * (inner + around + memory)
            num_tiles += 1
    kernels = costs().kernels
    return cost * (1 + (kernels.code_of_much if problem.work >= BIG_WORK // 8 else kernels.code) * num_tiles)


def _cut(size: int, width: int) -> list[tuple[int, int]]:
    return [(count, part) for count, part in ((size // width, width), (1, size % width)) if count and part]


def tile_loops(problem: Problem, schedule: Schedule) -> dict[str, int]:
    """The loops of the tile kernel that can be split, the best first, and their trip counts."""
    rows = math.prod(axis.size for axis in problem.outer_m) * -(-problem.m.size // schedule.mr)
    columns = -(-problem.n.size // schedule.nr)
    loops = {"rows": rows} if rows >= 8 or rows >= columns else {}
    if not problem.outer_m and schedule.nc >= problem.n.size and columns > 1:
        loops["columns"] = columns
    return loops


def split(problem: Problem, machine: Processor, schedule: Schedule, loops: dict[str, int]) -> Schedule:
    """Split the outermost loop that has work for several threads."""
    size = BITS[problem.compute] // 8
    traffic = problem.repeats * problem.k_size * (problem.m.size + problem.n.size)
    work = max(problem.work * size // (16 if schedule.tiles else 4), 3 * size * traffic)
    if machine.cores == 1 or not costs().is_shared(work):
        return schedule
    outer = problem.outer if schedule.kernel in ("packed", "direct") else problem.outer + problem.outer_m
    iterations = math.prod(axis.size for axis in outer)
    # Large products are split internally, which needs fewer packing buffers.
    most = (8 if iterations >= 16 else 1) * costs().products
    if iterations > 1 and (work // iterations < most or not loops):
        each = -(-iterations // min(iterations, CHUNKS))
        return replace(
            schedule, parallel="outer", chunks=-(-iterations // each), grain=_grain(work * each // iterations)
        )
    work //= iterations
    for name, count in loops.items():
        if count < 2:
            continue
        if name == "rows" and schedule.kernel in ("packed", "direct"):
            return _split_rows(problem, machine, schedule, work)
        if name == "columns" and schedule.kernel in ("packed", "direct"):
            if schedule.chunks > 1:
                return replace(schedule, parallel=name, grain=_grain(work // schedule.chunks))
            schedule = replace(schedule, mc=round_up(problem.m.size, schedule.mr))
        return replace(schedule, parallel=name, grain=_grain(work // count))
    return schedule


def _split_rows(problem: Problem, machine: Processor, schedule: Schedule, work: int) -> Schedule:
    """Blocks of rows small enough that there are sixteen of them; a thread with several packs what its cache holds."""
    repeats = math.prod(axis.size for axis in problem.outer_m)
    tiles = -(-problem.m.size // schedule.mr)
    each = max(1, min(schedule.mc // schedule.mr, -(-tiles * repeats // 16)))
    blocks = repeats * -(-tiles // each)
    chunks = min(blocks, CHUNKS)
    plain = schedule.pack == "ab" and len(problem.k) == 1 and not problem.outer_m
    if plain and l1_panels(machine) and chunks == blocks:
        schedule = replace(schedule, group=max(1, round(schedule.mc / (each * schedule.mr))))
    return replace(schedule, mc=each * schedule.mr, parallel="rows", chunks=chunks, grain=_grain(work // chunks))


def _grain(work: int) -> int:
    return max(1, costs().products // 4 // max(1, work))


def _plan_packed(problem: Problem, machine: Processor) -> Schedule:
    return plan_tile(problem, machine, "ab")


_PLANS: dict[str, Callable[[Problem, Processor], Schedule]] = {
    "symmetric": plan_symmetric,
    "packed": lambda problem, machine: (plan_panels if len(problem.k) == 1 else _plan_packed)(problem, machine),
    "direct": lambda problem, machine: plan_tile(problem, machine, ""),
    "dot": plan_dot,
    "stream": plan_stream,
    "small": lambda problem, machine: Schedule("small"),
    "loops": plan_loops,
    "library": lambda problem, machine: Schedule("library"),
}

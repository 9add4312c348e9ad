"""The schedules that a contraction may have, as data: one row a candidate, one column a field.

A `Space` has the columns as arrays of NumPy, so that the model of `model.py` estimates all rows at once, and
`Space.schedule` is the `Schedule` of one row. Rows differ in the kernel, the register tile and the width of vectors,
the blocks of the three loops, the operands that are packed, prefetches, accumulators, pairs of bf16, and the loop that
is split among threads. Sums in registers are no longer than those of `plan.py`, so that results stay within the same
bounds.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mlirml.codegen.cpu.contract.plan import (
    BITS,
    CHUNKS,
    FEW,
    K_BLOCK,
    TILE_K,
    TILE_K_BLOCK,
    TILES,
    Schedule,
    check,
    has_pairs,
    is_narrow_float,
    is_small,
    pieces,
    power_of_two,
    required_packing,
    round_up,
    split,
    tile_loops,
)
from mlirml.codegen.cpu.contract.problem import Problem
from mlirml.core.dataclass import dataclass, replace
from mlirml.passes import NoMatch
from mlirml.targets.machine import Processor

KERNELS = ("direct", "packed", "symmetric", "dot", "stream", "small", "loops")
PACKS = ("", "a", "b", "ab")
SPLITS = ("default", "rows", "columns", "none")
"""The loops that are split among threads: as `plan.split` chooses, one of the two, or none."""
COLUMNS = (
    "kernel", "pack", "lanes", "mr", "nr", "kc", "mc", "nc", "unroll", "prefetch", "pairs", "split",
)  # fmt: skip
"""The columns of a space; `kernel`, `pack` and `split` are positions in `KERNELS`, `PACKS` and `SPLITS`."""
PANEL_K = 2048
"""The longest block of k of packed panels, whose sums in registers end after `K_BLOCK` anyway."""
_MOST_ROWS, _MOST_VECTORS, _FEWEST_SUMS = 16, 8, 6
"""The sizes of register tiles, and the fewest accumulators of those that do not cover a whole side of the output."""
_PREFETCHES = (0, 8, 16)
_BLOCKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
"""The numbers of blocks into which a loop is split."""

Column = npt.NDArray[np.int64]
Row = tuple[int, ...]


@dataclass(frozen=True)
class Space:
    """The candidates of a problem on a processor: `rows` has one row a candidate, in the order of `COLUMNS`."""

    problem: Problem
    machine: Processor
    rows: Column

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> Column:
        """The values of one column."""
        return self.rows[:, COLUMNS.index(name)]

    def schedule(self, index: int) -> Schedule | None:
        """The schedule of a row; None where no kernel can be made for it."""
        values = dict(zip(COLUMNS, map(int, self.rows[index]), strict=True))
        schedule = _complete(self.problem, self.machine, values)
        try:
            check(self.problem, schedule)
        except NoMatch:
            return None
        return schedule

    def neighbours(self, index: int) -> Column:
        """The indices of the rows that differ from one in a single column, or in the blocks of one register tile."""
        differ = self.rows != self.rows[index]
        return np.flatnonzero(differ.sum(axis=1) == 1)

    def nearest(self, schedule: Schedule) -> int:
        """The index of the row that is most like a schedule."""
        wanted = np.array([_value(schedule, name) for name in COLUMNS])
        exact = (self.rows == wanted).sum(axis=1) * 4.0
        sizes = np.abs(np.log2(np.maximum(self.rows, 1)) - np.log2(np.maximum(wanted, 1))).sum(axis=1)
        return int(np.argmax(exact - 0.1 * sizes))


def _value(schedule: Schedule, name: str) -> int:
    """The value of a schedule in a column."""
    if name == "kernel":
        return KERNELS.index(schedule.kernel)
    if name == "pack":
        return PACKS.index(schedule.pack)
    if name == "split":
        return SPLITS.index(schedule.parallel) if schedule.parallel in SPLITS else 0
    return int(getattr(schedule, name))


def space(problem: Problem, machine: Processor, threads: int = 1) -> Space:
    """All candidates of a problem on a processor whose vectors can be used, with loops split for several threads.

    Raises `NoMatch` if the processor has no vectors.
    """
    if not machine.vector_bits:
        raise NoMatch("the processor has no vectors")
    parts = [
        *_register_tiles(problem, machine, threads),
        *_symmetric(problem, machine),
        *_dots(problem, machine),
        *_streams(problem, machine),
        *_unrolled(problem),
    ]
    rows = np.concatenate([part for part in parts if len(part)])
    return Space(problem, machine, rows)


def _rows(**columns: Iterable[int] | int) -> Column:
    """All combinations of the values of columns; those that are not given are 1, or 0 for words and prefetches."""
    default = {name: 0 if name in ("kernel", "pack", "prefetch", "split") else 1 for name in COLUMNS}
    values = [columns.get(name, default[name]) for name in COLUMNS]
    each = [np.array([value] if isinstance(value, int) else sorted({*value}), np.int64) for value in values]
    grids = np.meshgrid(*each, indexing="ij")
    return np.stack([grid.reshape(-1) for grid in grids], axis=1)


def _register_tiles(problem: Problem, machine: Processor, threads: int) -> Iterator[Column]:
    """The candidates of the kernels "direct" and "packed"."""
    bits = BITS[problem.compute]
    required, full = required_packing(problem), machine.lanes(bits)
    splits = range(len(SPLITS)) if threads > 1 and machine.cores != 1 else (0,)
    for number, pack in enumerate(PACKS):
        if not {*required} <= {*pack}:
            continue
        panels = pack == "ab" and len(problem.k) == 1 and 1 in (problem.n.c, problem.n.size)
        for lanes in _widths(full, problem.n.size):
            for mr, nr in _tiles(problem, machine, lanes, panels=panels):
                yield _blocks(problem, machine, (number, lanes, mr, nr), 1, splits, panels=panels)
                if panels and machine.has_bf16_pairs and has_pairs(problem) and lanes == nr % 16 + 16:
                    yield _blocks(problem, machine, (number, lanes, mr, nr), 2, splits, panels=True)
    if machine.has_tiles and has_pairs(problem):
        for mr, nr in TILES:
            yield _blocks(problem, machine, (PACKS.index("ab"), 16, mr, nr), TILE_K, splits, panels=True)


def _widths(full: int, columns: int) -> list[int]:
    """The numbers of lanes of vectors: the widest of the processor, half of it, and no more than there are columns."""
    most = min(full, power_of_two(columns))
    return [lanes for lanes in (most, most // 2) if lanes >= 2] or [1]


def _tiles(problem: Problem, machine: Processor, lanes: int, *, panels: bool) -> Iterator[tuple[int, int]]:
    """Register tiles: accumulators, a row of b, an element of a and one spare register fit the registers."""
    m, n = problem.m.size, problem.n.size
    widths = [vectors * lanes for vectors in range(1, _MOST_VECTORS + 1) if vectors == 1 or (vectors - 1) * lanes < n]
    if not panels:
        widths = [width for width in widths if width < n] + [n]
    for nr in widths:
        vectors = len(pieces(nr, lanes))
        for mr in range(1, min(_MOST_ROWS, m) + 1):
            enough = mr * vectors >= _FEWEST_SUMS or mr == m or nr >= n
            if enough and vectors <= _MOST_VECTORS and (mr + 1) * vectors + 2 <= machine.vector_registers:
                yield mr, nr


def _blocks(
    problem: Problem,
    machine: Processor,
    tile: tuple[int, int, int, int],
    pairs: int,
    splits: Iterable[int],
    *,
    panels: bool,
) -> Column:
    """The candidates of one register tile."""
    pack, lanes, mr, nr = tile
    m, n, k = problem.m.size, problem.n.size, problem.k_size
    one_sum = is_narrow_float(problem.c, problem.compute) or len(problem.k) > 1
    most = TILE_K_BLOCK if pairs == TILE_K else PANEL_K if panels else K_BLOCK if problem.compute == "f32" else PANEL_K
    step = TILE_K if pairs == TILE_K else lanes
    lengths = [k] if one_sum else [_part(k, blocks, step) for blocks in _BLOCKS]
    lengths = [kc for kc in lengths if kc <= max(most, step) or one_sum] or [_part(k, -(-k // most), step)]
    vectors = len(pieces(nr, lanes))
    most_sets = (machine.vector_registers - vectors - 2) // (mr * vectors)
    plain = not panels and len(problem.k) == 1
    return _rows(
        kernel=KERNELS.index("packed" if pack else "direct"),
        pack=pack,
        lanes=lanes,
        mr=mr,
        nr=nr,
        kc=(kc for kc in lengths if kc >= min(k, 32)),
        mc=(_part(m, blocks, mr) for blocks in _BLOCKS) if pack else round_up(m, mr),
        nc=(_part(n, blocks, nr) for blocks in _BLOCKS) if "b" in PACKS[pack] else round_up(n, nr),
        unroll=(sets for sets in (1, 2, 4, 8) if sets == 1 or (plain and sets <= min(most_sets, k))),
        prefetch=_PREFETCHES if k * n * BITS[problem.compute] // 8 > 1 << 18 else (0,),
        pairs=pairs,
        split=splits,
    )


def _part(size: int, blocks: int, step: int) -> int:
    """The size of one of so many blocks, a multiple of `step`; a single block is whole."""
    return round_up(-(-size // blocks), step) if blocks > 1 or step > 1 else size


def _symmetric(problem: Problem, machine: Processor) -> Iterator[Column]:
    """The candidates of the kernel "symmetric"."""
    if not problem.symmetric or len(problem.k) != 1 or problem.n.c != 1:
        return
    lanes, m, k = machine.lanes(BITS[problem.compute]), problem.m.size, problem.k_size
    one_sum = is_narrow_float(problem.c, problem.compute)
    lengths = {k} if one_sum else {kc for blocks in _BLOCKS if (kc := _part(k, blocks, lanes)) <= PANEL_K}
    for vectors, mr in itertools.product((1, 2, 3), (2, 4, 8)):
        nr = vectors * lanes
        if nr % mr == 0 and (mr + 1) * vectors + 2 <= machine.vector_registers:
            yield _rows(
                kernel=KERNELS.index("symmetric"),
                pack=PACKS.index("b"),
                lanes=lanes,
                mr=mr,
                nr=nr,
                kc=lengths,
                mc=round_up(m, mr),
                nc=(_part(m, blocks, nr) for blocks in _BLOCKS),
            )


def _dots(problem: Problem, machine: Processor) -> Iterator[Column]:
    """The candidates of the kernel "dot"."""
    try:
        check(problem, Schedule("dot"))
    except NoMatch:
        return
    few, many = sorted((problem.m.size, problem.n.size))
    for lanes in _widths(machine.lanes(BITS[problem.compute]), problem.k_size):
        for rows, sets in itertools.product((1, 2, 3, 4, 6, 8, 12, 16), (1, 2, 4, 8)):
            if few <= FEW and rows <= many and rows * few * sets + min(few, 4) + 1 <= machine.vector_registers:
                yield _rows(kernel=KERNELS.index("dot"), lanes=lanes, mr=rows, unroll=sets)


def _streams(problem: Problem, machine: Processor) -> Iterator[Column]:
    """The candidates of the kernel "stream"."""
    try:
        check(problem, Schedule("stream"))
    except NoMatch:
        return
    if problem.m.size > FEW:
        return
    n = problem.n.size
    for lanes in _widths(machine.lanes(BITS[problem.compute]), n):
        for vectors in (1, 2, 4):
            yield _rows(
                kernel=KERNELS.index("stream"),
                lanes=lanes,
                mr=problem.m.size,
                nr=vectors * lanes,
                kc=(rows for rows in (2, 4, 8, 16) if rows <= problem.k_size),
                nc=(_part(n, blocks, vectors * lanes) for blocks in _BLOCKS),
            )


def _unrolled(problem: Problem) -> Iterator[Column]:
    """The kernels without parameters."""
    if is_small(problem):
        yield _rows(kernel=KERNELS.index("small"))
    if not is_narrow_float(problem.c, problem.compute):  # loops add in the type of the output
        yield _rows(kernel=KERNELS.index("loops"))


def _complete(problem: Problem, machine: Processor, values: dict[str, int]) -> Schedule:
    """The schedule of a row, with the loops that are split among threads."""
    kernel, pack, how = KERNELS[values["kernel"]], PACKS[values["pack"]], SPLITS[values["split"]]
    if kernel in ("small", "loops"):
        return Schedule(kernel)
    own: dict[str, Any] = {name: value for name, value in values.items() if name not in ("kernel", "pack", "split")}
    schedule = Schedule(kernel, pack=pack, **own)
    if kernel in ("dot", "symmetric", "stream"):
        return split(problem, machine, schedule, _other_loops(problem, schedule))
    if how == "none":
        return schedule
    loops, panels = tile_loops(problem, schedule), pack == "ab" and len(problem.k) == 1
    if panels and how != "rows" and not problem.outer_m and schedule.nc >= problem.n.size:
        count = -(-problem.n.size // schedule.nr)
        schedule = replace(schedule, chunks=min(count, CHUNKS // 2))
        return split(problem, machine, schedule, {"columns": count} if count > 1 else {})
    if how in loops:
        loops = {how: loops[how]}
    return split(problem, machine, schedule, loops)


def _other_loops(problem: Problem, schedule: Schedule) -> dict[str, int]:
    """The loop that a kernel without register tiles can split."""
    if schedule.kernel == "dot":
        return {"rows": max(problem.m.size, problem.n.size) // schedule.mr}
    return {"columns": -(-problem.n.size // (schedule.nc if schedule.kernel == "stream" else schedule.nr))}

"""Where the rows of sweeps stand in skewed time, and how big the tiles are.

Row i of sweep m in round t stands at i + ahead[m] + t * period. Whatever depends on it stands at that place or behind
it, and is reached later; seen from the other end, at i - behind[m] - t * back_period or in front of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mlirml.analysis.trip_counts import round_count
from mlirml.codegen.cpu.nest import element_bytes
from mlirml.core.dataclass import dataclass
from mlirml.passes import NoMatch
from mlirml.pipelines.memref.time_tiles.match import Span, Sweep, TimeLoop, row_bytes

MOST_ROUNDS = 16
BAND_BYTES = 32 << 10
"""What a band of rows should take, of all buffers together."""
FEWEST_CHUNKS, MOST_CHUNKS = 4, 16
CHUNK_MARGINS = 3
"""A chunk is at least as long as so many margins, which are done in the second phase."""


@dataclass(frozen=True)
class Skew:
    """The places of sweeps: the offset of each, and how far a round moves."""

    offsets: tuple[int, ...]
    period: int

    @property
    def widest(self) -> int:
        return max(self.offsets)


@dataclass(frozen=True)
class Plan:
    """The sizes of tiles in rows and `rounds`; rows from `first` to `last - 1` are cut into `chunks`."""

    ahead: Skew
    behind: Skew
    first: int
    last: int
    rounds: int
    band: int
    chunks: int

    @property
    def margin(self) -> int:
        """How many rows around the end of a chunk wait until both of its neighbours are done."""
        return margin_of(self.ahead, self.behind, self.rounds)


def margin_of(ahead: Skew, behind: Skew, rounds: int) -> int:
    return ahead.widest + behind.widest + rounds * (ahead.period + behind.period)


def plan_tiles(time: TimeLoop, l2_bytes: int, least_bytes: int) -> Plan:
    """Choose the tiles; NoMatch where they gain nothing."""
    buffers = time.buffers
    sizes = [math.prod(b.type.shape) * element_bytes(b.type.element_type) for b in buffers]
    if sum(sizes) < least_bytes:
        raise NoMatch("all of it fits into the cache")
    row = sum(row_bytes(buffers))
    ahead, behind = skew(time.sweeps, forwards=True), skew(time.sweeps, forwards=False)
    first = min(sweep.first for sweep in time.sweeps)
    last = max(sweep.last for sweep in time.sweeps)
    rows = last - first
    band = max(1, BAND_BYTES // row)
    fast = max(ahead.period, behind.period, 1)
    budget = l2_bytes // 2 // row - band - ahead.widest
    rounds = min(MOST_ROUNDS, budget // fast, round_count(time.loop) or MOST_ROUNDS)
    fewest = FEWEST_CHUNKS * CHUNK_MARGINS
    while rounds > 1 and fewest * margin_of(ahead, behind, rounds) > rows:
        rounds -= 1
    if rounds < 1 or rounds * len(time.sweeps) < 2:
        raise NoMatch("too few rows fit into the cache")
    chunks = max(1, min(MOST_CHUNKS, rows // max(1, CHUNK_MARGINS * margin_of(ahead, behind, rounds))))
    if chunks < FEWEST_CHUNKS:
        raise NoMatch("too few rows for threads")
    return Plan(ahead, behind, first, last, rounds, band, chunks - chunks % 2 if chunks > 1 else 1)


def skew(sweeps: tuple[Sweep, ...], *, forwards: bool) -> Skew:
    """The least offsets and period by which everything stands behind what it depends on."""
    offsets: list[int] = []
    for number, later in enumerate(sweeps):
        least = [
            offsets[m] + steps
            for m, earlier in enumerate(sweeps[:number])
            for steps in distances(earlier, later, forwards=forwards)
        ]
        offsets.append(max([0, *least]))
    period = max(
        [0]
        + [
            offsets[m] + steps - offsets[number]
            for m, earlier in enumerate(sweeps)
            for number, later in enumerate(sweeps)
            for steps in distances(earlier, later, forwards=forwards)
        ]
    )
    return Skew(tuple(offsets), period)


def distances(earlier: Sweep, later: Sweep, *, forwards: bool) -> Iterator[int]:
    """How many rows further on (or back) `later` touches what `earlier` stores, or stores what it touches."""
    for one, other in ((earlier.writes, later.reads), (earlier.writes, later.writes), (earlier.reads, later.writes)):
        for buffer in one:
            if buffer in other:
                yield reach(one[buffer], other[buffer]) if forwards else reach(other[buffer], one[buffer])


def reach(one: Span, other: Span) -> int:
    return other.most - one.least

"""The skews of stencils in time, and the sizes of the tiles.

Row i of stencil m in time step t has the coordinate i + forward[m] + t * period. Rows that depend on it have the same
or a later coordinate, and are computed later; in the backward direction its coordinate is i - backward[m] - t *
back_period, and dependent rows have the same or an earlier one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mlirml.analysis.cost import element_bytes
from mlirml.analysis.trip_counts import trip_count
from mlirml.core.dataclass import dataclass
from mlirml.passes import NoMatch
from mlirml.pipelines.memref.time_tiles.match import Span, Stencil, TimeLoop, row_bytes

MOST_ROUNDS = 16
BAND_BYTES = 32 << 10
"""The size of a band of rows, of all buffers together."""
FEWEST_CHUNKS, MOST_CHUNKS = 4, 16
CHUNK_MARGINS = 3
"""The least length of a chunk in margins, which are computed in the second phase."""


@dataclass(frozen=True)
class Skew:
    """A skew: the offset of each stencil, and the offset per time step."""

    offsets: tuple[int, ...]
    period: int

    @property
    def widest(self) -> int:
        return max(self.offsets)


@dataclass(frozen=True)
class Plan:
    """The sizes of tiles in rows and time `steps`; rows from `first` to `last - 1` are partitioned into `chunks`."""

    forward: Skew
    backward: Skew
    first: int
    last: int
    steps: int
    band: int
    chunks: int

    @property
    def margin(self) -> int:
        """The number of rows around the end of a chunk that wait until both of its neighbours are done."""
        return margin_of(self.forward, self.backward, self.steps)


def margin_of(forward: Skew, backward: Skew, steps: int) -> int:
    return forward.widest + backward.widest + steps * (forward.period + backward.period)


def plan_tiles(time: TimeLoop, l2_bytes: int, least_bytes: int) -> Plan:
    """Choose the tile sizes; raises NoMatch if tiling does not pay."""
    buffers = time.buffers
    sizes = [math.prod(b.type.shape) * element_bytes(b.type.element_type) for b in buffers]
    if sum(sizes) < least_bytes:
        raise NoMatch("all of it fits into the cache")
    row = sum(row_bytes(buffers))
    forward, backward = skew(time.stencils, forwards=True), skew(time.stencils, forwards=False)
    first = min(stencil.first for stencil in time.stencils)
    last = max(stencil.last for stencil in time.stencils)
    rows = last - first
    band = max(1, BAND_BYTES // row)
    fast = max(forward.period, backward.period, 1)
    budget = l2_bytes // 2 // row - band - forward.widest
    steps = min(MOST_ROUNDS, budget // fast, trip_count(time.loop) or MOST_ROUNDS)
    fewest = FEWEST_CHUNKS * CHUNK_MARGINS
    while steps > 1 and fewest * margin_of(forward, backward, steps) > rows:
        steps -= 1
    if steps < 1 or steps * len(time.stencils) < 2:
        raise NoMatch("too few rows fit into the cache")
    chunks = max(1, min(MOST_CHUNKS, rows // max(1, CHUNK_MARGINS * margin_of(forward, backward, steps))))
    if chunks < FEWEST_CHUNKS:
        raise NoMatch("too few rows for threads")
    return Plan(forward, backward, first, last, steps, band, chunks - chunks % 2 if chunks > 1 else 1)


def skew(stencils: tuple[Stencil, ...], *, forwards: bool) -> Skew:
    """The smallest offsets and period for which every row has a coordinate after those that it depends on."""
    offsets: list[int] = []
    for number, later in enumerate(stencils):
        least = [
            offsets[m] + steps
            for m, earlier in enumerate(stencils[:number])
            for steps in distances(earlier, later, forwards=forwards)
        ]
        offsets.append(max([0, *least]))
    period = max(
        [0]
        + [
            offsets[m] + steps - offsets[number]
            for m, earlier in enumerate(stencils)
            for number, later in enumerate(stencils)
            for steps in distances(earlier, later, forwards=forwards)
        ]
    )
    return Skew(tuple(offsets), period)


def distances(earlier: Stencil, later: Stencil, *, forwards: bool) -> Iterator[int]:
    """The distances in rows of dependences between two stencils, in the forward or backward direction."""

    for one, other in ((earlier.writes, later.reads), (earlier.writes, later.writes), (earlier.reads, later.writes)):
        for buffer in one:
            if buffer in other:
                yield reach(one[buffer], other[buffer]) if forwards else reach(other[buffer], one[buffer])


def reach(one: Span, other: Span) -> int:
    return other.most - one.least

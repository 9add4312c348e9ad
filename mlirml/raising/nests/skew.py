"""Turn sums that two loops scatter along a dimension into gathers: one loop runs over the stored indices.

    for y in 0..H: for k in 0..K: g[y + k] += d[y] * w[k]

becomes, with u = y + k,

    for u in 0..H + K - 1: for k in 0..K: if 0 <= u - k < H: g[u] += d[u - k] * w[k]

as in the gradient of a convolution by its image, which then is a convolution. An `if` around it that keeps the index
within bounds (`guarded_sums.py`) bounds u; stores with large strides are stretched first (`dilate.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlirml.analysis.affine import Loop, Reader, constant, loops_in
from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.passes import NoMatch
from mlirml.raising.nests.accumulations import match_combination
from mlirml.raising.nests.dilate import Dilated, Stretched, stretched
from mlirml.raising.nests.guarded_sums import match_guarded
from mlirml.raising.nests.model import Access, Statement

_FEWEST, _FEWEST_LOOPS = 2, 4
"""Along one dimension alone, with fewer loops, the loop that adds a row at each index is as fast."""


@dataclass(frozen=True)
class Skewed:
    """A statement after a loop change: replaced loop variables in terms of the new ones, constraints (each >= 0)."""

    statement: Statement
    replaced_loops: Mapping[Loop, Linear]
    conditions: tuple[Linear, ...]
    dilated: tuple[Dilated, ...]


Pair = tuple[Loop, Loop, int]
"""The two loops that index a dimension, the first one with stride one, the second one with this stride."""


def skewed(statement: Statement, level: int, reader: Reader) -> Skewed:
    """Raises `NoMatch` unless a statement scatters a sum along two dimensions, or along one with further loops."""
    if statement.write.array.local:
        raise NoMatch("no scattered sum")
    match_combination(statement)
    guards: tuple[Linear, ...] = ()
    if statement.write.indices is None:
        guarded = match_guarded(statement, reader)
        statement, guards = guarded.statement, guarded.conditions
    longer, pairs = match_pairs(statement, level, reader)
    guards = tuple(longer.moved(guard) for guard in guards)
    replaced_loops: dict[Loop, Linear] = {}
    conditions: list[Linear] = []
    new = list(longer.statement.loops)
    for outer, inner, step in pairs:
        both = Loop(
            outer.op,
            tuple(a + b * step for a in outer.lowers for b in inner.lowers),
            tuple(a + (b - 1) * step for a in outer.uppers for b in inner.uppers),
            independent=outer.independent and inner.independent,
        )
        new[new.index(outer)] = both
        replaced_loops[outer] = Linear.of(both) - Linear.of(inner) * step
        conditions += [replaced_loops[outer] - lower for lower in outer.lowers]
        conditions += [upper - 1 - replaced_loops[outer] for upper in outer.uppers]
        guards = tuple(guard.replaced(outer, replaced_loops[outer]) for guard in guards)
        for guard in [guard for guard in guards if guard.factors == {both: 1}]:
            both.lowers = (*both.lowers, constant(-guard.constant))
        for guard in [guard for guard in guards if guard.factors == {both: -1}]:
            both.uppers = (*both.uppers, constant(guard.constant + 1))
        guards = tuple(guard for guard in guards if set(guard.factors) != {both} or abs(guard.factor(both)) != 1)
    statement = longer.statement
    moved = Statement(
        statement.op,
        tuple(new),
        statement.position,
        statement.value,
        with_replaced_loops(statement.write, replaced_loops),
        {value: with_replaced_loops(access, replaced_loops) for value, access in statement.reads.items()},
    )
    return Skewed(moved, replaced_loops, (*conditions, *guards), longer.dilated)


def match_pairs(statement: Statement, level: int, reader: Reader) -> tuple[Stretched, list[Pair]]:
    """The pairs of loops that index a dimension together, once all large strides are stretched. Raises `NoMatch`."""
    loops = statement.loops[level:]
    found: list[tuple[Loop, Loop]] = []
    steps: dict[Loop, int] = {}
    for index in statement.write.indices or ():
        walked = sorted((loop for loop in loops_in(index) if loop in loops), key=loops.index)
        if len(walked) < 2:
            continue
        check_pair(index, walked, loops)
        outer = max(walked, key=trip_count)  # the first one if they are equal
        found.append((outer, walked[1 - walked.index(outer)]))
        if index.factor(outer) > 1:
            steps[outer] = index.factor(outer)
    if len(found) < _FEWEST and (not found or len(loops) < _FEWEST_LOOPS):
        raise NoMatch("no scattered sum")
    if len({loop for pair in found for loop in pair}) < 2 * len(found):
        raise NoMatch("a loop indexes two dimensions")
    longer = stretched(statement, steps, reader)
    pairs: list[Pair] = []
    for outer, inner in found:
        outer = longer.loops.get(outer, outer)
        index = next(index for index in longer.statement.write.indices or () if outer in index.factors)
        pairs.append((outer, inner, index.factor(inner)))
    return longer, pairs


def trip_count(loop: Loop) -> int:
    """The trip count, if it is known: the longer of two loops is replaced, or most of the box would be masked."""
    found = [upper - lower for lower in loop.lowers for upper in loop.uppers]
    return min((size.constant for size in found if size.is_constant), default=0)


def check_pair(index: Linear, walked: Sequence[Loop], loops: Sequence[Loop]) -> None:
    """Refuse all but two upward loops whose bounds do not depend on the others."""
    if len(walked) != 2 or any(index.factor(loop) < 1 for loop in walked):
        raise NoMatch("loops index a dimension with other steps")
    bounds = [bound for loop in walked for bound in (*loop.lowers, *loop.uppers)]
    if any(loop in loops for bound in bounds for loop in loops_in(bound)):
        raise NoMatch("the bounds of a loop change")


def with_replaced_loops(access: Access, replaced_loops: Mapping[Loop, Linear]) -> Access:
    """An access in the new loops."""
    if access.indices is None:
        return access
    found = access.indices
    for loop, by in replaced_loops.items():
        found = tuple(index.replaced(loop, by) for index in found)
    return Access(access.array, found)

"""Sums that two loops scatter along a dimension, as sums that are gathered: a loop over the places stands for one.

    for y in 0..H: for k in 0..K: g[y + k] += d[y] * w[k]

becomes, with u = y + k,

    for u in 0..H + K - 1: for k in 0..K: if 0 <= u - k < H: g[u] += d[u - k] * w[k]

as in the gradient of a convolution by its image, where it is a convolution again. An `if` around it that keeps the
place inside of the array (`guards.py`) bounds u; what is stored in large steps is stretched first (`dilate.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlirml.analysis.affine import Linear, Loop, Reader, constant
from mlirml.core.dataclass import dataclass
from mlirml.passes import NoMatch
from mlirml.raising.nests.accumulations import match_combination
from mlirml.raising.nests.dilate import Dilated, Stretched, stretched
from mlirml.raising.nests.guarded_sums import match_guarded
from mlirml.raising.nests.model import Access, Statement

_FEWEST, _FEWEST_LOOPS = 2, 4
"""Along one dimension alone, with fewer loops, the loop that adds a row at each place is as fast."""


@dataclass(frozen=True)
class Skewed:
    """A statement in other loops: those that are `gone` in terms of the others, and what is not negative in a round."""

    statement: Statement
    gone: Mapping[Loop, Linear]
    conditions: tuple[Linear, ...]
    dilated: tuple[Dilated, ...]


Pair = tuple[Loop, Loop, int]
"""The two loops that walk along a dimension, the first one in single steps, the second one in steps of that many."""


def skewed(statement: Statement, level: int, reader: Reader) -> Skewed:
    """Raises `NoMatch` for a statement that scatters no sum along two dimensions, or along one with other loops."""
    if statement.write.array.local:
        raise NoMatch("no scattered sum")
    match_combination(statement)
    guards: tuple[Linear, ...] = ()
    if statement.write.indices is None:
        guarded = match_guarded(statement, reader)
        statement, guards = guarded.statement, guarded.conditions
    longer, pairs = match_pairs(statement, level, reader)
    guards = tuple(longer.moved(guard) for guard in guards)
    gone: dict[Loop, Linear] = {}
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
        gone[outer] = Linear.of(both) - Linear.of(inner) * step
        conditions += [gone[outer] - lower for lower in outer.lowers]
        conditions += [upper - 1 - gone[outer] for upper in outer.uppers]
        guards = tuple(guard.replaced(outer, gone[outer]) for guard in guards)
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
        replaced(statement.write, gone),
        {value: replaced(access, gone) for value, access in statement.reads.items()},
    )
    return Skewed(moved, gone, (*conditions, *guards), longer.dilated)


def match_pairs(statement: Statement, level: int, reader: Reader) -> tuple[Stretched, list[Pair]]:
    """The pairs of loops that walk along a dimension together, once all large steps are stretched. Raises `NoMatch`."""
    loops = statement.loops[level:]
    found: list[tuple[Loop, Loop]] = []
    steps: dict[Loop, int] = {}
    for place in statement.write.indices or ():
        walked = sorted((loop for loop in place.loops if loop in loops), key=loops.index)
        if len(walked) < 2:
            continue
        check_pair(place, walked, loops)
        outer = max(walked, key=rounds)  # the first of equal ones
        found.append((outer, walked[1 - walked.index(outer)]))
        if place.factor(outer) > 1:
            steps[outer] = place.factor(outer)
    if len(found) < _FEWEST and (not found or len(loops) < _FEWEST_LOOPS):
        raise NoMatch("no scattered sum")
    if len({loop for pair in found for loop in pair}) < 2 * len(found):
        raise NoMatch("a loop walks along two dimensions")
    longer = stretched(statement, steps, reader)
    pairs: list[Pair] = []
    for outer, inner in found:
        outer = longer.loops.get(outer, outer)
        place = next(index for index in longer.statement.write.indices or () if outer in index.factors)
        pairs.append((outer, inner, place.factor(inner)))
    return longer, pairs


def rounds(loop: Loop) -> int:
    """How many rounds a loop has, if that is known: the longer one of two goes, or most of the box would be empty."""
    found = [upper - lower for lower in loop.lowers for upper in loop.uppers]
    return min((size.constant for size in found if size.is_constant), default=0)


def check_pair(place: Linear, walked: Sequence[Loop], loops: Sequence[Loop]) -> None:
    """Refuse all but two loops that go upward, and start and end wherever the others are."""
    if len(walked) != 2 or any(place.factor(loop) < 1 for loop in walked):
        raise NoMatch("loops walk along a dimension in other steps")
    bounds = [bound for loop in walked for bound in (*loop.lowers, *loop.uppers)]
    if any(loop in loops for bound in bounds for loop in bound.loops):
        raise NoMatch("the bounds of a loop change")


def replaced(access: Access, gone: Mapping[Loop, Linear]) -> Access:
    """An access in the new loops."""
    if access.indices is None:
        return access
    found = access.indices
    for loop, place in gone.items():
        found = tuple(index.replaced(loop, place) for index in found)
    return Access(access.array, found)

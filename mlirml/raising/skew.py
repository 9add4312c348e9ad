"""Sums that two loops scatter along a dimension, as sums that are gathered: a loop over the places stands for one.

    for y in 0..H: for k in 0..K: g[y + k] += d[y] * w[k]

becomes, with u = y + k,

    for u in 0..H + K - 1: for k in 0..K: if 0 <= u - k < H: g[u] += d[u - k] * w[k]

as in the gradient of a convolution by its image, where it is a convolution again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlirml.dataclass import dataclass
from mlirml.passes import NoMatch
from mlirml.raising.affine import Linear, Loop
from mlirml.raising.combine import match_combination
from mlirml.raising.model import Access, Statement

_FEWEST = 2
"""Along one dimension alone, the loop that adds a row at each place is as fast."""


@dataclass(frozen=True)
class Skewed:
    """A statement in other loops: those that are `gone` in terms of the others, and what is not negative in a round."""

    statement: Statement
    gone: Mapping[Loop, Linear]
    conditions: tuple[Linear, ...]


def skewed(statement: Statement, level: int) -> Skewed:
    """Raises `NoMatch` for a statement that scatters no sum along two dimensions."""
    places, loops = statement.write.indices, statement.loops[level:]
    if places is None or statement.write.array.local:
        raise NoMatch("no scattered sum")
    match_combination(statement)
    gone: dict[Loop, Linear] = {}
    conditions: list[Linear] = []
    new = list(statement.loops)
    for place in places:
        walked = [loop for loop in place.loops if loop in loops]
        if len(walked) < 2:
            continue
        check_pair(place, walked, loops)
        outer, inner = sorted(walked, key=loops.index)
        if gone.keys() & {outer, inner} or any(inner in by.factors for by in gone.values()):
            raise NoMatch("a loop walks along two dimensions")
        both = Loop(
            outer.op,
            tuple(a + b for a in outer.lowers for b in inner.lowers),
            tuple(a + b - 1 for a in outer.uppers for b in inner.uppers),
            independent=outer.independent and inner.independent,
        )
        new[new.index(outer)] = both
        gone[outer] = Linear.of(both) - Linear.of(inner)
        conditions += [gone[outer] - lower for lower in outer.lowers]
        conditions += [upper - 1 - gone[outer] for upper in outer.uppers]
    if len(gone) < _FEWEST:
        raise NoMatch("no scattered sum")
    moved = Statement(
        statement.op,
        tuple(new),
        statement.position,
        statement.value,
        replaced(statement.write, gone),
        {value: replaced(access, gone) for value, access in statement.reads.items()},
    )
    return Skewed(moved, gone, tuple(conditions))


def check_pair(place: Linear, walked: Sequence[Loop], loops: Sequence[Loop]) -> None:
    """Refuse all but two loops that take single steps, and start and end wherever the others are."""
    if len(walked) != 2 or any(place.factor(loop) != 1 for loop in walked):
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

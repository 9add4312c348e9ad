"""Triangles: a product over a triangular domain is split into strips, each computed as far as needed.

Before, for i in range(1024): for j in range(i + 1): for k in range(64): C[i, j] += A[i, k] * A[j, k]
After, for the rows r0 to r1 of each strip: C[r0:r1, :r1] += A[r0:r1] @ A[:r1].T where j <= i

With two strips the work is three quarters of the whole product's, in large contractions. The diagonal may cross two
loops of the result, as here, or one of the result and one of the sum (a triangular operand).
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.core.affine import Linear
from mlirml.passes import NoMatch
from mlirml.raising.recognition.linear import read_halfspace
from mlirml.raising.recognition.nest import Nest
from mlirml.raising.recognition.terms import Mask

STRIP = 256
"""The least width of a strip: narrower contractions would take longer than for the work that they save."""
MOST = 2
"""The maximal number of strips: each is a kernel that takes a tenth of a second to compile. Two save a quarter of the
work, many would save half.
"""
Strip = dict[int, tuple[int, int]]


def match_strips(nest: Nest, masks: Sequence[Mask], out: Sequence[int]) -> list[Strip]:
    """The ranges of the loops that the diagonal crosses, for each strip; none if there is little to save."""
    for mask in masks:
        try:
            edge = read_halfspace(nest, mask)
        except NoMatch:
            continue
        if len(edge.factors) != 2 or not nest.is_static(edge.factors):
            continue
        across = max((d for d in edge.factors if d in out), key=lambda d: nest.sizes[d], default=None)
        if across is None or set(map(abs, edge.factors.values())) != {1} or nest.sizes[across] < 2 * STRIP:
            continue
        strips = cut_strips(nest, edge, across)
        along = next(d for d in edge.factors if d != across)
        whole = nest.sizes[along] * nest.sizes[across]
        if sum((high - low) * (s[along][1] - s[along][0]) for s in strips for low, high in [s[across]]) < 0.9 * whole:
            return strips
    return []


def cut_strips(nest: Nest, edge: Linear, across: int) -> list[Strip]:
    """Strips across one loop, each with the range of the other loop that the diagonal leaves to some of it."""
    along = next(d for d in edge.factors if d != across)
    size, length = nest.sizes[across], nest.sizes[along]
    width = max(STRIP, -(-size // (8 * MOST)) * 8)
    strips: list[Strip] = []
    for low in range(0, size, width):
        high = min(low + width, size)
        # The largest value of the rest of the edge in this strip.
        factor = edge.factors[across]
        room = edge.constant + max(factor * low, factor * (high - 1))
        first, last = (0, min(length, room + 1)) if edge.factors[along] < 0 else (max(0, -room), length)
        if first < last:
            strips.append({across: (low, high), along: (first, last)})
    return strips

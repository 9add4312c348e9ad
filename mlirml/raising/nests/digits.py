"""Flat indices as digits: `i * n + j` with `0 <= j < n` is the index (i, j) into rows of n elements."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.raising.nests.conditions import LinearRanges

_MOST_STRIDES = 6
_WHOLE = (-(1 << 63), 1 << 63)


@dataclass(frozen=True)
class Flat:
    """An index into an array of one dimension, and the ranges that hold at its use."""

    index: Linear
    ranges: LinearRanges


def strides_of(indices: Sequence[Flat], size: int) -> tuple[int, ...] | None:
    """The strides of all dimensions but the last that all indices into an array of `size` elements imply.

    As many as all indices can be split by; None if there is none.
    """
    candidates = sorted(set().union(*(candidates_of(flat.index, size) for flat in indices)), reverse=True)
    if not 0 < len(candidates) <= _MOST_STRIDES:
        return None
    for count in range(len(candidates), 0, -1):
        for strides in itertools.combinations(candidates, count):
            if is_nested((size, *strides)) and all(digits_of(flat, strides) is not None for flat in indices):
                return strides
    return None


def candidates_of(index: Linear, size: int) -> set[int]:
    """The factors in an index that may be sizes of rows: some variable must index within such a row."""
    factors = {abs(factor) for factor in index.factors.values()}
    return {factor for factor in factors if factor > min(factors) and size % factor == 0}


def is_nested(sizes: Sequence[int]) -> bool:
    """True if each size is a multiple of the next one."""
    return all(a % b == 0 and a > b for a, b in itertools.pairwise(sizes))


def digits_of(flat: Flat, strides: Sequence[int]) -> tuple[Linear, ...] | None:
    """An index as one index for each dimension, all but the first known to be in bounds; None if that is not known.

    The first one is in bounds because the index is, and does not overflow.
    """
    digits = [Linear() for _ in (*strides, 1)]
    for variable, factor in flat.index.factors.items():
        place = next(n for n, stride in enumerate((*strides, 1)) if factor % stride == 0)
        digits[place] += Linear.of(variable) * (factor // (*strides, 1)[place])
    sizes = [a // b for a, b in itertools.pairwise((*strides, 1))]
    for constants in _constant_digits(flat.index.constant, strides):
        found = tuple(digit + number for digit, number in zip(digits, constants, strict=True))
        ends = list(map(flat.ranges.range_of, found))
        inside = all(low >= 0 and high < size for (low, high), size in zip(ends[1:], sizes, strict=True))
        if inside and _WHOLE[0] < ends[0][0] * strides[0] and ends[0][1] * strides[0] < _WHOLE[1]:
            return found
    return None


def _constant_digits(number: int, strides: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The ways to split a constant: each digit rounded down or up."""
    if not strides:
        yield (number,)
        return
    down = number // strides[0]
    for first in (down, down + 1):
        for rest in _constant_digits(number - first * strides[0], strides[1:]):
            yield first, *rest

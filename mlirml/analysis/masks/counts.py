"""Counts of the blocks that a mask excludes, where its limits are known without the numbers of a call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from mlirml.analysis.dimensions import Part
from mlirml.analysis.masks.limits import Both, Cut, Either, Limits, Not, Row, Sum
from mlirml.analysis.masks.terms import INDEX, LITERAL, Term
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import NoMatch

_Array: TypeAlias = "np.ndarray"
_OPERATIONS: dict[str, Callable[..., _Array]] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.divsi": lambda a, b: np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)),
    "arith.divui": np.floor_divide,
    "arith.floordivsi": np.floor_divide,
    "arith.minsi": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.index_cast": lambda x: x,
    "arith.extsi": lambda x: x,
    "math.absi": np.abs,
    "arith.select": np.where,
}
_COMPARISONS: dict[int, Callable[..., _Array]] = {
    0: np.equal, 1: np.not_equal, 2: np.less, 3: np.less_equal, 4: np.greater, 5: np.greater_equal,
}  # fmt: skip


@dataclass(frozen=True)
class Counts:
    """The number of blocks, of those that are computed, and of those of them that the mask touches."""

    blocks: int
    computed: int
    touched: int


def count_blocks(limits: Limits, rows: Part, count: int, block: int, width: int) -> Counts:
    """The blocks of `block` rows and `width` columns of one matrix; raises `NoMatch` if they depend on a call."""
    may_low, may_high, low, high = row_limits(limits, rows, np.arange(rows.size), count)
    starts = np.minimum(np.arange(0, rows.size, block), max(rows.size - block, 0))
    edges = [np.array([edge[i : i + block].max() for i in starts]) for edge in (-may_low, may_high, low, -high)]
    first, last = np.minimum(-edges[0], count) // width, -(-edges[1] // width)
    begin = np.clip(-(-edges[2] // width), first, np.maximum(first, last))
    end = np.clip(-edges[3] // width, begin, np.maximum(begin, last))
    computed = np.maximum(last - first, 0)
    return Counts(len(starts) * -(-count // width), int(computed.sum()), int((computed - (end - begin)).sum()))


def row_limits(limits: Limits, rows: Part, at: _Array, count: int) -> tuple[_Array, _Array, _Array, _Array]:
    """The columns of rows where a condition may hold, and where it holds; from `count` to 0 if there are none."""
    none, all_ = (np.full_like(at, count), np.zeros_like(at)), (np.zeros_like(at), np.full_like(at, count))
    if isinstance(limits, Cut):
        low = all_[0] if limits.low is None else np.clip(_total(limits.low, rows, at), 0, count)
        high = all_[1] if limits.high is None else np.clip(_total(limits.high, rows, at), 0, count)
        return _nonempty(low, high, count) * 2
    if isinstance(limits, Row):
        holds = _value(limits.condition, rows, at).astype(bool)
        return (np.where(holds, all_[0], none[0]), np.where(holds, all_[1], none[1])) * 2
    if isinstance(limits, Both):
        a, b = row_limits(limits.a, rows, at, count), row_limits(limits.b, rows, at, count)
        may = _nonempty(np.maximum(a[0], b[0]), np.minimum(a[1], b[1]), count)
        return may + _nonempty(np.maximum(a[2], b[2]), np.minimum(a[3], b[3]), count)
    if isinstance(limits, Either):
        a, b = row_limits(limits.a, rows, at, count), row_limits(limits.b, rows, at, count)
        touch, longer = (a[2] <= b[3]) & (b[2] <= a[3]), a[3] - a[2] >= b[3] - b[2]
        low = np.where(touch, np.minimum(a[2], b[2]), np.where(longer, a[2], b[2]))
        high = np.where(touch, np.maximum(a[3], b[3]), np.where(longer, a[3], b[3]))
        return np.minimum(a[0], b[0]), np.maximum(a[1], b[1]), low, high
    if isinstance(limits, Not):
        a = row_limits(limits.a, rows, at, count)
        return _others(a[2], a[3], count, all_) + _others(a[0], a[1], count, none)
    return all_ + none


def _nonempty(low: _Array, high: _Array, count: int) -> tuple[_Array, _Array]:
    return np.where(low < high, low, count), np.where(low < high, high, 0)


def _others(low: _Array, high: _Array, count: int, between: tuple[_Array, _Array]) -> tuple[_Array, _Array]:
    after, before = _nonempty(high, np.full_like(high, count), count), _nonempty(np.zeros_like(low), low, count)
    found = []
    for number, whole in enumerate((0, count)):
        edge = np.where(low <= 0, after[number], np.where(high >= count, before[number], between[number]))
        found.append(np.where(low >= high, whole, edge))
    return found[0], found[1]


def _total(sum_: Sum, rows: Part, at: _Array) -> _Array:
    total = np.full_like(at, sum_.constant)
    for sign, term in sum_.terms:
        total = total + sign * _value(term, rows, at)
    total = total * sum_.scale + sum_.shift
    for sign, term in sum_.rest:
        total = total + sign * _value(term, rows, at)
    return total


def _value(term: Term, rows: Part, at: _Array) -> _Array:
    """A term for rows of a matrix; raises `NoMatch` if it depends on a call, or on the matrix."""

    @functools.cache
    def value(term: Term) -> _Array:
        return _computed(term, rows, at, value)

    return value(term)


def _computed(term: Term, rows: Part, at: _Array, value: Callable[[Term], _Array]) -> _Array:
    if term.name == INDEX and term.payload == rows:
        return at
    if term.name == LITERAL:
        return np.full_like(at, int(term.payload))
    if term.name == "arith.cmpi" and term.op is not None:
        compare = _COMPARISONS.get(term.op.attributes["predicate"].value)
    else:
        compare = _OPERATIONS.get(term.name)
    if compare is None:
        raise NoMatch("limits that depend on a call")
    return compare(*map(value, term.args))

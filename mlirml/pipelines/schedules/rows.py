"""Operations that work row by row share the loop over the rows: a row is in cache when the next operation reads it.

    for i in rows: m[i] = max(x[i])              for i in rows:
    for i in rows: e[i] = exp(x[i] - m[i])  ->       m[i] = max(x[i])
    for i in rows: y[i] = e[i] / sum(e[i])           e[i] = exp(x[i] - m[i])
                                                     y[i] = e[i] / sum(e[i])

What one operation writes and another touches must be the same row in both.
"""  # fmt: skip

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mlirml.ir import mlir
from mlirml.passes import NoMatch
from mlirml.pipelines.schedules import cost
from mlirml.pipelines.schedules.elementwise import loop, outer_order
from mlirml.pipelines.schedules.frame import Frame
from mlirml.pipelines.schedules.nest import Access, Nest, root
from mlirml.pipelines.schedules.structured import Structured, lower

FEWEST_ROWS = 32
SHORTEST_ROW = 32
"""A group needs rows enough for all threads, and long enough for vectors."""


def row_nest(nest: Nest, rows: int) -> Nest:
    """The nest with a loop over `rows` rows outermost; NoMatch where its loops do not give one."""
    nest = nest.without_unit_dims()
    parallel = outer_order(nest, [d for d in range(nest.rank) if not nest.reduction[d]])
    nest = nest.permuted([*parallel, *(d for d in range(nest.rank) if nest.reduction[d])])
    while nest.rank > 1 and nest.sizes[0] < rows and nest.can_collapse(0):
        nest = nest.collapse(0)
    if not nest.rank or nest.sizes[0] != rows or nest.reduction[0] or nest.origin[0] in nest.pinned:
        raise NoMatch("the outer loops are not the rows")
    if any(nest.out(number).strides[0] == 0 for number in range(nest.outs)):
        raise NoMatch("an out is not cut into rows")
    if not all(within_row(nest, access) for access in nest.memory if access.strides[0]):
        raise NoMatch("the rows of an operand lie across each other")
    return nest


def pivot_rows(item: Structured) -> int:
    """The number of rows that a reduction works on one by one; NoMatch for other operations."""
    if item.is_elementwise:
        raise NoMatch("not a reduction")
    nest = item.nest.without_unit_dims()
    parallel = outer_order(nest, [d for d in range(nest.rank) if not nest.reduction[d]])
    nest = nest.permuted([*parallel, *(d for d in range(nest.rank) if nest.reduction[d])]).collapsed()
    if not nest.rank or nest.reduction[0] or nest.sizes[0] < FEWEST_ROWS:
        raise NoMatch("too few rows")
    if math.prod(nest.sizes[1:]) < SHORTEST_ROW:
        raise NoMatch("the rows are short")
    return nest.sizes[0]


def groups(items: Sequence[Structured]) -> Iterator[list[Structured]]:
    """Cut neighbours in a block into groups that share their loop over rows; most groups have one member."""
    start = 0
    while start < len(items):
        found = group_at(items, start) or [items[start]]
        yield found
        start += len(found)


def group_at(items: Sequence[Structured], start: int) -> list[Structured]:
    """The longest group that starts here; empty if there is none of two or more."""
    pivot = next((n for n in range(start, len(items)) if not items[n].is_elementwise), None)
    if pivot is None:
        return []
    try:
        rows = pivot_rows(items[pivot])
    except NoMatch:
        return []
    members: list[Structured] = []
    for item in items[start:]:
        try:
            member = item.with_nest(row_nest(item.nest, rows))
        except NoMatch:
            break
        if members and not any(shares(member, other) for other in members):
            break
        if not all(row_local(other, member) for other in members):
            break
        members.append(member)
    worth_it = len(members) > max(1, pivot - start) and total_ns(members) >= cost.PARALLEL_NS
    return members if worth_it else []


def total_ns(members: Sequence[Structured]) -> float:
    return sum(cost.iteration_ns(m.nest, m.body.ops) * math.prod(m.nest.sizes) for m in members)


def shares(one: Structured, other: Structured) -> bool:
    """Whether two operations touch the same memory, so that the cache helps."""
    mine = {root(access.operand) for access in one.nest.memory}
    return any(root(access.operand) in mine for access in other.nest.memory)


def row_local(earlier: Structured, later: Structured) -> bool:
    """Whether what one of the two writes is touched by the other in the same row only."""
    for one, other in ((earlier, later), (later, earlier)):
        for number in range(one.nest.outs):
            out = one.nest.out(number)
            for access in other.nest.memory:
                if root(out.operand) == root(access.operand) and not same_row(out, access):
                    return False
        if reads_elements_of(one, other):
            return False
    return True


def same_row(access: Access, other: Access) -> bool:
    """Whether row i of both is the same memory; `row_nest` has made sure that it meets no other row."""
    return access.operand == other.operand and access.strides[0] == other.strides[0] != 0


def within_row(nest: Nest, access: Access) -> bool:
    """Whether a row of an access lies between the start of its row and the start of the next."""
    steps = [(size - 1) * stride for size, stride in zip(nest.sizes[1:], access.strides[1:], strict=True)]
    first = access.offset + sum(step for step in steps if step < 0)
    last = access.offset + sum(step for step in steps if step > 0)
    return first >= 0 and last < access.strides[0]


def reads_elements_of(one: Structured, other: Structured) -> bool:
    """Whether a body loads elements, at any place, of what the other operation writes."""
    written = {root(other.nest.out(number).operand) for number in range(other.nest.outs)}
    return any(op.name == "memref.load" and root(op.operands[0]) in written for op in one.body.ops)


def lower_group(members: Sequence[Structured], vector_bits: int) -> None:
    """Build one loop over the rows, in front of the last member."""
    last = members[-1].op
    rows = members[0].nest.sizes[0]
    frame = Frame(last)
    grain = cost.grain(rows, total_ns(members) / rows)

    def body(i: mlir.Value) -> None:
        for member in members:
            with member.op.location:
                inner = Frame(member.op, frame)
                lower(member.with_nest(enter_row(inner, member.nest, i)), inner, vector_bits)

    loop(frame, rows, body, grain=grain)


def enter_row(frame: Frame, nest: Nest, i: mlir.Value) -> Nest:
    """The nest of one row."""
    bases: dict[int, mlir.Value] = {}

    def inside(access: Access | None) -> Access | None:
        if access is None:
            return None
        stride = access.strides[0]
        if stride and stride not in bases:
            bases[stride] = frame.multiply(i, stride)
        return replace(access, strides=access.strides[1:], base=(bases[stride],) if stride else ())

    accesses = tuple(map(inside, nest.accesses))
    return replace(
        nest,
        sizes=nest.sizes[1:],
        reduction=nest.reduction[1:],
        accesses=accesses,
        origin=nest.origin[1:],
        entered=(*nest.entered, (nest.origin[0], i)),
    )

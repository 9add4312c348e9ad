"""Fuse the row loops of operations that work row by row: a row is in cache when the next operation reads it.

    for i in rows: m[i] = max(x[i])              for i in rows:
    for i in rows: e[i] = exp(x[i] - m[i])  ->       m[i] = max(x[i])
    for i in rows: y[i] = e[i] / sum(e[i])           e[i] = exp(x[i] - m[i])
                                                     y[i] = e[i] / sum(e[i])

Memory that one operation writes and another accesses must be the same row in both. Rows of rows, if an operand is the
same for all of the outer ones, as a mask is, become two loops: the operations in the outer one are grouped recursively.
"""  # fmt: skip

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mlirml.analysis.costs import costs
from mlirml.codegen.cpu import cost
from mlirml.codegen.cpu.elementwise.loops import loop, outer_order
from mlirml.codegen.cpu.frame import Frame
from mlirml.codegen.cpu.loop_schedule import current, schedule_of
from mlirml.codegen.cpu.nest import Access, Nest, root
from mlirml.codegen.cpu.structured import Structured, lower
from mlirml.core.dataclass import replace
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

FEWEST_ROWS = 32
SHORTEST_ROW = 32
"""A group needs enough rows for all threads, that are long enough for vectors."""
LONG_ROW_BYTES = 128
"""Sharing the loop does not pay for operations that share shorter rows only."""


def row_nest(nest: Nest, rows: int) -> Nest:
    """The nest with a loop over `rows` rows outermost; NoMatch if its loops do not allow one."""
    nest = nest.without_unit_dims()
    parallel = outer_order(nest, [d for d in range(nest.rank) if not nest.reduction[d]])
    nest = nest.permuted([*parallel, *(d for d in range(nest.rank) if nest.reduction[d])])
    while nest.rank > 1 and nest.sizes[0] < rows and nest.can_collapse(0):
        nest = nest.collapse(0)
    if not nest.rank or nest.sizes[0] != rows or nest.reduction[0]:
        raise NoMatch("the outer loops are not the rows")
    if any(nest.out(number).strides[0] == 0 for number in range(nest.num_outputs)):
        raise NoMatch("an output is not split into rows")
    if not all(within_row(nest, access) for access in nest.memory if access.strides[0]):
        raise NoMatch("the rows of an operand lie across each other")
    return nest


def pivot_rows(item: Structured) -> list[int]:
    """The numbers of rows that a reduction can be split into, the best first; NoMatch for other operations."""
    if item.is_elementwise:
        raise NoMatch("not a reduction")
    nest = item.nest.without_unit_dims()
    parallel = outer_order(nest, [d for d in range(nest.rank) if not nest.reduction[d]])
    nest = nest.permuted([*parallel, *(d for d in range(nest.rank) if nest.reduction[d])])
    found = [rows for rows in (nest.collapsed(), nest) if has_rows(rows)]
    if not found:
        raise NoMatch("too few rows, or they are short")
    return list(dict.fromkeys(rows.sizes[0] for rows in found))


def has_rows(nest: Nest) -> bool:
    """True if the outermost loop has enough rows, by itself or with the next one."""
    if not nest.rank or nest.reduction[0] or math.prod(nest.sizes[1:]) < SHORTEST_ROW:
        return False
    rows_of_rows = nest.rank > 1 and not nest.reduction[1] and nest.sizes[1] >= FEWEST_ROWS
    return nest.sizes[0] >= FEWEST_ROWS or rows_of_rows


def groups(items: Sequence[Structured], in_parallel: bool = False) -> Iterator[list[Structured]]:
    """Partition adjacent operations in a block into groups that share their loop over rows; most have one member.

    In a parallel loop (`in_parallel`), groups are formed for cache reuse alone.
    """
    start = 0
    pivots = [number for number, item in enumerate(items) if not item.is_elementwise][::-1]
    while start < len(items):
        while pivots and pivots[-1] < start:
            pivots.pop()
        found = group_at(items, start, pivots[-1]) if pivots else []
        if len(found) < 2 or not (fills_cache(found) if in_parallel else total_ns(found) >= costs().parallel_ns):
            found = [items[start]]
        if len(found) > 1 and not all(schedule_of(item.op).join for item in found):
            found = [items[start]]
        yield found
        start += len(found)


def group_at(items: Sequence[Structured], start: int, pivot: int) -> list[Structured]:
    """The longest group that starts here, with the next reduction; empty if there is none of two or more."""
    try:
        choices = pivot_rows(items[pivot])
    except NoMatch:
        return []
    return max((group_of(items, start, pivot, rows) for rows in choices), key=len)


def group_of(items: Sequence[Structured], start: int, pivot: int, rows: int) -> list[Structured]:
    """The group that starts here and works on so many rows."""
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
    while members and not any(shares_rows(members[-1], other) for other in members[:-1]):
        members.pop()
    return members if len(members) > max(1, pivot - start) else []


def fills_cache(members: Sequence[Structured]) -> bool:
    """True if the next operation would not find the output of the previous ones in cache."""
    return 4 * sum(cost.footprint(member.nest) for member in members) > costs().cache_bytes


def total_ns(members: Sequence[Structured]) -> float:
    return sum(cost.iteration_ns(m.nest, m.body.ops) * math.prod(m.nest.sizes) for m in members)


def shares(one: Structured, other: Structured) -> bool:
    """True if two operations access the same memory, so that the cache helps."""
    mine = {root(access.operand) for access in one.nest.memory}
    return any(root(access.operand) in mine for access in other.nest.memory)


def shares_rows(one: Structured, other: Structured) -> bool:
    """True if two operations access the same long rows; a scalar for each row does not count."""
    mine = {root(access.operand) for access in one.nest.memory if is_long_row(one.nest, access)}
    return any(root(a.operand) in mine for a in other.nest.memory if is_long_row(other.nest, a))


def is_long_row(nest: Nest, access: Access) -> bool:
    """True if the rows of an access are some cache lines long."""
    row_sizes = [size for size, stride in zip(nest.sizes[1:], access.strides[1:], strict=True) if stride]
    return access.bytes * math.prod(row_sizes) >= LONG_ROW_BYTES


def row_local(earlier: Structured, later: Structured) -> bool:
    """True if memory that one of the two writes is accessed by the other in the same row only."""
    for one, other in ((earlier, later), (later, earlier)):
        for number in range(one.nest.num_outputs):
            out = one.nest.out(number)
            for access in other.nest.memory:
                if root(out.operand) == root(access.operand) and not same_row(out, access):
                    return False
        if reads_elements_of(one, other):
            return False
    return True


def same_row(access: Access, other: Access) -> bool:
    """True if row i of both is the same memory; `row_nest` has checked that it overlaps no other row."""
    same = access.operand == other.operand and access.base == other.base
    return same and access.strides[0] == other.strides[0] != 0


def within_row(nest: Nest, access: Access) -> bool:
    """True if a row of an access is between the start of its row and the start of the next."""
    steps = [(size - 1) * stride for size, stride in zip(nest.sizes[1:], access.strides[1:], strict=True)]
    first = access.offset + sum(step for step in steps if step < 0)
    last = access.offset + sum(step for step in steps if step > 0)
    return first >= 0 and last < access.strides[0]


def reads_elements_of(one: Structured, other: Structured) -> bool:
    """True if a body loads elements, at any index, of memory that the other operation writes."""
    return any(one.body_effects.touches(other.nest.out(number).operand) for number in range(other.nest.num_outputs))


def lower_group(members: Sequence[Structured], vector_bits: int, around: Frame | None = None) -> None:
    """Build one loop over the rows, before the last member, or at the insertion point in another group's loop."""
    last = members[-1].op
    if around is None:
        members = in_blocks(members, current().rows)
    rows = members[0].nest.sizes[0]
    frame = around or Frame(last)
    grain = 0 if frame.in_parallel else rows_grain(rows, total_ns(members) / rows)

    def body(i: mlir.Value) -> None:
        bases: dict[tuple[tuple[mlir.Value, ...], int], tuple[mlir.Value, ...]] = {}
        entered = []
        for member in members:
            inner = Frame(member.op, frame, in_parallel=frame.in_parallel or grain > 0)
            with member.op.location:
                entered.append(member.with_nest(enter_row(inner, member.nest, i, bases)))
        for group in groups(entered, frame.in_parallel or grain > 0):
            inner = Frame(group[-1].op, frame, in_parallel=frame.in_parallel or grain > 0)
            with group[-1].op.location:
                if len(group) > 1:
                    lower_group(group, vector_bits, inner)
                else:
                    lower(group[0], inner, vector_bits)

    loop(frame, rows, body, grain=grain)


def in_blocks(members: Sequence[Structured], rows: int) -> Sequence[Structured]:
    """The members with a loop over blocks of so many rows outermost, where all of them allow it."""
    size = members[0].nest.sizes[0]
    if rows == 1 or size % rows or any(member.nest.origin[0] in member.nest.pinned for member in members):
        return members
    return [member.with_nest(split_rows(member.nest, rows)) for member in members]


def split_rows(nest: Nest, rows: int) -> Nest:
    """The nest with its outermost loop as two, of which the inner one is over `rows` rows."""

    def split(access: Access | None) -> Access | None:
        stride = access.strides[0] if access is not None else 0
        return access and replace(access, strides=(stride * rows, *access.strides))

    return replace(
        nest,
        sizes=(nest.sizes[0] // rows, rows, *nest.sizes[1:]),
        reduction=(False, *nest.reduction),
        origin=(-1, *nest.origin),
        accesses=tuple(map(split, nest.accesses)),
    )


def rows_grain(rows: int, each_ns: float) -> int:
    """The grain of a loop over rows with this time each; 0 if threads should rather split each of few long ones."""
    return 0 if rows < FEWEST_ROWS and each_ns >= costs().parallel_ns else cost.grain(rows, each_ns)


def enter_row(
    frame: Frame,
    nest: Nest,
    i: mlir.Value,
    bases: dict[tuple[tuple[mlir.Value, ...], int], tuple[mlir.Value, ...]],
) -> Nest:
    """The nest of one row; `bases` are the offsets of rows, which operations share."""

    def row_access(access: Access | None) -> Access | None:
        if access is None:
            return None
        stride = access.strides[0]
        key = access.base, stride
        if stride and key not in bases:
            start = frame.multiply(i, stride)
            bases[key] = (frame.add(access.base[0], start) if access.base else start,)
        return replace(access, strides=access.strides[1:], base=bases[key] if stride else access.base)

    accesses = tuple(map(row_access, nest.accesses))
    return replace(
        nest,
        sizes=nest.sizes[1:],
        reduction=nest.reduction[1:],
        accesses=accesses,
        origin=nest.origin[1:],
        entered=(*nest.entered, (nest.origin[0], i)),
    )

"""Groups of operations on a matrix that a comparison of indices masks, and what of them need not be computed."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress

from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.costs import costs
from mlirml.analysis.dimensions import Member, Part, Parts, along, follow
from mlirml.analysis.masks.bounds import Guard
from mlirml.analysis.masks.counts import Counts, count_blocks
from mlirml.analysis.masks.limits import Limits, Not, has_limits, is_truth, limits_of
from mlirml.analysis.masks.skipped import Skipping, check
from mlirml.analysis.masks.terms import Term, Terms, is_parallel_result
from mlirml.analysis.values import captured_values
from mlirml.codegen.cpu.contract.problem import Contraction, match_contraction
from mlirml.core.dataclass import dataclass, replace
from mlirml.core.no_match import attempt
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import NoMatch
from mlirml.pipelines.tensor.tiling.attention import block_rows, chain_from, used_after
from mlirml.pipelines.tensor.tiling.row_limits import can_build, terms_of

BATCH, ROWS, COLUMNS = 0, 1, 2
"""The tiled dimensions."""
_FEWEST = 256
"""The minimum number of rows and of columns."""
_NARROWEST, _WIDEST = 128, 256
"""The limits of the number of columns of a tile."""
_BLOCK = 128
"""The number of rows of a block of one product."""
_MOST_ROWS, _STEP = 256, 16
"""The maximum number of rows of a block that is larger so that threads share it, and the divisor of this number."""


@dataclass(frozen=True)
class Group:
    """Operations in order that are tiled by rows and columns, and the values of them that others use."""

    members: tuple[Member, ...]
    results: dict[mlir.Value, Parts]
    batches: int
    rows: Part
    columns: Part
    block: int

    @property
    def last(self) -> mlir.Operation:
        """The last operation."""
        return self.members[-1].op


@dataclass(frozen=True)
class Masked:
    """A group with the limits of its mask, and the conditions under which blocks outside of them are left out.

    `needs` are the dimensions of which each row must have a position that is not masked. `fills` has the numbers that
    results are at masked positions, and `facts` whether truth values in the bodies hold where nothing is masked.
    """

    group: Group
    condition: Term
    limits: Limits
    guards: tuple[Guard, ...]
    needs: tuple[tuple[Part, Part, Limits], ...]
    fills: dict[mlir.Value, float]
    facts: dict[mlir.Value, bool]

    @property
    def counts(self) -> Counts | None:
        """The numbers of blocks, if they do not depend on a call."""
        group = self.group
        width = tile_width(group.columns.size)
        return attempt(count_blocks, self.limits, group.rows, group.columns.size, group.block, width)


def match_masked(op: mlir.Operation, used: Container[mlir.Operation] = (), *, threads: bool = False) -> Masked:
    """Match a group that begins with an operation, without operations that are `used`. Raises `NoMatch`.

    With `threads` blocks have so many rows that each product on a tile is worth several threads.
    """
    for find in (product_chains, masked_products):
        for group in find(op):
            if any(member.op in used for member in group.members):
                continue
            try:
                return match_mask(replace(group, block=shared_block(op, group)) if threads else group)
            except NoMatch:
                continue
    raise NoMatch("nothing is masked by a comparison of indices")


def shared_block(op: mlir.Operation, group: Group) -> int:
    """The number of rows of a block for which the first product on a tile is worth several threads."""
    work = math.prod(match_contraction(op).sizes)
    column = work // (group.batches * group.rows.size * group.columns.size) * tile_width(group.columns.size)
    rows = math.ceil(costs().products / column / _STEP) * _STEP
    return min(group.rows.size, max(group.block, min(rows, _MOST_ROWS)))


def product_chains(first: mlir.Operation) -> Iterator[Group]:
    """The groups of a product and what is computed from its elements, up to another product if there is one."""
    try:
        contraction = match_contraction(first)
    except NoMatch:
        return
    for find in (chain_from, consumers_of):
        for side in (0, 1):
            with suppress(NoMatch):
                yield chain(contraction, side, find(first))


def consumers_of(first: mlir.Operation) -> list[mlir.Operation]:
    """A product and the elementwise operation that alone uses it."""
    users = [use.owner.operation for use in first.results[0].uses]
    if len(users) != 1 or users[0].name != "linalg.generic" or users[0].block != first.block:
        raise NoMatch("no one operation uses the product")
    return [first, users[0]]


def chain(contraction: Contraction, side: int, ops: list[mlir.Operation]) -> Group:
    """The operations, tiled by the rows of operand `side` of the first product and the columns of the other one."""
    first, *others = ops
    own, other, out = (set(contraction.maps[n]) for n in (side, 1 - side, 2))
    rows = [d for d in contraction.maps[2] if d in own - other and contraction.sizes[d] > 1]
    columns = [d for d in contraction.maps[2] if d in other - own and contraction.sizes[d] > 1]
    if len(rows) != 1 or len(columns) != 1 or len(first.results) != 1:
        raise NoMatch("not one dim of rows and one of columns")
    (row,), (column,) = rows, columns
    loops = {row: Part(ROWS, contraction.sizes[row]), column: Part(COLUMNS, contraction.sizes[column])}
    batches = add_batches(loops, contraction, own & other & out)
    members = [along(first, loops)]
    extend(members, others)
    element = first.results[0].type.element_type.width // 8
    return finished(
        members, ops, batches, loops[row], loops[column], block_rows(loops[row].size, element * loops[column].size)
    )


def masked_products(op: mlir.Operation) -> Iterator[Group]:
    """The groups of one product, whose sum is over the columns of one operand, with what computes this operand."""
    try:
        contraction = match_contraction(op)
    except NoMatch:
        return
    for side in (0, 1):
        with suppress(NoMatch):
            yield masked_product(op, contraction, side)


def masked_product(op: mlir.Operation, contraction: Contraction, side: int) -> Group:
    """A product, tiled by the dimension of operand `side` that it keeps and by the one that it sums over."""
    own, other, out = (set(contraction.maps[n]) for n in (side, 1 - side, 2))
    rows = [d for d in contraction.maps[side] if d in (own & out) - other and contraction.sizes[d] > 1]
    columns = [d for d in contraction.maps[side] if d in (own & other) - out and contraction.sizes[d] > 1]
    if len(rows) != 1 or len(columns) != 1 or len(op.results) != 1:
        raise NoMatch("not one dim of rows and one of columns")
    (row,), (column,) = rows, columns
    loops = {row: Part(ROWS, contraction.sizes[row]), column: Part(COLUMNS, contraction.sizes[column])}
    batches = add_batches(loops, contraction, own & other & out)
    members, ops = [along(op, loops)], [op]
    made = defining_op(op.operands[side])
    if made is not None and made.name == "linalg.generic" and made.block == op.block and len(made.results) == 1:
        users = [use.owner.operation for use in made.results[0].uses]
        producer = follow(made, {len(made.operands): members[0].parts[side]})
        if users == [op] and is_parallel_result(producer, 0):
            members, ops = [producer, *members], [made, op]
    return finished(members, ops, batches, loops[row], loops[column], min(_BLOCK, loops[row].size))


def add_batches(loops: dict[int, Part], contraction: Contraction, dims: set[int]) -> int:
    """Add the dims of all operands to the tiled ones, one index at a time; returns the number of their indices."""
    batches = 1
    for d in reversed([d for d in contraction.maps[2] if d in dims and contraction.sizes[d] > 1]):
        loops[d] = Part(BATCH, contraction.sizes[d], batches, single=True)
        batches *= contraction.sizes[d]
    return batches


def extend(members: list[Member], others: Sequence[mlir.Operation]) -> None:
    """Add operations that depend on the first one."""
    parts = dict(members[0].results)
    for op in others:
        member = follow(op, {n: parts[value] for n, value in enumerate(op.operands) if value in parts})
        for result in member.results.values():
            lost = set(member.loops.values()) - set(result)
            if any(part.axis != COLUMNS for part in lost):
                raise NoMatch("rows are reduced")
        if any(value in parts for value in captured_values(op)):
            raise NoMatch("a body reads the chain")
        members.append(member)
        parts |= member.results


def finished(
    members: list[Member], ops: list[mlir.Operation], batches: int, rows: Part, columns: Part, block: int
) -> Group:
    """The group of these members; raises `NoMatch` if it cannot be tiled, or need not be."""
    if rows.size < _FEWEST or columns.size < _FEWEST:
        raise NoMatch("a small matrix")
    parts: dict[mlir.Value, Parts] = {}
    for member in members:
        parts |= member.results
    results = {value: parts[value] for value in used_after(ops)}
    for found in results.values():
        if sum(part is not None and part.axis == ROWS for part in found) != 1 or batches != math.prod(
            part.size for part in found if part is not None and part.axis == BATCH
        ):
            raise NoMatch("a result does not have all rows")
    return Group(tuple(members), results, batches, rows, columns, block)


def match_mask(group: Group) -> Masked:
    """The mask of a group, outside of which nothing has to be computed. Raises `NoMatch`."""
    terms = Terms({v: member for member in group.members for v in member.results}, (group.rows, group.columns))
    for condition in conditions(group, terms):
        limits = limits_of(condition, group.columns)
        if not has_limits(limits) or not all(map(can_build, terms_of(limits))):
            continue
        for holds in (True, False):
            try:
                return checked(group, terms, condition, limits if holds else Not(limits), holds)
            except NoMatch:
                continue
    raise NoMatch("nothing is masked by a comparison of indices")


def conditions(group: Group, terms: Terms) -> list[Term]:
    """The conditions by which elements of a group are selected, in order."""
    found: dict[Term, None] = {}
    seen: set[Term] = set()

    def visit(term: Term) -> None:
        if term in seen:
            return
        seen.add(term)
        for arg in term.args:
            visit(arg)
        if term.name == "arith.select" and not is_truth(term) and term.args[0].depends_on(group.columns):
            found[term.args[0]] = None

    for member in group.members:
        if member.op.name == "linalg.generic":
            for value in block_ops(member.op.regions[0].blocks[0])[-1].operands:
                visit(terms.value(member, value))
        elif member.maps:
            for value, parts in zip(list(member.op.operands)[: member.inputs], member.parts):
                if any(parts):
                    visit(terms.of(value, parts))
    return [condition for condition in found if condition.is_known]


def checked(group: Group, terms: Terms, condition: Term, limits: Limits, holds: bool) -> Masked:
    """A mask by which blocks can be left out; raises `NoMatch` for others."""
    at = Skipping(terms, condition, holds, most_elements(group))
    fills: dict[mlir.Value, float] = {}
    for member in group.members:
        for value, parts in member.results.items():
            if has_columns(member) and group.columns not in parts:
                check_reduction(at, group, member, (value, parts))
            elif group.columns in parts and value in group.results:
                fill = at.number(terms.of(value, parts))
                if fill is None:
                    raise NoMatch("a result is not constant where it is masked")
                fills[value] = fill
    needs = []
    for part in at.needs:
        other = group.rows if part == group.columns else group.columns
        found = limits_of(condition, part)
        if not all(map(can_build, terms_of(found))):
            raise NoMatch("limits of rows that are not known before")
        needs.append((part, other, found if holds else Not(found)))
    facts = {}
    for member in group.members:
        for value in truths(member):
            if terms.value(member, value) is condition:
                facts[value] = holds
    result = Masked(group, condition, limits, tuple(at.guards), tuple(needs), fills, facts)
    count = result.counts
    if count is not None and count.computed == count.blocks:
        raise NoMatch("no block is masked whole")
    return result


def most_elements(group: Group) -> int:
    """The size of a tensor whose largest element is computed in far less time than the group."""
    matrix, out = group.batches * group.rows.size * group.columns.size, group.last.results[0].type
    wide = out.shape[-1] if group.last.name in CONTRACTIONS and len(out.shape) > 1 else 1
    return max(matrix // 2, matrix * wide // 64)


def check_reduction(at: Skipping, group: Group, member: Member, element: tuple[mlir.Value, Parts]) -> None:
    """Check that masked columns do not change a reduction."""
    if member.op.name in CONTRACTIONS:
        factors = list(zip(list(member.op.operands)[:2], member.parts))
        for (a, a_parts), (b, b_parts) in (factors, factors[::-1]):
            if any(a_parts) and at.number(at.terms.of(a, a_parts)) == 0.0:
                if at.largest(b) is None and at.of(at.terms.of(b, b_parts), True) is None:
                    continue
                return
        raise NoMatch("no factor is zero where it is masked")
    found = at.combined(element)
    if found is None or at.reduced(element) != group.columns:
        raise NoMatch("another reduction")
    check(at, found[1], found[0], group.columns)


def truths(member: Member) -> list[mlir.Value]:
    """The truth values in the body of a member."""
    if member.op.name != "linalg.generic":
        return []
    body = member.op.regions[0].blocks[0]
    inner = [result for op in block_ops(body) for result in op.results]
    return [
        value
        for value in [*list(body.arguments)[: member.inputs], *inner]
        if isinstance(value.type, mlir.IntegerType) and value.type.width == 1
    ]


def has_columns(member: Member) -> bool:
    """True if an operation has the dimension of columns, whether it keeps or reduces it."""
    return any(part is not None and part.axis == COLUMNS for parts in member.parts for part in parts)


def tile_width(columns: int) -> int:
    """The number of columns of a tile."""
    return max(_NARROWEST, min(_WIDEST, columns // 4 // 64 * 64))


def described(found: Masked) -> str:
    """The remark for the user about the blocks that are not computed."""
    group, count = found.group, found.counts
    width = tile_width(group.columns.size)
    each = f"{group.batches} matrices" if group.batches > 1 else "a matrix"
    start = f"{each} of {group.rows.size}x{group.columns.size} by blocks of {group.block}x{width}"
    if count is None:
        return (
            f"{start}: those that the mask excludes are left out, those that it does not touch are computed without it"
        )
    return f"{start}: {count.computed} of {count.blocks} are computed, {count.touched} of them with the mask"

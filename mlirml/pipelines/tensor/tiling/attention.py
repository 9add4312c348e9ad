"""Two products with a chain of row-wise operations between them, and the loop over batches and blocks of rows."""

from __future__ import annotations

import math

from mlirml.analysis.cost import bytes_of
from mlirml.analysis.dimensions import Member, Part, Parts, along, follow
from mlirml.analysis.traits import RESHAPES
from mlirml.analysis.values import ancestor_in, captured_values
from mlirml.codegen.cpu.contract.problem import CONTRACTIONS, Contraction, match_contraction
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir
from mlirml.passes import NoMatch
from mlirml.pipelines.tensor.tiling.tile import Tile

BLOCK_BYTES = 1 << 18
"""The size of the scores of a block of rows; the minimum block may be larger."""
FEWEST_ROWS, STEP = 64, 16
"""The minimum number of rows of a block, and the divisor of this number."""

_BETWEEN = ("linalg.generic", "tensor.extract_slice", *RESHAPES)
_BATCH, _ROWS = 0, 1


@dataclass(frozen=True)
class Attention:
    """The operations in their order, from the first product to the last, for `batches` times `rows` rows.

    Of these `block` are computed at a time. `results` are the values with other users: the result of the last product,
    and intermediate values that are used after it.
    """

    members: tuple[Member, ...]
    results: dict[mlir.Value, Parts]
    batches: int
    rows: int
    block: int

    @property
    def last(self) -> mlir.Operation:
        """The last product."""
        return self.members[-1].op


def match_attention(first: mlir.Operation, l2_bytes: int) -> Attention:
    """Match the chain that starts with a product. Raises `NoMatch`."""
    contraction = match_contraction(first)
    if len(first.results) != 1:
        raise NoMatch("the product is no tensor")
    if 2 * bytes_of(first.results[0]) <= l2_bytes:
        raise NoMatch("the scores stay in cache")
    ops = chain_from(first)
    if not any(op.name == "linalg.generic" and "reduction" in str(op.attributes["iterator_types"]) for op in ops):
        raise NoMatch("nothing needs whole rows")
    try:
        return by_rows(contraction, 0, ops, l2_bytes)
    except NoMatch:
        return by_rows(contraction, 1, ops, l2_bytes)


def chain_from(first: mlir.Operation) -> list[mlir.Operation]:
    """The operations between a product and the next product that depends on it, both included, in order."""
    found, todo, ends = {first}, [first], set[mlir.Operation]()
    while todo:
        for user in users(todo.pop()):
            if user in found or user.block != first.block:
                continue
            if user.name in CONTRACTIONS:
                ends.add(user)
            elif user.name in _BETWEEN:
                found.add(user)
                todo.append(user)
    if not ends:
        raise NoMatch("there is no second product")
    order = {op: number for number, op in enumerate(block_ops(first.block))}
    needed = [min(ends, key=order.__getitem__)]
    for op in sorted(found, key=order.__getitem__, reverse=True):
        if any(user in needed for user in users(op)):
            needed.append(op)
    if needed[-1] != first:
        raise NoMatch("the second product needs something else")
    return needed[::-1]


def users(op: mlir.Operation) -> list[mlir.Operation]:
    return [use.owner.operation for result in op.results for use in result.uses]


def by_rows(contraction: Contraction, side: int, ops: list[mlir.Operation], l2_bytes: int) -> Attention:
    """The chain, tiled by the rows of operand `side` of the first product."""
    (first, *others), last = ops, ops[-1]
    own, other, out = (set(contraction.maps[n]) for n in (side, 1 - side, 2))
    rows = [d for d in contraction.maps[2] if d in own - other and contraction.sizes[d] > 1]
    if len(rows) != 1:
        raise NoMatch("not one dim of rows")
    count, batches = contraction.sizes[rows[0]], 1
    loops = {rows[0]: Part(_ROWS, count)}
    for d in reversed([d for d in contraction.maps[2] if d in own & other & out and contraction.sizes[d] > 1]):
        loops[d] = Part(_BATCH, contraction.sizes[d], batches, single=True)
        batches *= contraction.sizes[d]
    members = [along(first, loops)]
    parts: dict[mlir.Value, Parts] = members[0].results
    for op in others:
        member = follow(op, {n: parts[value] for n, value in enumerate(op.operands) if value in parts})
        if any(set(member.loops.values()) - set(result) for result in member.results.values()):
            raise NoMatch("rows are reduced")
        if any(value in parts for value in captured_values(op)):
            raise NoMatch("a body reads the chain")
        members.append(member)
        parts |= member.results
    if sum(value in parts for value in last.operands) != 1:
        raise NoMatch("both operands of the last product depend on the first")
    results = {value: parts[value] for value in used_after(ops)}
    for found in results.values():
        if sum(part is not None and part.axis == _ROWS for part in found) != 1 or batches != math.prod(
            part.size for part in found if part is not None and part.axis == _BATCH
        ):
            raise NoMatch("a result does not have all rows")
    shared = [first.operands[1 - side], *(value for value in list(last.operands)[:2] if value not in parts)]
    if sum(map(bytes_of, shared)) // batches > 2 * l2_bytes:
        raise NoMatch("what every block needs does not stay in cache")
    block = block_rows(count, bytes_of(first.results[0]) // (batches * count))
    if batches * math.ceil(count / block) == 1:
        raise NoMatch("there is one block only")
    return Attention(tuple(members), results, batches, count, block)


def used_after(ops: list[mlir.Operation]) -> list[mlir.Value]:
    """The values of a chain that others use, whose users must come after it."""
    last = ops[-1]
    kept = list(last.results)
    for result in (result for op in ops[:-1] for result in op.results):
        others = [user for use in result.uses if (user := use.owner.operation) not in ops]
        around = [ancestor_in(user, last.block) for user in others]
        if not all(op is not None and last.is_before_in_block(op) for op in around):
            raise NoMatch("the scores are used between the products")
        kept += [result] if others else []
    return kept


def block_rows(rows: int, row_bytes: int) -> int:
    """The number of rows of a block, for blocks of about equal size."""
    most = max(FEWEST_ROWS, BLOCK_BYTES // row_bytes)
    each = math.ceil(rows / math.ceil(rows / most))
    return min(rows, math.ceil(each / STEP) * STEP)


def build_blocks(plan: Attention) -> list[mlir.Value]:
    """Build the loop at the insertion point; returns the replacements of `plan.results`."""
    blocks = math.ceil(plan.rows / plan.block)

    def body(t: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
        tile = Tile((plan.batches, plan.rows), (1, plan.block), block_start(plan, blocks, t))
        for member in plan.members:
            tile.add(member)
        return [tile.insert(value, parts, into) for (value, parts), into in zip(plan.results.items(), carried)]

    inits = [emit.empty(result.type) for result in plan.results]
    zero, one = emit.index(0), emit.index(1)
    return emit.for_loop(zero, emit.index(plan.batches * blocks), one, body, inits)


def block_start(plan: Attention, blocks: int, t: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
    """The batch and the first row of block `t`."""
    batch = emit.same_type("arith.divui", t, emit.index(blocks)) if blocks > 1 else t
    number = emit.same_type("arith.remui", t, emit.index(blocks)) if blocks > 1 else emit.index(0)
    row = emit.same_type("arith.muli", number, emit.index(plan.block))
    if plan.rows % plan.block:
        row = emit.same_type("arith.minsi", row, emit.index(plan.rows - plan.block))
    return batch, row

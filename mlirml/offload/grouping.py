"""Partition the operations of a block into groups, one kernel each.

An operation joins the group of a producer if the whole group can be moved to the position of the operation, and
- it is elementwise over a result of the group, whose first operation is a contraction or a convolution: an epilogue; or
- it and the whole group iterate over the same rows, and reduce along them or not at all: softmax, norms; or
- it stores a slice into the result of a store of the group: a concatenation; or
- it stores a result of the group whose size is dynamic.

On devices with kernels of tiles the groups of attention, two products and what is between them, become one, and so do a
product on tensor cores and reductions of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.attention import match_attention
from mlirml.analysis.bounds import is_dynamic
from mlirml.analysis.ordered_loops import is_ordered
from mlirml.analysis.row_tiles import LEAST, WIDEST, row_tile
from mlirml.analysis.structured import indexing_maps, is_contraction, is_parallel, reductions_of, sizes_of
from mlirml.analysis.traits import RESHAPES
from mlirml.analysis.values import captured_values, has_one_use, outer_values
from mlirml.dialects.mlirml import OF_DEVICES, STREAMED
from mlirml.ir.bindings import defining_op, mlir, seen_through
from mlirml.offload.wide import is_bound
from mlirml.passes import NoMatch


def is_work(op: mlir.Operation) -> bool:
    """True if an operation can become a kernel. A fill can, unless it is the init of structured or insert_slice ops."""
    if op.name == "linalg.fill":
        return not all(
            use.owner.name.startswith("linalg.")
            or (use.owner.name == "tensor.insert_slice" and use.operand_number == 0)
            for use in op.results[0].uses
        )
    return (
        op.name in ("tensor.insert_slice", *OF_DEVICES)
        or is_ordered(op)
        or (op.name.startswith("linalg.") and bool(op.results))
    )


def groups_of(
    work: Sequence[mlir.Operation],
    most: int,
    *,
    tiles: Sequence[str] = (),
    processors: int = 0,
    numbers: bool = False,
) -> list[list[mlir.Operation]]:
    """Partition operations of one block, in program order, into groups that access at most `most` buffers each.

    With `tiles`, the types of factors of kernels of tiles, attention is one group, and so are products of them and
    reductions of their rows, if there are enough for the `processors`; with `numbers` a number from outside takes a
    buffer, too.
    """
    groups: list[list[mlir.Operation]] = []
    home: dict[mlir.Operation, list[mlir.Operation]] = {}
    streamed: dict[mlir.Attribute, list[mlir.Operation]] = {}
    for op in work:
        if STREAMED in op.attributes:
            if op.attributes[STREAMED] not in streamed:
                groups.append(streamed.setdefault(op.attributes[STREAMED], []))
            home[op] = streamed[op.attributes[STREAMED]]
            home[op].append(op)
            continue
        for producer in producers_of(op):
            group = home.get(producer)
            if group is not None and joins(op, group, most, numbers) and is_free_until(group, op):
                group.append(op)
                break
        else:
            group = [op]
            groups.append(group)
        home[op] = group
    if tiles:
        groups = with_attention(groups)
        groups = with_row_reductions(groups, most, tiles, processors, numbers)
    return sorted(groups, key=lambda group: work.index(group[-1]))


def with_attention(groups: list[list[mlir.Operation]]) -> list[list[mlir.Operation]]:
    """The groups, where those that have the operations of attention and nothing else are one."""
    found = list(groups)
    for group in groups:
        try:
            attention = match_attention(group[0])
        except NoMatch:
            continue
        parts = [each for each in found if any(op in attention.ops for op in each)]
        before = [op for each in parts if each is not group for op in each]
        if all(op in attention.ops for op in before) and is_free_until(before, group[0]):
            ordered = sorted(before, key=attention.ops.index)
            found = [*(each for each in found if each not in parts), [*ordered, *group]]
    return found


def with_row_reductions(
    groups: list[list[mlir.Operation]], most: int, types: Sequence[str], processors: int, numbers: bool
) -> list[list[mlir.Operation]]:
    """The groups, where one of a product of some types and the next one, of reductions of its rows, are one."""
    found = list(groups)
    home = {op: group for group in groups for op in group}
    for rows in groups:
        reduces = [op for op in rows if is_reduction(op)]
        makers = [home[op] for member in rows for op in producers_of(member) if op in home and home[op] is not rows]
        product = next((group for group in makers if is_contraction(group[0]) and group in found), None)
        if not reduces or product is None or rows not in found or any(map(is_contraction, rows)):
            continue
        if not is_row_product(product, types) or not fits_rows_of(product[0], rows, sizes_of(reduces[0]), processors):
            continue
        values = {value for op in (*product, *rows) for value in (*outer_values(op), *op.results)}
        bound = sum(is_bound(value, numbers) for value in values)
        if bound <= most and is_free_until([*product, *rows[:-1]], rows[-1]):
            found = [*(each for each in found if each is not product and each is not rows), [*product, *rows]]
    return found


def is_row_product(group: Sequence[mlir.Operation], types: Sequence[str]) -> bool:
    """True for a product of factors of some types, and elementwise operations on it."""
    first = group[0]
    factors = {str(value.type.element_type) for value in list(first.operands)[:2]}
    static = first.results[0].type.has_static_shape
    return STREAMED not in first.attributes and static and len(factors) == 1 and factors.issubset(types)


def fits_rows_of(
    product: mlir.Operation, rows: Sequence[mlir.Operation], sizes: Sequence[int], processors: int
) -> bool:  # fmt: skip
    """True if reductions over some sizes are of the rows of a product, and a kernel of tiles has enough of them.

    Rows that are longer than a tile are reduced in two steps, if that is all that is computed of them.
    """
    shape = product.results[0].type.shape
    count = math.prod(shape[:-1])
    if not shape or list(sizes)[-1:] != [shape[-1]] or math.prod(sizes) != math.prod(shape) or count < LEAST:
        return False
    if row_tile(count, shape[-1], 1, processors) is not None:
        return True
    used = [value for op in rows for value in op.results if is_used_outside(value, rows)]
    return shape[-1] > WIDEST and len(rows) == 1 and all(math.prod(value.type.shape) == count for value in used)


def is_used_outside(value: mlir.Value, group: Sequence[mlir.Operation]) -> bool:
    """True if an operation that is in no region of a group uses a value."""
    return any(use.owner.operation not in group for use in value.uses)


def producers_of(op: mlir.Operation) -> list[mlir.Operation]:
    """The operations whose results `op` reads, directly or through reshapes, the last operand first."""
    owners = [defining_op(source_of_reshapes(operand)) for operand in op.operands]
    return [owner for owner in owners if owner is not None and owner.block == op.block][::-1]


def source_of_reshapes(value: mlir.Value) -> mlir.Value:
    """The tensor that a value is a reshape of, or the value itself."""
    return seen_through(value, RESHAPES)


def joins(op: mlir.Operation, group: Sequence[mlir.Operation], most: int, numbers: bool = False) -> bool:
    """True if an operation may be added to the kernel of a group."""
    values = {v for member in (*group, op) for v in (*outer_values(member), *member.results)}
    if any(STREAMED in member.attributes for member in group):
        group = [member for member in group if is_contraction(member)][-1:]
    if sum(is_bound(value, numbers) for value in values) > most:
        return False
    computed = {result for member in group for result in member.results}
    if any(source_of_reshapes(value) in computed for value in captured_values(op)):
        return False  # its body reads elements that other threads compute
    if op.name == "tensor.insert_slice":
        if group[-1].name == "tensor.insert_slice":
            return bool(op.operands[1] == group[-1].results[0])
        small = op.operands[0]
        return is_dynamic(small) and len(group) == 1 and small in group[0].results and has_one_use(small)
    if op.name != "linalg.generic" or any(not member.name.startswith("linalg.") for member in group):
        return False
    if is_contraction(group[0]):
        whole = sizes_of(op) == [max(size, -1) for size in group[0].results[0].type.shape]
        # Of dynamic sizes only an operand of the group tells that they are equal.
        known = group[0].results[0].type.has_static_shape or not computed.isdisjoint(op.operands)
        return is_parallel(op) and whole and known and reads_as_is(op, group)
    sizes = next((sizes_of(member) for member in (*group, op) if is_reduction(member)), [])
    return bool(sizes) and -1 not in sizes and all(fits_rows(member, sizes, group) for member in (*group, op))


def reads_as_is(op: mlir.Operation, group: Sequence[mlir.Operation]) -> bool:
    """True if an elementwise operation accesses the results of the group, and its inits, by identity maps."""
    computed = {result for member in group for result in member.results}
    identity = mlir.AffineMap.get_identity(len(op.attributes["iterator_types"]))
    maps = indexing_maps(op)
    inits = range(len(op.operands) - len(op.results), len(op.operands))
    return all(maps[n] == identity for n, v in enumerate(op.operands) if v in computed or n in inits)


def is_reduction(op: mlir.Operation) -> bool:
    """True if the innermost loop of an operation is its only reduction loop."""
    if op.name != "linalg.generic" or is_contraction(op):
        return False
    reduces = reductions_of(op)
    return len(reduces) > 1 and reduces[-1] and not any(reduces[:-1])


def fits_rows(op: mlir.Operation, sizes: Sequence[int], group: Sequence[mlir.Operation]) -> bool:
    """True if an operation iterates over rows of these sizes, or computes one element for each row.

    It may read elements of the group only in its own row, and by maps that keep the order of the loops.
    """
    if op.name != "linalg.generic" or is_contraction(op):
        return False
    own = sizes_of(op)
    rows = list(sizes[:-1])
    if own != list(sizes) and (not is_parallel(op) or own not in (rows, [*rows, 1])):
        return False
    if own == list(sizes) and not is_parallel(op) and not is_reduction(op):
        return False
    computed = {result for member in group for result in member.results}
    whole = list(range(len(rows)))
    for operand, m in zip(op.operands, indexing_maps(op)):
        positions = [e.position if isinstance(e, mlir.AffineDimExpr) else -1 for e in m.results]
        if positions != sorted(set(positions)) or -1 in positions:
            return False
        if source_of_reshapes(operand) in computed and positions not in (whole, [*whole, len(whole)]):
            return False
    return True


def is_free_until(group: Sequence[mlir.Operation], op: mlir.Operation) -> bool:
    """True if no operation between a group and `op` uses a result of the group."""
    members = {*group, op}
    values = [result for member in group for result in member.results]
    while values:
        for use in values.pop().uses:
            user = use.owner.operation
            while user.block != op.block:
                user = user.parent.operation
            if user in members or not user.is_before_in_block(op):
                continue
            if user.name not in RESHAPES:
                return False
            values.append(user.results[0])
    return True

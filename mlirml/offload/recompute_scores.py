"""Recompute scores: matrices that are cheap products are computed in each kernel that reads them, and never stored.

Before:
    %s = linalg.batch_matmul ins(%q, %k : tensor<8x2048x64xf32>, tensor<8x64x2048xf32>) outs(...)
    %m = linalg.generic ... ins(%s) outs(...) { the maxima of rows }
    %e, %l = linalg.generic ... ins(%s, %m) outs(...) { the exponentials of differences, and their sums }
    %o = linalg.batch_matmul ins(%e, %v : tensor<8x2048x2048xf32>, tensor<8x2048x64xf32>) outs(...)
    ...
    %dv = linalg.contract ins(%e, %do) ...                       // sums over the rows of %e
After:
    %s0 = linalg.batch_matmul ins(%q, %k) outs(...)              {mlirml.streamed = 0}
    %m = linalg.generic ... ins(%s0) ...                         {mlirml.streamed = 0}
    %e0, %l = linalg.generic ... ins(%s0, %m) ...                {mlirml.streamed = 0}
    %o = linalg.batch_matmul ins(%e0, %v) outs(...)              {mlirml.streamed = 0}
    ...
    %s1 = linalg.batch_matmul ins(%q, %k) outs(...)              {mlirml.streamed = 1}
    %e1 = linalg.generic ... ins(%s1, %m) outs(...)              {mlirml.streamed = 1}
    %dv = linalg.contract ins(%e1, %do) ...                      {mlirml.streamed = 1}

That is attention, forward and backward, in memory that is linear in the length of the sequence: between kernels there
are numbers for each row only (T. Dao et al., "FlashAttention", 2022). No form of a softmax is assumed: the scores are
products of small depth, what is computed of them element by element, reductions of their rows, and products that sum
over their rows or columns. The operations with one number become one kernel (`form_dispatches.py`), which computes the
scores tile by tile (`codegen/gpu/streamed`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import field

from mlirml.analysis.attention import match_attention
from mlirml.analysis.structured import indexing_maps, is_contraction, is_parallel, reductions_of, sizes_of
from mlirml.analysis.values import captured_values, depends_on, outer_values
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import applies
from mlirml.dialects.mlirml import STREAMED
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, main_function, mlir
from mlirml.offload.wide import is_bound
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_CONTRACTION
from mlirml.targets.machine import Device

_DEEPEST = 256
"""The largest depth of a product of scores, and the most columns of a product that sums over their columns."""
_FEWEST_ROWS, _FEWEST_COLUMNS = 16, 64
_LONG, _PART = 512, 128
"""Columns of which parts may have blocks of their own, and the fewest of a part."""
_BLOCK_ROWS = 32
"""The rows of the smallest block."""
_LARGE = 256 << 20
"""Scores of this size, in bytes, are recomputed even where tensor cores would multiply faster than the kernels do."""
_FLOATS = (mlir.F16Type, mlir.BF16Type, mlir.F32Type, mlir.F64Type)
_SMALL = (mlir.F16Type, mlir.BF16Type)
_FREE = ("tensor.empty", "linalg.fill", "tensor.splat")
"""Operations that kernels contain themselves."""


@register(when=ANY_CONTRACTION, optional=True)
class RecomputeScoresPass(Pass):
    """Clone products of small depth, and what is computed of their elements, into each group that becomes a kernel."""

    device: Device = Device()

    def run(self, module: mlir.Operation) -> None:
        block = main_function(module).regions[0].blocks[0]
        tried: list[mlir.Operation] = []  # no set: the hash of an operation depends on its operands
        number = itertools.count()
        while (first := next_product(block, tried)) is not None:
            try:
                family = match_family(first)
                groups = group_uses(family)
                check_worth(family, groups, self.device)
            except NoMatch:
                tried.append(first)
                continue
            rebuild(family, groups, number)


def next_product(block: mlir.Block, tried: Sequence[mlir.Operation]) -> mlir.Operation | None:
    """The first product in a block that belongs to no group and was not tried."""
    products = (op for op in block_ops(block) if op.name.startswith("linalg.") and is_contraction(op))
    return next((op for op in products if STREAMED not in op.attributes and op not in tried), None)


@dataclass(frozen=True)
class Loops:
    """The loops of a contraction: of both operands and the result, of one and the result, and of both operands."""

    batch: frozenset[int]
    left: frozenset[int]
    right: frozenset[int]
    depth: frozenset[int]


@dataclass
class Family:
    """Scores, and all operations that compute and use them.

    `scores` are the tensors of their shape; `products` and `elementwise` compute them, and so may the `reductions` of
    rows. `rows` are parallel operations on what was reduced, and `sinks` products, with the operand that is a score.
    """

    first: mlir.Operation
    batch: frozenset[int]
    above: frozenset[int]
    scores: set[mlir.Value] = field(default_factory=set)
    products: list[mlir.Operation] = field(default_factory=list)
    elementwise: list[mlir.Operation] = field(default_factory=list)
    reductions: list[mlir.Operation] = field(default_factory=list)
    rows: list[mlir.Operation] = field(default_factory=list)
    sinks: dict[mlir.Operation, int] = field(default_factory=dict)

    @property
    def shape(self) -> list[int]:
        return list(self.first.results[0].type.shape)

    @property
    def last(self) -> int:
        """The dimension of the columns."""
        return len(self.shape) - 1

    @property
    def ops(self) -> list[mlir.Operation]:
        """All operations, in order."""
        found = {*self.products, *self.elementwise, *self.reductions, *self.rows, *self.sinks}
        return [op for op in block_ops(self.first.block) if op in found]

    def is_small(self, sink: mlir.Operation) -> bool:
        """True if the other factor of a product that uses scores is one of small floats."""
        return isinstance(sink.operands[1 - self.sinks[sink]].type.element_type, _SMALL)

    def sums_rows(self, sink: mlir.Operation) -> bool:
        """True if a product sums over the rows of the scores, False if over their columns."""
        loops, weights = loops_of(sink), indexing_maps(sink)[self.sinks[sink]]
        dims = {d for d, e in enumerate(weights.results) if e.position in loops.depth}
        return dims == self.above


def positions(map_: mlir.AffineMap) -> list[int]:
    """The loops that index each dimension; raises NoMatch if something else does."""
    if not all(isinstance(e, mlir.AffineDimExpr) for e in map_.results):
        raise NoMatch("no projected permutation")
    return [e.position for e in map_.results]


def loops_of(op: mlir.Operation) -> Loops:
    """The loops of a contraction."""
    left, right, out = (set(positions(m)) for m in indexing_maps(op))
    if left ^ right != (left ^ right) & out:
        raise NoMatch("a loop is in one operand only")
    return Loops(
        frozenset(left & right & out), frozenset(left - right), frozenset(right - left), frozenset((left & right) - out)
    )


def parts_of(op: mlir.Operation) -> tuple[frozenset[int], frozenset[int]]:
    """The dimensions of batches and of rows of the result of a product, whose last dimension are the columns."""
    loops, out = loops_of(op), positions(indexing_maps(op)[2])
    if not out or len(set(out)) != len(out):
        raise NoMatch("no matrix")
    columns = next((part for part in (loops.left, loops.right) if out[-1] in part), frozenset[int]())
    rows = (loops.left | loops.right) - columns
    if columns != {out[-1]}:
        raise NoMatch("the columns are not the last dimension")
    return (
        frozenset(d for d, loop in enumerate(out) if loop in loops.batch),
        frozenset(d for d, loop in enumerate(out) if loop in rows),
    )


def match_product_of_scores(op: mlir.Operation) -> tuple[frozenset[int], frozenset[int]]:
    """The dimensions of batches and rows of a product of small depth; raises NoMatch for other operations."""
    if not op.name.startswith("linalg.") or not is_contraction(op) or len(op.results) != 1 or len(op.operands) != 3:
        raise NoMatch("no product")
    type_ = op.results[0].type
    if not type_.has_static_shape or not isinstance(type_.element_type, _FLOATS):
        raise NoMatch("no floats of known shape")
    if not all(isinstance(v.type, mlir.RankedTensorType) and v.type.has_static_shape for v in op.operands):
        raise NoMatch("a factor of unknown shape")
    batch, rows = parts_of(op)
    sizes = sizes_of(op)
    depth = math.prod(sizes[d] for d in loops_of(op).depth)
    count, columns = math.prod(type_.shape[d] for d in rows), type_.shape[-1]
    fewest = _FEWEST_COLUMNS if count >= _FEWEST_ROWS else _LONG
    if depth > _DEEPEST or columns < fewest or 4 * depth > max(count, columns) * 2:
        raise NoMatch("too deep, or too small")
    fill = defining_op(op.operands[2])
    if fill is None or fill.name != "linalg.fill":
        raise NoMatch("a product is added to something")
    return batch, rows


def match_family(first: mlir.Operation) -> Family:
    """The scores that begin with a product, and all their uses; raises NoMatch."""
    family = Family(first, *match_product_of_scores(first))
    family.products.append(first)
    family.scores.add(first.results[0])
    known = -1
    while known != (known := len(family.scores) + len(family.rows)):
        for op in block_ops(first.block):
            add(family, op)
    for value in family.scores:
        for use in value.uses:
            user = use.owner.operation
            while user.block != first.block:
                user = user.parent.operation
            if user not in (*family.elementwise, *family.reductions, *family.sinks):
                raise NoMatch("scores are used in another way")
    if not family.sinks and not family.reductions:
        raise NoMatch("nothing is computed of the scores")
    return family


def add(family: Family, op: mlir.Operation) -> None:
    """Add an operation that uses scores, or what was reduced of them; raises NoMatch if it is none of these."""
    used = [n for n, v in enumerate(op.operands) if v in family.scores]
    if op in (*family.products, *family.elementwise, *family.reductions, *family.rows, *family.sinks):
        return
    if op.name == "linalg.generic" and not is_contraction(op):
        if used:
            add_generic(family, op)
        elif any(v in row_values(family) for v in op.operands):
            add_row_operation(family, op)
        return
    if not used:
        return
    if not op.name.startswith("linalg.") or not is_contraction(op) or used not in ([0], [1]):
        raise NoMatch("scores are used in another way")
    family.sinks[op] = used[0]
    check_sink(family, op)


def row_values(family: Family) -> set[mlir.Value]:
    """The tensors with an element for each row that were reduced, or computed of such."""
    reduced = {r for op in family.reductions for r in op.results if r not in family.scores}
    return reduced | {r for op in family.rows for r in op.results}


def add_generic(family: Family, op: mlir.Operation) -> None:
    """Add an operation on scores, element by element or along rows, and the products that it reads besides."""
    rank = len(family.shape)
    whole = mlir.AffineMap.get_identity(rank)
    reduces = reductions_of(op)
    if sizes_of(op) != family.shape or any(reduces[:-1]) or any(v in family.scores for v in captured_values(op)):
        raise NoMatch("an operation has other loops than the scores")
    maps = indexing_maps(op)
    inputs = len(op.operands) - len(op.results)
    for number, (operand, map_) in enumerate(zip(op.operands, maps, strict=True)):
        if operand in family.scores and (map_ != whole or number >= inputs):
            raise NoMatch("scores are read in another order")
        made = defining_op(operand)
        if made is not None and operand not in family.scores and map_ == whole and made.block == op.block:
            with_product(family, made)
    for result, map_ in zip(op.results, maps[inputs:], strict=True):
        if map_ == whole:
            family.scores.add(result)
        elif positions(map_) != list(range(rank - 1)):
            raise NoMatch("another reduction")
    (family.elementwise if is_parallel(op) else family.reductions).append(op)


def with_product(family: Family, made: mlir.Operation) -> None:
    """Add a product of scores that an operation on scores reads, if it has the same rows."""
    try:
        parts = match_product_of_scores(made)
    except NoMatch:
        return
    if parts == (family.batch, family.above) and list(made.results[0].type.shape) == family.shape:
        family.products.append(made)
        family.scores.add(made.results[0])


def add_row_operation(family: Family, op: mlir.Operation) -> None:
    """Add an operation on what was reduced of rows, if it has an element for each row."""
    rows = family.shape[:-1]
    whole = mlir.AffineMap.get_identity(len(rows))
    if is_parallel(op) and sizes_of(op) == rows and all(m == whole for m in indexing_maps(op)):
        family.rows.append(op)


def check_sink(family: Family, op: mlir.Operation) -> None:
    """Raise NoMatch if a product sums over anything but all rows or the columns, or has too many results."""
    weights = family.sinks[op]
    if len(op.results) != 1 or not isinstance(op.results[0].type.element_type, _FLOATS):
        raise NoMatch("no product of floats")
    loops, own = loops_of(op), indexing_maps(op)[weights]
    dims = {loop: d for d, loop in enumerate(positions(own))}
    summed = {dims[loop] for loop in loops.depth}
    width = math.prod(sizes_of(op)[d] for d in (loops.right if weights == 0 else loops.left))
    kept = {dims[loop] for loop in (loops.left if weights == 0 else loops.right)}
    by_columns = summed == {family.last} and kept == family.above
    by_rows = summed == family.above and kept == {family.last}
    fill = defining_op(op.operands[2])
    if not (by_columns or by_rows) or width > _DEEPEST or fill is None or fill.name != "linalg.fill":
        raise NoMatch("a product sums over something else")


@dataclass
class Group:
    """Uses of scores that one kernel computes, in order: reductions and operations on rows, and sinks of one form."""

    sums_rows: bool
    members: list[mlir.Operation] = field(default_factory=list)

    @property
    def results(self) -> list[mlir.Value]:
        return [result for op in self.members for result in op.results]


def group_uses(family: Family) -> list[Group]:
    """The uses of scores, in groups that can be computed at the position of their last member."""
    groups: list[Group] = []
    for op in family.ops:
        if op in family.products or op in family.elementwise:
            continue
        form = op in family.sinks and family.sums_rows(op)
        group = next((each for each in reversed(groups) if each.sums_rows == form and fits(family, each, op)), None)
        if group is None:
            group = Group(form)
            groups.append(group)
        group.members.append(op)
    for group in [g for g in groups if all(op in family.rows for op in g.members)]:
        groups.remove(group)  # unchanged
    return groups


def fits(family: Family, group: Group, op: mlir.Operation) -> bool:
    """True if an operation depends on a group by members and scores alone, and nothing else uses it before."""
    if any(depends_on(value, group.results) for value in leaves(family, op, group)):
        return False
    uses = [*family.reductions, *family.rows, *family.sinks]
    for other in uses:
        is_between = other not in group.members and other != op and other.is_before_in_block(op)
        if is_between and any(value in group.results for value in leaves(family, other, Group(False))):
            return False
    own = {*uses, *family.elementwise, *family.products}
    for result in group.results:
        for use in result.uses if result not in family.scores else ():
            user = use.owner.operation
            while user.block != op.block:
                user = user.parent.operation
            if user not in own and user.is_before_in_block(op):
                return False
    return True


def leaves(family: Family, op: mlir.Operation, group: Group) -> list[mlir.Value]:
    """The values that an operation reads, itself and by the scores, that are neither scores nor of a group."""
    found, todo, seen = [], [op], {op}
    while todo:
        for value in outer_values(todo.pop()):
            made = defining_op(value)
            if value in family.scores and made is not None:
                if made not in seen:
                    seen.add(made)
                    todo.append(made)
            elif value not in group.results:
                found.append(value)
    return found


def check_worth(family: Family, groups: Sequence[Group], device: Device) -> None:
    """Raise NoMatch where kernels that store the scores are better, or the only ones."""
    if len(groups) == 0:
        raise NoMatch("nothing is computed of the scores")
    shape, element = family.shape, family.first.results[0].type.element_type
    batches = math.prod(shape[d] for d in family.batch)
    rows = math.prod(shape[d] for d in family.above)
    factors = [v.type.element_type for op in family.products for v in list(op.operands)[:2]]
    small = all(isinstance(type_, _SMALL) for type_ in factors)
    backward = len(family.products) > 1 or any(group.sums_rows for group in groups)
    splits = small and device.tensor_cores and not backward and is_split(family)
    if rows < _FEWEST_ROWS and not splits:
        raise NoMatch("too few rows")
    blocks = batches * -(-min(rows, shape[-1]) // _BLOCK_ROWS) * (shape[-1] // _PART if splits else 1)
    if device.processors > 4 * blocks:
        raise NoMatch("too few rows to fill the device")
    tiled = rows >= _FEWEST_ROWS and all(is_tiled(op) for op in family.sinks)
    if small and device.tile and not backward and tiled:
        raise NoMatch("there is a kernel of tiles")
    nbytes = math.prod(shape) * element.width // 8
    if small and device.tensor_cores and backward and nbytes < _LARGE and not all(map(family.is_small, family.sinks)):
        raise NoMatch("tensor cores are faster")
    for group in groups:
        read = {v for op in cone(family, group) for v in outer_values(op)} - family.scores
        values = [v for v in {*read, *group.results} if (made := defining_op(v)) is None or made.name not in _FREE]
        if sum(is_bound(v, bool(device.buffers)) for v in values) > device.kernel_buffers:
            raise NoMatch("a kernel would access too many arrays")


def is_split(family: Family) -> bool:
    """True if parts of many columns can be merged afterwards: those of a softmax, on tensor cores."""
    if family.shape[-1] < _LONG or len(family.sinks) != 1 or not all(map(family.is_small, family.sinks)):
        return False
    (sink,) = family.sinks
    return applies(match_attention, sink, alone=False)


def is_tiled(sink: mlir.Operation) -> bool:
    """True if a product ends attention that a kernel of tiles computes."""
    return applies(match_attention, sink)


def cone(family: Family, group: Group) -> list[mlir.Operation]:
    """The operations of a group, and those that compute the scores it needs, in order."""
    needed, todo = set(group.members), list(group.members)
    while todo:
        for value in outer_values(todo.pop()):
            made = defining_op(value)
            if value in family.scores and made is not None and made not in needed:
                needed.add(made)
                todo.append(made)
    return [op for op in family.ops if op in needed]


def rebuild(family: Family, groups: Sequence[Group], number: Iterator[int]) -> None:
    """Clone what each group needs before its last member, and replace the members."""
    ops = family.ops
    replaced: dict[mlir.Value, mlir.Value] = {}
    members = {op for group in groups for op in group.members}
    made: list[mlir.Operation] = []
    gone = [op for op in ops if op in members or op in family.products or op in family.elementwise]
    for group in groups:
        values = dict(replaced)
        mark = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), next(number))
        for op in cone(family, group):
            wanted = wanted_results(family, group, op)
            with op.location, mlir.InsertionPoint(group.members[-1]):
                clone_fills(op, values)
                copy = clone_for(op, wanted, values)
            copy.attributes[STREAMED] = mark
            if op in family.sinks and op in group.members:
                made.append(copy)
        for op in group.members:
            replaced.update((r, values[r]) for r in op.results if r in values and r not in family.scores)
    for old, new in replaced.items():
        old.replace_all_uses_with(new)
    for op in reversed(gone):
        op.erase()
    for sink in made:
        move_epilogue(sink)


def move_epilogue(sink: mlir.Operation) -> None:
    """Move the only use of a product after it, if that computes it element by element: it becomes a part of the kernel.

    After a use of the other results of the kernel it could not.
    """
    uses = list(sink.results[0].uses)
    if len(uses) != 1 or uses[0].owner.operation.block != sink.block:
        return
    user = uses[0].owner.operation
    if user.name != "linalg.generic" or not is_parallel(user) or captured_values(user):
        return
    others = [made for v in user.operands if v != sink.results[0] and (made := defining_op(v)) is not None]
    if any(made.name != "tensor.empty" and not made.is_before_in_block(sink) for made in others):
        return
    user.move_after(sink)
    for made in others:
        if not made.is_before_in_block(user):
            made.move_before(sink)


def clone_fills(op: mlir.Operation, values: dict[mlir.Value, mlir.Value]) -> None:
    """Clone the fills that an operation begins with: one that is used otherwise, too, would be a kernel itself."""
    for operand in op.operands:
        fill = defining_op(operand)
        if fill is not None and fill.name == "linalg.fill" and operand not in values:
            clone_with(fill, values)


def wanted_results(family: Family, group: Group, op: mlir.Operation) -> list[int]:
    """The results of an operation that a group needs: scores that its operations read, and what a member reduces."""
    ops = cone(family, group)
    return [
        n
        for n, result in enumerate(op.results)
        if (result in family.scores and any(result in outer_values(user) for user in ops))
        or (result not in family.scores and op in group.members)
    ]


def clone_for(op: mlir.Operation, wanted: Sequence[int], values: dict[mlir.Value, mlir.Value]) -> mlir.Operation:
    """A clone of an operation with some of its results, which are added to the values."""
    if len(wanted) == len(op.results):
        return clone_with(op, values)
    block = op.regions[0].blocks[0]
    inputs = len(op.operands) - len(op.results)
    kept = [*range(inputs), *(inputs + n for n in wanted)]
    maps = [indexing_maps(op)[n] for n in kept]
    operands = [values.get(op.operands[n], op.operands[n]) for n in kept]
    *body, end = block_ops(block)
    needed = needed_in_body(body, [end.operands[n] for n in wanted])
    rank = maps[0].n_dims
    parallel = all(set(positions(m)) == set(range(rank)) for m in maps[inputs:])
    iterators = ["reduction" if reduces and not parallel else "parallel" for reduces in reductions_of(op)]

    def build(arguments: list[mlir.Value]) -> list[mlir.Value]:
        inner = dict(values)
        inner.update((block.arguments[n], argument) for n, argument in zip(kept, arguments, strict=True))
        for each in body:
            if each in needed:
                clone_with(each, inner)
        return [inner.get(end.operands[n], end.operands[n]) for n in wanted]

    copy = emit.generic(operands[:inputs], operands[inputs:], maps, iterators, build)
    values.update((op.results[n], result) for n, result in zip(wanted, copy.results, strict=True))
    return copy


def needed_in_body(body: Sequence[mlir.Operation], yields: Sequence[mlir.Value]) -> set[mlir.Operation]:
    """The operations of a body that some yielded values are computed by."""
    found, todo = set[mlir.Operation](), list(yields)
    while todo:
        made = defining_op(todo.pop())
        if made is not None and made in body and made not in found:
            found.add(made)
            todo += outer_values(made)
    return found

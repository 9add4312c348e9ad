"""Match two products with a chain of row-wise operations between them, and classify the dims of the chain's tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.structured import indexing_maps
from mlirml.codegen.cpu.contract.problem import CONTRACTIONS, Contraction, match_contraction
from mlirml.codegen.cpu.nest import element_bytes
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch

BLOCK_BYTES = 1 << 18
"""The size of the scores of a block of rows; the minimum block may be larger."""
FEWEST_ROWS, STEP = 64, 16
"""The minimum number of rows of a block, and the divisor of this number."""


_RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape")
_BETWEEN = ("linalg.generic", "tensor.extract_slice", *_RESHAPES)


@dataclass(frozen=True)
class Rows:
    """A dim of rows, which is tiled into blocks."""


@dataclass(frozen=True)
class Batch:
    """A batch dim, of which one index is computed at a time: batch / `step` % `size`."""

    step: int
    size: int


Tag = Rows | Batch | None
"""The role of a dim; None for a dim that is not tiled."""
Tags = tuple[Tag, ...]


@dataclass(frozen=True)
class Attention:
    """The operations in their order, from the first product to the last, and the tags of the values of the chain.

    There are `batches` times `rows` rows, of which `block` are computed at a time. `results` are the values with other
    users: the result of the last product, and intermediate values that are used after it.
    """

    ops: tuple[mlir.Operation, ...]
    results: tuple[mlir.Value, ...]
    tags: dict[mlir.Value, Tags]
    batches: int
    rows: int
    block: int

    @property
    def last(self) -> mlir.Operation:
        """The last product."""
        return self.ops[-1]


def match_attention(first: mlir.Operation, l2_bytes: int) -> Attention:
    """Match the chain that starts with a product. Raises `NoMatch`."""
    contraction = match_contraction(first)
    if len(first.results) != 1:
        raise NoMatch("the product is no tensor")
    size = bytes_of(first.results[0].type)
    if 2 * size <= l2_bytes:
        raise NoMatch("the scores stay in cache")
    ops = chain_from(first)
    if not any(op.name == "linalg.generic" and has_reduction(op) for op in ops):
        raise NoMatch("nothing needs whole rows")
    for side in (0, 1):
        try:
            return tagged(first, contraction, side, ops, size, l2_bytes)
        except NoMatch as reason:
            refused = reason
    raise refused


def bytes_of(tensor_type: mlir.Type) -> int:
    """The size of a tensor in bytes."""
    return int(math.prod(tensor_type.shape)) * element_bytes(tensor_type.element_type)


def has_reduction(op: mlir.Operation) -> bool:
    return any("reduction" in str(kind) for kind in op.attributes["iterator_types"])


def chain_from(first: mlir.Operation) -> tuple[mlir.Operation, ...]:
    """The operations between a product and the next product that depends on it, both included, in order."""
    found, todo, ends = [first], [first], []
    while todo:
        for result in todo.pop().results:
            for use in result.uses:
                op = use.owner.operation
                if op.block != first.block or op in found:
                    continue
                if op.name in CONTRACTIONS:
                    ends.append(op)
                elif op.name in _BETWEEN:
                    found.append(op)
                    todo.append(op)
    if not ends:
        raise NoMatch("there is no second product")
    needed = [min(ends, key=Position)]
    for op in sorted(found, key=Position, reverse=True):
        if any(use.owner.operation in needed for result in op.results for use in result.uses):
            needed.append(op)
    if needed[-1] != first:
        raise NoMatch("the second product needs something else")
    return tuple(reversed(needed))


def used_after(ops: Sequence[mlir.Operation]) -> tuple[mlir.Value, ...]:
    """The values of a chain that others use, whose users must come after it."""
    last = ops[-1]
    kept = list(last.results)
    for op in ops[:-1]:
        for result in op.results:
            users = [use.owner.operation for use in result.uses]
            others = [user for user in users if user not in ops]
            if any(not is_after(user, last) for user in others):
                raise NoMatch("the scores are used between the products")
            kept += [result] if others else []
    return tuple(kept)


def is_after(op: mlir.Operation, last: mlir.Operation) -> bool:
    """True if `op`, or its ancestor in `last`'s block, is after `last`."""
    while op.block != last.block:
        parent = op.parent
        if parent is None:
            return False
        op = parent.operation
    return bool(last.is_before_in_block(op))


class Position:
    """The sort key of operations of one block."""

    def __init__(self, op: mlir.Operation) -> None:
        self.op = op

    def __lt__(self, other: Position) -> bool:
        return bool(self.op != other.op and self.op.is_before_in_block(other.op))


def tagged(
    first: mlir.Operation,
    contraction: Contraction,
    side: int,
    ops: tuple[mlir.Operation, ...],
    size: int,
    l2_bytes: int,
) -> Attention:
    """The chain, tiled by the rows of operand `side` of the first product."""
    own, other, out = (set(contraction.maps[n]) for n in (side, 1 - side, 2))
    rows = [d for d in contraction.maps[2] if d in own - other and contraction.sizes[d] > 1]
    if len(rows) != 1:
        raise NoMatch("not one dim of rows")
    loops: dict[int, Tag] = dict.fromkeys(range(len(contraction.sizes)))
    loops[rows[0]] = Rows()
    batches = 1
    for d in reversed([d for d in contraction.maps[2] if d in own & other & out]):
        loops[d] = Batch(batches, contraction.sizes[d]) if contraction.sizes[d] > 1 else None
        batches *= contraction.sizes[d]
    tags = {first.results[0]: tuple(loops[d] for d in contraction.maps[2])}
    for op in ops[1:]:
        tags |= result_tags(op, tags, is_last=op == ops[-1])
    results = used_after(ops)
    if any(covered(tags[result]) != (True, batches) for result in results):
        raise NoMatch("a result does not have all rows")
    again = [first.operands[1 - side], *(v for v in ops[-1].operands[:2] if v not in tags)]
    if sum(bytes_of(value.type) for value in again) // batches > 2 * l2_bytes:
        raise NoMatch("what every block needs does not stay in cache")
    count = contraction.sizes[rows[0]]
    block = block_rows(count, size // (batches * count))
    if batches * math.ceil(count / block) == 1:
        raise NoMatch("there is one block only")
    return Attention(ops, results, tags, batches, count, block)


def covered(tags: Tags) -> tuple[bool, int]:
    """True if a tensor has a dim of rows; and its number of batches."""
    return any(isinstance(tag, Rows) for tag in tags), math.prod(tag.size for tag in tags if isinstance(tag, Batch))


def block_rows(rows: int, row_bytes: int) -> int:
    """The number of rows of a block, for blocks of about equal size."""
    most = max(FEWEST_ROWS, BLOCK_BYTES // row_bytes)
    each = math.ceil(rows / math.ceil(rows / most))
    return min(rows, math.ceil(each / STEP) * STEP)


def result_tags(op: mlir.Operation, tags: dict[mlir.Value, Tags], *, is_last: bool) -> dict[mlir.Value, Tags]:
    """The tags of the results of an operation of the chain."""
    if op.name in _RESHAPES:
        reshape = expanded if op.name == "tensor.expand_shape" else collapsed
        groups = [[d.value for d in group] for group in op.attributes["reassociation"]]
        source, result = op.operands[0], op.results[0]
        return {result: reshape(tags[source], groups, list((result if reshape is expanded else source).type.shape))}
    if op.name == "tensor.extract_slice":
        return {op.results[0]: sliced(op, tags[op.operands[0]])}
    loops = loop_tags(op, tags)
    check_rows(op, loops)
    maps = indexing_maps(op)
    if is_last and sum(operand in tags for operand in op.operands) != 1:
        raise NoMatch("both operands of the last product depend on the first")
    inputs = len(op.operands) - len(op.results)
    found = {}
    for number, result in enumerate(op.results):
        out = [loops.get(d) for d in dims_of(maps[inputs + number])]
        if any(tag is not None and tag not in out for tag in loops.values()):
            raise NoMatch("an out mixes rows")
        found[result] = tuple(out)
    return found


def sliced(op: mlir.Operation, tags: Tags) -> Tags:
    """The tags of a static slice, which may drop dims of which it takes one element."""
    if len(op.operands) > 1:
        raise NoMatch("a slice at a dynamic offset")
    source_type, result = op.operands[0].type, list(op.results[0].type.shape)
    fields = [list(mlir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")]
    for tag, whole, *field in zip(tags, source_type.shape, *fields, strict=True):
        if tag is not None and field != [0, whole, 1]:
            raise NoMatch("a slice takes some of the rows")
    sizes = fields[1]
    if result == sizes:
        return tags
    kept = [(tag, size) for tag, size in zip(tags, sizes, strict=True) if tag is not None or size != 1]
    if [size for _, size in kept] != result:
        raise NoMatch("which dims a slice leaves out is not clear")
    return tuple(tag for tag, _ in kept)


def dims_of(affine_map: mlir.AffineMap) -> list[int]:
    """The loops that index the dims of a tensor; -1 for a constant index."""
    dims = []
    for expression in affine_map.results:
        if isinstance(expression, mlir.AffineDimExpr):
            dims.append(expression.position)
        elif isinstance(expression, mlir.AffineConstantExpr):
            dims.append(-1)
        else:
            raise NoMatch("an indexing map is no projection")
    return dims


def loop_tags(op: mlir.Operation, tags: dict[mlir.Value, Tags]) -> dict[int, Tag]:
    """The tag of each loop of a structured operation, from the tags of its operands in the chain."""
    loops: dict[int, Tag] = {}
    for operand, affine_map in zip(op.operands, indexing_maps(op), strict=True):
        if operand not in tags:
            continue
        for d, tag in zip(dims_of(affine_map), tags[operand], strict=True):
            if d < 0 and tag is not None:
                raise NoMatch("one row is read only")
            if d >= 0 and loops.setdefault(d, tag) != tag:
                raise NoMatch("a loop iterates over rows and over another dim")
    used = [tag for tag in loops.values() if tag is not None]
    if len(set(used)) != len(used):
        raise NoMatch("two loops iterate over one dim")
    return loops


def check_rows(op: mlir.Operation, loops: dict[int, Tag]) -> None:
    """Raise `NoMatch` if rows are reduced, or regions capture values of the chain."""
    out_maps = indexing_maps(op)[len(op.operands) - len(op.results) :]
    kept = {d for affine_map in out_maps for d in dims_of(affine_map)}
    if any(tag is not None and d not in kept for d, tag in loops.items()):
        raise NoMatch("rows are reduced")
    if op.name == "linalg.generic":
        iterator_types = list(op.attributes["iterator_types"])
        if any(tag is not None and "parallel" not in str(iterator_types[d]) for d, tag in loops.items()):
            raise NoMatch("rows depend on rows")
    own = op.regions[0].blocks[0]
    for inner in own.operations:
        if inner.operation.regions:
            raise NoMatch("a body has regions")
        for operand in inner.operands:
            owner = defining_op(operand)
            if isinstance(operand.type, mlir.ShapedType) or (owner is not None and owner.name.startswith("tensor.")):
                raise NoMatch("a body reads a tensor")


def expanded(tags: Tags, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> Tags:
    """The tags of the result, of shape `shape`, of an expand_shape."""
    found: list[Tag] = [None] * len(shape)
    for tag, group in zip(tags, groups, strict=True):
        wide = [d for d in group if shape[d] != 1]
        if len(wide) > 1 and isinstance(tag, Rows):
            raise NoMatch("rows are cut")
        step = tag.step if isinstance(tag, Batch) else 1
        for d in reversed(wide):
            found[d] = Batch(step, shape[d]) if isinstance(tag, Batch) else tag
            step *= shape[d]
    return tuple(found)


def collapsed(tags: Tags, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> Tags:
    """The tags of the result of a collapse_shape; `shape` is that of its operand."""

    found: list[Tag] = []
    for group in groups:
        wide = [d for d in group if shape[d] != 1]
        inner = [tags[d] for d in wide]
        if all(tag is None for tag in inner):
            found.append(None)
            continue
        if len(inner) == 1:
            found.append(inner[0])
            continue
        batches = [tag for tag in inner if isinstance(tag, Batch)]
        outer = [tag.step for tag in batches[:-1]]
        if len(batches) != len(inner) or outer != [tag.step * tag.size for tag in batches[1:]]:
            raise NoMatch("rows are merged with other dims")
        found.append(Batch(batches[-1].step, math.prod(tag.size for tag in batches)))
    return tuple(found)

"""The operations around a convolution that can be folded into its kernel: init, padding, elementwise consumer."""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.memory import buffer_of, is_known, is_touched, touching
from mlirml.analysis.structured import indexing_maps, is_parallel
from mlirml.codegen.cpu.conv.epilogue import Epilogue, read_epilogue
from mlirml.codegen.cpu.conv.problem import Problem, static_strides
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import NoMatch


@dataclass(frozen=True)
class Start:
    """The init of an output: a scalar everywhere, or the elements of `bias` by filter; `op` writes it."""

    op: mlir.Operation
    scalar: str
    bias: mlir.Value | None


@dataclass(frozen=True)
class Padding:
    """The padded input is `source` within `filler`; the operations that write it become dead."""

    source: mlir.Value
    filler: str
    low: tuple[int, ...]
    ops: tuple[mlir.Operation, ...]


@dataclass(frozen=True)
class Following:
    """The elementwise operation after a convolution: its epilogue, its further inputs, and its output.

    `late`: the kernel must replace this operation, not the convolution.
    """

    op: mlir.Operation
    epilogue: Epilogue
    inputs: tuple[mlir.Value, ...]
    out: mlir.Value
    late: bool


def match_start(op: mlir.Operation, problem: Problem) -> Start:
    """The operation right before that fills the output; `NoMatch` if the output has other contents."""
    out = op.operands[2]
    writer = last_writer(op, out)
    if writer is None:
        raise NoMatch("it is not known what the out holds")
    if writer.name == "linalg.fill":
        scalar = literal(writer.operands[0])
        if scalar is not None:
            return Start(writer, scalar, None)
    if writer.name == "linalg.generic" and len(writer.operands) == 2 and writer.operands[1] == out and problem.product:
        bias = writer.operands[0]
        body = writer.regions[0].blocks[0]
        is_copy = list(block_ops(body)[-1].operands) == [body.arguments[0]]
        maps = [attribute.value for attribute in writer.attributes["indexing_maps"]]
        fits = is_copy and isinstance(bias.type, mlir.MemRefType) and is_bias(maps, bias, op, problem)
        if fits and is_plain(bias) and not is_touched(bias, writer, op):
            return Start(writer, "0", bias)
    raise NoMatch("the out holds something else than a constant or a bias")


def is_bias(maps: list[mlir.AffineMap], bias: mlir.Value, op: mlir.Operation, problem: Problem) -> bool:
    """True if a broadcast assigns each filter of each group its own element, in order."""
    out_map = indexing_maps(op)[2]
    weights = indexing_maps(op)[1]
    if maps[1] != mlir.AffineMap.get_identity(maps[1].n_dims):
        return False
    in_w = {e.position for e in weights.results if isinstance(e, mlir.AffineDimExpr)}
    chosen = [axis for axis, e in enumerate(out_map.results) if e.position in in_w]
    read = [e.position if isinstance(e, mlir.AffineDimExpr) else -1 for e in maps[0].results]
    elements = 1
    for size in bias.type.shape:
        elements *= size
    sizes = [op.operands[2].type.shape[axis] for axis in chosen]
    wanted = [axis for axis, size in zip(chosen, sizes) if size > 1]
    given = [axis for axis, size in zip(read, bias.type.shape) if size > 1]
    contiguous = isinstance(bias.type.layout, mlir.AffineMapAttr)
    return wanted == given and contiguous and str(bias.type.element_type) == problem.element


def literal(value: mlir.Value) -> str | None:
    """A constant as text, without its type."""
    owner = defining_op(value)
    if owner is None or owner.name != "arith.constant":
        return None
    return str(owner.attributes["value"]).partition(" : ")[0]


def last_writer(op: mlir.Operation, out: mlir.Value) -> mlir.Operation | None:
    """The last operation of the block before `op` that accesses the buffer of `out`, if it writes `out` itself."""
    if not is_plain(out):
        return None
    last = None
    for user in touching(out, op.block):
        if user != op and user.is_before_in_block(op) and (last is None or last.is_before_in_block(user)):
            last = user
    return last if last is not None and len(last.operands) and last.operands[-1] == out else None


def match_padding(op: mlir.Operation, x: mlir.Value) -> Padding | None:
    """The fill and the copy that make a padded input which only `op` reads."""
    allocation = defining_op(x)
    if allocation is None or allocation.name != "memref.alloc":
        return None
    users = [use.owner.operation for use in x.uses]
    fills = [u for u in users if u.name == "linalg.fill"]
    views = [u for u in users if u.name == "memref.subview"]
    if len(users) != 3 or len(fills) != 1 or len(views) != 1 or any(u.block != op.block for u in users):
        return None
    inner = [use.owner.operation for use in views[0].results[0].uses]
    if len(inner) != 1 or inner[0].name != "memref.copy" or inner[0].block != op.block:
        return None
    copy, filler = inner[0], literal(fills[0].operands[0])
    source = copy.operands[0]
    low = list(mlir.DenseI64ArrayAttr(views[0].attributes["static_offsets"]))
    steps = list(mlir.DenseI64ArrayAttr(views[0].attributes["static_strides"]))
    in_order = fills[0].is_before_in_block(copy) and copy.is_before_in_block(op)
    if filler is None or copy.operands[1] != views[0].results[0] or not in_order or set(steps) != {1}:
        return None
    if len(source.type.shape) != len(low) or len(views[0].operands) != 1:
        return None
    try:
        static_strides(source.type)
    except NoMatch:
        return None
    if not is_plain(source) or is_touched(source, copy, op):
        return None
    return Padding(source, filler, tuple(low), (copy, views[0], fills[0], allocation))


def is_plain(value: mlir.Value) -> bool:
    """True if a buffer has no aliases but views of one value."""
    return is_known(buffer_of(value))


def match_following(op: mlir.Operation, problem: Problem, read: Sequence[mlir.Value]) -> Following | None:
    """The next operation, if it is elementwise on the output of `op` and can be applied before the output is stored.

    `read` are the values that the kernel may read at any time, so that nothing may be stored there.
    """
    out = op.operands[2]
    after = [use.owner.operation for use in out.uses]
    if any(user.block != op.block for user in after):
        return None
    after = [user for user in after if op.is_before_in_block(user)]
    first = next((user for user in after if not any(other.is_before_in_block(user) for other in after)), None)
    if first is None or first.name != "linalg.generic" or is_touched(out, op, first):
        return None
    maps = [attribute.value for attribute in first.attributes["indexing_maps"]]
    identity = mlir.AffineMap.get_identity(maps[0].n_dims)
    if not is_parallel(first) or maps[-1] != identity:
        return None
    *inputs, target = first.operands
    body = first.regions[0].blocks[0]
    if len(block_ops(body)[-1].operands) != 1 or target.type.element_type != out.type.element_type:
        return None
    if target != out and (len(after) != 1 or not is_local(out)):
        return None
    if not is_plain(target) or (target != out and not all(map(is_plain, read))):
        return None
    numbers: dict[mlir.Value, int] = {}
    indexed_by: list[str] = []
    values: list[mlir.Value] = []
    for value, map_, argument_ in zip([*inputs, target], maps, body.arguments, strict=True):
        if not any(True for _ in argument_.uses):
            continue
        if value == out and map_ == identity:
            numbers[argument_] = 0
            continue
        dimension = index_of_input(value, map_, identity, op, problem, target)
        if dimension is None or buffer_of(value) == buffer_of(target) or not is_plain(value):
            return None
        indexed_by.append(dimension)
        values.append(value)
        numbers[argument_] = len(values)
    if 0 not in numbers.values() or any(buffer_of(value) == buffer_of(target) for value in read):
        return None
    moved = [*values, *([target] if target != out else [])]
    late = any(not is_free(value, op, first) for value in moved)
    if late and any(not is_plain(value) or is_touched(value, op, first) for value in read):
        return None
    try:
        if static_strides(target.type) != static_strides(out.type):
            return None
        epilogue = read_epilogue(first, numbers, tuple(indexed_by))
    except NoMatch:
        return None
    return Following(first, epilogue, tuple(values), target, late)


def index_of_input(
    value: mlir.Value,
    map_: mlir.AffineMap,
    identity: mlir.AffineMap,
    op: mlir.Operation,
    problem: Problem,
    target: mlir.Value,
) -> str | None:
    """The dimension that indexes an input, "filter" or "pixel"; None for anything else."""
    type_ = value.type
    if not isinstance(type_, mlir.MemRefType) or str(type_.element_type) != problem.element:
        return None
    if map_ == identity:
        return "pixel" if type_ == target.type and isinstance(type_.layout, mlir.AffineMapAttr) else None
    return "filter" if problem.product and is_bias([map_, identity], value, op, problem) else None


def is_local(value: mlir.Value) -> bool:
    """True if a buffer is allocated here, and has no aliases."""
    owner = defining_op(value)
    uses = [use.owner.operation for use in value.uses]
    return (
        owner is not None
        and owner.name == "memref.alloc"
        and all(user.block == owner.block for user in uses)
        and not any(isinstance(r.type, mlir.MemRefType) for user in uses for r in user.results)
    )


def is_free(value: mlir.Value, op: mlir.Operation, following: mlir.Operation) -> bool:
    """True if a buffer is unchanged between `op` and a following operation."""
    return is_defined_before(value, op) and not is_touched(value, op, following)


def is_defined_before(value: mlir.Value, op: mlir.Operation) -> bool:
    owner = defining_op(value)
    if owner is None:
        return True
    while op.block != owner.block:
        if op.parent is None or op.parent.operation.name == "builtin.module":
            return False
        op = op.parent.operation
    return bool(owner.is_before_in_block(op))

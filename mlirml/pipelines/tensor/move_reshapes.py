"""Move reshapes: elementwise operations with a reshape between them get one iteration space, so that they can be fused.

Before:
    %a = linalg.generic {maps = [(i) -> (i), (i) -> (i)], ["parallel"]} ins(%x : tensor<32xf32>) ...
    %b = tensor.expand_shape %a [[0, 1]] : tensor<32xf32> into tensor<4x8xf32>
    %c = linalg.generic {maps = [(i, j) -> (i, j), ...], ["parallel", "parallel"]} ins(%b) ...
After:
    %y = tensor.expand_shape %x [[0, 1]] : tensor<32xf32> into tensor<4x8xf32>
    %b = linalg.generic {maps = [(i, j) -> (i, j), ...], ["parallel", "parallel"]} ins(%y : tensor<4x8xf32>) ...
    %c = linalg.generic {maps = [(i, j) -> (i, j), ...], ["parallel", "parallel"]} ins(%b) ...

Both reshapes are moved so that the space has more loops: an expansion before the operation that computes its operand, a
collapse after the operation that reads its result. In memory they are views, and loops that are contiguous in all
operands are collapsed again later. Nothing moves between a contraction and the elementwise operation after it. A slice
is moved before the operation that computes its operand too, if it is the only user: the other elements are then not
computed at all. The same is done for several slices that are no more than the whole together, as of columns, where
each is fused with its users. So is a slice at a dynamic offset, as a row in each iteration of a loop, and one of a
transpose:

    %t = linalg.transpose ins(%x : tensor<40x30xf32>) ...        %c = tensor.extract_slice %x[0, %i] [40, 1] [1, 1]
    %r = tensor.extract_slice %t[%i, 0] [1, 40] [1, 1]           %r = linalg.generic {...} ins(%c : tensor<40xf32>)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mlirml.analysis.dimensions import kept_dims, slice_numbers
from mlirml.analysis.structured import groups_of, indexing_maps, is_parallel
from mlirml.analysis.tensor_stores import stored_between
from mlirml.analysis.traits import TENSOR_VIEWS
from mlirml.analysis.values import has_one_use, outer_values
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import applies
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, replace_op
from mlirml.ir.rank_zero import slice_offsets
from mlirml.passes import NoMatch, Pass, register
from mlirml.pipelines.tensor.fuse import tensor_blocks
from mlirml.pipelines.tensor.fusion.nodes import may_fuse

_FREE = (*TENSOR_VIEWS, "arith.constant", "tensor.empty")

_SLICE_FIELDS = ("static_offsets", "static_sizes", "static_strides")

_MOST_SLICES = 8
"""The slices that are computed one by one: each is as much code, as with a row for each step of an unrolled loop."""

Groups = list[list[int]]


@register(when=("tensor.collapse_shape", "tensor.expand_shape", "tensor.extract_slice"), optional=True)
class MoveReshapesPass(Pass):
    """Move reshapes out from between elementwise operations."""

    def run(self, module: mlir.Operation) -> None:
        for block in tensor_blocks(module):
            for op in block_ops(block):
                if is_elementwise(op):
                    move_collapse_after(op)
            todo = [op for op in block_ops(block) if op.name in _MOVE]
            while todo:
                op = todo.pop()
                readers = [use.owner.operation for use in op.results[0].uses]
                new = _MOVE[op.name](op)
                if new is not None:
                    todo += [reader for reader in readers if reader.name in _MOVE and reader not in todo]
                    owners = [new, *map(defining_op, new.operands)]
                    todo += [owner for owner in owners if owner is not None and owner.name in _MOVE]


def is_elementwise(op: mlir.Operation) -> bool:
    """True for a generic of parallel loops with one result in their order, and without `linalg.index`."""
    if op.name != "linalg.generic" or len(op.results) != 1:
        return False
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    if maps[-1] != mlir.AffineMap.get_identity(maps[-1].n_dims) or not all(map(only_picks, maps)):
        return False
    if not is_parallel(op):
        return False
    return not any(inner.name == "linalg.index" or inner.regions for inner in block_ops(op.regions[0].blocks[0]))


def only_picks(map_: mlir.AffineMap) -> bool:
    """True if every result of a map is a different loop."""
    found = [e.position for e in map_.results if isinstance(e, mlir.AffineDimExpr)]
    return len(found) == len(map_.results) == len(set(found))


def move_collapse_after(op: mlir.Operation) -> None:
    """Compute on the shape before the collapse of an operand, and collapse the result."""
    first_out = len(op.operands) - 1
    if is_read(op, first_out):
        return
    for position, operand in enumerate(list(op.operands)[:first_out]):
        owner = defining_op(operand)
        if owner is None or owner.name != "tensor.collapse_shape" or not has_one_use(operand):
            continue
        if not operand.type.rank:  # there is no loop to expand
            continue
        source = defining_op(owner.operands[0])
        if source is None or not is_elementwise(source) or not has_one_use(owner.operands[0]):
            continue
        map_ = op.attributes["indexing_maps"][position].value
        if map_ != mlir.AffineMap.get_identity(map_.n_dims):
            continue
        groups, shape = groups_of(owner), list(owner.operands[0].type.shape)
        with op.location, mlir.InsertionPoint(op):
            new = expanded(op, groups, shape, {position: owner.operands[0]})
            result_type, attributes = op.results[0].type, {"reassociation": owner.attributes["reassociation"]}
            result = emit.value("tensor.collapse_shape", [new], result_type, **attributes)
        replace_op(op, result)
        owner.erase()
        return


def move_expand_before(op: mlir.Operation) -> mlir.Operation | None:
    """Expand the operands of the operation that computes the expanded value; returns the new operation, or None."""
    producer = defining_op(op.operands[0])
    if producer is None or not has_one_use(op.operands[0]) or not is_elementwise(producer):
        return None
    if is_read(producer, len(producer.operands) - 1) or not all(map(may_reshape, list(producer.operands)[:-1])):
        return None
    if not any(may_fuse(use.owner.operation) for use in op.results[0].uses):
        return None
    with producer.location, mlir.InsertionPoint(producer):
        new = expanded(producer, groups_of(op), list(op.results[0].type.shape), {})
    replace_op(op, new)
    producer.erase()
    return defining_op(new)


def move_slice_before(op: mlir.Operation) -> mlir.Operation | None:
    """Slice the operands of the operation that computes the sliced value; returns the new operation, or None."""
    producer, slice_type = defining_op(op.operands[0]), op.results[0].type
    if producer is None or not (has_one_use(op.operands[0]) or is_split(op.operands[0])):
        return None
    same_rank = slice_type.rank == op.operands[0].type.rank
    if not is_elementwise(producer) or len(op.operands) > 1 or not same_rank:
        return move_row_before(op, producer)
    fields = [list(op.attributes[name]) for name in _SLICE_FIELDS]
    if is_read(producer, len(producer.operands) - 1):
        return None
    if not all(map(may_reshape, list(producer.operands)[:-1])):
        return None
    maps = [attribute.value for attribute in producer.attributes["indexing_maps"]]
    with producer.location, mlir.InsertionPoint(producer):
        operands = [
            sliced(operand, [[field[e.position] for e in map_.results] for field in fields])
            for operand, map_ in zip(list(producer.operands)[:-1], maps, strict=False)
        ]
        new = rebuilt(producer, operands, maps[:-1], list(slice_type.shape))
    replace_op(op, new)
    erase_unused(producer)
    return defining_op(new)


def is_split(value: mlir.Value) -> bool:
    """True if slices that are no more than the whole are its only users, and are fused with theirs in turn."""
    count, users = 0, [use.owner.operation for use in value.uses]
    if len(users) > _MOST_SLICES:
        return False
    for user in users:
        if user.name != "tensor.extract_slice" or len(user.operands) > 1 or not user.results[0].type.has_static_shape:
            return False
        count += math.prod(user.results[0].type.shape)
        if not all(may_fuse(use.owner.operation) for use in user.results[0].uses):
            return False
    return count <= math.prod(value.type.shape)


def erase_unused(op: mlir.Operation) -> None:
    """Erase an operation without users."""
    if not any(True for _ in op.results[0].uses):
        op.erase()


@dataclass(frozen=True)
class Elements:
    """The computation of each element of a tensor: inputs, their maps, and the body; no body where it is an input's."""

    inputs: list[mlir.Value]
    maps: list[mlir.AffineMap]
    body: mlir.Block | None


def match_elements(op: mlir.Operation) -> Elements:
    """The computation of each element of the one result of an operation; raises `NoMatch` for others."""
    if op.name not in ("linalg.generic", "linalg.transpose", "linalg.broadcast") or len(op.results) != 1:
        raise NoMatch("it is not computed element by element")
    *maps, last = indexing_maps(op)
    if last != mlir.AffineMap.get_identity(last.n_dims) or not all(map(only_picks, maps)) or not is_parallel(op):
        raise NoMatch("elements are not computed in their order")
    if is_read(op, len(op.operands) - 1):
        raise NoMatch("it reads what it overwrites")
    if op.name != "linalg.generic":
        return Elements(list(op.operands)[:-1], maps, None)
    body = op.regions[0].blocks[0]
    if any(inner.regions for inner in block_ops(body)):
        raise NoMatch("its body has regions")
    return Elements(list(op.operands)[:-1], maps, body)


def move_row_before(op: mlir.Operation, producer: mlir.Operation) -> mlir.Operation | None:
    """Compute the elements of a slice alone, at the slice; returns the operation that does, or None.

    Its offsets may be dynamic, and dimensions of size 1 dropped.
    """
    _, sizes, strides = slice_numbers(op)
    dynamic = any(mlir.ShapedType.is_dynamic_size(number) for number in (*sizes, *strides))
    if dynamic or op.block != producer.block or not op.results[0].type.rank:
        return None
    try:
        elements, kept = match_elements(producer), kept_dims(op, op.results[0].type.shape)
    except NoMatch:
        return None
    read = [value for value in outer_values(producer) if isinstance(value.type, mlir.RankedTensorType)]
    if not all(may_slice(value, op) for value in elements.inputs) or any(
        value != producer.operands[-1] and stored_between(producer, value, op) for value in read
    ):
        return None
    with op.location, mlir.InsertionPoint(op):
        new = build_row(op, elements, slice_offsets(op), sizes, strides, kept)
    replace_op(op, new)
    erase_unused(producer)
    return defining_op(new)


def may_slice(value: mlir.Value, reader: mlir.Operation) -> bool:
    """True if a slice of a value is free, or can be computed alone; not where it would split two operations to fuse."""
    owner = defining_op(value)
    if owner is None or owner.block != reader.block or may_reshape(value):
        return True
    return applies(match_elements, owner)


def build_row(
    op: mlir.Operation,
    elements: Elements,
    offsets: Sequence[int | mlir.Value],
    sizes: Sequence[int],
    strides: Sequence[int],
    kept: Sequence[int],
) -> mlir.Value:
    """The elements of a slice, from slices of the inputs."""
    loops = {dim: mlir.AffineDimExpr.get(loop) for loop, dim in enumerate(kept)}
    inputs, maps = [], []
    for value, map_ in zip(elements.inputs, elements.maps, strict=True):
        dims = [e.position for e in map_.results]
        own = [dim for dim in dims if dim in loops]
        maps.append(mlir.AffineMap.get(len(kept), 0, [loops[dim] for dim in own]))
        if isinstance(value.type, mlir.RankedTensorType) and dims:
            value = emit.extract_slice(
                value,
                [offsets[dim] for dim in dims],
                [sizes[dim] for dim in dims],
                [sizes[dim] for dim in own],
                [strides[dim] for dim in dims],
            )
        inputs.append(value)
    identity = mlir.AffineMap.get_identity(len(kept))
    if elements.body is None and maps == [identity]:
        return inputs[0]
    out = emit.empty(op.results[0].type)
    body = row_body(elements, offsets, strides, kept)
    return emit.generic(inputs, [out], [*maps, identity], ["parallel"] * len(kept), body).results[0]


def row_body(
    elements: Elements, offsets: Sequence[int | mlir.Value], strides: Sequence[int], kept: Sequence[int]
) -> Callable[[list[mlir.Value]], list[mlir.Value]]:
    """The body that computes the elements of a slice, whose loops are the dimensions kept of the whole."""

    def index_at(dim: int) -> mlir.Value:
        offset = offsets[dim]
        first = emit.index(offset) if isinstance(offset, int) else offset
        if dim not in kept:
            return first
        number = emit.i64(list(kept).index(dim))
        moved = emit.value("linalg.index", [], mlir.IndexType.get(), dim=number)
        if strides[dim] != 1:
            moved = emit.same_type("arith.muli", moved, emit.index(strides[dim]))
        return moved if offset == 0 else emit.same_type("arith.addi", moved, first)

    def body(arguments: list[mlir.Value]) -> list[mlir.Value]:
        if elements.body is None:
            return arguments[:1]
        environment = dict(zip(elements.body.arguments, arguments, strict=True))
        *inner, final = block_ops(elements.body)
        for each in inner:
            if each.name == "linalg.index":
                environment[each.results[0]] = index_at(mlir.IntegerAttr(each.attributes["dim"]).value)
            else:
                emit.body_op(each, environment)
        return [environment.get(value, value) for value in final.operands]

    return body


def sliced(operand: mlir.Value, fields: Sequence[Sequence[int]]) -> mlir.Value:
    """A slice of an operand; `fields` are its offsets, sizes and strides."""
    if not isinstance(operand.type, mlir.RankedTensorType) or not operand.type.shape:
        return operand
    attributes = {
        name: mlir.DenseI64ArrayAttr.get(list(field)) for name, field in zip(_SLICE_FIELDS, fields, strict=True)
    }
    slice_type = mlir.RankedTensorType.get(list(fields[1]), operand.type.element_type)
    return emit.value(
        "tensor.extract_slice", [operand], slice_type, operandSegmentSizes=emit.segments(1, 0, 0, 0), **attributes
    )


_MOVE = {"tensor.expand_shape": move_expand_before, "tensor.extract_slice": move_slice_before}
"""The operations that are moved before the producer of their operand."""


def may_reshape(value: mlir.Value) -> bool:
    """True if a reshape of a value is free, and does not prevent fusion."""
    owner = defining_op(value)
    return owner is None or owner.name in _FREE or is_elementwise(owner)


def is_read(op: mlir.Operation, position: int) -> bool:
    """True if the body reads an operand."""
    return any(True for _ in op.regions[0].blocks[0].arguments[position].uses)


def expanded(op: mlir.Operation, groups: Groups, shape: Sequence[int], known: dict[int, mlir.Value]) -> mlir.Value:
    """The result of an elementwise operation over more loops: loop `d` becomes the loops `groups[d]` of `shape`.

    `known` are operands that have the new shape already, by position.
    """
    maps, operands = [], []
    for position, (operand, attribute) in enumerate(
        zip(list(op.operands)[:-1], list(op.attributes["indexing_maps"])[:-1], strict=True)
    ):
        dims = [expression.position for expression in attribute.value.results]
        loops = [loop for d in dims for loop in groups[d]]
        maps.append(mlir.AffineMap.get(len(shape), 0, [mlir.AffineDimExpr.get(loop) for loop in loops]))
        new = known.get(position)
        operands.append(reshaped(operand, [groups[d] for d in dims], shape) if new is None else new)
    return rebuilt(op, operands, maps, shape)


def rebuilt(
    op: mlir.Operation, operands: Sequence[mlir.Value], maps: Sequence[mlir.AffineMap], shape: Sequence[int]
) -> mlir.Value:
    """The result of the same computation on other operands."""
    out = emit.empty(mlir.RankedTensorType.get(list(shape), op.results[0].type.element_type))

    def body(arguments: list[mlir.Value]) -> list[mlir.Value]:
        return emit.body_again(op.regions[0].blocks[0], arguments)

    identity = mlir.AffineMap.get_identity(len(shape))
    return emit.generic(operands, [out], [*maps, identity], ["parallel"] * len(shape), body).results[0]


def reshaped(operand: mlir.Value, groups: Groups, shape: Sequence[int]) -> mlir.Value:
    """An operand with each dimension expanded to the loops of its group."""
    if not isinstance(operand.type, mlir.RankedTensorType) or all(len(group) == 1 for group in groups):
        return operand
    sizes, reassociation, dim = [], [], 0
    for group in groups:
        sizes += [shape[loop] for loop in group]
        reassociation.append(mlir.ArrayAttr.get([emit.i64(dim + n) for n in range(len(group))]))
        dim += len(group)
    expanded_type = mlir.RankedTensorType.get(sizes, operand.type.element_type)
    static = mlir.DenseI64ArrayAttr.get(sizes)
    return emit.value(
        "tensor.expand_shape",
        [operand],
        expanded_type,
        reassociation=mlir.ArrayAttr.get(reassociation),
        static_output_shape=static,
    )

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
computed at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.structured import is_parallel
from mlirml.analysis.traits import TENSOR_VIEWS
from mlirml.analysis.values import has_one_use
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import Pass, register
from mlirml.pipelines.tensor.fuse import tensor_blocks
from mlirml.pipelines.tensor.fusion.nodes import may_fuse

_FREE = (*TENSOR_VIEWS, "arith.constant", "tensor.empty")

_SLICE_FIELDS = ("static_offsets", "static_sizes", "static_strides")

Groups = list[list[int]]


@register(optional=True)
@dataclass(frozen=True)
class MoveReshapesPass(Pass):
    """Move reshapes out from between elementwise operations."""

    name = "mlirml-move-reshapes"

    def run(self, module: mlir.Operation) -> None:
        with module.context:
            for block in tensor_blocks(module):
                for op in block_ops(block):
                    if is_elementwise(op):
                        move_collapse_after(op)
                todo = [op for op in block_ops(block) if op.name in _MOVE]
                while todo:
                    op = todo.pop()
                    new = _MOVE[op.name](op)
                    owners = map(defining_op, new.operands) if new is not None else ()
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


def groups_of(op: mlir.Operation) -> Groups:
    """For each collapsed dimension the expanded dimensions."""
    return [[dim.value for dim in group] for group in op.attributes["reassociation"]]


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
        op.results[0].replace_all_uses_with(result)
        op.erase()
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
    op.results[0].replace_all_uses_with(new)
    op.erase()
    producer.erase()
    return defining_op(new)


def move_slice_before(op: mlir.Operation) -> mlir.Operation | None:
    """Slice the operands of the operation that computes the sliced value; returns the new operation, or None."""
    producer, slice_type = defining_op(op.operands[0]), op.results[0].type
    if producer is None or not has_one_use(op.operands[0]) or not is_elementwise(producer):
        return None
    fields = [list(op.attributes[name]) for name in _SLICE_FIELDS]
    same_rank = slice_type.rank == op.operands[0].type.rank
    if len(op.operands) > 1 or not same_rank or is_read(producer, len(producer.operands) - 1):
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
    op.results[0].replace_all_uses_with(new)
    op.erase()
    producer.erase()
    return defining_op(new)


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

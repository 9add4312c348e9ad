"""Move reshapes: elementwise operations with a reshape between them get one iteration space, so that they can be fused.

Before:
    %a = linalg.generic {maps = [(i) -> (i), (i) -> (i)], ["parallel"]} ins(%x : tensor<32xf32>) ...
    %b = tensor.expand_shape %a [[0, 1]] : tensor<32xf32> into tensor<4x8xf32>
    %c = linalg.generic {maps = [(i, j) -> (i, j), ...], ["parallel", "parallel"]} ins(%b) ...
After:
    %y = tensor.expand_shape %x [[0, 1]] : tensor<32xf32> into tensor<4x8xf32>
    %b = linalg.generic {maps = [(i, j) -> (i, j), ...], ["parallel", "parallel"]} ins(%y : tensor<4x8xf32>) ...
    %c = linalg.generic {maps = [(i, j) -> (i, j), ...], ["parallel", "parallel"]} ins(%b) ...

Both kinds of reshape lead to the space with more loops: an expansion moves in front of the operation that computes its
operand, a collapse behind the operation that reads its result. In memory they are views, and loops that all operands
walk as one are merged again later. Nothing moves between a contraction and the elementwise operation behind it. A
slice, where nothing else reads the operation that computes its operand, moves in front of that too: what is left out is
not computed at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import Pass, register
from mlirml.pipelines.tensor.fuse import tensor_blocks
from mlirml.pipelines.tensor.fusion.nodes import may_fuse

_FREE = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.extract_slice", "arith.constant", "tensor.empty")

_PLACE = ("static_offsets", "static_sizes", "static_strides")

Groups = list[list[int]]


@register
@dataclass(frozen=True)
class MoveReshapesPass(Pass):
    """Move reshapes out from between elementwise operations."""

    name = "mlirml-move-reshapes"

    def run(self, module: mlir.Operation) -> None:
        with module.context:
            for block in tensor_blocks(module):
                for op in block_ops(block):
                    if is_elementwise(op):
                        move_collapse_behind(op)
                todo = [op for op in block_ops(block) if op.name in _MOVE]
                while todo:
                    op = todo.pop()
                    new = _MOVE[op.name](op)
                    owners = map(defining_op, new.operands) if new is not None else ()
                    todo += [owner for owner in owners if owner is not None and owner.name in _MOVE]


def is_elementwise(op: mlir.Operation) -> bool:
    """True if it is a generic of parallel loops with one result in their order, and without `linalg.index`."""
    if op.name != "linalg.generic" or len(op.results) != 1:
        return False
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    if maps[-1] != mlir.AffineMap.get_identity(maps[-1].n_dims) or not all(map(only_picks, maps)):
        return False
    if any("parallel" not in str(kind) for kind in op.attributes["iterator_types"]):
        return False
    return not any(inner.name == "linalg.index" or inner.regions for inner in block_ops(op.regions[0].blocks[0]))


def only_picks(map_: mlir.AffineMap) -> bool:
    """True if every result of a map is a loop of its own."""
    found = [e.position for e in map_.results if isinstance(e, mlir.AffineDimExpr)]
    return len(found) == len(map_.results) == len(set(found))


def groups_of(op: mlir.Operation) -> Groups:
    """The dimensions of the expanded shape, for each of the collapsed one."""
    return [[dim.value for dim in group] for group in op.attributes["reassociation"]]


def has_one_use(value: mlir.Value) -> bool:
    return sum(1 for _ in value.uses) == 1


def move_collapse_behind(op: mlir.Operation) -> None:
    """Compute on the shape from before a collapse of an operand, and collapse the result."""
    first_out = len(op.operands) - 1
    if is_read(op, first_out):
        return
    for position, operand in enumerate(list(op.operands)[:first_out]):
        owner = defining_op(operand)
        if owner is None or owner.name != "tensor.collapse_shape" or not has_one_use(operand):
            continue
        if not operand.type.rank:  # no loop of the operation becomes those of the source
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
            kind, attributes = op.results[0].type, {"reassociation": owner.attributes["reassociation"]}
            result = emit.value("tensor.collapse_shape", [new], kind, **attributes)
        op.results[0].replace_all_uses_with(result)
        op.erase()
        owner.erase()
        return


def move_expand_in_front(op: mlir.Operation) -> mlir.Operation | None:
    """Expand the operands of the operation that computes what is expanded; the new operation, if there is one."""
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


def move_slice_in_front(op: mlir.Operation) -> mlir.Operation | None:
    """Take the slice of the operands of the operation that computes what is sliced; the new one, if there is one."""
    producer, kind = defining_op(op.operands[0]), op.results[0].type
    if producer is None or not has_one_use(op.operands[0]) or not is_elementwise(producer):
        return None
    places = [list(op.attributes[name]) for name in _PLACE]
    if len(op.operands) > 1 or kind.rank != op.operands[0].type.rank or is_read(producer, len(producer.operands) - 1):
        return None
    if not all(map(may_reshape, list(producer.operands)[:-1])):
        return None
    maps = [attribute.value for attribute in producer.attributes["indexing_maps"]]
    with producer.location, mlir.InsertionPoint(producer):
        operands = [
            sliced(operand, [[place[e.position] for e in map_.results] for place in places])
            for operand, map_ in zip(list(producer.operands)[:-1], maps, strict=False)
        ]
        new = again(producer, operands, maps[:-1], list(kind.shape))
    op.results[0].replace_all_uses_with(new)
    op.erase()
    producer.erase()
    return defining_op(new)


def sliced(operand: mlir.Value, places: Sequence[Sequence[int]]) -> mlir.Value:
    """A slice of an operand; `places` are its offsets, sizes and strides."""
    if not isinstance(operand.type, mlir.RankedTensorType) or not operand.type.shape:
        return operand
    attributes = {name: mlir.DenseI64ArrayAttr.get(list(place)) for name, place in zip(_PLACE, places, strict=True)}
    kind = mlir.RankedTensorType.get(list(places[1]), operand.type.element_type)
    return emit.value(
        "tensor.extract_slice", [operand], kind, operandSegmentSizes=emit.segments(1, 0, 0, 0), **attributes
    )


_MOVE = {"tensor.expand_shape": move_expand_in_front, "tensor.extract_slice": move_slice_in_front}
"""What moves in front of the operation that computes its operand."""


def may_reshape(value: mlir.Value) -> bool:
    """True if a reshape of a value costs nothing, and keeps no operation from being fused."""
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
        picked = [expression.position for expression in attribute.value.results]
        loops = [loop for d in picked for loop in groups[d]]
        maps.append(mlir.AffineMap.get(len(shape), 0, [mlir.AffineDimExpr.get(loop) for loop in loops]))
        new = known.get(position)
        operands.append(reshaped(operand, [groups[d] for d in picked], shape) if new is None else new)
    return again(op, operands, maps, shape)


def again(
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
    sizes, reassociation, place = [], [], 0
    for group in groups:
        sizes += [shape[loop] for loop in group]
        reassociation.append(mlir.ArrayAttr.get([emit.i64(place + n) for n in range(len(group))]))
        place += len(group)
    kind = mlir.RankedTensorType.get(sizes, operand.type.element_type)
    static = mlir.DenseI64ArrayAttr.get(sizes)
    return emit.value(
        "tensor.expand_shape",
        [operand],
        kind,
        reassociation=mlir.ArrayAttr.get(reassociation),
        static_output_shape=static,
    )

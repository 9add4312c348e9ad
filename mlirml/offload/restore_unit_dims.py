"""Restore unit dims: products have the dims of size 1 that reshapes drop before them, and add after them.

Before:
    %s = linalg.matmul ins(%q, %k : tensor<64x16xf32>, tensor<16x96xf32>) outs(%f : tensor<64x96xf32>)
    %x = tensor.expand_shape %s [[0, 1], [2]] : tensor<64x96xf32> into tensor<1x64x96xf32>
After:
    %a = tensor.expand_shape %q [[0, 1], [2]] : tensor<64x16xf32> into tensor<1x64x16xf32>
    %b = tensor.expand_shape %k [[0, 1], [2]] : tensor<16x96xf32> into tensor<1x16x96xf32>
    %x = linalg.contract ... ins(%a, %b) outs(%f1 : tensor<1x64x96xf32>)

The same for a factor that a reshape drops dims of size 1 of: the product reads it before the reshape.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.structured import indexing_maps, is_parallel
from mlirml.analysis.traits import RESHAPES
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, main_function, mlir
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_CONTRACTION

_RESULT = 2
Dims = list[int | None]
"""For each dim of a tensor the dim of the one with fewer, None for one of size 1 that this lacks."""


@register(when=ANY_CONTRACTION, optional=True)
class RestoreUnitDimsPass(Pass):
    """Let products read and write tensors with dims of size 1, so that no reshape is between operations on scores."""

    def run(self, module: mlir.Operation) -> None:
        block = main_function(module).regions[0].blocks[0]
        for op in block_ops(block):
            if op.name in CONTRACTIONS and len(op.results) == 1:
                with suppress(NoMatch):
                    restore(op)
        for op in reversed(block_ops(block)):
            if op.name in (*RESHAPES, "linalg.fill") and not any(True for _ in op.results[0].uses):
                op.erase()


def restore(op: mlir.Operation) -> None:
    """Replace one product; raises NoMatch if there are no such dims."""
    users = [use.owner.operation for use in op.results[0].uses]
    fill = defining_op(op.operands[_RESULT])
    if fill is None or fill.name != "linalg.fill":
        raise NoMatch("a product is added to something")
    if len(users) == 1 and users[0].name == "tensor.expand_shape" and is_reduced(users[0].results[0]):
        large = users[0].results[0]
        (new,) = rebuilt(op, fill, _RESULT, large, dims_of(users[0], large))
        large.replace_all_uses_with(new)
        users[0].erase()
        op.erase()
        return
    for number in (0, 1):
        collapse = defining_op(op.operands[number])
        if collapse is not None and collapse.name == "tensor.collapse_shape" and is_computed(collapse.operands[0]):
            large = collapse.operands[0]
            dims = dims_of(collapse, large)
            (new,) = rebuilt(op, fill, number, large, dims)
            with op.location, mlir.InsertionPoint(op):
                op.results[0].replace_all_uses_with(without_first(new, dims.count(None)))
            op.erase()
            return
    raise NoMatch("no dims of size 1")


def is_reduced(value: mlir.Value) -> bool:
    """True if rows of a tensor are reduced, as those of scores are."""
    users = [use.owner.operation for use in value.uses]
    return any(user.name == "linalg.generic" and not is_parallel(user) for user in users)


def is_computed(value: mlir.Value) -> bool:
    """True for the result of a structured operation on the elements of a matrix."""
    op = defining_op(value)
    return op is not None and op.name == "linalg.generic"


def dims_of(reshape: mlir.Operation, large: mlir.Value) -> Dims:
    """The dims of the larger tensor of a reshape that adds or drops dims of size 1; raises NoMatch for others."""
    shape = large.type.shape
    found: Dims = [None] * len(shape)
    for number, group in enumerate(reshape.attributes["reassociation"]):
        dims = [int(mlir.IntegerAttr(d).value) for d in mlir.ArrayAttr(group)]
        wide = [d for d in dims if shape[d] != 1]
        if len(wide) > 1:
            raise NoMatch("dims are merged")
        found[(wide or dims[-1:])[0]] = number
    if None not in found or not large.type.has_static_shape:
        raise NoMatch("nothing is added")
    return found


def rebuilt(op: mlir.Operation, fill: mlir.Operation, number: int, large: mlir.Value, dims: Dims) -> tuple[mlir.Value]:
    """The product with one of its tensors replaced by a larger one; the others have the further dims first."""
    maps = [[e.position for e in each.results] for each in indexing_maps(op)]
    loops = indexing_maps(op)[0].n_dims
    count = dims.count(None)
    more = list(range(loops, loops + count))
    new_maps = [[*more, *own] for own in maps]
    new_maps[number] = spread(maps[number], dims, more)
    with op.location, mlir.InsertionPoint(op):
        operands = []
        for n in (0, 1):
            before = source_of_collapse(op.operands[n], count)
            if n == number:
                operands.append(large)
            elif before is not None:
                operands.append(before[0])
                new_maps[n] = spread(maps[n], before[1], more)
            else:
                operands.append(with_first(op.operands[n], count))
        shape = list(op.results[0].type.shape)
        wanted = large.type.shape if number == _RESULT else [1] * count + shape
        empty = emit.empty(mlir.RankedTensorType.get(wanted, op.results[0].type.element_type))
        init = emit.fill(fill.operands[0], empty).results[0]
        affine = [mlir.AffineMap.get(loops + count, 0, [mlir.AffineDimExpr.get(d) for d in own]) for own in new_maps]
        body = op.regions[0].blocks[0]
        return (emit.contract([*operands, init], affine, lambda xs: emit.body_again(body, xs)[0]),)


def spread(own: Sequence[int], dims: Dims, more: Sequence[int]) -> list[int]:
    """The loops of the dims of a larger tensor, of which the further ones have loops of their own."""
    added = iter(more)
    return [next(added) if d is None else own[d] for d in dims]


def source_of_collapse(value: mlir.Value, count: int) -> tuple[mlir.Value, Dims] | None:
    """The tensor that a value is without some dims of size 1, and its dims; None if there is none."""
    made = defining_op(value)
    if made is None or made.name != "tensor.collapse_shape":
        return None
    try:
        dims = dims_of(made, made.operands[0])
    except NoMatch:
        return None
    return (made.operands[0], dims) if dims.count(None) == count else None


def groups(rank: int, count: int) -> mlir.Attribute:
    """The reassociation of a tensor with some dims before those of another one, of this rank."""
    found = [[*range(count + 1)], *([d + count] for d in range(1, rank))] if rank else []
    return mlir.ArrayAttr.get([mlir.ArrayAttr.get([emit.i64(d) for d in group]) for group in found])


def with_first(value: mlir.Value, count: int) -> mlir.Value:
    """A tensor with some dims of size 1 before its own."""
    shape: Sequence[int] = [1] * count + list(value.type.shape)
    type_ = mlir.RankedTensorType.get(shape, value.type.element_type)
    static = mlir.DenseI64ArrayAttr.get(list(shape))
    reassociation = groups(len(value.type.shape), count)
    attributes = {"reassociation": reassociation, "static_output_shape": static}
    return emit.value("tensor.expand_shape", [value], type_, **attributes)


def without_first(value: mlir.Value, count: int) -> mlir.Value:
    """A tensor without some dims of size 1 before its others."""
    shape = list(value.type.shape)[count:]
    type_ = mlir.RankedTensorType.get(shape, value.type.element_type)
    return emit.value("tensor.collapse_shape", [value], type_, reassociation=groups(len(shape), count))

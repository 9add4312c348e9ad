"""Elements of arrays that are computed from those of others one by one: transposes, broadcasts, flips, gathers.

%t = linalg.transpose ins(%a : tensor<40x30xf64>) ... permutation = [1, 0]
%x = tensor.extract %t[%i, %j]                              %x = tensor.extract %a[%j, %i]
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.structured import is_parallel
from mlirml.analysis.values import captured_values, has_one_use
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, mlir

_INDEX_ARITHMETIC = ("arith.addi", "arith.subi", "arith.muli", "arith.index_cast", "arith.index_castui")
_MOVES = ("linalg.index", "linalg.yield", "tensor.extract", "arith.constant", *_INDEX_ARITHMETIC)
_DIALECTS = ("arith.", "math.", "complex.", "linalg.")


def is_worth_reading(op: mlir.Operation) -> bool:
    """True if an element of an operation's result is computed on its own in less time than the result.

    One of a result that has no other reader, and any of one whose elements are in another order than an array's.
    """
    if op.name in ("linalg.transpose", "linalg.broadcast"):
        return len(op.results) == 1
    if not _is_elementwise(op):
        return False
    block = op.regions[0].blocks[0]
    *inner, final = block_ops(block)
    if all(each.name in _MOVES for each in inner) and _is_element(final.operands[0], block):
        return True
    return has_one_use(op.results[0]) and all(
        each.name.startswith(_DIALECTS) or each.name == "tensor.extract" for each in inner
    )


def _is_elementwise(op: mlir.Operation) -> bool:
    """True for parallel loops whose one result is in their order, and which do not read what they overwrite."""
    if op.name != "linalg.generic" or len(op.results) != 1 or not is_parallel(op):
        return False
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    picks = all(isinstance(e, mlir.AffineDimExpr) for map_ in maps for e in map_.results)
    block = op.regions[0].blocks[0]
    return (
        picks
        and maps[-1] == mlir.AffineMap.get_identity(maps[-1].n_dims)
        and not any(True for _ in list(block.arguments)[-1].uses)
        and not any(inner.regions for inner in block_ops(block))
    )


def _is_element(value: mlir.Value, block: mlir.Block) -> bool:
    """True if a value of a body is an element of an array, rather than a number computed from indices."""
    owner = value.owner
    return bool(owner == block) if isinstance(owner, mlir.Block) else owner.name == "tensor.extract"


def sources_of(op: mlir.Operation) -> list[mlir.Value]:
    """The arrays whose elements an operation reads."""
    values = [*list(op.operands)[:-1], *(captured_values(op) if op.name == "linalg.generic" else ())]
    return [value for value in values if isinstance(value.type, mlir.RankedTensorType)]


def element_at(op: mlir.Operation, indices: Sequence[mlir.Value]) -> mlir.Value:
    """An element of an operation's result, computed from its sources at the insertion point."""
    if op.name == "linalg.transpose":
        permutation = list(mlir.DenseI64ArrayAttr(op.attributes["permutation"]))
        order = [permutation.index(dim) for dim in range(len(permutation))]
        return _read(op.operands[0], [indices[dim] for dim in order])
    if op.name == "linalg.broadcast":
        added = set(mlir.DenseI64ArrayAttr(op.attributes["dimensions"]))
        return _read(op.operands[0], [index for dim, index in enumerate(indices) if dim not in added])
    return _generic_element(op, indices)


def _generic_element(op: mlir.Operation, indices: Sequence[mlir.Value]) -> mlir.Value:
    block = op.regions[0].blocks[0]
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    environment: dict[mlir.Value, mlir.Value] = {}
    for argument, operand, map_ in zip(block.arguments, list(op.operands)[:-1], maps, strict=False):
        if any(True for _ in argument.uses):
            is_scalar = not isinstance(operand.type, mlir.RankedTensorType)
            environment[argument] = (
                operand if is_scalar else _read(operand, [indices[e.position] for e in map_.results])
            )
    *inner, final = block_ops(block)
    for each in inner:
        if each.name == "linalg.index":
            environment[each.results[0]] = indices[mlir.IntegerAttr(each.attributes["dim"]).value]
        else:
            emit.body_op(each, environment)
    return environment.get(final.operands[0], final.operands[0])


def _read(source: mlir.Value, indices: Sequence[mlir.Value]) -> mlir.Value:
    if not isinstance(source.type, mlir.RankedTensorType):
        return source
    return emit.value("tensor.extract", [source, *indices], source.type.element_type)

"""The scalar that a tensor's elements are computed as, and the tensor that an argument of a body is an element of."""

from __future__ import annotations

from mlirml.analysis.structured import is_parallel
from mlirml.ir.bindings import block_ops, defining_op, mlir

_UNSIGNED, _SIGNED = ("arith.maxui", "arith.minui"), ("arith.maxsi", "arith.minsi")


def source_of(generic: mlir.Operation, argument: mlir.Value) -> mlir.Value | None:
    """The tensor whose elements an argument of the body is; None for an init of a reduction, and for memrefs."""
    index = list(generic.regions[0].blocks[0].arguments).index(argument)
    inputs = len(generic.operands) - len(generic.results)
    is_init = index >= inputs and not is_parallel(generic)
    return generic.operands[index] if generic.results and not is_init else None


def element_of(tensor: mlir.Value) -> mlir.Value | None:
    """The scalar that each element of a tensor is, of another iteration each; None where there is none."""
    op = defining_op(tensor)
    if op is None:
        return None
    if op.name == "linalg.fill":
        return op.operands[0]
    if op.name != "linalg.generic":
        return None
    index = list(op.results).index(tensor)
    maps = mlir.ArrayAttr(op.attributes["indexing_maps"])
    stored = mlir.AffineMapAttr(maps[len(maps) - len(op.results) + index]).value
    block = op.regions[0].blocks[0]
    # Else there may be elements that are not stored, which are those of the init.
    return block.operations[len(block.operations) - 1].operands[index] if stored.is_projected_permutation else None


def choice_of(generic: mlir.Operation, result: mlir.Value) -> tuple[mlir.Value, mlir.Value, bool] | None:
    """A value of the body and the init of a reduction that chooses one of them, and True if it compares them unsigned.

    Maxima and minima of integers do, and selections, as of the position of an extreme.
    """
    block = generic.regions[0].blocks[0]
    *_, end = block_ops(block)
    index = list(generic.results).index(result)
    place = len(generic.operands) - len(generic.results) + index
    op = defining_op(end.operands[index])
    if op is None or op.name not in (*_UNSIGNED, *_SIGNED, "arith.select"):
        return None
    choices = list(op.operands)[1:] if op.name == "arith.select" else list(op.operands)
    others = [value for value in choices if value != block.arguments[place]]
    if len(others) != 1:
        return None
    return others[0], generic.operands[place], op.name in _UNSIGNED

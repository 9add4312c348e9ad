"""The sizes of what branches of dynamic sizes yield, as values that are defined before the branch."""

from __future__ import annotations

import math

from mlirml.analysis.constants import constant_of
from mlirml.analysis.traits import BRANCHES, SEQUENTIAL_LOOPS
from mlirml.errors import LoweringError
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.ir.location import source_location

_SIZED = {"tensor.empty": 0, "bufferization.alloc_tensor": 0, "tensor.expand_shape": 1}
"""Operations whose operands from an index on are the dynamic sizes of their results."""
_INTO = {
    "tensor.insert": 1,
    "tensor.insert_slice": 1,
    "bufferization.materialize_in_destination": 1,
    "tensor.cast": 0,
    "mlirml.barrier": 0,
    "arith.select": 1,
}
"""The operand of an operation that has the shape of its result."""


def dynamic_sizes(op: mlir.Operation, number: int) -> list[mlir.Value]:
    """The dynamic sizes of a result of a branch, at the insertion point before it."""
    end = block_ops(op.regions[0].blocks[0])[-1]
    return [size for size in _sizes(end.operands[number], op) if not isinstance(size, int)]


def _sizes(value: mlir.Value, branch: mlir.Operation) -> list[mlir.Value | int]:
    """The sizes of a tensor, by the operations that made it: values from before the branch."""
    op = defining_op(value)
    if value.type.has_static_shape:
        return list(value.type.shape)
    if not _is_in(value.owner if op is None else op.block, branch):
        return emit.dims_of(value)
    if op is None:  # an argument of a loop in the branch
        return _of_argument(value, branch)
    if op.name in _SIZED:
        given = (_outside(size, branch) for size in list(op.operands)[_SIZED[op.name] :])
        return [next(given) if value.type.is_dynamic_dim(d) else n for d, n in enumerate(value.type.shape)]
    if op.name in _INTO:
        return _sizes(op.operands[_INTO[op.name]], branch)
    if op.name.startswith("linalg.") or op.name.startswith("mlirml."):
        number = list(op.results).index(value)
        return _sizes(op.operands[len(op.operands) - len(op.results) + number], branch)
    if op.name == "tensor.collapse_shape":
        return _collapsed(op, branch)
    if op.name == "tensor.extract_slice":
        return _sliced(op, value, branch)
    if op.name in SEQUENTIAL_LOOPS:
        first = 3 if op.name == "scf.for" else 0
        return _sizes(op.operands[first + list(op.results).index(value)], branch)
    if op.name in BRANCHES:
        return _sizes(block_ops(op.regions[0].blocks[0])[-1].operands[list(op.results).index(value)], branch)
    raise _unknown(op)


def _outside(size: mlir.Value, branch: mlir.Operation) -> mlir.Value | int:
    """A size as a value from before the branch, where it is that of another tensor in the branch."""
    op = defining_op(size)
    if op is None or not _is_in(op.block, branch):
        return size
    number = constant_of(op.operands[1]) if op.name == "tensor.dim" else None
    if number is None:
        raise _unknown(op)
    return _sizes(op.operands[0], branch)[number]


def _is_in(block: mlir.Block, op: mlir.Operation) -> bool:
    """True if a block is in a region of an operation."""
    owner = block.owner.operation
    while owner != op:
        if owner.name == "func.func":
            return False
        owner = owner.parent.operation
    return True


def _of_argument(value: mlir.Value, branch: mlir.Operation) -> list[mlir.Value | int]:
    loop = value.owner.owner.operation
    if loop.name not in SEQUENTIAL_LOOPS:
        raise _unknown(loop)
    position = list(value.owner.arguments).index(value)
    return _sizes(loop.operands[position + (2 if loop.name == "scf.for" else 0)], branch)


def _collapsed(op: mlir.Operation, branch: mlir.Operation) -> list[mlir.Value | int]:
    """Products of the sizes of groups of dimensions."""
    sizes = _sizes(op.operands[0], branch)
    found: list[mlir.Value | int] = []
    for group in mlir.ArrayAttr(op.attributes["reassociation"]):
        parts = [sizes[int(mlir.IntegerAttr(i).value)] for i in group]
        total: mlir.Value | int = math.prod(n for n in parts if isinstance(n, int))
        for part in parts:
            if not isinstance(part, int):
                factor = emit.index(total) if isinstance(total, int) else total
                total = emit.same_type("arith.muli", factor, part)
        found.append(total)
    return found


def _sliced(op: mlir.Operation, value: mlir.Value, branch: mlir.Operation) -> list[mlir.Value | int]:
    """The sizes of a slice that drops no dimension of dynamic size."""
    unknown = mlir.ShapedType.get_dynamic_size()
    segments = list(mlir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    given = (_outside(size, branch) for size in list(op.operands)[segments[0] + segments[1] :])
    dynamic = [next(given) for n in mlir.DenseI64ArrayAttr(op.attributes["static_sizes"]) if n == unknown]
    if len(dynamic) != sum(value.type.is_dynamic_dim(d) for d in range(value.type.rank)):
        raise _unknown(op)
    sizes = iter(dynamic)
    return [next(sizes) if value.type.is_dynamic_dim(d) else n for d, n in enumerate(value.type.shape)]


def _unknown(op: mlir.Operation) -> LoweringError:
    return LoweringError("an array of a size that a branch computes", location=source_location(op.location))

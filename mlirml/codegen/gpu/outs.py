"""The results of a kernel function, and the argument that each of them is written into."""

from __future__ import annotations

from mlirml.analysis.structured import sizes_of
from mlirml.analysis.traits import RESHAPES
from mlirml.codegen.gpu.elements import is_structured, uses_dim
from mlirml.codegen.gpu.elements import out_map as map_of_out
from mlirml.ir.bindings import block_ops, defining_op, mlir, seen_through

_SAME_ELEMENTS = (*RESHAPES, "tensor.cast")


def returned(function: mlir.Operation) -> list[tuple[mlir.Value, mlir.Value]]:
    """The results of a function with the arguments that they are written into: the last ones, in order."""
    block = function.regions[0].blocks[0]
    values = list(block_ops(block)[-1].operands)
    arguments = list(block.arguments)
    return list(zip(values, arguments[len(arguments) - len(values) :], strict=True))


def before_reshapes(value: mlir.Value) -> mlir.Value:
    """The tensor that has the memory layout of `value` before reshapes."""
    return seen_through(value, _SAME_ELEMENTS)


def body_of(function: mlir.Operation) -> list[mlir.Operation]:
    """The operations of a function, without its return."""
    return block_ops(function.regions[0].blocks[0])[:-1]


def is_used(value: mlir.Value) -> bool:
    return any(True for _ in value.uses)


def carried_outs(op: mlir.Operation) -> list[int]:
    """The results of a structured operation that a loop reduces."""
    if not is_structured(op):
        return []
    sizes = sizes_of(op)
    found = []
    for number in range(len(op.results)):
        map_ = map_of_out(op, number)
        if any(size != 1 and not uses_dim(map_, d) for d, size in enumerate(sizes)):
            found.append(number)
    return found


def depends_on_outs(op: mlir.Operation, number: int, carried: list[int]) -> bool:
    """True if a result of an operation depends on the accumulator of another result."""
    block = op.regions[0].blocks[0]
    arguments = list(block.arguments)[len(block.arguments) - len(op.results) :]
    wanted = [block_ops(block)[-1].operands[number]]
    accumulators = {arguments[n] for n in carried}
    seen: set[mlir.Value] = set()
    while wanted:
        value = wanted.pop()
        if value in accumulators:
            return True
        owner = defining_op(value)
        if value in seen or owner is None:
            continue
        seen.add(value)
        if owner.regions:
            return True
        wanted += list(owner.operands)
    return False

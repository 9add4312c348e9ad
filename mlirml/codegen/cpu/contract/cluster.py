"""A contraction with its neighbours as a program of its own, which a tuner measures, and the name of that program.

The neighbours are the elementwise operations that its kernel may include: the only use of the result, and those that
compute an operand that nothing else reads. Equal programs have equal names, wherever they are and whatever surrounds
them, so that a schedule that was found for one of them holds for all.
"""

from __future__ import annotations

import hashlib

from mlirml.analysis.structured import is_parallel
from mlirml.codegen.cpu.contract.attribute import NAME
from mlirml.codegen.cpu.conv.schedule import NAME as WINDOW
from mlirml.codegen.cpu.loop_schedule import NAME as LOOPS
from mlirml.ir.bindings import clone_with, defining_op, mlir, operations, set_function_type, to_text

_BUILT = ("tensor.empty", "linalg.fill", "arith.constant")
"""Operations that are cloned with those that read their results."""
_KEY_DIGITS = 20


def cluster_text(op: mlir.Operation) -> str | None:
    """The text of a module whose @main computes the contraction `op` and its neighbours, without a schedule.

    The arguments of @main are the tensors that they read from elsewhere. None where one of these is no tensor of static
    shape.
    """
    members = members_of(op)
    return program_text(members, list(members[-1].results))


def program_text(members: list[mlir.Operation], returned: list[mlir.Value]) -> str | None:
    """The text of a module whose @main computes the operations, in their order, and returns some of their results.

    None where a tensor that they read or return has no static shape.
    """
    values = _read_values(members)
    if not returned or not all(_is_static(value) for value in (*values, *returned)):
        return None
    op = members[0]
    with op.context, mlir.Location.unknown():
        arguments = ", ".join(f"%{number}: {value.type}" for number, value in enumerate(values))
        module = mlir.Module.parse(f"func.func @main({arguments}) {{ return }}")
        function = module.body.operations[0].operation
        block = function.regions[0].blocks[0]
        end = block.operations[0].operation
        mapped = dict(zip(values, block.arguments, strict=True))
        with mlir.InsertionPoint(end):
            for member in members:
                _clone_built(member, mapped)
                clone = clone_with(member, mapped)
                for name in (NAME, LOOPS, WINDOW):
                    if name in clone.attributes:
                        del clone.attributes[name]
            mlir.Operation.create("func.return", operands=[mapped[value] for value in returned])
        end.erase()
        set_function_type(function)
        return to_text(module)


def cluster_key(text: str) -> str:
    """The name of a cluster by its text."""
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_DIGITS]


def members_of(op: mlir.Operation) -> list[mlir.Operation]:
    """The contraction with its producers before it, and its consumer after it."""
    producers = []
    for value in op.operands[:2]:
        owner = defining_op(value)
        if owner is None or owner in producers or not is_elementwise(owner):
            continue
        if sum(1 for result in owner.results for _ in result.uses) == 1:
            producers.append(owner)
    uses = [use.owner.operation for result in op.results for use in result.uses]
    consumers = [use for use in uses if len(uses) == 1 and is_elementwise(use) and use.block == op.block]
    return [*(p for p in producers if p.block == op.block), op, *consumers]


def is_elementwise(op: mlir.Operation) -> bool:
    """True for an elementwise operation whose body reads nothing but its arguments and constants."""
    return op.name == "linalg.generic" and is_parallel(op) and reads_arguments_only(op)


def reads_arguments_only(op: mlir.Operation) -> bool:
    """True if a body reads nothing but its arguments and constants."""
    own = {result for inner in operations(op) for result in inner.results}
    for inner in operations(op):
        if inner == op:
            continue
        for value in inner.operands:
            owner = defining_op(value)
            if owner is not None and value not in own and owner.name != "arith.constant":
                return False
    return True


def _read_values(members: list[mlir.Operation]) -> list[mlir.Value]:
    """The values that the operations read and that none of them computes, without those that are cloned."""
    computed = {result for member in members for result in member.results}
    found: dict[mlir.Value, None] = {}
    for member in members:
        for value in member.operands:
            if value not in computed and not _is_built(value):
                found[value] = None
    return list(found)


def _is_built(value: mlir.Value) -> bool:
    """True for an empty tensor, a constant scalar, and a tensor that is filled with one."""
    owner = defining_op(value)
    if owner is None or owner.name not in _BUILT:
        return False
    if owner.name == "arith.constant":
        return not isinstance(value.type, mlir.RankedTensorType)
    return all(_is_built(operand) for operand in owner.operands)


def _clone_built(member: mlir.Operation, mapped: dict[mlir.Value, mlir.Value]) -> None:
    """Clone the constants, fills and empty tensors that an operation reads, its body included."""
    for inner in operations(member):
        for value in inner.operands:
            if value not in mapped and _is_built(value):
                owner = defining_op(value)
                if owner is not None and not _contains(member, owner):
                    _clone_built(owner, mapped)
                    clone_with(owner, mapped)


def _contains(op: mlir.Operation, inner: mlir.Operation) -> bool:
    around = inner.parent
    while around is not None:
        if around == op:
            return True
        around = around.parent
    return False


def _is_static(value: mlir.Value) -> bool:
    return isinstance(value.type, mlir.RankedTensorType) and mlir.ShapedType(value.type).has_static_shape

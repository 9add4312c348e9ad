"""What operations use, in their regions too, and where in a block the uses of a value stand.

An operation's `operands` are only what it names itself: a gather reads its source in its body.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mlirml.ir.bindings import mlir, operations


def used_values(op: mlir.Operation) -> list[mlir.Value]:
    """What an operation uses: its operands first, then those of the operations in its regions, local values too."""
    found = list(op.operands)
    if len(op.regions):
        inside = operations(op)
        next(inside)
        for inner in inside:
            found += inner.operands
    return found


def outer_values(op: mlir.Operation) -> dict[mlir.Value, None]:
    """The values from outside that an operation uses, in its regions too, each once, in order."""
    found = dict.fromkeys(op.operands)
    found.update(captured_values(op))
    return found


def captured_values(op: mlir.Operation) -> dict[mlir.Value, None]:
    """The values from outside that the regions of an operation use, each once, in order."""
    own: set[mlir.Value] = set()
    used: dict[mlir.Value, None] = {}
    if len(op.regions):
        for inner in operations(op):
            for region in inner.regions:
                for block in region.blocks:
                    own.update(block.arguments)
            if inner != op:
                own.update(inner.results)
                used.update(dict.fromkeys(inner.operands))
    return {value: None for value in used if value not in own}


def uses_any(op: mlir.Operation, values: Iterable[mlir.Value]) -> bool:
    """True if an operation uses one of some values, in its regions too."""
    wanted = values if isinstance(values, set | frozenset | dict) else set(values)
    return any(value in wanted for value in used_values(op))


def place_in(op: mlir.Operation, block: mlir.Block) -> mlir.Operation | None:
    """The operation of a block that `op` is or stands in; None where it stands elsewhere."""
    while op.name != "func.func":
        if op.block == block:
            return op
        parent = op.parent
        if parent is None:
            return None
        op = parent.operation
    return None


def users_in(value: mlir.Value, block: mlir.Block) -> Iterator[mlir.Operation | None]:
    """For each use of a value the operation of a block that it stands in; None for one elsewhere."""
    for use in value.uses:
        yield place_in(use.owner.operation, block)

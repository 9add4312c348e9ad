"""Erasing operations that nothing uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mlirml.ir.bindings import defining_op, mlir


def is_unused(op: mlir.Operation) -> bool:
    """True if the results of an operation are unused; one without results is there for its effects."""
    return bool(op.results) and not any(True for result in op.results for _ in result.uses)


def erase_unused(values: Iterable[mlir.Value], may_erase: Callable[[mlir.Operation], bool]) -> None:
    """Erase the operations that compute values, and what was computed for them alone, as far as they may be erased.

    An operation is looked at when its last use is erased: one that is an operand twice is not erased twice.
    """

    def unused(values: Iterable[mlir.Value]) -> list[mlir.Operation]:
        made = dict.fromkeys(op for op in map(defining_op, values) if op is not None)
        return [op for op in made if may_erase(op) and is_unused(op)]

    todo = unused(values)
    while todo:
        op = todo.pop()
        operands = list(op.operands)
        op.erase()
        todo += unused(operands)

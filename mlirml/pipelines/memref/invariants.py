"""Values of the body of a loop that are the same in each iteration, and their computation before the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from mlirml.analysis.constants import constant_of
from mlirml.analysis.memory import Effects, body_effects
from mlirml.analysis.values import operands_first, walk
from mlirml.analysis.work import trips_of
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir

_PURE = ("arith.", "math.")


@dataclass
class Invariants:
    """A loop, what it writes, and the values that are computed before it."""

    op: mlir.Operation
    hoisted: dict[mlir.Value, mlir.Value] = field(default_factory=dict)
    _effects: Effects | None = None

    @property
    def body(self) -> mlir.Block:
        return self.op.regions[0].blocks[0]

    def has(self, value: mlir.Value) -> bool:
        """True if a value is the same in all iterations: it may be computed before the loop."""
        return all(map(self._may_have, walk(value, self._operands)))

    def _operands(self, value: mlir.Value) -> Sequence[mlir.Value]:
        op = defining_op(value)
        return op.operands if op is not None and op.block == self.body else ()

    def _may_have(self, value: mlir.Value) -> bool:
        """True if a value is the same in all iterations in case its operands are."""
        op = defining_op(value)
        if op is None:
            return bool(value.owner != self.body)
        if op.block != self.body:
            return True
        if op.name == "memref.load":
            return not self.writes_to(op.operands[0]) and (self.is_executed or is_in_range(op))
        return bool(op.name.startswith(_PURE) and not len(op.regions))

    @property
    def is_executed(self) -> bool:
        """True if each operation of the body is executed at least once."""
        return bool(trips_of(self.op)) and not any(op.name == "cf.assert" for op in block_ops(self.body))

    def writes_to(self, memory: mlir.Value) -> bool:
        """True if the loop may write to a memref."""
        if self._effects is None:
            self._effects = body_effects(self.op)
        return self._effects.writes_to(memory)

    def hoist(self, value: mlir.Value) -> mlir.Value:
        """An invariant value computed at the insertion point, before the loop."""
        for each in operands_first(value, lambda one: () if one in self.hoisted else self._operands(one)):
            op = defining_op(each)
            if op is not None and op.block == self.body and each not in self.hoisted:
                operands = {operand: self.hoisted.get(operand, operand) for operand in op.operands}
                self.hoisted[each] = clone_with(op, operands).results[0]
        return self.hoisted.get(value, value)


def is_in_range(load: mlir.Operation) -> bool:
    """True for a load at constant indices that are in its memref, so that it may be executed at any time."""
    memory, *indices = load.operands
    known = [constant_of(index) for index in indices]
    return all(index is not None and 0 <= index < size for index, size in zip(known, memory.type.shape, strict=True))

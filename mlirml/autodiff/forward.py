"""Forward mode: next to each operation, the tangent of its result.

Before:
    %0 = mlirml.dual %x, %t {group = 0}
    %y = linalg.generic ... ins(%0) { math.sin }
    %d = mlirml.jvp %y {group = 0}
After:
    %y = linalg.generic ... ins(%x) { math.sin }
    %d = linalg.generic ... ins(%x, %t) { math.cos, arith.mulf }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlirml.analysis.values import outer_variables
from mlirml.autodiff import tensors
from mlirml.autodiff.arithmetic import is_float
from mlirml.autodiff.bodies import push, refuse
from mlirml.autodiff.reverse import NO_DERIVATIVE, changes_nothing
from mlirml.autodiff.rule_table import RuleTable, find
from mlirml.autodiff.rules.scalars import INACTIVE, derivative
from mlirml.ir.bindings import mlir

Pushforward = Callable[["Push", mlir.Operation], None]

pushforward: RuleTable[Pushforward] = RuleTable(
    "compactions", "library_calls", "forward_control", "forward_custom", "forward_linalg", "forward_shapes"
)
"""Decorator of forward-mode rules."""


class Push:
    """Tangents of values, built after the operations that compute the values."""

    def __init__(self) -> None:
        self.tangents: dict[mlir.Value, mlir.Value] = {}
        self.dead: list[mlir.Operation] = []  # replaced operations

    def of(self, value: mlir.Value) -> mlir.Value:
        """The tangent of a value, zeros for a constant one."""
        return self.tangents.get(value) or tensors.zeros_like(value)

    def run(self, ops: Sequence[mlir.Operation], after: Sequence[mlir.Operation]) -> None:
        """Apply the rules to operations; the tangents of `ops[i]` are built before `after[i]`."""
        for op, next_op in zip(ops, after):
            if op.name in INACTIVE or op.name in NO_DERIVATIVE:
                continue
            if op.name != "mlirml.custom_result" and not any(x in self.tangents for x in outer_variables(op)):
                continue
            if not op.results and changes_nothing(op):
                continue
            with op.location, mlir.InsertionPoint(next_op):
                table, rule = find(op, derivative, pushforward) or (None, None)
                if table is derivative:
                    push([op], {}, self.tangents)
                elif rule is not None:
                    rule(self, op)
                elif not op.results or any(is_float(r.type) for r in op.results):
                    raise refuse(op)

"""Reverse mode: cotangents go backwards through the operations, each by the rule of its operation.

Before:
    %0 = mlirml.independent %x {group = 0}
    %y = linalg.generic ... ins(%0) { math.sin }
    mlirml.cotangent %y, %ct {group = 0}
    %g = mlirml.vjp %0 {group = 0}
After:
    %y = linalg.generic ... ins(%x) { math.sin }
    %g = linalg.generic ... ins(%x, %ct) { math.cos, arith.mulf }
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mlirml.analysis.traits import CONTROL
from mlirml.analysis.values import outer_variables
from mlirml.autodiff import tensors
from mlirml.autodiff.arithmetic import is_float
from mlirml.autodiff.bodies import Pullback, refuse
from mlirml.autodiff.rule_table import RuleTable, find
from mlirml.autodiff.rules.scalars import INACTIVE, derivative
from mlirml.dialects.mlirml import HOST_CALLS
from mlirml.ir.bindings import block_ops, mlir, operations

Transpose = Callable[["Sweep", mlir.Operation], None]

transpose: RuleTable[Transpose] = RuleTable("compactions", "control", "custom", "library_calls", "linalg", "shapes")
"""Decorator of reverse-mode rules."""

NO_DERIVATIVE = {
    "mlirml.cotangent", "tensor.empty", "arith.constant", "mlirml.argsort", "tensor.dim", "cf.assert",
    "mlirml.mask_counts", "mlirml.positions",
    "mlirml.stop_gradient", "scf.yield", "scf.condition", "linalg.yield", "mlirml.custom_cotangent", *HOST_CALLS,
    "mlirml.custom_gradient", "mlirml.custom_primal", "mlirml.custom_tangent",
}  # fmt: skip


_GROUPED = {"mlirml.custom_input", "mlirml.custom_result", "mlirml.again_output"}
"""Operations whose rule acts for their whole group, even if they have no cotangent."""


MARKS = ("mlirml.custom_", "mlirml.again_")
"""Prefixes of the markers around functions with custom derivatives, or rematerialized functions."""


def group_of(op: mlir.Operation) -> int:
    """The id of the request or function that an operation belongs to."""
    return int(mlir.IntegerAttr(op.attributes["group"]).value)


class Sweep:
    """Cotangents of values, built at the insertion point, for the values in `active`.

    `dead` are replaced operations, to be erased at the end: the memory of an erased value may be reused by a new one,
    which must not be found here. `unwritten` are values whose cotangent has a row for the current loop iteration to
    which nothing was added yet.
    """

    def __init__(
        self, active: set[mlir.Value], checkpoint_bytes: int, dead: list[mlir.Operation] | None = None
    ) -> None:
        self.active = active
        self.checkpoint_bytes = checkpoint_bytes
        self.dead: list[mlir.Operation] = [] if dead is None else dead
        self.cotangents: dict[mlir.Value, mlir.Value] = {}
        self.masked: set[mlir.Value] = set()
        self.unwritten: set[mlir.Value] = set()
        self.given: dict[int, dict[mlir.Value, mlir.Value]] = {}  # cotangents from custom rules, by group and input

    def is_active(self, value: mlir.Value) -> bool:
        """True if the cotangent of a value is wanted."""
        return value in self.active and is_float(value.type)

    def add(self, value: mlir.Value, cotangent: mlir.Value, masked: bool = False) -> None:
        """Add to the cotangent of a value."""
        known = self.cotangents.get(value)
        self.cotangents[value] = cotangent if known is None else tensors.sum_of(known, cotangent)
        if masked:
            self.masked.add(value)

    def of(self, value: mlir.Value) -> mlir.Value:
        """The cotangent of a value, zeros where there is none."""
        return self.cotangents.get(value) or tensors.zeros_like(value)

    def run(self, ops: Sequence[mlir.Operation]) -> None:
        """Visit operations in reverse order."""
        for op in reversed(ops):
            if op.name in INACTIVE or op.name in NO_DERIVATIVE:
                continue
            if not any(r in self.cotangents for r in op.results) and op.name not in _GROUPED:
                if not op.results and any(self.is_active(x) for x in outer_variables(op)) and not changes_nothing(op):
                    raise refuse(op)
                continue
            with op.location:
                table, rule = find(op, derivative, transpose) or (None, None)
                if table is derivative:
                    self._scalar(op)
                elif rule is not None:
                    rule(self, op)
                elif any(self.is_active(x) for x in outer_variables(op)):
                    raise refuse(op)

    def _scalar(self, op: mlir.Operation) -> None:
        pullback = Pullback({}, self.active)
        result = op.results[0]
        pullback.add(result, self.cotangents[result], result in self.masked)
        pullback.run([op])
        for operand in dict.fromkeys(op.operands):
            if operand in pullback.cotangents and self.is_active(operand):
                self.add(operand, pullback.cotangents[operand], operand in pullback.masked)


def changes_nothing(op: mlir.Operation) -> bool:
    """True for loops and branches that only check or print."""
    known = all(x.results or x.name in CONTROL or x.name in NO_DERIVATIVE for x in operations(op))
    return known and op.name in CONTROL


def active_values(ops: Iterable[mlir.Operation], roots: Iterable[mlir.Value]) -> set[mlir.Value]:
    """The float values that depend on `roots` differentiably, those in regions too."""
    active = set(roots)
    groups: set[int] = set()  # of functions with custom derivatives that have an active input

    def visit(inner: Iterable[mlir.Operation]) -> bool:
        grew = False
        for op in inner:
            if op.name == "mlirml.custom_primal" and op.operands[0] in active:
                groups.add(group_of(op))
            if op.name in INACTIVE or op.name in NO_DERIVATIVE:
                continue
            own = op.name in ("mlirml.custom_output", "mlirml.custom_result") and group_of(op) in groups
            if not own and not any(x in active for x in outer_variables(op)):
                continue
            before = len(active)
            if op.name == "mlirml.custom_input":
                groups.add(group_of(op))
            if op.name in CONTROL:
                _enter(op, active, visit)
            else:
                active.update(r for r in op.results if is_float(r.type))
            grew = grew or len(active) > before
        return grew

    visit(ops)
    return active


def _enter(op: mlir.Operation, active: set[mlir.Value], visit: Callable[[Iterable[mlir.Operation]], bool]) -> None:
    """Add the active values in regions, and the active results."""
    blocks = [block for region in op.regions for block in region.blocks]
    if op.name == "scf.for":
        (block,) = blocks
        pairs = list(zip(list(op.operands)[3:], list(block.arguments)[1:], op.results))
        active.update(a for init, a, _ in pairs if init in active and is_float(a.type))
        while True:
            visit(block_ops(block))
            yields = list(block_ops(block)[-1].operands)
            new = {a for y, (_, a, _) in zip(yields, pairs) if y in active and is_float(a.type)} - active
            if not new:
                break
            active.update(new)
        active.update(r for (_, a, r) in pairs if a in active)
        active.update(r for y, (_, _, r) in zip(yields, pairs) if y in active and is_float(r.type))
        return
    if op.name == "scf.while":
        active.update(r for r in op.results if is_float(r.type))
        return
    for block in blocks:
        visit(block_ops(block))
        ends = block_ops(block)[-1]
        active.update(r for y, r in zip(ends.operands, op.results) if y in active and is_float(r.type))


@transpose("mlirml.independent", "mlirml.dual")
def passed_on(sweep: Sweep, op: mlir.Operation) -> None:
    """The cotangent of the start marker of another request is that of its operand."""
    if sweep.is_active(op.operands[0]):
        sweep.add(op.operands[0], sweep.cotangents[op.results[0]], op.results[0] in sweep.masked)

"""Derivatives of scalar code: the bodies of structured operations, and scalars between tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mlirml.analysis.values import uses_any
from mlirml.autodiff.arithmetic import add, is_float, number, select
from mlirml.autodiff.no_rule import why_no_rule
from mlirml.autodiff.rules.scalars import INACTIVE, Rule, derivative
from mlirml.errors import NoDerivativeError
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.ir.location import source_location

LINEAR = {"arith.addf", "arith.subf", "arith.negf", "arith.extf", "arith.truncf", "arith.select"}
"""Operations whose partials are finite for all operands."""


def refuse(op: mlir.Operation, why: str = "", help: str | None = None) -> NoDerivativeError:
    """The error for an operation without a rule, at the user's source line."""
    why = why or why_no_rule(op.name) or ""
    return NoDerivativeError(
        f"`{op.name}` has no derivative{': ' + why if why else ''}",
        location=source_location(op.location),
        help=help or "keep it out of what is differentiated, or give the function a rule with `ml.custom_vjp`",
    )


def depends(ops: Iterable[mlir.Operation], roots: Iterable[mlir.Value]) -> set[mlir.Value]:
    """The float values among `roots` and the results of scalar operations that depend on them differentiably."""
    found = set(roots)
    for op in ops:
        if op.name not in INACTIVE and uses_any(op, found):
            found.update(r for r in op.results if is_float(r.type))
    return found


class Pullback:
    """Cotangents of scalar values: `run` visits operations in reverse order.

    Operations are those of the original body; `environment` maps their values to the values at the insertion point. A
    cotangent that passed an `arith.select` is masked: it is zero where the other branch was taken, whose partials may
    be infinite or NaN and must not be multiplied with it.
    """

    def __init__(self, environment: Mapping[mlir.Value, mlir.Value], active: set[mlir.Value]) -> None:
        self._environment = environment
        self._active = active
        self.cotangents: dict[mlir.Value, mlir.Value] = {}
        self.masked: set[mlir.Value] = set()

    def add(self, value: mlir.Value, cotangent: mlir.Value, masked: bool = False) -> None:
        """Add to the cotangent of a value of the original body."""
        known = self.cotangents.get(value)
        self.cotangents[value] = cotangent if known is None else add(known, cotangent)
        if masked:
            self.masked.add(value)

    def run(self, ops: Sequence[mlir.Operation]) -> list[tuple[mlir.Operation, mlir.Value, bool]]:
        """Visit `ops` in reverse; returns each `tensor.extract` with its cotangent, and whether that is masked."""
        reads = []
        for op in reversed(ops):
            if not len(op.results) or op.results[0] not in self.cotangents or op.name in INACTIVE:
                continue
            result = op.results[0]
            cotangent, masked = self.cotangents[result], result in self.masked
            if op.name == "tensor.extract":
                reads.append((op, cotangent, masked))
            elif (rule := derivative.of(op)) is not None:
                self._apply(rule, op, cotangent, masked)
            elif uses_any(op, self._active):
                raise refuse(op)
        return reads

    def _apply(self, rule: Rule, op: mlir.Operation, cotangent: mlir.Value, masked: bool) -> None:
        here = [self._environment.get(x, x) for x in op.operands]
        result = self._environment.get(op.results[0], op.results[0])
        for operand, partial in zip(op.operands, rule(op, here, result)):
            if partial is None or operand not in self._active:
                continue
            found = partial(cotangent)
            if masked and op.name not in LINEAR:
                # The product of zero and a finite partial is used as it is, since it has derivatives itself.
                undefined = emit.compare("uno", found, found)
                zero = emit.compare("oeq", cotangent, number(cotangent, 0))
                dead = emit.same_type("arith.andi", undefined, zero)
                found = select(dead, number(found, 0), found)
            self.add(operand, found, masked or op.name == "arith.select")


def push(
    ops: Sequence[mlir.Operation],
    environment: Mapping[mlir.Value, mlir.Value],
    tangents: dict[mlir.Value, mlir.Value],
) -> None:
    """Compute tangents of the results of scalar operations, from those of some operands, at the insertion point."""
    for op in ops:
        if op.name in INACTIVE or not len(op.results) or op.results[0] in tangents:
            continue
        if not uses_any(op, tangents):
            continue
        rule = derivative.of(op)
        if rule is None:
            raise refuse(op)
        here = [environment.get(x, x) for x in op.operands]
        result = environment.get(op.results[0], op.results[0])
        total: mlir.Value | None = None
        for operand, partial in zip(op.operands, rule(op, here, result)):
            if partial is not None and operand in tangents:
                part = partial(tangents[operand])
                total = part if total is None else add(total, part)
        if total is not None:
            tangents[op.results[0]] = total

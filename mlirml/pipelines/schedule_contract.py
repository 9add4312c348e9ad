"""Schedule contractions: how each is computed stands on it as an attribute.

Before:
    %2 = linalg.matmul ins(%a, %b : tensor<360x64xf32>, tensor<64x40xf32>) outs(%1 : tensor<360x40xf32>)
After:
    %2 = linalg.matmul {mlirml.schedule = {kernel = "direct", lanes = 16 : i64, mr = 8 : i64, ...}} ins(...)

Fields that are there already stay as they are, and the others are chosen to go with them: `{kernel = "packed"}` on an
operation is how to ask for another kernel. The pass options `kernel`, `mr`, `nr`, `kc`, `mc` and `nc` do the same for
every contraction that has such a kernel and does not say otherwise itself. What the fields mean is told in
`schedules/contract_plan.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from mlirml.dataclass import dataclass
from mlirml.errors import LoweringError
from mlirml.ir import mlir, operations
from mlirml.location import source_location
from mlirml.passes import NoMatch, Pass, register
from mlirml.pipelines.schedules.contract import CONTRACTIONS, Problem, build_problem, match_contraction
from mlirml.pipelines.schedules.contract_attribute import NAME, read_fields, to_attribute
from mlirml.pipelines.schedules.contract_plan import Machine, Schedule, check, plan, round_up


@register
@dataclass(frozen=True)
class ScheduleContractPass(Pass):
    """Choose the kernel, tile and blocks of every contraction; `kernel` to `nc` are chosen by the options if given."""

    name = "mlirml-schedule-contract"
    vector_bits: int = 256
    vector_registers: int = 16
    l1_bytes: int = 32 << 10
    l2_bytes: int = 1 << 20
    parallel: bool = True
    bf16_pairs: bool = False
    kernel: str = ""
    mr: int = 0
    nr: int = 0
    kc: int = 0
    mc: int = 0
    nc: int = 0

    @property
    def machine(self) -> Machine:
        """The options as a value."""
        return Machine(**{field.name: getattr(self, field.name) for field in fields(Machine)})

    def run(self, module: mlir.Operation) -> None:
        for op in [op for op in operations(module) if op.name in CONTRACTIONS]:
            with op.location:
                op.attributes[NAME] = to_attribute(schedule(op, self.machine, self.wanted))

    @property
    def wanted(self) -> dict[str, Any]:
        """The fields that the options give."""
        given = {name: getattr(self, name) for name in ("kernel", "mr", "nr", "kc", "mc", "nc")}
        return {name: value for name, value in given.items() if value}


def schedule(op: mlir.Operation, machine: Machine, wanted: Mapping[str, Any]) -> Schedule:
    """The schedule of an operation on tensors, its own fields kept. Raises `LoweringError` when they cannot be."""
    given = read_fields(op)
    try:
        problem = build_problem(match_contraction(op))
    except NoMatch:
        return Schedule(**{"kernel": "loops"} | given)
    try:
        chosen = complete(problem, machine, {**wanted, **given})
        check(problem, chosen)
        return chosen
    except NoMatch:
        pass  # the options do not go for this one
    try:
        return complete(problem, machine, given)
    except NoMatch as reason:
        raise LoweringError(
            f"{NAME} of {op.name}: there is no {given['kernel']} kernel for it: {reason}",
            location=source_location(op.location),
        ) from reason


def complete(problem: Problem, machine: Machine, given: Mapping[str, Any]) -> Schedule:
    """A schedule with the fields `given`; blocks are whole tiles. Raises `NoMatch`."""
    chosen = replace(plan(problem, machine, given.get("kernel")), **given)
    if chosen.kernel not in ("packed", "direct"):
        return chosen
    mc = chosen.mc if "mc" in given else round_up(chosen.mc, chosen.mr)
    nc = chosen.nc if "nc" in given else round_up(chosen.nc, chosen.nr)
    return replace(chosen, mc=mc, nc=nc)

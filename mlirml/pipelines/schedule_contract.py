"""Schedule contractions: how each is computed stands on it as an attribute.

Before:
    %2 = linalg.matmul ins(%a, %b : tensor<360x64xf32>, tensor<64x40xf32>) outs(%1 : tensor<360x40xf32>)
After:
    %2 = linalg.matmul {mlirml.schedule = {kernel = "direct", lanes = 16 : i64, mr = 8 : i64, ...}} ins(...)

Fields that are there already stay as they are, and the others are chosen to go with them: `{kernel = "packed"}` on an
operation is how to ask for another kernel. What the fields mean is told in `schedules/contract_plan.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlirml.errors import LoweringError
from mlirml.ir import mlir, operations
from mlirml.location import source_location
from mlirml.passes import NoMatch, Pass, register
from mlirml.pipelines.schedules.contract import CONTRACTIONS, build_problem, match_contraction
from mlirml.pipelines.schedules.contract_attribute import NAME, read_fields, to_attribute
from mlirml.pipelines.schedules.contract_plan import Machine, Schedule, plan


@register
@dataclass(frozen=True)
class ScheduleContractPass(Pass):
    """Choose the kernel, tile and blocks of every contraction."""

    name = "mlirml-schedule-contract"
    vector_bits: int = 256
    vector_registers: int = 16
    l1_bytes: int = 32 << 10
    l2_bytes: int = 1 << 20
    parallel: bool = True

    @property
    def machine(self) -> Machine:
        """The options as a value."""
        return Machine(self.vector_bits, self.vector_registers, self.l1_bytes, self.l2_bytes, self.parallel)

    def run(self, module: mlir.Operation) -> None:
        for op in [op for op in operations(module) if op.name in CONTRACTIONS]:
            with op.location:
                op.attributes[NAME] = to_attribute(schedule(op, self.machine))


def schedule(op: mlir.Operation, machine: Machine) -> Schedule:
    """The schedule of an operation on tensors, its own fields kept. Raises `LoweringError` when they cannot be."""
    given = read_fields(op)
    try:
        problem = build_problem(match_contraction(op))
    except NoMatch:
        return Schedule(**{"kernel": "loops"} | given)
    try:
        return replace(plan(problem, machine, given.get("kernel")), **given)
    except NoMatch as reason:
        raise LoweringError(
            f"{NAME} of {op.name}: there is no {given['kernel']} kernel for it: {reason}",
            location=source_location(op.location),
        ) from reason

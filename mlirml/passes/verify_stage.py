"""The boundary of a stage, as a pass: the module must hold only what is legal after the stage.

Run after stage `lower`, this module

    func.func @main() loc("train.py":3:1)

fails with "`func.func` is not legal after stage lower"; the same module passes `mlirml-verify-stage{stage=optimize}`.
"""

from __future__ import annotations

from collections.abc import Collection

from mlirml.core.config import config
from mlirml.dialects.legality import STAGES, contract_of, verify_stage
from mlirml.errors import PipelineError
from mlirml.ir.bindings import mlir
from mlirml.passes.base import Pass, register


@register
class VerifyStagePass(Pass):
    """Check the module against the table in `mlirml/dialects/legality.py`; in a pipeline it also ends the stage.

    `legal` are the dialects that are legal instead, for a target that does not end with LLVM's. `config.verify = False`
    makes it do nothing.
    """

    stage: str
    legal: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.stage not in STAGES:
            raise PipelineError(f"there is no stage `{self.stage}`", help=f"the stages are {', '.join(STAGES)}")

    def run(self, module: mlir.Operation) -> None:
        if config.verify:
            verify_stage(module, self.stage, self.legal)

    def allows(self, names: Collection[str]) -> bool:
        """True if operations of these names are legal after the stage."""
        return all(map(contract_of(self.stage, self.legal).allows, names))

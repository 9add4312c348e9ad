"""The table of what is legal after each stage agrees with the pipelines that are run."""

from __future__ import annotations

import pytest

from mlirml.dialects.legality import STAGES, verify_stage
from mlirml.errors import LoweringError
from mlirml.ir.bindings import operations, parse
from mlirml.passes import Upstream
from mlirml.passes.syntax import Element, parse_elements
from mlirml.targets.registry import get_target, target_names


def names_in(element: Element) -> list[str]:
    return [element.name] if element.children is None else [n for child in element.children for n in names_in(child)]


def passes_before_the_end_of(stage: str) -> set[str]:
    found: set[str] = set()
    for target in target_names():
        pipeline = get_target(target).pipeline
        if stage in [each.name for each in pipeline.stages]:
            for step in pipeline.until(stage).steps:
                found |= set(names_in(parse_elements(step.text)[0])) if isinstance(step, Upstream) else {step.name}
    return found


@pytest.mark.parametrize("stage", [stage for stage, contract in STAGES.items() if contract.removed_by])
def test_the_passes_that_the_table_names_run_before_the_end_of_the_stage(stage: str) -> None:
    assert set(STAGES[stage].removed_by.values()) - passes_before_the_end_of(stage) == set()


@pytest.mark.parametrize("stage", STAGES)
def test_no_pass_removes_what_is_legal(stage: str) -> None:
    contract = STAGES[stage]
    assert [name for name in contract.removed_by if "." in name and contract.allows(name)] == []
    assert [name for name in contract.removed_by if "." not in name and name in contract.dialects] == []


def test_the_error_names_op_line_and_pass() -> None:
    module = parse(
        """
        func.func @main(%a: tensor<4xf32>) -> f32 {
          %i = arith.constant 0 : index
          %x = tensor.extract %a[%i] : tensor<4xf32> loc("loss"("train.py":31:12 to :17))
          return %x : f32
        }
        """
    )
    verify_stage(module.operation, "optimize")
    with pytest.raises(LoweringError) as caught:
        verify_stage(module.operation, "schedule")
    error = caught.value
    assert (error.op, error.stage) == ("tensor.extract", "schedule")
    assert str(error) == (
        "`tensor.extract` is not legal after stage schedule\n"
        "  --> train.py:31:12 (loss)\n"
        "   = stage: schedule\n"
        "   = note: pass `mlirml-bufferize` should have removed it"
    )


def test_every_op_of_an_unknown_dialect_is_illegal() -> None:
    for contract in STAGES.values():
        assert not contract.allows("test.op")
        assert contract.remover("test.op") is None


def test_constants_may_have_lost_their_line() -> None:
    module = parse("func.func @main() -> f32 { %c = arith.constant 1.0 : f32 loc(unknown) return %c : f32 }")
    assert any(str(op.location) == "loc(unknown)" for op in operations(module))
    verify_stage(module.operation, "optimize")

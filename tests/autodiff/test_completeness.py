"""Every operation that may stand in a program when it is differentiated or batched has rules, or it is said why not."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest

from mlirml.autodiff.batching import batching
from mlirml.autodiff.forward import pushforward
from mlirml.autodiff.no_rule import NO_RULE, why_no_rule
from mlirml.autodiff.requests import OPENS
from mlirml.autodiff.reverse import NO_DERIVATIVE, transpose
from mlirml.autodiff.rules.scalars import INACTIVE, RULES
from mlirml.dialects.legality import STAGES
from mlirml.ir.bindings import mlir
from mlirml.ir.dialect import DIALECT

CONTRACT = STAGES["raise"]  # what the requests meet
FUNCTIONS = {"func.func", "func.return"}
"""What a program stands in."""

ENDS = {"scf.yield", "scf.condition", "linalg.yield", "linalg.index"}
"""Parts of other operations, which these batch."""

REQUESTS = {*OPENS, *OPENS.values(), "mlirml.cotangent"}
"""What other rules follow; the beginnings are stepped over."""

PLACES = {"tensor.dim", "tensor.empty", "arith.constant"}
"""What depends on no example."""


def operations(dialect: str) -> Iterator[str]:
    if dialect == "mlirml":
        yield from (f"mlirml.{line.split()[1][1:]}" for line in DIALECT.splitlines() if "irdl.operation" in line)
        return
    package = mlir.__name__.rpartition(".")[0]
    for value in vars(importlib.import_module(f"{package}.dialects._{dialect}_ops_gen")).values():
        name = getattr(value, "OPERATION_NAME", None)
        if isinstance(name, str):
            yield name


NAMES = sorted(
    {name for dialect in CONTRACT.dialects - {"builtin"} for name in operations(dialect) if CONTRACT.allows(name)}
    | set(CONTRACT.ops)
)


def has_derivatives(name: str) -> bool:
    if name in RULES or name in INACTIVE or name in NO_DERIVATIVE:
        return True
    return bool(transpose.named(name)) and (bool(pushforward.named(name)) or name in REQUESTS)


@pytest.mark.parametrize("name", NAMES)
def test_has_rules_or_a_reason(name: str) -> None:
    if name in FUNCTIONS | REQUESTS | ENDS:
        return
    stated = why_no_rule(name) is not None
    batched = bool(batching.named(name)) or name in PLACES
    assert stated != (has_derivatives(name) and batched), (stated, has_derivatives(name), batched)


def test_the_names_are_those_of_operations() -> None:
    dialects = {name for name in NO_RULE if name.endswith(".")}
    assert {name.partition(".")[0] for name in dialects} <= CONTRACT.dialects | {"memref"}
    assert set(NO_RULE) - dialects <= set(NAMES)
    assert set(RULES) | INACTIVE <= set(NAMES)
    assert not set(RULES) & INACTIVE

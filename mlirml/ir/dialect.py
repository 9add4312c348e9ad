"""The `mlirml` dialect in IRDL: its operations, where upstream has none."""

from __future__ import annotations

from mlirml.ir.compactions import COMPACTIONS
from mlirml.ir.library_calls import LIBRARY_CALLS

_MARKS = (
    "independent", "barrier", "again_output", "again_input", "custom_cotangent", "custom_output", "custom_input",
    "custom_primal", "custom_tangent", "stop_gradient", "vjp", "jvp",
)  # fmt: skip
"""Operations with one operand and one result, of the same type."""
_PAIRS = {"dual": True, "cotangent": False, "custom_gradient": False, "custom_result": True}
"""Operations on two values of one type; True if they have a result."""


def _operation(name: str, types: int, operands: str, results: str = "") -> str:
    declared = "".join(f"    %t{number} = irdl.any\n" for number in range(types))
    given = f"    irdl.results({results})\n" if results else ""
    taken = f"    irdl.operands({operands})\n" if operands else ""
    return f"  irdl.operation @{name} {{\n{declared}{taken}{given}  }}\n"


def _library_call(name: str, inputs: int) -> str:
    operands = [*(f"in{number}: %t{number}" for number in range(inputs)), f"out: %t{inputs}"]
    return _operation(name, inputs + 1, ", ".join(operands), f"result: optional %t{inputs}")


DIALECT = "".join(
    (
        "irdl.dialect @mlirml {\n",
        _operation("sort", 1, "input: %t0, out: %t0", "sorted: optional %t0"),
        _operation("argsort", 2, "input: %t0, out: %t1", "positions: optional %t1"),
        *(_library_call(name.removeprefix("mlirml."), call.inputs) for name, call in LIBRARY_CALLS.items()),
        *(_library_call(name.removeprefix("mlirml."), inputs) for name, inputs in COMPACTIONS.items()),
        _operation("host_value", 1, "value: %t0"),
        _operation("host_call", 0, ""),
        _operation("host_result", 1, "out: %t0", "result: optional %t0"),
        *(_operation(name, 1, "value: %t0", "result: %t0") for name in _MARKS),
        *(
            _operation(name, 1, "value: %t0, with: %t0", "result: %t0" if gives else "")
            for name, gives in _PAIRS.items()
        ),
        *(_operation(name, 2, "value: %t0", "result: %t1") for name in ("unbatch", "vmap")),
        "}\n",
    )
)
"""The dialect in IRDL: sorts of rows (`dialects/ops/sorting.py`), calls of libraries (`ir/text/library_calls.py`) and
compactions (`ir/compactions.py`), on tensors and on memrefs; requests for derivatives and batches
(`autodiff/requests.py`).

It is also the namespace of our discardable attributes, `mlirml.schedule`, `mlirml.parallel_for`, ...
"""

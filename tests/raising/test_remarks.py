"""Remarks on loops: where they are said, and how they are shown."""

from __future__ import annotations

from mlirml.ir import block_ops, main_function, mlir, parse
from mlirml.passes import Instrumentation
from mlirml.passes.report import active
from mlirml.raising.remarks import remark

MODULE = """
func.func @main(%a: f32) -> f32 {
  %b = arith.negf %a : f32 loc("f"("user.py":3:5 to :9))
  return %b : f32
}
"""


def test_a_remark_tells_the_place_and_the_kind() -> None:
    module = parse(MODULE)
    op = block_ops(main_function(module).regions[0].blocks[0])[0]
    seen = Instrumentation(current_pass="mlirml-raise")
    with active(seen), module.context:
        remark(op, "it is used twice")
        remark(op.results[0], "linalg.matmul", "recognised")
        remark(mlir.Location.file("other.py", 1, 2), "linalg.generic", "raised")
    assert [str(r) for r in seen.remarks] == [
        "user.py:3:5: remark: not raised: it is used twice [mlirml-raise]",
        "user.py:3:5: remark: recognised: linalg.matmul [mlirml-raise]",
        "other.py:1:2: remark: raised: linalg.generic [mlirml-raise]",
    ]
    assert [r.kind for r in seen.remarks] == ["not raised", "recognised", "raised"]

"""Remarks on loops: where they are said, and how they are shown."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.cli import main
from mlirml.ir.bindings import block_ops, main_function, mlir, operations, parse
from mlirml.passes import Instrumentation
from mlirml.passes.report import active
from mlirml.raising.nests.remarks import remark
from mlirml.raising.promote_scalars import PromoteScalarsPass

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
    assert [r.outcome for r in seen.remarks] == ["not raised", "recognised", "raised"]


def total(x: Any) -> Any:
    return ml.fori_loop(0, 4, lambda i, s: s + x[i], x[0])


def say_nothing_more(self: Any, module: Any) -> None:
    for op in [op for op in operations(module) if op.name == "scf.for"]:
        remark(op, "it carries a number")


LINE = inspect.getsourcelines(total)[1] + 1
CARET = f"""\
remark: not raised: it carries a number
  --> {__file__}:{LINE}:12 (total)
    |
 {LINE} |     return ml.fori_loop(0, 4, lambda i, s: s + x[i], x[0])
    |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""


def test_compile_explains_at_each_compilation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(PromoteScalarsPass, "run", say_nothing_more)
    monkeypatch.setattr(importlib.import_module("mlirml.raising.raise").RaisePass, "run", lambda self, module: None)
    monkeypatch.setattr(ml.config, "cache_dir", str(tmp_path))
    compiled = ml.compile(total, explain="raise")
    for _ in range(2):
        compiled(np.arange(4.0))
    assert capsys.readouterr().err == CARET
    again = ml.compile(total)  # is found on disk, where no remarks are
    again(np.arange(4.0))
    assert capsys.readouterr().err == ""
    place = f"{__file__}:{LINE}:12"
    assert again.explain().endswith(f"loops of signature 1:\n   {place}: not raised: it carries a number")


def test_what_cannot_be_explained() -> None:
    with pytest.raises(ml.errors.ArgumentError, match="explain='fuse' is not known"):
        ml.compile(total, explain="fuse")


SCAN = """\
def scan(a):
    for i in range(1, a.shape[0]):
        a[i] = a[i] * a[i - 1]
"""


def test_the_command_line_tells_what_became_of_loops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scan.py"
    path.write_text(SCAN)
    assert main(["explain", f"{path}:scan", "--args", "f64[8]"]) == 0
    assert f"{path}:3:9: remark: not raised: " in capsys.readouterr().out

"""The page of the IR after every pass, with the user's lines."""

from __future__ import annotations

from pathlib import Path

from mlirml.cli import main
from mlirml.cli.explain_page import IrLine, lines_of, page_of

SOURCE = """\
import numpy as np


def layer(x, w):
    y = x @ w
    return np.tanh(y)
"""


def test_the_page_has_each_pass_that_changed_the_program_and_the_source(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SOURCE)
    page = tmp_path / "page.html"
    assert main(["explain", f"{tmp_path / 'model.py'}:layer", "--args", "f32[8,4], f32[4,8]", "--html", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    for title in ("capture", "schedule: mlirml-bufferize", "lower: mlirml-expand-math"):
        assert f">{title}</h2>" in text
    assert ">optimize: mlirml-jam-loops</h2>" not in text, "it changes nothing"
    assert '<div id="line5" data-line="5">    5     y = x @ w</div>' in text
    assert 'data-line="5">    %2 = linalg.matmul' in text and "loc(" not in text.partition("<main>")[2]


def test_a_line_has_the_innermost_place_in_the_file() -> None:
    text = """\
module {
  %0 = arith.constant 1 : i32 loc(#loc2)
  %1 = arith.constant 2 : i32 loc(callsite(#loc1 at #loc))
} loc(#loc)
#loc = loc("other.py":1:1)
#loc1 = loc("f"("model.py":7:3))
#loc2 = loc("elsewhere.py":3:3)
"""
    assert lines_of(text, "model.py") == [
        IrLine("module {", None),
        IrLine("  %0 = arith.constant 1 : i32", None),
        IrLine("  %1 = arith.constant 2 : i32", 7),
        IrLine("}", None),
    ]


def test_markup_in_the_ir_is_escaped() -> None:
    assert "tensor&lt;4xf32&gt;" in page_of("f", [("capture", "tensor<4xf32>\n")], "")

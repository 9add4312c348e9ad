"""What an error shows of the source: several lines, no source at all, source that is not plain Python."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.errors.shown import check_error

BRANCH = "def branch(x):\n    if x > 0:\n        return x\n    return -x\n"


def several_lines(x: Any, w: Any) -> Any:
    return np.matmul(
        x,
        w,
    )


def with_a_tab(x: Any) -> Any:
    y = {	"x": x @ x}  # fmt: skip
    return y


def define(source: str, file: str) -> Any:
    scope: dict[str, Any] = {"np": np, "__name__": "__main__"}
    exec(compile(source, file, "exec"), scope)
    return scope["branch"]


SUM = """
def branch(x):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s += x[i, j] * x[j, i]
    return s
"""


def test_an_expression_of_several_lines() -> None:
    check_error(
        lambda: ml.compile(several_lines)(np.ones((4, 8)), np.ones((3, 8))),
        """
        mlirml.ShapeError: matmul: inner dimensions differ, f64[4,8] @ f64[3,8]
          --> test_source.py:18:12 (several_lines)
            |
         18 |     return np.matmul(
            |            ^^^^^^^^^^
           = help: did you mean `x @ w.T`?
        """,
    )


def test_tabs() -> None:
    check_error(
        lambda: ml.compile(with_a_tab)(np.ones((4, 8))),
        """
        mlirml.ShapeError: matmul: inner dimensions differ, f64[4,8] @ f64[4,8]
          --> test_source.py:25:16 (with_a_tab)
            |
         25 |     y = { "x": x @ x}  # fmt: skip
            |                ^^^^^
           = help: did you mean `x @ x.T`?
        """,
    )


def test_without_source() -> None:
    check_error(
        lambda: ml.compile(define(BRANCH, "<made here>"))(2.0),
        """
        mlirml.TracedBoolError: a truth test needs the value of bool[], known only at run time
          --> <made here>:2:8 (branch)
           = help: select with `np.where(condition, a, b)`
        """,
    )


def test_long_loops_without_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlirml.frontend.tracing.trace_limits.MOST_OPERATIONS", 1000)
    summed = ml.compile(define(SUM, "<made here>"))
    x = np.arange(9.0).reshape(3, 3)
    assert summed(x) == np.sum(x * x.T)
    check_error(
        lambda: summed(np.ones((50, 50))),
        """
        mlirml.UnsupportedSyntaxError: the loops of `branch` make more than 1000 operations, but it has no source
          --> test_source.py:90:17 (<lambda>)
            |
         90 |         lambda: summed(np.ones((50, 50))),
            |                 ^^^^^^^^^^^^^^^^^^^^^^^^^
           = help: define the function in a file, so that its loops stay loops, or compute with whole arrays
        """,
    )


def test_many_operations_without_loops_need_no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlirml.frontend.tracing.trace_limits.MOST_OPERATIONS", 8)
    text = "def branch(x):\n" + "    x = np.sin(x) + x\n" * 6 + "    return x\n"
    x = np.full(3, 0.1)
    np.testing.assert_allclose(ml.compile(define(text, "<made here>"))(x), define(text, "<made here>")(x))


def test_a_notebook_cell_with_magic(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["%matplotlib inline\n", *BRANCH.splitlines(keepends=True)]
    monkeypatch.setitem(linecache.cache, "<cell 7>", (0, None, lines, "<cell 7>"))
    check_error(
        lambda: ml.compile(define("\n" + BRANCH, "<cell 7>"), frontend="trace")(2.0),
        """
        mlirml.TracedBoolError: a truth test needs the value of bool[], known only at run time
          --> <cell 7>:3:8 (branch)
           |
         3 |     if x > 0:
           |        ^^^^^
           = help: select with `np.where(condition, a, b)`
        """,
    )

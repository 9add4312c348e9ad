"""Tracebacks show the user's frames only, from the call to the line."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from mlirml.core.tracebacks import raised_at
from mlirml.driver import compilation
from mlirml.errors import SourceLocation


def helper(x: Any) -> Any:
    return x @ np.ones((7, 3))


def product(x: Any) -> Any:
    return helper(x) * 2


def refuses(x: Any) -> Any:
    for i in range(len(x)):
        if x[i] < 0:
            raise ValueError("negative")
        x[i] += 1
    return x


def looks_up(x: Any) -> Any:
    return {}["a"] + x


def stores(x: Any) -> Any:
    return ml.fori_loop(0, 3, lambda i, c: helper(c), x)


def frames(call: Callable[[], Any]) -> list[tuple[str, str | None]]:
    """The functions, and their lines, from the one that is called here to the one that raises."""
    with pytest.raises(Exception) as caught:
        call()
    entries = traceback.extract_tb(caught.value.__traceback__)
    return [(entry.name, entry.line) for entry in entries if entry.name not in ("frames", "<lambda>")]


PRODUCT = ("helper", "return x @ np.ones((7, 3))")


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (product, [("product", "return helper(x) * 2"), PRODUCT]),
        (stores, [("stores", "return ml.fori_loop(0, 3, lambda i, c: helper(c), x)"), PRODUCT]),
        (looks_up, [("looks_up", 'return {}["a"] + x')]),
    ],
)
def test_errors_of_tracing(function: Callable[..., Any], expected: list[tuple[str, str]]) -> None:
    x = np.ones((2, 2))
    assert frames(lambda: ml.compile(function)(x)) == expected
    assert frames(lambda: ml.grad(function)(x)) == expected


def test_exceptions_of_the_user_in_running_programs() -> None:
    compiled = ml.compile(refuses)
    for _ in range(2):
        assert frames(lambda: compiled(np.array([1.0, -1.0]))) == [("refuses", 'raise ValueError("negative")')]


def test_full_tracebacks() -> None:
    with ml.config.override(tracebacks="full"):
        found = frames(lambda: ml.compile(product)(np.ones((2, 2))))
    assert ("_miss" in dict(found)) and PRODUCT in found


def test_an_exception_from_elsewhere_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlirml.api.compiled", broken)
    found = frames(lambda: ml.compile(lambda x: x + 17.25)(np.ones(3)))
    assert found[-1][0] == "broken"


def broken(*args: Any) -> Any:
    return np.dtype("no dtype")


def test_the_line_of_an_exception_that_did_not_run() -> None:
    error = raised_at(KeyError("k"), SourceLocation(__file__, 21, 5, 21, 31, "helper"))
    (entry,) = traceback.extract_tb(error.__traceback__)
    assert (entry.filename, entry.lineno, entry.name) == (__file__, 21, "helper")


def test_long_compilations_are_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(compilation, "PATIENCE", 0.01)
    monkeypatch.setattr(compilation.config, "progress", True)

    def long(x: Any) -> Any:
        for _ in range(60):
            x = np.sin(x) @ np.cos(x)
        return x

    ml.compile(long)(np.ones((3, 3)))
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("mlirml: compiling `long` takes longer than 0.01 s (")
    assert second.startswith("mlirml: compiled `long` in ")


def test_short_compilations_are_not(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(compilation, "PATIENCE", 1000.0)
    monkeypatch.setattr(compilation.config, "progress", True)
    ml.compile(lambda x: x * 2.5)(np.ones(3))
    assert capsys.readouterr().err == ""

"""The programs of `benchmarks/programs`, fifty and four: each compiles as it is written, and equals plain Python."""

from __future__ import annotations

import pytest

import mlirml as ml
from benchmarks.fifty import TOLERANCE, call, error_of, load, main, markdown_of, programs, with_numba

PROGRAMS = programs()


def test_the_suite_is_whole() -> None:
    assert len(PROGRAMS) == 54
    assert len(set(PROGRAMS.values())) == 11


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_equals_plain_python(name: str) -> None:
    function, arguments = load(name)
    expected = call(function, arguments)[1]
    assert error_of(call(ml.compile(function), arguments)[1], expected) <= TOLERANCE


def test_other_shapes_and_dtypes_are_wrong() -> None:
    _, found = call(lambda: (1.0, 2), ())
    assert error_of(found, call(lambda: (1.0, 2), ())[1]) == 0
    assert error_of(found, call(lambda: (1.0, 2.0), ())[1]) == float("inf")
    assert error_of(found, call(lambda: (1.0, 2, 3), ())[1]) == float("inf")
    assert error_of(found, call(lambda: ([1.0], 2), ())[1]) == 0, "lists are flat"


def test_helper_functions_are_given_to_numba_too() -> None:
    pytest.importorskip("numba")
    function, arguments = load("drawdown")
    assert error_of(call(with_numba(function, fastmath=True), arguments)[1], call(function, arguments)[1]) <= TOLERANCE


def test_a_run_prints_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "drawdown", "--peers", "python", "--markdown"]) == 0
    out = capsys.readouterr().out
    assert "| finance | `drawdown` | " in out
    assert "1 of 1 programs compile and agree with plain Python" in out


def test_a_problem_is_in_the_table() -> None:
    assert "| finance | `drawdown` | over 120 s |" in markdown_of({"drawdown": {"problem": "over 120 s"}})

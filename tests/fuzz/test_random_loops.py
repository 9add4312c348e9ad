"""Random loop programs: compiled, they leave memory and results as plain Python does.

`MLIRML_FUZZ=5000` runs so many programs, other ones each time: the seed is printed, and `MLIRML_FUZZ_SEED` takes it
back.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, reject, seed, settings

import mlirml as ml
from mlirml.pipelines.bufferize import known_types
from mlirml.targets import cpu
from tests.fuzz.fuzzing import COUNT, first_seed
from tests.fuzz.loop_generator import Program, programs
from tests.pipelines.options import with_options

FIRST = first_seed() if COUNT else 0
PARTS = 4
"""Tests that may run at the same time."""
# Integers up to here are exact, and so are sums of products of two small ones.
EXACT = {"float64": 2**50, "float32": 2**22}
SETTINGS = settings(
    max_examples=(COUNT or 240) // PARTS,
    deadline=None,
    database=None,
    # A program of many is shown as it was drawn: making it smaller takes minutes.
    phases=[phase for phase in Phase if not COUNT or phase not in (Phase.shrink, Phase.explain)],
    suppress_health_check=list(HealthCheck),
)


def run(program: Program, function: Any, dtype: Any = None) -> tuple[list[np.ndarray], Any]:
    """The memory afterwards, and the result."""
    memory, arguments = program.arguments(dtype)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return memory, function(*arguments)


def differs(one: tuple[list[np.ndarray], Any], other: tuple[list[np.ndarray], Any]) -> str:
    """What is not the same in memory or results, in words; empty if all is."""
    for number, (x, y) in enumerate(zip(one[0], other[0])):
        if not np.array_equal(x, y, equal_nan=x.dtype.kind == "f"):
            return f"memory {number}: {x.tolist()}, Python {y.tolist()}"
    x, y = np.asarray(one[1]), np.asarray(other[1])
    return "" if np.array_equal(x, y, equal_nan=x.dtype.kind == "f") else f"result: {one[1]}, Python {other[1]}"


def is_exact(program: Program, expected: tuple[list[np.ndarray], Any]) -> bool:
    """Whether Python's own numbers were computed without rounding, as far as wider numbers can tell."""
    if not program.dtype.startswith("f"):
        return True
    wide = run(program, program.function(), np.longdouble if program.dtype == "float64" else np.float64)
    small = all(np.all(np.abs(m) < EXACT[program.dtype]) for m in (*expected[0], np.asarray(expected[1])))
    return bool(small) and not differs(wide, expected)


OPTIONS = {
    "mlirml-align-loops{": "mlirml-align-loops{vectors=0 ",
    "mlirml-expand-scalars": "mlirml-expand-scalars{strip=2 shortest=1 always=true}",
    "mlirml-inspect-indices": "mlirml-inspect-indices{chunk=2 rows=2}",
    "mlirml-version-checks": "mlirml-version-checks{chunk=2}",
}
"""Options of passes by which they do to the short loops of these programs what they do to long ones."""


@pytest.fixture
def passes_for_long_loops(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let loops of few iterations be compiled as those of many."""
    with_options(monkeypatch, OPTIONS)
    monkeypatch.setattr(known_types, "FEW", 0)
    yield
    cpu.target_with.cache_clear()


def test_long_loops(passes_for_long_loops: None, capfd: pytest.CaptureFixture[str]) -> None:
    every = SETTINGS(given(programs())(leaves_the_same))
    seed(FIRST + PARTS)(every)()
    assert "remark" not in capfd.readouterr().err  # by LLVM, of loops that it cannot compile as their annotations say


@pytest.mark.parametrize("part", range(PARTS))
def test_random_loops(part: int) -> None:
    every = SETTINGS(given(programs())(leaves_the_same))
    seed(FIRST + part)(every)()


MOVES = (
    ("a[i]", "a[i + k]"), ("p[i, j]", "p[i + 1, j]"), ("b[j]", "b[j - n]"), ("q[i, i]", "q[i, k + i]"),
    ("a[j]", "a[int(b[j])]"), ("q[j, j]", "q[int(a[j]), j]"), ("b[i]", "b[2 * i]"),
)  # fmt: skip
"""Indices, and others that are out of bounds in some iterations."""


def leaves_the_same(program: Program) -> None:
    """Assert that a program leaves the same behind compiled, and does with another index what Python does."""
    stays_the_same(program)
    moves = [(index, other) for index, other in MOVES if index in program.source]
    if moves and len(program.source) % 3 == 0:
        index, other = moves[len(program.source) % len(moves)]
        stays_the_same(replace(program, source=program.source.replace(index, other, 1 + len(program.source) % 2)))


def stays_the_same(program: Program, *targets: str) -> None:
    """Assert that a program leaves the same behind compiled, or fails as it does and leaves its arguments alone.

    Without targets these are the CPU and, for a fourth of the programs, the reference.
    """
    note(f"{program.layout}, {program.dtype}, n = {program.memory[0]}, k = {program.numbers[0]}\n{program.source}")
    function = program.function()
    expected: tuple[list[np.ndarray], Any] | None
    try:
        expected = run(program, function)
    except (ValueError, OverflowError):  # slices of different lengths are combined, or NaN is an index
        reject()
    except (IndexError, UnboundLocalError):
        expected = None
    for target in targets or ("cpu", "reference")[: 1 + (len(program.source) % 4 == 0)]:
        compiled = ml.compile(function, target, frontend="loops")
        if expected is None:
            memory, arguments = program.arguments()
            with pytest.raises((IndexError, UnboundLocalError)):  # checks are made together, in another order
                compiled(*arguments)
            assert all(map(np.array_equal, memory, program.arguments()[0])), f"{target}: the arguments are not the same"
            continue
        found = run(program, compiled)
        problem = differs(found, expected)
        assert not problem or not is_exact(program, expected), f"{target}: {problem}"

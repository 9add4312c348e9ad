"""Random array programs on `ml.Array`, uncompiled: the same results as with NumPy and compiled.

The programs are those of `tests/fuzz/test_programs.py` without their stores, as arrays do not change. Each runs twice,
once read value by value, once as a whole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, seed, settings

import mlirml as ml
from tests.fuzz.fuzzing import COUNT, first_seed
from tests.fuzz.oracle import assert_same
from tests.fuzz.test_programs import PHASES, Program, programs

REFUSED = ("NumPy may or may not have made a copy", "NumPy has no common dtype of", "the branches differ in type")


def without_stores(program: Program) -> Program:
    """The program with the lines that make a value, without the new shapes of arrays in them, which are stores too."""
    lines = [line for line in program.lines if line.partition(" = ")[0].isalnum()]
    return replace(
        program, lines=[line.replace("shaped(", "(") for line in lines], inputs=program.arguments(), views=()
    )


def outcome(program: Program, target: str) -> list[np.ndarray] | None:
    """The results on `ml.Array`; None for a program that compiled functions refuse, too."""
    inputs = [ml.array(x, target=target) if isinstance(x, np.ndarray) else x for x in program.inputs]
    try:
        return [np.asarray(x) for x in program.function()(*inputs)]
    except ml.CaptureError as error:
        assert any(text in error.message for text in REFUSED), error
        return None


@seed(first_seed() if COUNT else 0)
@settings(
    database=None,
    max_examples=COUNT or 60,
    derandomize=not COUNT,
    phases=PHASES,
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
@given(programs())
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_random_programs(program: Program) -> None:
    program = without_stores(program)
    note(program.source())
    if not program.is_exact():
        return
    with np.errstate(all="ignore"):
        expected = [np.asarray(x) for x in program.function()(*program.arguments())]
    for target in ("cpu", "reference"):
        given_results = outcome(program, target)
        if given_results is not None:
            assert_same(_unsigned(given_results), _unsigned(expected), f"{target}: result")


def _unsigned(values: list[Any]) -> list[np.ndarray]:
    """Zeros without their signs, which depend on the order of a sum."""
    return [x + x.dtype.type(0) if x.dtype.kind in "fc" else x for x in values]

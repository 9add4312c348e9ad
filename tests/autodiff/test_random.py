"""Random programs: derivatives against differences and each other in both modes, batches against loops.

`MLIRML_FUZZ=2000` runs so many programs, other ones each time: the seed is printed, and `MLIRML_FUZZ_SEED` takes it
back.
"""

from __future__ import annotations

import numpy as np
import pytest

import mlirml as ml
import tests.autodiff.random_arrays
import tests.autodiff.random_control
import tests.autodiff.random_kept
import tests.autodiff.random_linear_algebra  # noqa: F401  (all register their steps)
from tests.autodiff.random_checks import CHECKS, wrong
from tests.autodiff.random_programs import program, run
from tests.fuzz.fuzzing import COUNT, first_seed

FIRST = first_seed() if COUNT else 0


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT) if COUNT else range(20))
def test_derivatives_and_batches(seed: int) -> None:
    name = list(CHECKS)[seed % len(CHECKS)]
    target = "reference" if seed // len(CHECKS) % 3 else "cpu"
    steps, shape = program(seed, 5 if COUNT else 3, seed // len(CHECKS) % 2 == 0)
    print(seed, name, target, steps, shape)
    xs, ds = np.random.default_rng(seed).standard_normal((2, 2, *shape))
    found = CHECKS[name](lambda x: run(steps, x), lambda f: ml.compile(f, target), xs, ds)
    assert not wrong(found)


def test_numbers_that_are_read_in_front_of_where_they_were() -> None:
    # The gather from an axis of one element reads the number that the scan reads, too: one read, in front of both.
    steps = [("where", 0, 0, 0), ("scan", 1, 0, 0), ("gathered", 1, 2, 0)]
    points = np.array([[-0.9]]), np.ones((1, 1))
    assert not wrong(CHECKS["first"](lambda x: run(steps, x), ml.compile, *points))


@pytest.mark.parametrize("name", ["values", "differences"])
def test_a_wrong_number_is_found(name: str) -> None:
    expected = np.array([1.0, 2.0])
    other = np.stack([expected + 1e-3] * 4) if name == "differences" else expected + 1e-3
    assert wrong({name: [expected, other]})
    assert not wrong({name: [expected, other - 1e-3]})

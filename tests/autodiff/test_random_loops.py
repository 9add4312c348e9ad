"""Random programs of plain Python loops: derivatives against differences, both modes, batches against their examples.

`MLIRML_FUZZ=500` runs so many programs, other ones each time: the seed is printed, and `MLIRML_FUZZ_SEED` takes it
back.
"""

from __future__ import annotations

import numpy as np
import pytest

import mlirml as ml
from tests.autodiff.random_checks import CHECKS, wrong
from tests.autodiff.random_loops import source
from tests.fuzz.fuzzing import COUNT, first_seed
from tests.fuzz.loop_generator import function_of

FIRST = first_seed() if COUNT else 0
NAMES = ("first", "batches", "forward_batches", "first", "batches", "second") if COUNT else ("first", "batches")


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT) if COUNT else range(8))
def test_derivatives_of_loops(seed: int) -> None:
    text, name = source(seed), NAMES[seed % len(NAMES)]
    print(seed, name, text, sep="\n")
    program = function_of(text)
    xs, ds = np.random.default_rng(seed).uniform(-1, 1, (2, 2, 6, 4))
    np.testing.assert_allclose(ml.compile(program)(xs[0]), program(xs[0]), rtol=1e-9, atol=1e-9)
    assert not wrong(CHECKS[name](program, ml.compile, xs, ds))

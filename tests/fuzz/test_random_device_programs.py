"""Random programs on devices: those of `test_programs`, and those of `test_random_loops`.

`MLIRML_FUZZ=300` runs so many programs, other ones each time; `MLIRML_FUZZ_SEED` takes a seed back. Without a GPU of
NVIDIA the kernels are executed by `tests.targets.rehearsal`.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings

from tests.fuzz import loop_generator
from tests.fuzz.fuzzing import COUNT, first_seed
from tests.fuzz.test_programs import PHASES, Program, check, programs
from tests.fuzz.test_random_loops import stays_the_same
from tests.targets.drivers import on_devices

pytestmark = on_devices
FIRST = first_seed() if COUNT else 0


def for_many(examples: int) -> Any:
    """The decorator of a test of random programs."""
    return settings(
        database=None,
        max_examples=COUNT or examples,
        phases=PHASES,
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )


@seed(FIRST)
@for_many(12)
@given(program=programs())
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")  # NumPy's depends on the data
def test_random_programs(target: str, program: Program) -> None:
    check(program, target)


@seed(FIRST)
@for_many(25)
@given(program=loop_generator.programs())
def test_random_loops(target: str, program: loop_generator.Program) -> None:
    stays_the_same(program, target)

"""Random loop programs give Python's numbers after raising; `python -m tests.raising.random_loops 5000` runs more."""

from __future__ import annotations

from mlirml.pipelines.stages import load_passes
from tests.raising.random_loops import PIPELINE, check


def test_random_programs() -> None:
    load_passes(PIPELINE)
    loops = [found for found in map(check, range(200)) if found is not None]
    assert len(loops) > 50
    before, after = (sum(column) for column in zip(*loops))
    assert after < before / 3


def test_random_programs_whose_loops_are_distributed() -> None:
    pipeline = "mlirml-distribute-loops"
    load_passes(pipeline)
    loops = [found for found in (check(seed, pipeline) for seed in range(500, 600)) if found is not None]
    assert sum(after > before for before, after in loops) > 10

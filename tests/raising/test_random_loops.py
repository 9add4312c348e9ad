"""Random loop programs give Python's numbers after raising; `python -m tests.raising.random_loops 5000` runs more."""

from __future__ import annotations

import pytest

from tests.raising.random_loops import check

PARTS = ("triangle", "inner", "box")


def test_random_programs() -> None:
    loops = [found for found in map(check, range(200)) if found is not None]
    assert len(loops) > 50
    before, after = (sum(column) for column in zip(*loops))
    assert after < before / 3


def test_random_programs_whose_loops_are_distributed() -> None:
    pipeline = "mlirml-distribute-loops"
    loops = [found for found in (check(seed, pipeline) for seed in range(500, 600)) if found is not None]
    assert sum(after > before for before, after in loops) > 10


@pytest.mark.parametrize("part", PARTS)
def test_random_programs_raised_in_part(part: str) -> None:
    loops = [
        found
        for found in (check(seed, f"canonicalize,cse,mlirml-raise{{forms={part}}}") for seed in range(600, 700))
        if found
    ]
    assert sum(after < before for before, after in loops) > 5


def test_all_parts_in_turn_raise_what_one_pass_does() -> None:
    pipeline = "canonicalize,cse," + ",".join(f"mlirml-raise{{forms={part}}}" for part in PARTS)
    after = [found[1] for found in (check(seed, pipeline) for seed in range(100)) if found]
    whole = [found[1] for found in map(check, range(100)) if found]
    assert sum(after) <= 1.1 * sum(whole)

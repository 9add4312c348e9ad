"""How many random programs run, and which: `MLIRML_FUZZ` of them, from `MLIRML_FUZZ_SEED` on or any."""

from __future__ import annotations

import os
import time

from hypothesis import HealthCheck, Phase, settings

COUNT = int(os.environ.get("MLIRML_FUZZ", "0"))


def first_seed() -> int:
    """The seed to begin with, which is printed."""
    seed = int(os.environ.get("MLIRML_FUZZ_SEED", str(time.time_ns() % 10**9)))
    print(f"MLIRML_FUZZ_SEED={seed}", flush=True)
    return seed


def settings_of(fewest: int) -> settings:
    """How random programs run: without `MLIRML_FUZZ` always the same ones, so many, made smaller if they fail."""
    return settings(
        max_examples=COUNT or fewest,
        deadline=None,
        database=None,
        derandomize=not COUNT,
        # A program of many is shown as it was drawn: making it smaller takes minutes.
        phases=[phase for phase in Phase if not COUNT or phase not in (Phase.shrink, Phase.explain)],
        suppress_health_check=list(HealthCheck),
    )

"""How many random programs run, and which: `MLIRML_FUZZ` of them, from `MLIRML_FUZZ_SEED` on or any."""

from __future__ import annotations

import os
import time

COUNT = int(os.environ.get("MLIRML_FUZZ", "0"))


def first_seed() -> int:
    """The seed to begin with, which is printed."""
    seed = int(os.environ.get("MLIRML_FUZZ_SEED", str(time.time_ns() % 10**9)))
    print(f"MLIRML_FUZZ_SEED={seed}", flush=True)
    return seed

"""NumPy itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.workloads import WORKLOADS, Arguments


def version() -> str:
    """Its name and version."""
    return f"numpy {np.__version__}"


def build(name: str, arguments: Arguments, threads: int) -> Callable[[], Any] | None:
    """The workload's own function; it has no derivatives."""
    if WORKLOADS[name].transform:
        return None
    return partial(WORKLOADS[name].function, *arguments)


def to_numpy(result: Any) -> Any:
    """The result as an array."""
    return result

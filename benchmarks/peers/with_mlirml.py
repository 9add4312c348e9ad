"""The NumPy functions, compiled by mlirml."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mlirml as ml
from benchmarks.workloads import WORKLOADS, Arguments, in_loops


def version() -> str:
    """Its name and version."""
    return f"mlirml {ml.__version__}"


def import_compiler() -> None:
    """Import what the first compilation would."""
    from mlirml.targets.registry import get_target

    get_target("cpu").pipeline_for(())


def build(name: str, arguments: Arguments, threads: int) -> Callable[[], Any] | None:
    """The workload's loops or NumPy function, compiled."""
    ml.config.threads = threads
    workload = WORKLOADS[name]
    if workload.loops is not None:
        return in_loops(workload, ml.compile(workload.loops, frontend="loops"), arguments)
    if workload.narrow:
        import ml_dtypes

        arguments = tuple(x.astype(ml_dtypes.bfloat16) for x in arguments)
    return partial(ml.compile(workload.function), *arguments)


def to_numpy(result: Any) -> Any:
    """The result as an array."""
    return result

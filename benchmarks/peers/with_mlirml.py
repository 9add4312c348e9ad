"""The NumPy functions, compiled by mlirml."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import mlirml as ml
from benchmarks.workloads import WORKLOADS, Arguments, Workload, in_loops


def version() -> str:
    """Its name and version."""
    return f"mlirml {ml.__version__}"


def import_compiler() -> None:
    """Import what compilations do: capture, all passes, MLIR and LLVM."""
    from mlirml.frontend.capture import capture
    from mlirml.targets.llvm.library import host_cpu
    from mlirml.targets.registry import get_target

    assert get_target("cpu").pipeline and host_cpu() and capture


def keep_code(folder: str) -> None:
    """Keep what is compiled in a folder."""
    ml.config.cache, ml.config.cache_dir = True, folder


def build(name: str, arguments: Arguments, threads: int) -> Callable[[], Any] | None:
    """The workload's loops or NumPy function, compiled."""
    ml.config.threads = threads
    workload = WORKLOADS[name]
    if workload.loops is not None:
        return in_loops(workload, ml.compile(workload.loops, frontend="loops"), arguments)
    if workload.narrow:
        import ml_dtypes

        arguments = tuple(x.astype(ml_dtypes.bfloat16) for x in arguments)
    return partial(ml.compile(transformed(workload)), *arguments)


def transformed(workload: Workload) -> Callable[..., Any]:
    """The function, or the derivative that the workload is about."""
    function, wrt = workload.function, workload.wrt
    if workload.transform == "gradient":
        return ml.grad(function, wrt)
    if workload.transform == "value and gradient":
        return ml.value_and_grad(function, wrt)
    if workload.transform == "jacobian":
        return ml.vmap(ml.jacrev(function, wrt))
    if workload.transform == "jacobian of few":
        return ml.jacfwd(function, wrt)
    if workload.transform == "hvp":
        return lambda x, *rest: ml.hvp(lambda x: function(x, *rest), (x,), (np.ones_like(x),))
    return function


def to_numpy(result: Any) -> Any:
    """The result as an array."""
    return result

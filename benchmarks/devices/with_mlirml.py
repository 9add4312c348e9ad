"""The workloads in mlirml, for the arrays of a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mlirml as ml
from benchmarks.devices.workloads import SETTINGS, DeviceWorkload
from mlirml.core.tree import flatten, map_leaves


def version(target: str) -> str:
    """Its name, its version and the device; raises `TargetError` where there is none."""
    return f"mlirml {ml.__version__} on {ml.device(target).name}"


def build(workload: DeviceWorkload, arguments: Any, target: str) -> Callable[[], Any]:
    """A call that asks the device for the result and does not wait."""
    for name, value in {**SETTINGS, **dict(workload.settings)}.items():
        setattr(ml.config, name, value)
    there = map_leaves(lambda x: _put(x, workload.dtype, target), arguments)
    if workload.name == "copy":
        (source,) = there
        out = ml.put(np.zeros_like(arguments[0]), target)

        def copy() -> Any:
            source.device.driver.copy(out.address, source.address, source.nbytes)
            return out

        return copy
    with ml.config.override(matmul_precision=workload.precision):
        compiled = ml.compile(workload.function, target=target)
        compiled(*there)
    return lambda: compiled(*there)


def _put(x: Any, dtype: str, target: str) -> Any:
    if not isinstance(x, np.ndarray) or not x.ndim:
        return x
    if x.dtype != np.float32 or dtype == "float32":
        return ml.put(x, target)
    import ml_dtypes

    return ml.put(x.astype(np.float16 if dtype == "float16" else ml_dtypes.bfloat16), target)


def synchronize(target: str) -> None:
    """Wait for the device."""
    ml.device(target).synchronize()


def to_numpy(result: Any) -> list[np.ndarray]:
    """The arrays of a result."""
    return [np.asarray(x).astype(np.float32) for x in flatten(result)[0]]

"""Numba: loops as its users write them. Matrix products are left out: it calls BLAS for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import numba
import numpy as np
from numba import prange

from benchmarks.workloads import WORKLOADS, Arguments, in_loops


def version() -> str:
    """Its name and version."""
    return f"numba {numba.__version__}"


def _chain(a, b, c):  # type: ignore[no-untyped-def]
    out = np.empty_like(a)
    for i in prange(a.size):
        t = a[i] * b[i] + c[i]
        u = np.tanh(t)
        s = np.float32(1) / (np.float32(1) + np.exp(-u))
        w = u * s if t > 0 else np.exp(-np.abs(t)) - c[i]
        out[i] = w * np.float32(0.5) + s * b[i]
    return out


def _softmax(x):  # type: ignore[no-untyped-def]
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        largest = x[i, 0]
        for j in range(x.shape[1]):
            largest = max(largest, x[i, j])
        total = np.float32(0)
        for j in range(x.shape[1]):
            out[i, j] = np.exp(x[i, j] - largest)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= total
    return out


def _layer_norm(x, gain, bias):  # type: ignore[no-untyped-def]
    out = np.empty_like(x)
    count = np.float32(x.shape[1])
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total / count
        squares = np.float32(0)
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        factor = np.float32(1) / np.sqrt(squares / count + np.float32(1e-5))
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * factor * gain[j] + bias[j]
    return out


def _sum_columns(x):  # type: ignore[no-untyped-def]
    out = np.zeros(x.shape[1], np.float32)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j] += x[i, j]
    return out


def _sum_rows(x):  # type: ignore[no-untyped-def]
    out = np.empty(x.shape[0], np.float32)
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        out[i] = total
    return out


def _add(a, b):  # type: ignore[no-untyped-def]
    return a + b


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "chain16m": _chain,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "sum_axis0": _sum_columns,
    "sum_axis1": _sum_rows,
    "call": _add,
}


def build(name: str, arguments: Arguments, threads: int) -> Callable[[], Any] | None:
    """The workload as a Numba user would write it."""
    workload = WORKLOADS[name]
    if workload.loops is not None:
        loops = FunctionType(workload.loops.__code__, {**workload.loops.__globals__, "prange": prange})
        return in_loops(workload, numba.njit(loops, fastmath=True, parallel=threads > 1), arguments)
    function = _FUNCTIONS.get(name)
    if function is None:
        return None
    parallel = threads > 1 and name not in ("call", "sum_axis0")
    return partial(numba.njit(function, fastmath=True, parallel=parallel), *arguments)


def to_numpy(result: Any) -> Any:
    """The result as an array."""
    return result

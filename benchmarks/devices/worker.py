"""The process of one peer on a device; it answers as `benchmarks.worker` does."""

from __future__ import annotations

import gc
import importlib
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.devices.workloads import WORKLOADS
from benchmarks.worker import serve


class DeviceWorker:
    """What the process knows: the peer's module and one workload."""

    def __init__(self, peer: str, target: str) -> None:
        self.peer = peer
        self.target = target
        self.module: Any = None
        self.call: Callable[[], Any] | None = None
        self.count = 1

    def start(self, request: dict[str, Any]) -> dict[str, Any]:
        """Import the peer and look for the device."""
        try:
            self.module = importlib.import_module(f"benchmarks.devices.with_{self.peer}")
        except ModuleNotFoundError as missing:
            return {"missing": str(missing)}
        return {"version": self.module.version(self.target)}

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Build a workload and call it once; the error of its result and the seconds that took."""
        # The driver wrote both files a moment ago.
        arguments = pickle.loads(Path(request["arguments"]).read_bytes())
        expected = pickle.loads(Path(request["expected"]).read_bytes())
        start = time.perf_counter()
        self.call = self.module.build(WORKLOADS[request["workload"]], arguments, self.target)
        result = self.module.to_numpy(self.call())
        self.module.synchronize(self.target)
        first = time.perf_counter() - start
        self.count = 1
        return {"error": largest_error(result, expected), "first": first}

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Time the workload: a sample is as many calls as take `seconds`, and the wait for the last."""
        seconds = self._sample()
        wanted = max(1, min(2000, int(request["seconds"] / max(seconds, 1e-7))))
        if wanted > self.count:
            self.count = wanted
            seconds = self._sample()
        return {"samples": [seconds]}

    def _sample(self) -> float:
        assert self.call is not None
        self.module.synchronize(self.target)
        start = time.perf_counter()
        for _ in range(self.count):
            self.call()
        self.module.synchronize(self.target)
        return (time.perf_counter() - start) / self.count

    def drop(self, request: dict[str, Any]) -> dict[str, Any]:
        """Forget the workload and its arrays."""
        self.call = None
        gc.collect()
        return {}


def largest_error(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """The largest error, as a part of the largest element of its array; of the results that the peer gives."""
    errors = []
    for one, other in zip(found, expected):
        scale = max(float(np.abs(other).max()), 1e-30)
        errors.append(float(np.abs(one.astype(np.float64) - other).max()) / scale)
    return max(errors)


if __name__ == "__main__":
    serve(DeviceWorker(sys.argv[1], sys.argv[2]))

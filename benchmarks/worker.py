"""The process of one peer: reads a request a line, answers a line, both JSON.

`{"do": "start"}` imports the peer (with `"compiler"` all of it, with `"cache"` a folder for what it compiles), `load`
builds and checks a workload, or a `"changed"` one with the negative of its results, `run` times it, `drop` forgets it.
"""

from __future__ import annotations

import dataclasses
import gc
import importlib
import json
import os
import pickle
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Samples shorter than this are made of several calls, so that the clock's own cost does not count.
_SHORTEST = 2e-4


def timed(call: Callable[[], Any], seconds: float, most: int = 500) -> list[float]:
    """Seconds a call, sampled for about `seconds`; one sample at least."""
    clock = time.perf_counter
    once: list[float] = []
    for _ in range(2):  # the first call may find cold caches, or another process on its core
        start = clock()
        call()
        once.append(clock() - start)
        if once[0] > _SHORTEST:
            break
    inner = max(1, int(_SHORTEST / max(min(once), 1e-8)))
    samples: list[float] = []
    end = clock() + seconds
    while not samples or (clock() < end and len(samples) < most):
        start = clock()
        for _ in range(inner):
            call()
        samples.append((clock() - start) / inner)
    return samples


def _own(tree: Any) -> Any:
    """The arrays in memory of NumPy's, on huge pages where it takes them; unpickled ones lie in the file's bytes."""
    if isinstance(tree, dict):
        return {key: _own(value) for key, value in tree.items()}
    if isinstance(tree, tuple):
        return tuple(map(_own, tree))
    if isinstance(tree, int):
        return tree
    return tree.copy()


def _negative(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _negative(value) for key, value in tree.items()}
    return tuple(map(_negative, tree)) if isinstance(tree, tuple) else -tree


class Worker:
    """What the process knows: the peer's module and one workload."""

    def __init__(self, peer: str, threads: int) -> None:
        self.peer = peer
        self.threads = threads
        self.module: Any = None
        self.call: Callable[[], Any] | None = None

    def start(self, request: dict[str, Any]) -> dict[str, Any]:
        """Import the peer, NumPy with it; the seconds that took."""
        start = time.perf_counter()
        try:
            self.module = importlib.import_module(f"benchmarks.peers.with_{self.peer}")
        except ModuleNotFoundError as missing:
            return {"missing": str(missing)}
        if request.get("compiler"):
            self.module.import_compiler()
        if "cache" in request:
            self.module.keep_code(request["cache"])
        return {"version": self.module.version(), "imported": time.perf_counter() - start}

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Build a workload and call it once; the error of its result, 0 where none is expected, and the seconds."""
        from benchmarks.workloads import WORKLOADS, error

        # Both files were written by the driver, a moment ago.
        arguments = _own(pickle.loads(Path(request["arguments"]).read_bytes()))
        expected = pickle.loads(Path(request["expected"]).read_bytes()) if "expected" in request else None
        name = request["workload"]
        workload = WORKLOADS[name]
        if request.get("changed"):
            WORKLOADS[name] = dataclasses.replace(workload, function=lambda *inputs: -workload.function(*inputs))
        start = time.perf_counter()
        self.call = self.module.build(name, arguments, self.threads)
        if self.call is None:
            return {"skip": True}
        result = self.call()
        first = time.perf_counter() - start
        found = self.module.to_numpy(result)
        found = _negative(found) if request.get("changed") else found
        return {"error": 0.0 if expected is None else error(workload, arguments, found, expected), "first": first}

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Time the workload."""
        assert self.call is not None
        return {"samples": timed(self.call, request["seconds"])}

    def drop(self, request: dict[str, Any]) -> dict[str, Any]:
        """Forget the workload and its arrays."""
        self.call = None
        gc.collect()
        return {}


def main() -> None:
    """Serve the requests for one peer."""
    peer, threads, cpu = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if cpu != "any":
        os.sched_setaffinity(0, {int(cpu)})
    serve(Worker(peer, threads))


def serve(worker: Any) -> None:
    """Answer requests with the methods of their names until the input ends."""
    # Libraries print to standard output; the answers go where they cannot.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request["do"])(request)
        except Exception as failure:
            answer = {"failure": f"{type(failure).__name__}: {failure}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()

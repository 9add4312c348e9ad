"""Two threads against one: the same compiled workload in two live processes, timed in turns."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.rounds import Peer
from benchmarks.startup import Times
from benchmarks.workloads import WORKLOADS, reference

COMPUTE_BOUND = ("matmul1024", "linear_gelu", "block128x768", "conv128")


def thread_times(
    python: str, repeats: int, quick: bool, progress: Callable[[str], None] = lambda text: None
) -> list[Times]:
    """Seconds a call of mlirml on one thread and on two, all samples; nothing where there are no two cores."""
    if len(os.sched_getaffinity(0)) < 2:
        return []
    result: list[Times] = []
    for name in COMPUTE_BOUND:
        progress(f"{name} on two threads")
        peers = {threads: Peer("mlirml", python, threads) for threads in (1, 2)}
        samples: dict[int, list[float]] = {threads: [] for threads in peers}
        try:
            with tempfile.TemporaryDirectory(prefix="mlirml-bench-") as folder:
                _load(peers, name, Path(folder), quick)
            for _ in range(repeats):
                for threads, peer in peers.items():
                    samples[threads] += peer.ask("run", seconds=0.1)["samples"]
        finally:
            for peer in peers.values():
                peer.close()
        result += [Times(label(name, threads), tuple(times)) for threads, times in samples.items()]
    return result


def label(workload: str, threads: int) -> str:
    """How the tables call a workload on so many threads."""
    return f"{workload}, {threads} thread{'' if threads == 1 else 's'}"


def _load(peers: dict[int, Peer], name: str, folder: Path, quick: bool) -> None:
    arguments = WORKLOADS[name].arguments(quick)
    files = {"arguments": arguments, "expected": reference(WORKLOADS[name], arguments)}
    for file, content in files.items():
        (folder / file).write_bytes(pickle.dumps(content, protocol=5))
    for peer in peers.values():
        peer.ask("start")
        answer = peer.ask("load", workload=name, **{file: str(folder / file) for file in files})
        assert answer.get("error", 1) < 1e-3, f"{name}: {answer}"

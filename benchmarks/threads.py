"""Two threads against one: the same compiled workload in live processes, timed in turns.

Two processes of one thread each that work at the same time show what the machine's two cores can do at all.
"""

from __future__ import annotations

import os
import pickle
import statistics
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.rounds import Peer
from benchmarks.startup import Times
from benchmarks.workloads import WORKLOADS, reference

COMPUTE_BOUND = ("matmul1024", "linear_gelu", "block128x768", "conv128")


def thread_times(
    python: str, repeats: int, quick: bool, progress: Callable[[str], None] = lambda text: None
) -> list[Times]:
    """Seconds a call of mlirml on one thread, on two, and in two processes at once; nothing without two cores."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        return []
    result: list[Times] = []
    for name in COMPUTE_BOUND:
        progress(f"{name} on two threads")
        peers = {threads: Peer("mlirml", python, threads) for threads in (1, 2)}
        beside = Peer("mlirml", python, 1, ("benchmarks.worker", "mlirml", "1", str(cpus[0])))
        samples: dict[int, list[float]] = {threads: [] for threads in peers}
        at_once: list[float] = []
        try:
            with tempfile.TemporaryDirectory(prefix="mlirml-bench-") as folder:
                _load([*peers.values(), beside], name, Path(folder), quick)
            for _ in range(repeats):
                for threads, peer in peers.items():
                    samples[threads] += peer.ask("run", seconds=0.1)["samples"]
                with ThreadPoolExecutor(2) as pool:
                    for answer in pool.map(lambda peer: peer.ask("run", seconds=0.1), (peers[1], beside)):
                        at_once += answer["samples"]
        finally:
            for peer in (*peers.values(), beside):
                peer.close()
        result += [Times(label(name, threads), tuple(times)) for threads, times in samples.items()]
        ceiling = 2 * statistics.median(samples[1]) / statistics.median(at_once)
        result.append(Times(f"{name}, 1 thread, two processes at once: a ceiling of {ceiling:.2f}", tuple(at_once)))
    return result


def label(workload: str, threads: int) -> str:
    """How the tables call a workload on so many threads."""
    return f"{workload}, {threads} thread{'' if threads == 1 else 's'}"


def _load(peers: Sequence[Peer], name: str, folder: Path, quick: bool) -> None:
    arguments = WORKLOADS[name].arguments(quick)
    files = {"arguments": arguments, "expected": reference(WORKLOADS[name], arguments)}
    for file, content in files.items():
        (folder / file).write_bytes(pickle.dumps(content, protocol=5))
    for peer in peers:
        peer.ask("start")
        answer = peer.ask("load", workload=name, **{file: str(folder / file) for file in files})
        assert answer.get("error", 1) < 1e-3, f"{name}: {answer}"

"""Interleaved measurement: one live process a peer, timed in turns, so that ratios hold when the machine slows down."""

from __future__ import annotations

import json
import os
import pickle
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.workloads import WORKLOADS, Workload, reference

ROOT = Path(__file__).resolve().parent.parent
# A result is right when its error is at most this many times NumPy's own, or within a few roundings.
_TIMES_NUMPY = 8.0
_ROUNDINGS = 4 * 2.0**-23
# Seconds between turns with more than one thread: those of NumPy's BLAS go on waiting on a core for a tenth of one.
_PAUSE = 0.25
DERIVATIVES = {"gradient": 1e-5, "value and gradient": 1e-5, "hvp": 1e-6, "step": 1e-5}
DERIVATIVES |= {"jacobian": 1e-6, "jacobian of few": 1e-6}
"""The largest errors of derivatives, by how they are checked."""


@dataclass
class Measured:
    """One workload in one peer: seconds a call, or why there are none."""

    samples: list[float] = field(default_factory=list)
    error: float = 0.0
    first: float = 0.0
    problem: str = ""

    @property
    def median(self) -> float:
        """The median of the seconds a call."""
        return statistics.median(self.samples)

    @property
    def best(self) -> float:
        """The least of the seconds a call."""
        return min(self.samples)


Table = dict[str, dict[str, Measured]]
"""Workload -> peer -> figures."""


def environment(threads: int) -> dict[str, str]:
    """The environment of a worker: this process's, with every library held to `threads` threads."""
    count = str(threads)
    result = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    names = ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR")
    result.update({f"{name}_NUM_THREADS": count for name in names})
    # Without the disk cache, first calls compile in every run.
    result.update(MLIRML_THREADS=count, MLIRML_CACHE="0", JAX_PLATFORMS="cpu")
    if threads == 1:
        result["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    result["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [result.get("PYTHONPATH")])])
    return result


class Peer:
    """The live process of a peer; `module` is what it runs with its arguments, a worker for the CPU if not given."""

    def __init__(self, name: str, python: str, threads: int, module: Sequence[str] = ()) -> None:
        self.name, self.threads = name, threads
        # One thread is pinned to the last CPU: the first ones serve the interrupts.
        cpu = str(max(os.sched_getaffinity(0))) if threads == 1 else "any"
        self.process = subprocess.Popen(
            [python, "-m", *(module or ("benchmarks.worker", name, str(threads), cpu))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=environment(threads), cwd=ROOT,
        )  # fmt: skip

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Send a request and wait for the answer."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            return {"failure": f"the process of {self.name} ended with status {self.process.wait()}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with suppress(BrokenPipeError):  # it has ended already
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def start_peers(names: Iterable[str], pythons: Mapping[str, str], threads: int) -> tuple[list[Peer], dict[str, str]]:
    """The peers that could be started, and for every name its version or why it is skipped."""
    peers, notes = [], {}
    for name in names:
        peer = Peer(name, pythons[name], threads)
        answer = peer.ask("start")
        notes[name] = answer.get("version") or f"skipped: {answer.get('missing') or answer.get('failure')}"
        if "version" in answer:
            peers.append(peer)
        else:
            peer.close()
    return peers, notes


def measure(
    peers: list[Peer],
    names: Iterable[str],
    *,
    rounds: int,
    seconds: float,
    quick: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> Table:
    """Check and time the workloads, all peers in turns; the first peer must be NumPy."""
    table: Table = {}
    for name in names:
        progress(name)
        with tempfile.TemporaryDirectory(prefix="mlirml-bench-") as folder:
            table[name] = _load(peers, WORKLOADS[name], Path(folder), quick)
        for number in range(rounds):
            shift = number % len(peers)
            for peer in peers[shift:] + peers[:shift]:
                figures = table[name][peer.name]
                if not figures.problem:
                    if peer.threads > 1:
                        time.sleep(_PAUSE)
                    answer = peer.ask("run", seconds=seconds)
                    figures.problem = answer.get("failure", "")
                    figures.samples += answer.get("samples", [])
        for peer in peers:
            peer.ask("drop")
    return table


def _load(peers: list[Peer], workload: Workload, folder: Path, quick: bool) -> dict[str, Measured]:
    arguments = workload.arguments(quick)
    files = {"arguments": arguments, "expected": reference(workload, arguments)}
    for file, content in files.items():
        (folder / file).write_bytes(pickle.dumps(content, protocol=5))
    del arguments
    result: dict[str, Measured] = {}
    for peer in peers:
        answer = peer.ask("load", workload=workload.name, **{file: str(folder / file) for file in files})
        figures = Measured(error=answer.get("error", 0.0), first=answer.get("first", 0.0))
        base = result[peers[0].name].error if result else figures.error
        limit = DERIVATIVES.get(workload.transform, max(_TIMES_NUMPY * base, _ROUNDINGS))
        if "skip" in answer:
            figures.problem = "-"
        elif "failure" in answer:
            figures.problem = answer["failure"]
        elif not figures.error <= limit:
            figures.problem = f"wrong: error {figures.error:.1e}, NumPy's {base:.1e}"
        result[peer.name] = figures
    return result

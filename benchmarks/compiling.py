"""Cold compilation: what the first call of a workload takes in a fresh process, less the time of a call.

`import mlirml` does not import its compiler, as `import jax` does. The first call does that, and is timed with it; the
peer `mlirml, compiler imported` has done it before, as the others have. What a user waits for, the import of a peer
and the first call, is timed as well. The peer `mlirml, one part changed` has compiled the workload before, with the
compiler imported and a cache, and is timed for the negative of it: kernels that did not change are not compiled again.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.rounds import Peer
from benchmarks.startup import Times
from benchmarks.workloads import WORKLOADS, reference

PEERS = ("mlirml", "jax", "numba")
"""Peers that compile; what a workload is not written for is left out."""
IMPORTED = "mlirml, compiler imported"
CHANGED = "mlirml, one part changed"
COMPILED = (
    "linear_gelu", "mlp512", "block128x768", "gradients_block", "stack12", "gradients_stack12", "softmax", "chain16m",
    "loops_matmul512", "loops_conv64", "loops_jacobi", "loops_fdtd", "loops_softmax", "loops_layer_norm",
    "loops_attention",
)  # fmt: skip
ONLY = ("stack12", "gradients_stack12")
"""Workloads that are there for their compilation: a call of them tells what one of the block does."""
WITH_PARTS = ("block128x768", "gradients_block", "stack12", "gradients_stack12")
"""Workloads of many kernels, which are changed, too."""
_WRONG = 1e-3
"""An error that no rounding gives."""


def cold_compiles(
    peers: Iterable[str],
    pythons: Mapping[str, str],
    repeats: int,
    quick: bool,
    progress: Callable[[str], None] = lambda text: None,
) -> list[Times]:
    """Seconds of compilation, and of import and first call; one sample a fresh process, the peers in turns."""
    threads = len(os.sched_getaffinity(0))
    result: list[Times] = []
    for name in COMPILED:
        progress(f"compiling {name}")
        listed = [peer for peer in PEERS if peer in peers]
        ours = (IMPORTED, CHANGED) if name in WITH_PARTS else (IMPORTED,)
        samples: dict[str, list[float]] = {peer: [] for peer in (*ours, *listed)}
        waits: dict[str, list[float]] = {peer: [] for peer in listed}
        with tempfile.TemporaryDirectory(prefix="mlirml-bench-") as folder:
            files = _write_inputs(name, Path(folder), quick)
            for _ in range(repeats):
                for peer, times in samples.items():
                    python = pythons["mlirml" if peer in ours else peer]
                    measured = _compile_once(peer, python, threads, name, files)
                    if measured is not None:
                        times.append(measured[0])
                        waits.get(peer, []).append(measured[1])
        result += [Times(label(name, peer), tuple(times)) for peer, times in samples.items() if times]
        result += [Times(wait_label(name, peer), tuple(times)) for peer, times in waits.items() if times]
    return result


def label(workload: str, peer: str) -> str:
    """How the tables call the compilation of a workload by a peer."""
    return f"cold compile of {workload}, {peer}"


def wait_label(workload: str, peer: str) -> str:
    """How the tables call the import of a peer and its first call of a workload."""
    return f"import and first call of {workload}, {peer}"


def _write_inputs(name: str, folder: Path, quick: bool) -> dict[str, str]:
    content: dict[str, Any] = {"arguments": WORKLOADS[name].arguments(quick)}
    if not WORKLOADS[name].transform:  # what derivatives should be takes minutes; they are checked where they are timed
        content["expected"] = reference(WORKLOADS[name], content["arguments"])
    for file, value in content.items():
        (folder / file).write_bytes(pickle.dumps(value, protocol=5))
    return {file: str(folder / file) for file in content}


def _compile_once(
    peer: str, python: str, threads: int, name: str, files: Mapping[str, str]
) -> tuple[float, float] | None:
    """Seconds of compilation, and of import and first call; None where the peer has no such workload."""
    process = Peer("mlirml" if peer in (IMPORTED, CHANGED) else peer, python, threads)
    folder = tempfile.TemporaryDirectory(prefix="mlirml-bench-cache-")
    try:
        cache = {"cache": folder.name} if peer == CHANGED else {}
        started = process.ask("start", compiler=peer in (IMPORTED, CHANGED), **cache)
        loaded = process.ask("load", workload=name, **files) if "version" in started else started
        if peer == CHANGED and "first" in loaded:
            loaded = process.ask("load", workload=name, changed=True, **files)
        if "first" not in loaded:
            return None
        assert loaded["error"] < _WRONG, f"{name} is wrong in {peer}: error {loaded['error']:.1e}"
        first = float(loaded["first"])
        return first - min(process.ask("run", seconds=0.05)["samples"]), float(started["imported"]) + first
    finally:
        process.close()
        folder.cleanup()

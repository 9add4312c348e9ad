"""What a process pays once: imports, the first call of a compiled function, and the launch of a parallel loop."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.rounds import ROOT, environment

_IMPORT = """
import time, numpy
start = time.perf_counter()
import {module}
print(time.perf_counter() - start)
"""


@dataclass(frozen=True)
class Times:
    """Seconds of one measurement, one sample a fresh process."""

    name: str
    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.samples)

    @property
    def best(self) -> float:
        """The least."""
        return min(self.samples)


def run_fresh(python: str, *arguments: str, **variables: str) -> str:
    """The output of a fresh process."""
    every = {**environment(len(os.sched_getaffinity(0))), **variables}
    return subprocess.run(
        [python, *arguments], env=every, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True
    ).stdout


def can_import(python: str, module: str) -> bool:
    """Whether an interpreter has a module, without importing it."""
    program = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", program], env=environment(1), cwd=ROOT).returncode == 0


def import_times(peers: Iterable[str], pythons: Mapping[str, str], repeats: int) -> list[Times]:
    """Seconds that `import peer` takes where NumPy is imported already, in turns."""
    modules = [peer for peer in peers if peer != "numpy"]
    samples: dict[str, list[float]] = {module: [] for module in modules}
    for _ in range(repeats + 1):
        for module in modules:
            samples[module].append(float(run_fresh(pythons[module], "-c", _IMPORT.format(module=module))))
    # The first one may have written .pyc files.
    return [Times(f"import {module}, over NumPy", tuple(times[1:])) for module, times in samples.items()]


def first_calls(repeats: int) -> list[Times]:
    """Seconds of the first call of the digits example after its imports: cold, and from the disk cache."""
    cold, warm = [], []
    for number in range(repeats + 1):
        with tempfile.TemporaryDirectory(prefix="mlirml-bench-") as folder:
            for times in (cold, warm):
                text = run_fresh(
                    sys.executable, "examples/digits.py", "--first-call", MLIRML_CACHE="1", MLIRML_CACHE_DIR=folder
                )
                found = json.loads(text)
                assert found["cached"] == (times is warm), "the disk cache did not do what is to be measured"
                if number:
                    times.append(found["ms"] / 1e3)
    return [
        Times("first call of digits, cold", tuple(cold)),
        Times("first call of digits, from the disk cache", tuple(warm)),
    ]


# Each chunk waits until all have begun, so that a launch ends only when every thread has taken part: without that, the
# calling thread would have done an empty loop before another one wakes up.
_LAUNCH = """
define void @body(i64 %low, i64 %high, ptr %context) {
entry:
  %begun = atomicrmw add ptr %context, i64 1 acq_rel
  %place = getelementptr i64, ptr %context, i64 1
  %chunks = load i64, ptr %place
  br label %wait
wait:
  %seen = load atomic i64, ptr %context acquire, align 8
  %all = icmp sge i64 %seen, %chunks
  br i1 %all, label %done, label %wait
done:
  ret void
}
declare void @mlirml_parallel_for(ptr, i64, i64, i64, ptr)
define void @launch(i64 %times, i64 %chunks) {
entry:
  %context = alloca [2 x i64]
  %place = getelementptr i64, ptr %context, i64 1
  store i64 %chunks, ptr %place
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  store i64 0, ptr %context
  call void @mlirml_parallel_for(ptr @body, i64 0, i64 %chunks, i64 1, ptr %context)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %times
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def parallel_launch(repeats: int) -> Times:
    """Seconds to start and join a parallel loop that does nothing but wait for every thread of the pool."""
    import ctypes
    import time

    import numpy as np

    import mlirml as ml
    from mlirml.runtime import _native, load_object
    from mlirml.targets.llvm.codegen import compile_to_object

    code = load_object(compile_to_object(_LAUNCH))
    launch = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(code.address("launch"))
    # A loop of more than one chunk starts the pool; only then is it known how many threads it could have.
    empty = np.empty(1 << 20, np.float32)
    ml.compile(np.exp)(empty)
    threads, times = _native.worker_count() + 1, 200
    samples = []
    for _ in range(repeats):
        start = time.perf_counter()
        launch(times, threads)
        samples.append((time.perf_counter() - start) / times)
    return Times(f"parallel loop that {threads} thread{'' if threads == 1 else 's'} begin and end", tuple(samples))

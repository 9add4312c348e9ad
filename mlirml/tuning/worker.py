"""The process that makes and times candidates, so that one that fails or does not end takes nothing else with it.

It reads requests as lines of JSON from its standard input, and answers each with one line:

    {"do": "open", "text": MODULE, "settings": {...}}       the cluster to measure, and the settings of `config`
    {"do": "make", "name": 1, "schedule": "kernel=..."}     compile it with a schedule; name 0 has the default one
    {"do": "time", "names": [0, 1], "seconds": 0.1, "limit": 0.01}
    {"do": "drop", "name": 1}

A candidate whose results differ from those of the default schedule by more than a sum's rounding errors is refused.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import numpy as np

from mlirml.core.config import config
from mlirml.errors import MlirmlError
from mlirml.ir.bindings import parse
from mlirml.ir.text.dtypes import bfloat16
from mlirml.runtime.artifact import Buffer
from mlirml.runtime.executable import load_artifact
from mlirml.targets.registry import get_target
from mlirml.tuning.schedules import attach, terms_of

_SAMPLE = 2e-4
"""The least seconds of one sample: shorter calls are repeated in it."""
_FEWEST, _MOST = 3, 60
"""The number of samples of a candidate."""
_SLACK = 16.0
"""Rounding errors that results may differ by, as a multiple of the epsilon of a sum of the same length."""
_LAST = ("schedule", "lower")

Arrays = list[np.ndarray]


class Bench:
    """One cluster: its inputs, the results with the default schedule, and the candidates that were made."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.target = get_target("cpu")
        self.inputs: Arrays = []
        self.expected: Arrays = []
        self.programs: dict[int, tuple[Any, Arrays]] = {}
        self.terms = 1

    def make(self, name: int, schedule: str) -> str | None:
        """Compile and run a candidate once; the reason why it is refused, or None."""
        module = parse(self.text)
        if schedule and not attach(module.operation, schedule):
            return "its text is no schedule"
        self.terms = terms_of(module.operation)
        first = [stage for stage, _ in self.target.stages].index(_LAST[0])
        self.target.deferred_pipeline(slice(first, None)).run(module)
        artifact = self.target.codegen(module)
        dtypes = [(_dtype(buffer), buffer.shape) for buffer in (*artifact.inputs, *artifact.outputs)]
        inputs, outputs = dtypes[: len(artifact.inputs)], dtypes[len(artifact.inputs) :]
        program = load_artifact(artifact, inputs, outputs)
        self.inputs = self.inputs or _random(inputs)
        results = [np.empty(shape, dtype) for dtype, shape in outputs]
        program(self.inputs, results)
        if name == 0:
            self.expected = [result.copy() for result in results]
        elif not all(self._agree(x, y) for x, y in zip(results, self.expected, strict=True)):
            return "its numbers differ from those of the default schedule"
        self.programs[name] = program, results
        return None

    def _agree(self, result: np.ndarray, expected: np.ndarray) -> bool:
        """True if integers are equal, and floats differ by rounding errors of their sums only."""
        if result.dtype.kind in "biu":
            return bool(np.array_equal(result, expected))
        found, wanted = result.astype(np.float64), expected.astype(np.float64)
        epsilon = {2: 2.0**-8, 4: 2.0**-23, 8: 2.0**-52}[result.dtype.itemsize]
        size = float(np.max(np.abs(wanted), initial=1.0, where=np.isfinite(wanted)))
        bound = _SLACK * epsilon * max(1.0, self.terms**0.5) * size
        with np.errstate(invalid="ignore"):
            near = (np.abs(found - wanted) <= bound) | (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        return bool(near.all())

    def time(self, names: list[int], seconds: float, limit: float) -> dict[int, list[float]]:
        """Samples of each candidate in turns, for so many seconds each; one that takes over `limit` has few of them."""
        samples: dict[int, list[float]] = {name: [] for name in names}
        repeats = {name: self._repeats(name) for name in names}
        waiting, spent = list(names), dict.fromkeys(names, 0.0)
        while waiting:
            for name in list(waiting):
                sample = self._sample(name, repeats[name])
                samples[name].append(sample)
                spent[name] += sample * repeats[name]
                count = len(samples[name])
                is_slow = 0 < limit < min(samples[name]) and count >= 2
                if is_slow or count == _MOST or (spent[name] >= seconds and count >= _FEWEST):
                    waiting.remove(name)
        return samples

    def _repeats(self, name: int) -> int:
        self._sample(name, 1)
        return max(1, min(10_000, int(_SAMPLE / max(self._sample(name, 1), 1e-7))))

    def _sample(self, name: int, repeats: int) -> float:
        program, results = self.programs[name]
        start = time.perf_counter()
        for _ in range(repeats):
            program(self.inputs, results)
        return (time.perf_counter() - start) / repeats


def _dtype(buffer: Buffer) -> np.dtype:
    """The NumPy dtype of an element type."""
    if buffer.dtype == "bf16":
        return bfloat16()
    names = {"bool": "bool", "f16": "float16", "f32": "float32", "f64": "float64"}
    return np.dtype(names.get(buffer.dtype, buffer.dtype.replace("i", "int")))


def _random(specs: list[tuple[np.dtype, tuple[int, ...]]]) -> Arrays:
    """Arguments, the same in each process."""
    generator, arrays = np.random.default_rng(0), []
    for dtype, shape in specs:
        if dtype.kind in "iu":
            arrays.append(generator.integers(-3, 4, shape).astype(dtype))
        else:
            arrays.append(generator.uniform(-1, 1, shape).astype(dtype))
    return arrays


def answer(bench: Bench | None, request: dict[str, Any]) -> tuple[Bench | None, dict[str, Any]]:
    """The answer to a request, and the cluster that is open after it."""
    task = request["do"]
    if task == "open":
        for name, value in request["settings"].items():
            setattr(config, name, value)
        return Bench(request["text"]), {"ok": True}
    if bench is None:
        return None, {"error": "no cluster is open"}
    if task == "make":
        reason = bench.make(request["name"], request["schedule"])
        return bench, {"ok": True} if reason is None else {"error": reason}
    if task == "drop":
        bench.programs.pop(request["name"], None)
        return bench, {"ok": True}
    samples = bench.time(request["names"], request["seconds"], request["limit"])
    return bench, {"samples": [samples[name] for name in request["names"]]}


def main() -> None:
    """Answer requests until the standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what anything else prints is no answer
    bench: Bench | None = None
    for line in sys.stdin:
        try:
            bench, reply = answer(bench, json.loads(line))
        except (MlirmlError, ValueError, ArithmeticError, LookupError, MemoryError) as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=answers, flush=True)


if __name__ == "__main__":
    main()

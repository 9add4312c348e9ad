"""The programs of a replay: workloads of the benchmarks, random arrays, loops and gradients, and device kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

import mlirml as ml

RANDOM = 48
"""The number of random programs of each kind."""


@dataclass(frozen=True)
class Entry:
    """A function, a call of which is compiled: its name in the record, its arguments, the target and the frontend."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    target: str = "cpu"
    frontend: str = "auto"


def corpus() -> Iterator[Entry]:
    """All programs, the same ones in each process."""
    for part in (_workloads, _polybench, _programs, _arrays, _loops, _gradients, _devices):
        yield from part()


def _workloads() -> Iterator[Entry]:
    from benchmarks.peers.with_mlirml import transformed
    from benchmarks.workloads import WORKLOADS

    for name, workload in WORKLOADS.items():
        arguments = workload.arguments(True)
        yield Entry(f"workload/{name}", transformed(workload), arguments)
        if workload.loops is not None:
            made = (np.zeros(shape, np.float32) for shape in workload.made(*arguments))
            yield Entry(f"workload/{name}, loops", workload.loops, (*arguments, *made), frontend="loops")


def _polybench() -> Iterator[Entry]:
    from benchmarks.polybench import KERNELS

    for name, kernel in KERNELS.items():
        yield Entry(f"polybench/{name}", kernel.function, kernel.arguments(kernel.medium), frontend="loops")


def _programs() -> Iterator[Entry]:
    from benchmarks import fifty

    for name in fifty.programs():
        yield Entry(f"program/{name}", *fifty.load(name))


def _arrays() -> Iterator[Entry]:
    import ml_dtypes  # noqa: F401  (NumPy knows dtypes of its by name then)

    from tests.fuzz.test_programs import programs

    for number, program in enumerate(_drawn(programs())):
        yield Entry(f"arrays/{number}", program.function(), tuple(program.arguments()))


def _loops() -> Iterator[Entry]:
    from tests.fuzz.loop_generator import programs

    for number, program in enumerate(_drawn(programs())):
        yield Entry(f"loops/{number}", program.function(), program.arguments()[1], frontend="loops")


def _gradients() -> Iterator[Entry]:
    import tests.autodiff.random_arrays
    import tests.autodiff.random_control  # noqa: F401  (both register their steps)
    from tests.autodiff.random_programs import program, run

    for number in range(RANDOM):
        steps, shape = program(number, 5, False)
        x = np.random.default_rng(number).standard_normal(shape)
        yield Entry(f"gradient/{number}", ml.value_and_grad(lambda x, steps=steps: run(steps, x)), (x,))


def _devices() -> Iterator[Entry]:
    from benchmarks.devices.workloads import WORKLOADS

    for workload in WORKLOADS.values():
        for target in ("cuda", "vulkan", "webgpu"):
            yield Entry(f"{target}/{workload.name}", workload.function, workload.arguments(True), target)


def _drawn(strategy: Any) -> list[Any]:
    """The programs of a strategy that one seed gives."""
    found: list[Any] = []
    draw = settings(
        max_examples=RANDOM,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )(given(strategy)(lambda program: found.append(program)))
    seed(1)(draw)()
    return found

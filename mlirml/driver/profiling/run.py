"""Run a program with clocks beside the program without, and make the profile of the fastest run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.processes import COMPILER
from mlirml.driver.machine import current_machine
from mlirml.driver.profiling.profile import Event, Profile
from mlirml.driver.profiling.rows import groups_of, limited, merged, row_of
from mlirml.errors import TargetError
from mlirml.runtime import _native

if TYPE_CHECKING:
    from mlirml.driver.calls import Build
    from mlirml.driver.profiling.program import TimedProgram
    from mlirml.targets.measured import MeasuredMachine
    from mlirml.targets.target import Target

_EVENTS = 20_000
"""The number of executions that a trace shows at most."""
_LEAST_RUNS, _MOST_RUNS = 3, 50
_SECONDS = 1.0
"""The time after which there are no more runs, of both programs together."""


@dataclass
class Recorded:
    """One run: its seconds, calls and nanoseconds of each clock, the first executions, and the outputs."""

    seconds: float
    totals: list[tuple[int, int]]
    events: list[tuple[int, int, int]]
    start: int
    outputs: list[Any]


def profiled(
    target: Target, build: Build, inputs: Sequence[Any], name: str, machine: MeasuredMachine | None = None
) -> Profile:
    """The profile of a compiled signature, run with these inputs, whose arrays are left as they are.

    Raises `TargetError` for a target whose kernels have no clocks.
    """
    if target.name != "cpu":
        raise TargetError(f"programs of target {target.name!r} cannot be profiled", help='compile with target="cpu"')
    from mlirml.driver.profiling.program import timed_program

    with COMPILER:
        timed = timed_program(target, build.captured)
    machine = machine or current_machine()
    fresh = _copier(inputs, build)
    executions = _executions(timed, fresh)
    best, normal = _measured(timed, build, fresh)
    return _profile(timed, best, normal, executions, build, name, target, machine)


def _profile(
    timed: TimedProgram, best: Recorded, normal: float, executions: dict[int, int], build: Build, name: str,
    target: Target, machine: MeasuredMachine | None,
) -> Profile:  # fmt: skip
    threads = _native.get_threads()
    groups = groups_of(timed.clocks, timed.kernels)
    measured = [row_of(group, timed.clocks, timed.kernels, best.totals, executions, threads) for group in groups]
    executed = [(group, row) for group, row in zip(groups, measured, strict=True) if row.timings]
    rows, positions = merged([row for _, row in executed])
    row_of_clock = {
        clock: position for (group, _), position in zip(executed, positions, strict=True) for clock in group.clocks
    }
    notes = []
    recorded = sum(calls for calls, _ in best.totals)
    if recorded > len(best.events):
        notes.append(f"the trace shows the first {len(best.events)} of {recorded} executions")
    events = (Event(row_of_clock[k], begin - best.start, end - best.start) for k, begin, end in best.events)
    return Profile(
        function=name,
        target=target.name,
        rows=tuple(limited(row, machine) for row in rows),
        seconds=best.seconds,
        normal_seconds=normal,
        threads=threads,
        results=build.captured.result(best.outputs),
        events=tuple(events),
        notes=tuple(notes),
        machine=machine,
    )


def _copier(inputs: Sequence[Any], build: Build) -> Callable[[], list[Any]]:
    """A function that returns inputs for a run: arrays that the program stores into are copies."""
    stored = {target for _, target in build.captured.writebacks}

    def fresh() -> list[Any]:
        return [np.array(value) if i in stored else value for i, value in enumerate(inputs)]

    return fresh


def _executions(timed: TimedProgram, fresh: Callable[[], list[Any]]) -> dict[int, int]:
    """The number of executions of each block of the host."""
    blocks = timed.kernels.blocks
    if timed.counting is None:
        return {number: block.executions or 0 for number, block in enumerate(blocks)}
    counted = _recorded(timed.counting, fresh(), len(blocks), 0).totals
    return {number: calls if number else 1 for number, (calls, _) in enumerate(counted)}


def _measured(timed: TimedProgram, build: Build, fresh: Callable[[], list[Any]]) -> tuple[Recorded, float]:
    """The fastest run with clocks, and the seconds of the fastest without, in turn."""
    best = _recorded(timed.program, fresh(), len(timed.clocks), _EVENTS)
    normal = _seconds(build.program, fresh())
    begun = time.perf_counter()
    for run in range(_MOST_RUNS):
        if run >= _LEAST_RUNS and time.perf_counter() - begun > _SECONDS:
            break
        normal = min(normal, _seconds(build.program, fresh()))
        best = min(best, _recorded(timed.program, fresh(), len(timed.clocks), _EVENTS), key=lambda run: run.seconds)
    return best, normal


def _seconds(program: Any, inputs: list[Any]) -> float:
    begun = _native.clock_nanoseconds()
    outputs = program(inputs, None)
    ended = _native.clock_nanoseconds()
    del outputs
    return (ended - begun) * 1e-9


def _recorded(program: Any, inputs: list[Any], clocks: int, events: int) -> Recorded:
    _native.start_kernel_record(clocks, events)
    begun = _native.clock_nanoseconds()
    try:
        outputs = program(inputs, None)
    finally:
        ended = _native.clock_nanoseconds()
        totals, executions = _native.end_kernel_record()
    return Recorded((ended - begun) * 1e-9, totals, executions, begun, outputs)

"""Run a program with clocks beside the program without, and make the profile of the fastest run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.config import config
from mlirml.core.dataclass import dataclass
from mlirml.core.processes import COMPILER
from mlirml.driver.machine import current_machine
from mlirml.driver.profiling.profile import Event, Profile, Row
from mlirml.driver.profiling.rows import groups_of, limited, merged, row_of
from mlirml.driver.profiling.text import duration
from mlirml.errors import TargetError
from mlirml.runtime import _native
from mlirml.runtime.array import Array
from mlirml.runtime.device_program import DeviceProgram

if TYPE_CHECKING:
    from mlirml.driver.calls import Build
    from mlirml.driver.profiling.program import TimedProgram
    from mlirml.targets.measured import MeasuredMachine
    from mlirml.targets.target import Target

_EVENTS = 20_000
"""The number of executions that a trace shows at most."""
_LEAST_RUNS, _MOST_RUNS = 3, 50
_SIZED = "this is the program for these sizes: calls run one of dynamic sizes"
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
    target: Target,
    build: Build,
    inputs: Sequence[Any],
    name: str,
    machine: MeasuredMachine | None = None,
    *,
    is_sized: bool = False,
) -> Profile:
    """The profile of a compiled signature, run with these inputs, whose arrays are left as they are.

    With `is_sized` calls run a program of dynamic sizes, and a note tells that this one is for the sizes of the inputs.
    Raises `TargetError` for a target whose programs have no kernels.
    """
    if isinstance(build.program, DeviceProgram):
        return _on_device(target, build, inputs, name, machine or current_machine())
    if target.processor is None:
        raise TargetError(
            f"programs of target {target.name!r} cannot be profiled: it interprets them",
            help='compile with target="cpu"',
        )
    from mlirml.driver.profiling.program import timed_program

    with COMPILER:
        timed = timed_program(target, build.captured)
    machine = machine or current_machine()
    fresh = _copier(inputs, build)
    executions = _executions(timed, fresh)
    best, normal = _measured(
        lambda: _recorded(timed.program, fresh(), len(timed.clocks), _EVENTS),
        lambda: _recorded(build.program, fresh(), 0, 0).seconds,
    )
    threads = _native.get_threads()
    groups = groups_of(timed.clocks, timed.kernels)
    measured = [row_of(group, timed.clocks, timed.kernels, best.totals, executions, threads) for group in groups]
    executed = [(group, row) for group, row in zip(groups, measured, strict=True) if row.timings]
    rows, positions = merged([row for _, row in executed])
    row_of_clock = {
        clock: position for (group, _), position in zip(executed, positions, strict=True) for clock in group.clocks
    }
    limits = [limited(row, machine) for row in rows]
    blocks = [kernel.block for kernel in timed.kernels.kernels if kernel.block is not None]
    is_counted = all(executions[block] is not None for block in blocks)
    notes = [_SIZED] if is_sized else []
    if not is_counted:
        notes.append("calls in loops are those of the clocks: a tiled loop does several in one")
    if machine.was_busy and threads > 1:
        notes.append("limits of all threads are too low: the machine was busy (`mlirml machine --measure`)")
    return _profile(name, target, build, best, normal, limits, row_of_clock, notes, threads=threads, machine=machine)


def _on_device(target: Target, build: Build, inputs: Sequence[Any], name: str, machine: MeasuredMachine) -> Profile:
    """The profile of a program on a device, each of whose launches is waited for."""
    from mlirml.driver.profiling.device import dispatches, rows_of

    program: DeviceProgram = build.program
    where = next((value.device for value in inputs if isinstance(value, Array)), program.device)
    table = [kernel for kernel, _ in program.artifact.kernel_table]
    with COMPILER:
        found = dispatches(target, build.captured)
    fresh = _copier(inputs, build)

    def run(values: list[Any], outputs: None) -> list[Any]:
        results = program(values, outputs)
        where.synchronize()
        return results

    def timed() -> Recorded:
        with config.override(sync=True):
            return _recorded(run, fresh(), len(table), _EVENTS)

    best, normal = _measured(timed, lambda: _recorded(run, fresh(), 0, 0).seconds)
    rows, row_of_kernel = rows_of(found, table, program.artifact.kernel_places, best.totals)
    costs = next((each for each in machine.devices if each.name.startswith(f"{where.id}:")), None)
    launch = f", about {duration(costs.launch_seconds)}" if costs is not None else ""
    notes = [f"each launch is waited for: its time includes that of an empty launch{launch}"]
    notes.append("limits of devices are not measured; copies of arguments and results are in the rest")
    return _profile(name, target, build, best, normal, rows, row_of_kernel, notes)


def _profile(
    name: str, target: Target, build: Build, best: Recorded, normal: float, rows: Sequence[Row],
    row_of_clock: Mapping[int, int], notes: Sequence[str] = (), *, threads: int = 0,
    machine: MeasuredMachine | None = None,
) -> Profile:  # fmt: skip
    recorded = sum(calls for calls, _ in best.totals)
    shown = [f"the trace shows the first {len(best.events)} of {recorded} executions"]
    events = (Event(row_of_clock[k], begin - best.start, end - best.start) for k, begin, end in best.events)
    return Profile(
        function=name,
        target=target.name,
        rows=tuple(rows),
        seconds=best.seconds,
        normal_seconds=normal,
        threads=threads,
        results=build.captured.result(best.outputs),
        events=tuple(events),
        notes=(*notes, *(shown if recorded > len(best.events) else [])),
        machine=machine,
    )


def _copier(inputs: Sequence[Any], build: Build) -> Callable[[], list[Any]]:
    """A function that returns inputs for a run: arrays that the program stores into are copies."""
    stored = {target for _, target in build.captured.writebacks}

    def copy(value: Any) -> Any:
        return value.copy() if isinstance(value, Array) else np.array(value)

    return lambda: [copy(value) if i in stored else value for i, value in enumerate(inputs)]


def _executions(timed: TimedProgram, fresh: Callable[[], list[Any]]) -> dict[int, int | None]:
    """The number of executions of each block of the host; None where it is not known."""
    blocks = timed.kernels.blocks
    if timed.counting is None:
        return {number: block.executions for number, block in enumerate(blocks)}
    counted = _recorded(timed.counting, fresh(), len(blocks), 0).totals
    return {number: calls if number else 1 for number, (calls, _) in enumerate(counted)}


def _measured(timed: Callable[[], Recorded], normal: Callable[[], float]) -> tuple[Recorded, float]:
    """The fastest run with clocks, and the seconds of the fastest without, in turn; the first runs warm up."""
    best, seconds = timed(), normal()
    begun = time.perf_counter()
    for run in range(_MOST_RUNS):
        if run >= _LEAST_RUNS and time.perf_counter() - begun > _SECONDS:
            break
        seconds = min(seconds, normal())
        best = min(best, timed(), key=lambda run: run.seconds)
    return best, seconds


def _recorded(program: Any, inputs: list[Any], clocks: int, events: int) -> Recorded:
    _native.start_kernel_record(clocks, events)
    begun = _native.clock_nanoseconds()
    try:
        outputs = program(inputs, None)
    finally:
        ended = _native.clock_nanoseconds()
        totals, executions = _native.end_kernel_record()
    return Recorded((ended - begun) * 1e-9, totals, executions, begun, outputs)

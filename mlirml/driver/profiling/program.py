"""A program with clocks: the same IR by the same passes, with each kernel between two looks at the clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlirml.core.dataclass import dataclass
from mlirml.core.processes import native_code
from mlirml.driver.compilation import opened, parsed
from mlirml.driver.profiling.kernels import Kernels, count_blocks, find_kernels, find_later_kernels
from mlirml.errors import MlirmlError, SourceLocation
from mlirml.ir.bindings import mlir
from mlirml.ir.location import source_locations
from mlirml.passes import Pipeline, Stage
from mlirml.pipelines.llvm.time_kernels import insert_clocks, timed_operations

if TYPE_CHECKING:
    from mlirml.frontend.captured import Captured
    from mlirml.targets.target import Target

_BUFFERS = "mlirml-elide-copies"
"""The pass that ends bufferization: copies that are left are made."""
_OUTLINE = "mlirml-outline-parallel"
"""The pass before which a loop nest is one operation of @main."""


@dataclass(frozen=True)
class Clock:
    """A pair of looks at the clock: the kernels between them, their lines, and whether threads share the work."""

    kernels: tuple[int, ...]
    locations: tuple[SourceLocation, ...]
    name: str
    is_parallel: bool


@dataclass(frozen=True)
class TimedProgram:
    """A loaded program with clocks; `counting` counts executions of host blocks that depend on values, if it can."""

    program: Any
    clocks: tuple[Clock, ...]
    kernels: Kernels
    counting: Any


def timed_program(target: Target, captured: Captured) -> TimedProgram:
    """Compile a program with clocks. The caller holds the compiler lock."""
    clocks: list[Clock] = []
    module = parsed(captured)
    kernels = _lowered(target, module, clocks)
    program = opened(captured, target.codegen(module), target)
    counting = None if kernels.are_counted else _counting_program(target, captured)
    return TimedProgram(program, tuple(clocks), kernels, counting)


def _counting_program(target: Target, captured: Captured) -> Any:
    """The program that counts the executions of host blocks; None where a pass cannot take the calls that count."""
    module = parsed(captured)
    try:
        _counted(target, module)
    except MlirmlError:
        return None
    return opened(captured, target.codegen(module), target)


@native_code()
def _lowered(target: Target, module: mlir.Module, clocks: list[Clock]) -> Kernels:
    before, schedule, after = _stages(target)
    Pipeline(before).run(module)
    kernels = find_kernels(module.operation)
    for_buffers, rest = _split(schedule, _BUFFERS, after=True)
    Pipeline((for_buffers,)).run(module)
    find_later_kernels(module.operation, kernels)
    lowered, outlined = _split(rest, _OUTLINE)
    Pipeline((lowered,)).run(module)
    timed = timed_operations(module.operation)
    for each in timed:
        places = tuple(source_locations(each.op.location))
        clocks.append(Clock(each.kernels, places, each.op.name, each.is_parallel))
    insert_clocks(module.operation, [each.op for each in timed])
    Pipeline((outlined, *after)).run(module)
    return kernels


@native_code()
def _counted(target: Target, module: mlir.Module) -> None:
    before, schedule, after = _stages(target)
    Pipeline(before).run(module)
    count_blocks(module.operation, find_kernels(module.operation))
    Pipeline((schedule, *after)).run(module)


def _stages(target: Target) -> tuple[tuple[Stage, ...], Stage, tuple[Stage, ...]]:
    """The stages before "schedule", this, and those after it."""
    stages = target.pipeline.stages
    position = [stage.name for stage in stages].index("schedule")
    return stages[:position], stages[position], stages[position + 1 :]


def _split(stage: Stage, name: str, *, after: bool = False) -> tuple[Stage, Stage]:
    """A stage in two at a pass, the first without the check that ends a stage."""
    position = next(i for i, step in enumerate(stage.steps) if step.name == name) + after
    return Stage("", stage.steps[:position]), Stage(stage.name, stage.steps[position:], stage.legal)


Run = Callable[[], Any]

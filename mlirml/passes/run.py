"""Run steps over a module; a failure becomes an error with the pass, the op, the user's line and a reproducer."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from mlirml.core.config import config
from mlirml.core.dataclass import dataclass
from mlirml.dialects.legality import verify_stage
from mlirml.errors import InternalError, LoweringError, MlirmlError, PipelineError, PreconditionError, TargetError
from mlirml.ir.bindings import mlir, passmanager, ready_managers, to_text
from mlirml.ir.location import location_in_text, source_location
from mlirml.passes.base import Deferred, Pass, Step, Upstream
from mlirml.passes.presence import Presence
from mlirml.passes.report import Instrumentation, Remark, Severity, active
from mlirml.passes.reproducer import write_reproducer
from mlirml.passes.verify_stage import VerifyStagePass

_OP_IN_MESSAGE = r"""'(?P<named>[a-z_]\w*\.[\w.]+)' op\b|^see current operation: .*?"(?P<shown>[\w.]+)"\("""


_OF_PROGRAM = ("raise", "transform")
"""The stages after which the operations are still those that the program is written in."""


class StageLike(Protocol):
    """The part of a `Stage` that the runner needs."""

    @property
    def name(self) -> str: ...

    @property
    def all_steps(self) -> tuple[Step, ...]: ...


def run_stages(stages: Sequence[StageLike], module: mlir.Operation, instrumentation: Instrumentation) -> None:
    """Run the stages in order, in place.

    The module is verified at the end of each stage and before an upstream pass meets what passes of ours have made,
    unless `config.verify` is off. Verifying it after every step would take as long as the steps themselves.
    """
    instrumentation.start(module)
    presence = Presence(module)
    with active(instrumentation), _diagnostics(module.context, instrumentation):
        for position, stage in enumerate(stages):
            if position == 0 or stages[position - 1].name in _OF_PROGRAM:
                presence.begin_program()
            _run_stage(stage, module, instrumentation, presence)


def upstream_manager(step: Upstream, context: mlir.Context, *, verify: bool = True) -> Any:
    """The pass manager of an upstream step; raises `PipelineError` when MLIR does not know it or its options."""
    ready = ready_managers(context) if not verify and step.text.startswith("canonicalize") else None
    if ready is not None and step.text in ready:
        return ready[step.text]
    with context:
        manager = passmanager.PassManager("builtin.module")
        manager.enable_verifier(verify)
        try:
            manager.add(step.text)
        except ValueError as error:
            raise _upstream_error(step, str(error)) from None
    if ready is not None:
        ready[step.text] = manager
    return manager


def run_upstream(module: mlir.Operation, passes: str, *, verify: bool = True) -> None:
    """Run upstream passes inside of a pass of ours, as `canonicalize,cse`.

    The module is verified before them, where `verify` says that it has been changed, and at the end of the stage.
    """
    if verify:
        _verify(module)
    text, ready = f"{module.name}({passes})", None
    if passes == "canonicalize,cse":
        ready = ready_managers(module.context)
    manager = ready.get(text) if ready is not None else None
    if manager is None:
        manager = passmanager.PassManager.parse(text, module.context)
        manager.enable_verifier(False)
        if ready is not None:
            ready[text] = manager
    manager.run(module)


def _run_stage(stage: StageLike, module: mlir.Operation, instrumentation: Instrumentation, presence: Presence) -> None:
    steps = stage.all_steps
    if _is_verified(steps, module, instrumentation):
        instrumentation.after_pass(stage.name, steps[0].name, module, 0.0)
        return
    instrumentation.verified = None
    # One clone a stage, not one a pass: when a pass fails, the stage is run again on the clone, with care.
    before = module.clone().operation
    changed = changed_by_us = False  # since the module was verified
    ran: list[Pass | Upstream] = []
    for given in steps:
        if given.name in instrumentation.before:
            instrumentation.before[given.name](module)
            presence.changed()
        step = _step_of(given, presence)
        if step is None:
            continue
        ran.append(step)
        instrumentation.current_pass = step.name
        started = time.perf_counter()
        ends = isinstance(step, VerifyStagePass)
        try:
            if (changed and ends) or (changed_by_us and isinstance(step, Upstream)):
                _verify(module)
                changed = changed_by_us = False
            if isinstance(step, VerifyStagePass) and config.verify:
                with module.context:
                    instrumentation.verified = module, verify_stage(module, step.stage, step.legal)
            else:
                _run_step(step, module)
                presence.changed()
            changed = not ends
            changed_by_us |= changed and isinstance(step, Pass)
        except PipelineError:
            raise
        except Exception as cause:
            if isinstance(cause, MlirmlError) and not isinstance(cause, (LoweringError, InternalError)):
                # The program is wrong, and no pass: there is nothing to look for.
                raise _failure(cause, stage.name, step, "", (), instrumentation) from None
            raise _blamed(before, ran, cause, stage.name, instrumentation)  # noqa: B904  it has a cause
        instrumentation.after_pass(stage.name, step.name, module, time.perf_counter() - started)
    if changed:
        try:
            _verify(module)
        except Exception as cause:
            raise _blamed(before, ran, cause, stage.name, instrumentation)  # noqa: B904  it has a cause
    instrumentation.current_pass = ""


def _step_of(given: Step, presence: Presence) -> Pass | Upstream | None:
    """The step to run; None if it has nothing to do."""
    if not isinstance(given, Deferred):
        return given
    return given.make() if given.when is None or presence.fulfils(given.when) else None


def _is_verified(steps: Sequence[Step], module: mlir.Operation, instrumentation: Instrumentation) -> bool:
    """True if a stage without passes ends with what is checked already, for another stage of the same module."""
    if len(steps) != 1 or not isinstance(steps[0], VerifyStagePass) or instrumentation.verified is None:
        return False
    checked, names = instrumentation.verified
    return checked == module and steps[0].allows(names)


def _run_step(step: Pass | Upstream, module: mlir.Operation, *, verify: bool = False) -> None:
    # A pass manager a step costs 50 us and tells which upstream pass failed; one for all steps would not.
    if isinstance(step, Upstream):
        upstream_manager(step, module.context, verify=verify).run(module)
        return
    with module.context, mlir.Location.unknown():
        step.run(module)
    if verify:
        module.verify()


def _verify(module: mlir.Operation) -> None:
    if config.verify:
        module.verify()


@dataclass(frozen=True)
class _Culprit:
    """The step that failed, and the module that steps `first` to `position` fail on, as text."""

    position: int
    cause: Exception
    text: str
    first: int


def _culprit(clone: mlir.Operation, steps: Sequence[Pass | Upstream], cause: Exception) -> _Culprit:
    """Run the steps again, the last of which failed, and verify the module after each: an earlier one may be to blame.

    Where the failure does not come back, the module is shown as it was before all of the steps.
    """
    at_start = text = to_text(clone, locations=True)
    with active(Instrumentation()):
        for position, step in enumerate(steps):
            try:
                _run_step(step, clone, verify=config.verify)
            except Exception as found:
                return _Culprit(position, found, text, position)
            text = to_text(clone, locations=True)
    return _Culprit(len(steps) - 1, cause, at_start, 0)


def _blamed(
    before: mlir.Operation,
    ran: Sequence[Pass | Upstream],
    cause: Exception,
    stage: str,
    instrumentation: Instrumentation,
) -> MlirmlError:
    """The error of the step that is to blame for a failure of the last one or of the verifier after it."""
    found = _culprit(before, ran, cause)
    remaining = ran[found.first : found.position + 1]
    error = _failure(found.cause, stage, ran[found.position], found.text, remaining, instrumentation)
    error.__cause__ = found.cause
    return error


def _failure(
    cause: Exception,
    stage: str,
    step: Step,
    text: str,
    remaining: Sequence[Step],
    instrumentation: Instrumentation,
) -> MlirmlError:
    if isinstance(cause, PreconditionError):
        return _annotated(cause, stage, step)
    if isinstance(cause, MlirmlError) and not isinstance(cause, (LoweringError, InternalError)):
        return cause if isinstance(cause, TargetError) else _annotated(cause, stage, step)
    from pathlib import Path

    error = _annotated(_as_error(cause, step), stage, step)
    if isinstance(error, InternalError):
        error.before = text
    folder = instrumentation.reproducer_dir or (Path(config.dump_dir) if config.dump_dir else None)
    try:
        path = write_reproducer(text, remaining, stage, error.message, folder)
    except OSError as problem:
        error.notes += (f"no reproducer, because {problem.filename} cannot be written: {problem.strerror}",)
        return error
    error.notes += (f"reproducer: mlirml-opt --run-reproducer {path}",)
    if isinstance(error, LoweringError):
        error.reproducer = str(path)
    return error


def _annotated(error: MlirmlError, stage: str, step: Step) -> MlirmlError:
    if error.stage is None and stage:
        error.stage = stage
    if not any(note.startswith("pass: ") for note in error.notes):
        error.notes = (f"pass: {step}", *error.notes)
    if isinstance(error, (LoweringError, InternalError)) and error.pass_name is None:
        error.pass_name = step.name
    return error


def _as_error(cause: Exception, step: Step) -> MlirmlError:
    if isinstance(cause, MlirmlError):
        return cause
    if isinstance(cause, mlir.MLIRError):
        return _from_diagnostics(cause, step)
    what = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
    return InternalError(f"the pass {step.name} broke down: {what}", location=location_in_text(str(cause)))


def error_from_diagnostics(cause: mlir.MLIRError, fallback: str) -> LoweringError:
    """An `MLIRError` as our error: message, op and place of its first diagnostic; the others become notes."""
    diagnostics = list(cause.error_diagnostics)
    if not diagnostics:
        return LoweringError(str(cause).strip() or fallback)
    first = diagnostics[0]
    notes = [note.message for note in first.notes] + [_as_note(other) for other in diagnostics[1:]]
    error = LoweringError(first.message, location=source_location(first.location), notes=tuple(map(_one_line, notes)))
    matches = filter(None, (re.search(_OP_IN_MESSAGE, text) for text in (first.message, *notes)))
    error.op = next((match["named"] or match["shown"] for match in matches), None)
    return error


def _from_diagnostics(cause: mlir.MLIRError, step: Step) -> MlirmlError:
    error = error_from_diagnostics(cause, f"the pass {step.name} failed without a reason")
    if isinstance(step, Pass):
        internal = InternalError(
            f"the pass {step.name} left an invalid module: {error.message}", location=error.location, notes=error.notes
        )
        return internal
    return error


def _as_note(diagnostic: Any) -> str:
    place = source_location(diagnostic.location)
    return f"{place}: {diagnostic.message}" if place else str(diagnostic.message)


def _one_line(text: str, limit: int = 400) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 4] + " ..."


def _upstream_error(step: Upstream, message: str) -> PipelineError:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    unknown = re.search(r"'([^']+)' does not refer to a registered pass", message)
    if unknown:
        return PipelineError(f"unknown pass `{unknown.group(1)}`", text=step.text)
    nest = re.search(r"restricted to '([^']+)' on a PassManager", message)
    if nest:
        anchor = nest.group(1)
        error = PipelineError(f"{step.name} runs on {anchor}, not on a module", help=f"write {anchor}({step.text})")
        error.anchor = anchor
        return error
    what = re.sub(r"^.*?error: |^<Pass-Options-Parser>: ", "", lines[0]) if lines else "MLIR does not accept it"
    return PipelineError(f"{step.name}: {what}", text=step.text, length=len(step.text))


@contextmanager
def _diagnostics(context: mlir.Context, instrumentation: Instrumentation) -> Iterator[None]:
    """Collect the warnings and remarks of upstream passes; errors arrive in `MLIRError`."""

    def collect(diagnostic: Any) -> bool:
        severity: Severity = _SEVERITIES.get(str(diagnostic.severity).rpartition(".")[2], "remark")
        place = source_location(diagnostic.location)
        notes = "".join(f"\n  note: {note.message}" for note in diagnostic.notes)
        instrumentation.add_remark(
            Remark(diagnostic.message + notes, place, "", instrumentation.current_pass, severity)
        )
        return True

    handler = context.attach_diagnostic_handler(collect)
    try:
        yield
    finally:
        handler.detach()


_SEVERITIES: dict[str, Severity] = {"ERROR": "error", "WARNING": "warning", "REMARK": "remark", "NOTE": "note"}

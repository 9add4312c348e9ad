"""From a captured module to a loaded program: parsing, passes, code, and the time that each took."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any

from mlirml.analysis.costs import used
from mlirml.core.config import config
from mlirml.core.dataclass import dataclass
from mlirml.core.processes import native_code, started
from mlirml.errors import InternalError, TargetError
from mlirml.runtime.binding import Binding
from mlirml.runtime.host import Host
from mlirml.targets.registry import targets_with

if TYPE_CHECKING:
    from mlirml.frontend.captured import Captured
    from mlirml.ir.bindings import mlir
    from mlirml.passes import Instrumentation, Remark
    from mlirml.runtime import Artifact
    from mlirml.targets.target import Target


@native_code()
def parsed(captured: Captured, context: mlir.Context | None = None) -> mlir.Module:
    """The captured text as a module, of a context of its own where none is given.

    MLIR's verifier runs here: what it refuses, the op records should have.
    """
    from mlirml.ir.bindings import mlir, parse
    from mlirml.passes.run import error_from_diagnostics

    try:
        return parse(captured.text, context)
    except mlir.MLIRError as error:
        found = error_from_diagnostics(error, "the captured module is not valid MLIR")
        raise InternalError(
            f"captured as invalid MLIR: {found.message}", location=found.location, notes=found.notes, stage="capture"
        ) from None


def begin_loading() -> None:
    """Load the libraries of the compiler while other things are done; at the first call only."""
    from mlirml.targets.llvm import preload

    preload.begin()


class Clock:
    """The seconds that each part of a compilation took, and what it took from the cache."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.reused = ""
        self._last = time.perf_counter()

    def note(self, part: str) -> None:
        """Attribute the time since the last note to this part."""
        now = time.perf_counter()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._last
        self._last = now

    def add(self, parts: dict[str, float]) -> None:
        """Attribute the time since the last note to these parts."""
        self.seconds |= parts
        self._last = time.perf_counter()


PATIENCE = 2.0
"""Seconds after which a message says what takes so long."""


@contextmanager
def progress(name: str) -> Iterator[Clock]:
    """A clock for the compilation of a function, with messages on the standard error where that takes long."""
    clock, is_long = Clock(), False
    if not config.progress:
        yield clock
        return

    def report_delay() -> None:
        nonlocal is_long
        is_long = True
        done = [*clock.seconds][-1:]
        doing = f"after {done[0]}" if done else "capture"
        print(f"mlirml: compiling `{name}` takes longer than {PATIENCE:g} s ({doing})", file=sys.stderr, flush=True)

    timer = threading.Timer(PATIENCE, report_delay)
    timer.daemon = True
    started(timer)
    begun = time.perf_counter()
    try:
        yield clock
    finally:
        timer.cancel()
        if is_long:
            seconds = time.perf_counter() - begun
            print(f"mlirml: compiled `{name}` in {seconds:.1f} s", file=sys.stderr, flush=True)


def opened(captured: Captured, artifact: Artifact, target: Target) -> Any:
    """The loaded program; raises `TargetError` where its code is for a processor that this machine is not."""
    if target.processor is not None:
        target.processor.check_runs_here()
    binding = Binding(
        [(s.dtype, s.shape) for s in captured.inputs],
        [(s.dtype, s.shape) for s in captured.outputs],
        constants=captured.constants,
        writebacks=captured.writebacks,
        int_ranges=captured.int_ranges,
        weak=[s.weak for s in captured.inputs],
        host=Host(captured.host_functions) if captured.host_functions else None,
        demotes=target.demotes,
        sizes=captured.sizes if captured.is_dynamic else (),
    )
    return target.open(artifact, binding)


def target_for(target: Target, captured: Captured) -> Target:
    """The target for a program: another one for programs of dynamic sizes.

    Raises `TargetError` where the target has none.
    """
    if not captured.is_dynamic:
        return target
    if target.sized is None:
        raise TargetError(f"target {target.name!r} has no programs of dynamic sizes", help='use target="cpu"')
    return target.sized()


_STACK = 512 << 10
"""Bytes of stack below which LLVM overflows it on ordinary functions, which ends the process."""


def _check_stack() -> None:
    """Raise `TargetError` in a thread whose stack is too small for the compiler, as far as Python knows its size."""
    import resource

    of_main = threading.current_thread() is threading.main_thread()
    size = resource.getrlimit(resource.RLIMIT_STACK)[0] if of_main else threading.stack_size()
    if 0 < size < _STACK:  # 0 is the default of the system, and -1 no limit
        raise TargetError(
            f"compiling takes a stack of {_STACK >> 10} KiB, and this thread has {size >> 10} KiB",
            help="compile in another thread, or "
            + ("raise `ulimit -s`" if of_main else "call `threading.stack_size` with more before it starts"),
        )


def compiled(target: Target, captured: Captured, clock: Clock) -> tuple[Artifact, Instrumentation]:
    """The artifact of a captured program and the instrumentation of its passes. The caller holds the compiler lock."""
    _check_stack()
    from mlirml.ir.bindings import lent_context
    from mlirml.targets.llvm.code_cache import counted

    with lent_context(target.name, len(captured.text)) as context, counted() as counts:
        module = parsed(captured, context)
        clock.note("parse")
        result = built(target, module, clock)
    clock.reused = str(counts) if counts.units else ""
    return result


@native_code()
def built(target: Target, module: mlir.Module, clock: Clock) -> tuple[Artifact, Instrumentation]:
    """Run the target's passes and generate code: the artifact, and the instrumentation of the passes."""
    watch = _watch()
    begun: list[Any] = []
    ahead = target.ahead
    if ahead is not None and watch.dump_dir is None:  # a dump shows the whole module after each pass

        def start(op: mlir.Operation) -> None:
            begun.extend(ahead.start(op, watch))

        watch.before[ahead.before] = start
    try:
        run_pipeline(target, module, watch=watch)
        clock.add(seconds(watch))
        artifact = target.codegen(module, *begun)
    except BaseException:
        for each in begun:
            each.abandon()
        raise
    clock.note("codegen")
    return artifact, watch


def _watch() -> Instrumentation:
    from mlirml.passes import Instrumentation

    watch = Instrumentation()
    if config.dump_dir:
        from pathlib import Path

        watch.dump_dir = Path(config.dump_dir)
    return watch


@native_code()
def run_pipeline(
    target: Target, module: mlir.Module, stop_after: str | None = None, watch: Instrumentation | None = None
) -> Instrumentation:
    """Run the target's passes, up to stage `stop_after`; returns their instrumentation."""
    watch = watch or _watch()
    with used(target.costs):
        target.deferred_pipeline().run(module, stop_after=stop_after, instrumentation=watch)
    return watch


def seconds(watch: Instrumentation) -> dict[str, float]:
    """The seconds that each stage took."""
    seconds: dict[str, float] = {}
    for timing in watch.timings:
        seconds[timing.stage] = seconds.get(timing.stage, 0.0) + timing.seconds
    return seconds


def on_loops(watch: Instrumentation) -> list[Remark]:
    """The remarks on how loops were raised or why not, and on products that were rewritten, in source order."""
    found = [remark for remark in watch.remarks if remark.outcome]
    return sorted(found, key=lambda r: (r.location.file, r.location.line, r.location.column) if r.location else ("",))


_LATE = (("arith.divf", "mlirml-multiply-reciprocals"), ("arith.select", "mlirml-split-masked"))
"""Operations that passes of stage `schedule` tell of, and these."""


def remarks_of(target: Target, captured: Captured) -> list[Remark]:
    """The remarks on the loops and products of a program, by the passes of the stages that make them."""
    from mlirml.analysis.contractions import CONTRACTIONS  # loads the bindings of MLIR

    text, stages = captured.text, dict(target.stages)
    last = "raise" if "scf." in text else ""
    if any(name in text for name in (*CONTRACTIONS, "linalg.conv", "linalg.depthwise")):
        last = "optimize"
    if any(name in text and step in stages.get("schedule", "") for name, step in _LATE):
        last = "schedule"
    return on_loops(run_pipeline(target, parsed(captured), last)) if stages.get(last) else []


@dataclass
class Lowered:
    """The module of a program after a stage of its pipeline."""

    module: mlir.Module = field(repr=False)
    target: Target
    stage: str

    def as_text(self) -> str:
        """The MLIR text."""
        from mlirml.ir.bindings import to_text

        return to_text(self.module)

    def emit(self, form: str) -> Any:
        """The program in another form: "mlir"; of `cpu` also "llvm" (LLVM IR) and "asm" (assembly).

        Of `vulkan` "spirv" gives the bytes of the kernels, of `webgpu` and `metal` "wgsl" their text; of `cuda` "ptx"
        for compute capability 8.0, or "ptx-sm_90" for another processor. No GPU is needed for them.
        """
        if form == "mlir":
            return self.as_text()
        word, dash, rest = str(form).partition("-")
        if self.stage == self.target.stages[-1][0] and (write := self.target.forms.get(word + dash)) is not None:
            return write(self.module.operation, *([rest] if dash else []))
        known = next((name for name in targets_with(word) if name != self.target.name), None)
        help = f'compile with target="{known}" for {form}' if known else None
        raise TargetError(f"target {self.target.name!r} has no form {form!r} at stage {self.stage!r}", help=help)

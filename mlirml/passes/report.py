"""What a run of a pipeline tells besides the module: remarks, warnings, timings, dumps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal, TextIO

from mlirml.core.dataclass import dataclass
from mlirml.errors import SourceLocation, shown_at
from mlirml.ir.bindings import mlir, to_text
from mlirml.ir.location import source_location

if TYPE_CHECKING:
    from pathlib import Path

Severity = Literal["error", "warning", "remark", "note"]


@dataclass(frozen=True)
class Remark:
    """Something a pass has to say about one op; `severity` is `remark` except for upstream diagnostics.

    `outcome` is set where users ask for it by name: "raised" or "not raised" for `compile(explain="raise")`.
    """

    text: str
    location: SourceLocation | None = None
    op: str = ""
    pass_name: str = ""
    severity: Severity = "remark"
    outcome: str = ""

    @property
    def topic(self) -> str:
        """The part of a report that the remark is in: "loops", "algebra" or "masks"."""
        return {"rewritten": "algebra", "masked": "masks"}.get(self.outcome, "loops")

    def __str__(self) -> str:
        place = f"{replace(self.location, function='')}: " if self.location else ""
        origin = f" [{self.pass_name}]" if self.pass_name else ""
        return f"{place}{self.severity}: {self.op + ': ' if self.op else ''}{self.text}{origin}"

    def shown(self) -> str:
        """The remark with the user's line under it, as errors are shown."""
        return "\n".join(shown_at(f"{self.severity}: {self.text}", self.location))


@dataclass(frozen=True)
class Timing:
    """The seconds of one pass, its verification included."""

    stage: str
    pass_name: str
    seconds: float


@dataclass
class Instrumentation:
    """Hooks into the run of a pipeline, and the remarks, timings and dumps that it made.

    `print_after` writes the IR to `stream` after all passes or only after those that changed it; `dump_dir` gets one
    numbered file a pass; `remarks` and `timings` fill up as the pipeline runs. `reproducer_dir` is where the file for
    a failed pass goes (a fresh temporary folder when None). `before` is called with the module in front of passes of
    these names.
    """

    print_after: Literal["none", "all", "changed"] = "none"
    print_locations: bool = False
    dump_dir: Path | None = None
    reproducer_dir: Path | None = None
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    before: dict[str, Callable[[mlir.Operation], None]] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    current_pass: str = ""
    verified: tuple[mlir.Operation, set[str]] | None = None  # the module checked last, and the names of its operations
    _dumped: int = 0
    _last_text: str = ""
    _seen: set[Remark] = field(default_factory=set)

    @property
    def wants_text(self) -> bool:
        """True if the module must be printed between the passes."""
        return self.print_after != "none" or self.dump_dir is not None

    def start(self, module: mlir.Operation) -> None:
        """Note the module before the first pass, also if the passes are those of several pipelines."""
        if self.wants_text and not self._last_text:
            self._last_text = to_text(module, locations=self.print_locations)
            self._dump("input", self._last_text)

    def after_pass(self, stage: str, pass_name: str, module: mlir.Operation, seconds: float) -> None:
        """Record that a pass is done."""
        self.timings.append(Timing(stage, pass_name, seconds))
        if not self.wants_text:
            return
        text = to_text(module, locations=self.print_locations)
        if self.print_after == "all" or (self.print_after == "changed" and text != self._last_text):
            self.stream.write(f"// -----// IR Dump After {pass_name} //----- //\n{text}\n")
        self._last_text = text
        self._dump(f"{stage}_{pass_name}" if stage else pass_name, text)

    def _dump(self, name: str, text: str) -> None:
        if self.dump_dir is None:
            return
        self.dump_dir.mkdir(parents=True, exist_ok=True)
        safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in name)[:80].strip("_")
        (self.dump_dir / f"{self._dumped:03d}_{safe}.mlir").write_text(text, encoding="utf-8")
        self._dumped += 1

    def add_remark(self, remark: Remark) -> None:
        """Keep a remark, once."""
        if remark not in self._seen:
            self._seen.add(remark)
            self.remarks.append(remark)

    def timing_table(self) -> str:
        """The timings as text: each stage with its passes, in order, with milliseconds and share."""
        total = sum(timing.seconds for timing in self.timings) or 1e-12
        lines = ["===- pass timing -===", f"{'ms':>10} {'share':>7}  name"]
        stages = dict.fromkeys(timing.stage for timing in self.timings)
        for stage in stages:
            inside = [timing for timing in self.timings if timing.stage == stage]
            if stage:
                lines.append(_timing_line(sum(t.seconds for t in inside), total, f"stage {stage}"))
            lines += [_timing_line(t.seconds, total, ("  " if stage else "") + t.pass_name) for t in inside]
        lines.append(_timing_line(total, total, "total"))
        return "\n".join(lines) + "\n"


def _timing_line(seconds: float, total: float, name: str) -> str:
    return f"{seconds * 1e3:10.3f} {100 * seconds / total:6.1f}%  {name}"


_ACTIVE: ContextVar[Instrumentation | None] = ContextVar("mlirml_instrumentation", default=None)


@contextmanager
def active(instrumentation: Instrumentation) -> Iterator[None]:
    """Send the remarks of the enclosed passes to `instrumentation`."""
    token = _ACTIVE.set(instrumentation)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def remark(op: Any, text: str) -> None:
    """Say something about `op` at the user's line, for `mlirml-opt --remarks`; dropped outside a pipeline."""
    operation = getattr(op, "operation", op)
    add_remark(operation.location, text, op=operation.name)


def add_remark(location: mlir.Location, text: str, *, op: str = "", outcome: str = "") -> None:
    """Add a remark at a location; dropped outside a pipeline."""
    instrumentation = _ACTIVE.get()
    if instrumentation is not None:
        place = source_location(location)
        instrumentation.add_remark(Remark(text, place, op, instrumentation.current_pass, outcome=outcome))

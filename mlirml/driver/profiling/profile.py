"""A profile: one row for each kernel of a program, with its time, its work and the limit that the machine sets it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Any

from mlirml.core.dataclass import dataclass
from mlirml.driver.profiling.text import aligned, duration, rate, shown_lines

if TYPE_CHECKING:
    from mlirml.targets.measured import MeasuredMachine


@dataclass(frozen=True)
class Row:
    """A kernel, with all its calls in one run of the program.

    `name` says what it computes and `lines` are the user's, as `file:line`. `seconds` is the time of all `calls`;
    `timings` is how often the clock ran, more often than that where a kernel is lowered to several loops, less where
    one loop does several calls. `flops`, `functions` (evaluations of elementary functions) and `bytes_moved` are those
    of all calls, None where they are not known. `threads` is how many may share the work. `limit_seconds` is the least
    time that this machine takes for it, and `bound` what sets it: "compute", or a level of memory.
    """

    name: str
    lines: tuple[str, ...]
    calls: int
    timings: int
    seconds: float
    flops: int | None
    functions: int | None
    bytes_moved: int | None
    dtype: str
    threads: int
    limit_seconds: float | None = None
    bound: str = ""

    @property
    def gflops(self) -> float | None:
        """Billions of flops a second; None where they are not known."""
        return self.flops / self.seconds / 1e9 if self.flops is not None and self.seconds else None

    @property
    def gbytes(self) -> float | None:
        """Billions of bytes a second; None where they are not known."""
        return self.bytes_moved / self.seconds / 1e9 if self.bytes_moved is not None and self.seconds else None

    @property
    def share_of_limit(self) -> float | None:
        """The fraction of the machine's limit that is reached: 1.0 is the limit; None where it is not known."""
        return self.limit_seconds / self.seconds if self.limit_seconds is not None and self.seconds else None

    def as_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        names = ("name", "lines", "calls", "timings", "seconds", "flops", "functions", "bytes_moved", "dtype",
                 "threads", "limit_seconds", "bound", "gflops", "gbytes", "share_of_limit")  # fmt: skip
        values = {name: getattr(self, name) for name in names}
        return values | {"lines": list(self.lines)}


@dataclass(frozen=True)
class Event:
    """One execution of a kernel: the index of its row, and nanoseconds from the start of the run."""

    row: int
    begin: int
    end: int


@dataclass(frozen=True)
class Profile:
    """The times of a program's kernels in one run, the fastest of several.

    `rows` are in the order of the program. `seconds` is the time of that run from the call to its return, and
    `rest_seconds` what it spent in no kernel: host code between kernels, allocation of the results, the clocks.
    `normal_seconds` is the time of the program without clocks, the fastest of as many runs, made in turn with the
    others. `threads` is how many loops may use, 0 on a device. `results` is what the function returned. `events` are
    the executions in order, of a long run the first ones; `notes` say what could not be measured. `machine` are the
    measured limits, or None.
    """

    function: str
    target: str
    rows: tuple[Row, ...]
    seconds: float
    normal_seconds: float
    threads: int
    results: Any = field(repr=False, default=None)
    events: tuple[Event, ...] = field(repr=False, default=())
    notes: tuple[str, ...] = ()
    machine: MeasuredMachine | None = field(repr=False, default=None)

    @property
    def kernel_seconds(self) -> float:
        """The time in kernels."""
        return sum(row.seconds for row in self.rows)

    @property
    def rest_seconds(self) -> float:
        """The time outside of kernels."""
        return max(0.0, self.seconds - self.kernel_seconds)

    def __str__(self) -> str:
        return self.table()

    def table(self) -> str:
        """The rows as text, the slowest first, then the rest and the whole."""
        head = ("kernel", "lines", "calls", "time", "of all", "GFLOP/s", "GB/s", "of limit", "bound by")
        ordered = sorted(self.rows, key=lambda row: -row.seconds)
        body = [self._cells(row) for row in ordered]
        body.append(("rest", "", "", duration(self.rest_seconds), self._share(self.rest_seconds), "", "", "", ""))
        body.append(("all", "", "", duration(self.seconds), "100%", "", "", "", ""))
        text = [
            self.title(),
            *aligned([head, *body], left=(0, 1, 8)),
            f"without clocks: {duration(self.normal_seconds)}, of which the kernels here are "
            f"{100 * self.kernel_seconds / self.normal_seconds if self.normal_seconds else 0:.1f}%",
        ]
        return "\n".join([*text, *(f"note: {note}" for note in self.notes)])

    def title(self) -> str:
        """The name of the function, its target, and the threads of the host."""
        threads = f", {self.threads} thread{'s' * (self.threads != 1)}" if self.threads else ""
        return f"{self.function}: target {self.target}{threads}"

    def as_dict(self) -> dict[str, Any]:
        """The profile as plain data, without results and events."""
        return {
            "function": self.function,
            "target": self.target,
            "threads": self.threads,
            "seconds": self.seconds,
            "normal_seconds": self.normal_seconds,
            "kernel_seconds": self.kernel_seconds,
            "rest_seconds": self.rest_seconds,
            "rows": [row.as_dict() for row in self.rows],
            "notes": list(self.notes),
        }

    def chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the run as a trace that `chrome://tracing` and Perfetto show: the call, and the kernels in it.

        Times are microseconds from the start of the run. Raises `OSError` where the file cannot be written.
        """
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": list(self._trace_events()), "displayTimeUnit": "ns"}, file, indent=1)

    def roofline(self, path: str | os.PathLike[str]) -> None:
        """Write the roofline picture as SVG: flops a second over flops a byte, the machine's limits, a point a kernel.

        Kernels without flops or bytes have no point. Raises `OSError` where the file cannot be written.
        """
        from mlirml.driver.profiling.roofline import picture

        with open(path, "w", encoding="utf-8") as file:
            file.write(picture(self))

    def _cells(self, row: Row) -> tuple[str, ...]:
        share = row.share_of_limit
        return (
            row.name + (" [threads]" if row.threads > 1 else ""),
            shown_lines(row.lines),
            str(row.calls),
            duration(row.seconds),
            self._share(row.seconds),
            rate(row.gflops),
            rate(row.gbytes),
            "-" if share is None else f"{100 * share:.0f}%",
            row.bound,
        )

    def _share(self, seconds: float) -> str:
        return f"{100 * seconds / self.seconds:.1f}%" if self.seconds else "-"

    def _trace_events(self) -> Iterable[dict[str, Any]]:
        common = {"pid": 1, "tid": 1}
        yield {"name": "process_name", "ph": "M", **common, "args": {"name": f"{self.function} ({self.target})"}}
        whole = {"name": self.function, "cat": "call", "ph": "X", "ts": 0.0, "dur": 1e6 * self.seconds, **common}
        yield whole | {"args": {"without clocks, us": 1e6 * self.normal_seconds}}
        for event in self.events:
            row = self.rows[event.row]
            arguments = {"lines": list(row.lines), "calls": row.calls, "flops": row.flops, "bytes": row.bytes_moved}
            times = {"ts": event.begin / 1e3, "dur": (event.end - event.begin) / 1e3}
            yield {"name": row.name, "cat": "kernel", "ph": "X", **times, **common, "args": arguments}

"""What mlirml must show, as data: each target with the figure that it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.rounds import Table
from benchmarks.startup import Times


@dataclass(frozen=True)
class Target:
    """A figure with its limit; `measured` gives None where this run has not measured it."""

    text: str
    limit: float
    unit: str
    at_least: bool
    measured: Callable[[Table, Mapping[str, Times]], float | None]

    def met(self, value: float) -> bool:
        """Whether a measured figure is good enough."""
        return value >= self.limit if self.at_least else value <= self.limit

    def bound(self) -> str:
        """The limit in words."""
        return f"at {'least' if self.at_least else 'most'} {self.limit:g} {self.unit}"


def _speed(workload: str) -> Callable[[Table, Mapping[str, Times]], float | None]:
    """NumPy's median time over mlirml's."""

    def measured(table: Table, once: Mapping[str, Times]) -> float | None:
        row = table.get(workload, {})
        numpy, mlirml = row.get("numpy"), row.get("mlirml")
        if numpy is None or mlirml is None or numpy.problem or mlirml.problem:
            return None
        return numpy.median / mlirml.median

    return measured


def _call(table: Table, once: Mapping[str, Times]) -> float | None:
    figures = table.get("call", {}).get("mlirml")
    return None if figures is None or figures.problem else 1e6 * figures.median


def _once(name: str) -> Callable[[Table, Mapping[str, Times]], float | None]:
    def measured(table: Table, once: Mapping[str, Times]) -> float | None:
        return 1e3 * once[name].median if name in once else None

    return measured


TARGETS = (
    Target("matmul f32 1024, one thread, against NumPy's OpenBLAS", 0.7, "of its speed", True, _speed("matmul1024")),
    Target("ten-op elementwise chain on 16M f32, against NumPy", 5, "times its speed", True, _speed("chain16m")),
    Target("a call of a compiled add of two f32[8]", 3, "us", False, _call),
    Target("import mlirml, over import numpy", 30, "ms", False, _once("import mlirml, over NumPy")),
    Target("cold compile of the digits forward pass", 500, "ms", False, _once("first call of digits, cold")),
    Target(
        "the same from the disk cache in a new process", 50, "ms", False,
        _once("first call of digits, from the disk cache"),
    ),
)  # fmt: skip

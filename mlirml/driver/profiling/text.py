"""Names, lines, times and tables of profiles as text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirml.errors import SourceLocation

_LABELS = 3
"""The number of labels of a row, after which it says how many more there are."""


def named(labels: Iterable[str]) -> str:
    """The name of a row with kernels of these labels."""
    different = list(dict.fromkeys(labels))
    more = len(different) - _LABELS
    return "+".join(different[:_LABELS]) + (f"+{more} more" if more > 0 else "")


def line_texts(locations: Iterable[SourceLocation]) -> tuple[str, ...]:
    """The lines of locations as `file:line`, each once, sorted."""
    return tuple(f"{file}:{line}" for file, line in sorted({(place.file, place.line) for place in locations}))


def shown_lines(lines: Sequence[str]) -> str:
    """Lines in short: `model.py:3-5,9`."""
    files: dict[str, list[int]] = {}
    for text in lines:
        file, _, line = text.rpartition(":")
        files.setdefault(os.path.basename(file), []).append(int(line))
    return " ".join(f"{file}:{_ranges(numbers)}" for file, numbers in files.items())


def duration(seconds: float) -> str:
    """Seconds as text, with three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def aligned(rows: Sequence[Sequence[str]], left: Sequence[int]) -> list[str]:
    """Rows of cells as lines; the columns in `left` begin at one position, the others end at one."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def _ranges(numbers: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"

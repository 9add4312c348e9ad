"""Tables on the terminal."""

from __future__ import annotations

import sys

from rich import box
from rich.console import Console
from rich.table import Table

# A pipe has no width; rich would take 80 columns and cut the tables.
_PIPE_WIDTH = 140


def console() -> Console:
    """Standard output, with colours where it is a terminal."""
    return Console(
        file=sys.stdout, width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False, soft_wrap=False
    )


def table(title: str | None, *columns: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table; the columns named in `right` hold numbers."""
    result = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for column in columns:
        result.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return result


def size(count: float) -> str:
    """Bytes for people: `3.4 kB`."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"

"""Texts of dynamic values for `print`, which the program calls at run time (`tracing/print_calls.py`).

In `print(f"loss {loss:.3f}")` the text is formatted before `print` is called. Inside of a call of `print` a dynamic
value is formatted as a placeholder; the program then formats the value there.
"""

from __future__ import annotations

import ast
import functools
import linecache
import re
from typing import TYPE_CHECKING

from mlirml.errors import SourceLocation
from mlirml.frontend import advice
from mlirml.frontend.frames import user_location
from mlirml.frontend.syntax_trees import parsed

if TYPE_CHECKING:
    from mlirml.frontend.arrays.array import Traced

MARK = re.compile("\x02(\\d+):([^\x02\x03]*)\x03")
"""A placeholder in a text: the number of the value in `Trace.marked`, and its format specification."""

AS_TEXT = "!s"
"""What begins the format specification of the text of a value."""


class _Mark(str):
    """The text of a placeholder in a call of `print`; `f"{x!s:>8}"` formats the text, not the value."""

    def __format__(self, specification: str) -> str:
        return self.replace(":", f":{AS_TEXT}{specification}", 1)


def mark(value: Traced, specification: str) -> str | None:
    """The placeholder of a value in a text for `print`; None elsewhere."""
    location = user_location(2)
    if location is None or not _is_printed(location):
        return None
    marked = value._trace.marked
    marked.append(value)
    return _Mark(f"\x02{len(marked) - 1}:{specification}\x03")


def formatted(value: Traced, specification: str) -> str:
    """A value in a text: a placeholder for `print`, or a constant number; else an error."""
    marked = mark(value, specification)
    if marked is not None:
        return marked
    return format(value._convert("formatting", advice.on_conversion, advice.PRINT)[()], specification)


@functools.lru_cache(64)
def _calls(file: str, lines: int) -> tuple[tuple[int, int, int, int], ...]:
    """The source ranges of the calls of `print` in a file."""
    try:
        tree = parsed("".join(linecache.getlines(file)))
    except SyntaxError:
        return ()
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _name(n.func) == "print"]
    return tuple((n.lineno, n.col_offset + 1, n.end_lineno or n.lineno, (n.end_col_offset or 0) + 1) for n in found)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_printed(location: SourceLocation) -> bool:
    here, end = (location.line, location.column or 0), (location.end_line or location.line, location.end_column or 0)
    for first, column, last, end_column in _calls(location.file, len(linecache.getlines(location.file))):
        if not location.column and first <= location.line <= last:  # Python 3.10 knows no columns
            return True
        if (first, column) <= here and end <= (last, end_column):
            return True
    return False

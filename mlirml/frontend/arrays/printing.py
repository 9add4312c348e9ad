"""Texts of dynamic values for `print`, which the program calls at run time (`tracing/print_calls.py`).

In `print(f"loss {loss:.3f}")` the text is formatted before `print` is called. Inside of a call of `print` a dynamic
value is formatted as a placeholder; the program then formats the value there.
"""

from __future__ import annotations

import ast
import functools
import linecache
import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from mlirml.errors import SourceLocation
from mlirml.frontend import advice
from mlirml.frontend.frames import is_internal, user_location
from mlirml.frontend.syntax_trees import parsed
from mlirml.frontend.user_objects import is_package

if TYPE_CHECKING:
    from mlirml.frontend.arrays.array import Traced

MARK = re.compile("\x02(\\d+):([^\x02\x03]*)\x03")
"""A placeholder in a text: the number of the value in `Trace.marked`, and its format specification."""

AS_TEXT, AS_REPR = "!s", "!r"
"""What begins the format specification of `str` and of `repr` of a value."""

_CALLING = ("mlirml.frontend.loops.functions", "mlirml.frontend.arrays.growing_list")
"""The modules that call `str` and `repr` for the program."""


class _Mark(str):
    """The text of a placeholder in a call of `print`; `f"{x!s:>8}"` formats the text, not the value."""

    def __format__(self, specification: str) -> str:
        if f":{AS_REPR}" in self:
            return self.replace("\x03", f"{specification}\x03")
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


def text_of(value: Traced, function: Callable[[Any], str]) -> str:
    """`str` or `repr` of a value: a placeholder for `print`, or that of a constant; else an error."""
    marked = mark(value, AS_REPR if function is repr else "")
    if marked is not None:
        return marked
    known = value._convert(f"`{function.__name__}()`", advice.on_conversion, advice.PRINT)
    return function(known.item() if value._is_weak() else known[()] if value._scalar else known)


def is_called_by_program(value: Traced) -> bool:
    """True if the user's code asks for the text of a value while it is traced, not a debugger or a library.

    It is called by `__str__` and `__repr__`, which C code calls for `str(x)`, `"%s" % x` and `str([x])`.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in _CALLING:
        frame = frame.f_back
    if frame is None or value._trace.done:
        return False
    return not (is_internal(frame) or is_package(frame.f_globals.get("__name__")))


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

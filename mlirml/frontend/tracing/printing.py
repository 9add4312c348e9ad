"""`print` of values that are known only when the program runs: the program calls it then, with them.

In `print(f"loss {loss:.3f}")` the text is made before `print` is called. A value of the program gives a mark in its
place, if the code is inside of a call of `print`; the program then formats the value where the mark is.
"""

from __future__ import annotations

import ast
import builtins
import functools
import linecache
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlirml.errors import SourceLocation
from mlirml.frontend import advice
from mlirml.frontend.frames import at_user_line, user_location
from mlirml.frontend.syntax_trees import parsed

if TYPE_CHECKING:
    from mlirml.frontend.tracing.array import Traced
    from mlirml.frontend.tracing.trace import Trace

_MARK = re.compile("\x02(\\d+):([^\x02\x03]*)\x03")


_AS_TEXT = "!s"


class _Mark(str):
    """What `str(x)` gives in a call of `print`; `f"{x!s:>8}"` formats the text, not the value."""

    def __format__(self, specification: str) -> str:
        return self.replace(":", f":{_AS_TEXT}{specification}", 1)


def mark(value: Traced, specification: str) -> str | None:
    """The placeholder of a value in a text that is made for `print`; None elsewhere."""
    place = user_location(2)
    if place is None or not _is_printed(place):
        return None
    marked = value._trace.marked
    marked.append(value)
    return _Mark(f"\x02{len(marked) - 1}:{specification}\x03")


def formatted(value: Traced, specification: str) -> str:
    """A value in a text: a mark for `print`, or a number that is known; else an error."""
    marked = mark(value, specification)
    if marked is not None:
        return marked
    return format(value._convert("formatting", advice.on_conversion, advice.PRINT)[()], specification)


def printing(trace: Trace) -> Callable[..., None]:
    """`print` as a traced function sees it."""

    @functools.wraps(builtins.print)
    def show(*args: Any, sep: str | None = " ", end: str | None = "\n", file: Any = None, flush: bool = False) -> None:
        show_later(trace, args, sep=sep, end=end, file=file, flush=flush)

    return show


def show_later(trace: Trace, args: tuple[Any, ...], **options: Any) -> None:
    """Let the program print."""
    from mlirml.frontend.tracing import host_calls

    parts = [_parts(trace, x) if type(x) is str else x for x in args]
    with at_user_line():
        host_calls.call(trace, _show, (parts,), options, name="print")


def _parts(trace: Trace, text: str) -> Any:
    """A text with marks as the values and what is between them."""
    pieces = _MARK.split(text)
    if len(pieces) == 1:
        return text
    values = [trace.marked[int(number)] for number in pieces[1::3]]
    return _Text(tuple(pieces[::3]), tuple(values), tuple(pieces[2::3]))


class _Text(tuple):  # type: ignore[type-arg]
    """A text around values: the pieces of text, the values, and how they are formatted."""

    _fields = ("texts", "values", "specifications")

    def __new__(cls, *parts: Any) -> _Text:
        return tuple.__new__(cls, parts)

    @classmethod
    def _make(cls, parts: Any) -> _Text:
        return cls(*parts)

    def __str__(self) -> str:
        texts, values, specifications = self
        text: str = texts[0] + "".join(
            _formatted(value, specification) + after
            for value, specification, after in zip(values, specifications, texts[1:])
        )
        return text


def _formatted(value: Any, specification: str) -> str:
    if specification.startswith(_AS_TEXT):
        return format(str(value), specification.removeprefix(_AS_TEXT))
    text: str = format(value, specification)
    return text


def _show(parts: list[Any], **options: Any) -> None:
    builtins.print(*parts, **options)


@functools.lru_cache(64)
def _calls(file: str, lines: int) -> tuple[tuple[int, int, int, int], ...]:
    """Where the calls of `print` are in a file, from the first to the last place."""
    try:
        tree = parsed("".join(linecache.getlines(file)))
    except SyntaxError:
        return ()
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _name(n.func) == "print"]
    return tuple((n.lineno, n.col_offset + 1, n.end_lineno or n.lineno, (n.end_col_offset or 0) + 1) for n in found)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_printed(place: SourceLocation) -> bool:
    here, end = (place.line, place.column or 0), (place.end_line or place.line, place.end_column or 0)
    for first, column, last, end_column in _calls(place.file, len(linecache.getlines(place.file))):
        if not place.column and first <= place.line <= last:  # Python 3.10 knows no columns
            return True
        if (first, column) <= here and end <= (last, end_column):
            return True
    return False

"""`print` of dynamic values: the program calls it at run time.

In `print(f"loss {loss:.3f}")` the text is formatted before `print` is called. Inside of a call of `print` a dynamic
value is formatted as a placeholder; the program then formats the value there.
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
    """The text of a placeholder in a call of `print`; `f"{x!s:>8}"` formats the text, not the value."""

    def __format__(self, specification: str) -> str:
        return self.replace(":", f":{_AS_TEXT}{specification}", 1)


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


def printing(trace: Trace) -> Callable[..., None]:
    """`print` as a traced function sees it."""

    @functools.wraps(builtins.print)
    def show(*args: Any, sep: str | None = " ", end: str | None = "\n", file: Any = None, flush: bool = False) -> None:
        show_later(trace, args, sep=sep, end=end, file=file, flush=flush)

    return show


def show_later(trace: Trace, args: tuple[Any, ...], **options: Any) -> None:
    """Emit a call of `print`."""
    from mlirml.frontend.tracing import host_calls

    parts = [_parts(trace, x) if type(x) is str else x for x in args]
    with at_user_line():
        host_calls.call(trace, _show, (parts,), options, name="print")


def _parts(trace: Trace, text: str) -> Any:
    """A text with placeholders, split into the values and the texts between them."""
    pieces = _MARK.split(text)
    if len(pieces) == 1:
        return text
    values = [trace.marked[int(number)] for number in pieces[1::3]]
    return _Text(tuple(pieces[::3]), tuple(values), tuple(pieces[2::3]))


class _Text(tuple):  # type: ignore[type-arg]
    """A text around values: the pieces of text, the values, and their format specifications."""

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

"""Calls of `print` in a program: their texts are split into dynamic values and the pieces of text between them."""

from __future__ import annotations

import builtins
from typing import Any

from mlirml.frontend.arrays.printing import AS_REPR, AS_TEXT, MARK
from mlirml.frontend.frames import at_user_line
from mlirml.frontend.tracing import host_calls
from mlirml.frontend.tracing.trace import Trace


def show_later(trace: Trace, args: tuple[Any, ...], **options: Any) -> None:
    """Emit a call of `print`."""
    parts = [_parts(trace, x) if isinstance(x, str) else x for x in args]
    with at_user_line():
        host_calls.call(trace, _show, (parts,), options, name="print")


def _parts(trace: Trace, text: str) -> Any:
    """A text with placeholders, split into the values and the texts between them."""
    pieces = MARK.split(text)
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
        return texts[0] + "".join(
            _formatted(value, specification) + after
            for value, specification, after in zip(values, specifications, texts[1:])
        )


def _formatted(value: Any, specification: str) -> str:
    if specification.startswith(AS_TEXT):
        return format(str(value), specification.removeprefix(AS_TEXT))
    if specification.startswith(AS_REPR):
        return format(repr(value), specification.removeprefix(AS_REPR))
    return format(value, specification)


def _show(parts: list[Any], **options: Any) -> None:
    builtins.print(*parts, **options)

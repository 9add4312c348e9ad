"""The grammar of MLIR pipelines, `a,b{k=v},func.func(c)`, as plain nodes with positions."""

from __future__ import annotations

import re

from mlirml.core.dataclass import dataclass
from mlirml.errors import PipelineError

_NAME = re.compile(r"[\w.\-]+")
_KEY = re.compile(r"[\w.\-]+")
_CLOSING = {"{": "}", "[": "]", "(": ")", "<": ">"}


@dataclass(frozen=True)
class Option:
    """One `key=value` between braces; a bare `key` has the value None."""

    key: str
    value: str | None
    position: int

    def __str__(self) -> str:
        return self.key if self.value is None else f"{self.key}={self.value}"


@dataclass(frozen=True)
class Element:
    """A pass with its options, or (when `children` is not None) an operation name with the passes nested on it."""

    name: str
    options: tuple[Option, ...]
    children: tuple[Element, ...] | None
    position: int

    def __str__(self) -> str:
        if self.children is not None:
            return f"{self.name}({','.join(map(str, self.children))})"
        return f"{self.name}{{{' '.join(map(str, self.options))}}}" if self.options else self.name


def parse_elements(text: str) -> tuple[Element, ...]:
    """Parse a comma-separated list of elements; raise `PipelineError` that points at the mistake."""
    parser = _Parser(text)
    parser.skip_space()
    if parser.at_end():
        return ()
    elements = parser.elements()
    if not parser.at_end():
        what = "unbalanced `)`" if parser.peek() == ")" else f"expected `,` but found `{parser.peek()}`"
        raise parser.error(what)
    return elements


def unquote(value: str) -> str:
    """The value of an option without the quotes or the braces that kept it together."""
    if len(value) >= 2 and (value[0] + value[-1] in ("''", '""', "{}")):
        return value[1:-1]
    return value


def quote(value: str) -> str:
    """Print a string so that the grammar reads it back as one value; raises ValueError if it holds both quotes."""
    if re.fullmatch(r"[^\s{}()\[\]<>,'\"]+", value):
        return value
    if "'" in value and '"' in value:
        raise ValueError(f"pipeline text cannot hold a string with both `'` and `\"`: {value}")
    return f"'{value}'" if '"' in value else f'"{value}"'


def split_list(value: str) -> list[str]:
    """The items of `1,2` or `"a,b",c`; commas in quotes do not count."""
    if not value.strip():
        return []
    return [item.strip() for item in re.split(r""",(?=(?:[^"']|"[^"]*"|'[^']*')*$)""", value)]


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def at_end(self) -> bool:
        return self.position >= len(self.text)

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def skip_space(self) -> None:
        while self.peek().isspace():
            self.position += 1

    def error(self, message: str, position: int | None = None) -> PipelineError:
        return PipelineError(message, text=self.text, position=self.position if position is None else position)

    def elements(self) -> tuple[Element, ...]:
        found = [self.element()]
        while self.peek() == ",":
            self.position += 1
            found.append(self.element())
        return tuple(found)

    def element(self) -> Element:
        self.skip_space()
        start = self.position
        match = _NAME.match(self.text, start)
        if match is None:
            raise self.error("expected the name of a pass or of an operation")
        self.position = match.end()
        options: tuple[Option, ...] = ()
        children: tuple[Element, ...] | None = None
        if self.peek() == "{":
            options = self.options()
        elif self.peek() == "(":
            children = self.nested()
        self.skip_space()
        return Element(match.group(), options, children, start)

    def nested(self) -> tuple[Element, ...]:
        opening = self.position
        self.position += 1
        self.skip_space()
        children = () if self.peek() == ")" else self.elements()
        if self.at_end():
            raise self.error("this `(` is never closed", opening)
        if self.peek() != ")":
            raise self.error(f"expected `,` or `)` but found `{self.peek()}`")
        self.position += 1
        return children

    def options(self) -> tuple[Option, ...]:
        opening = self.position
        self.position += 1
        found: list[Option] = []
        while True:
            self.skip_space()
            if self.at_end():
                raise self.error("this `{` is never closed", opening)
            if self.peek() == "}":
                self.position += 1
                return tuple(found)
            found.append(self.option())

    def option(self) -> Option:
        start = self.position
        match = _KEY.match(self.text, start)
        if match is None:
            raise self.error("expected the name of an option")
        self.position = match.end()
        if self.peek() != "=":
            return Option(match.group(), None, start)
        self.position += 1
        return Option(match.group(), self.value(), start)

    def value(self) -> str:
        """Everything up to a space or the closing brace, outside quotes and brackets."""
        start = self.position
        while not self.at_end() and not self.peek().isspace() and self.peek() != "}":
            if self.peek() in "'\"":
                self.skip_quoted()
            elif self.peek() in _CLOSING:
                self.skip_bracketed()
            else:
                self.position += 1
        return self.text[start : self.position]

    def skip_quoted(self) -> None:
        opening = self.position
        end = self.text.find(self.text[opening], opening + 1)
        if end < 0:
            raise self.error("this quote is never closed", opening)
        self.position = end + 1

    def skip_bracketed(self) -> None:
        opening = self.position
        closing = _CLOSING[self.peek()]
        self.position += 1
        while self.peek() != closing:
            if self.at_end():
                raise self.error(f"this `{self.text[opening]}` is never closed", opening)
            if self.peek() in "'\"":
                self.skip_quoted()
            elif self.peek() in _CLOSING:
                self.skip_bracketed()
            else:
                self.position += 1
        self.position += 1

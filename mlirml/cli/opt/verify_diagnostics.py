"""Check errors and remarks against comments `// expected-error@+1 {{text}}`, as mlir-opt does."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlirml.core.dataclass import dataclass

_EXPECTED = re.compile(
    r"expected-(?P<severity>error|warning|remark|note)(?P<regex>-re)? *"
    r"(?:@(?P<where>[+-]\d+|above|below|unknown))? *\{\{(?P<text>.*)\}\}\s*$"
)


@dataclass(frozen=True)
class Diagnostic:
    """A reported diagnostic; `line` is 0 for a location outside of the input."""

    severity: str
    line: int
    text: str


@dataclass(frozen=True)
class Expected:
    """The diagnostic that an `expected-*` comment requires."""

    severity: str
    line: int
    text: str
    regex: bool
    written_at: int

    def matches(self, diagnostic: Diagnostic) -> bool:
        """True if the diagnostic has this severity and line, and contains the text."""
        if (self.severity, self.line) != (diagnostic.severity, diagnostic.line):
            return False
        if not self.regex:
            return self.text in diagnostic.text
        return re.search(_as_regex(self.text), diagnostic.text) is not None


def expected_in(text: str) -> list[Expected]:
    """The expectations in the comments of `text`, in order."""
    lines = text.split("\n")
    found = []
    for number, line in enumerate(lines, 1):
        match = _EXPECTED.search(line)
        if match is not None:
            target = _target_line(match["where"], number, lines)
            found.append(Expected(match["severity"], target, match["text"], match["regex"] is not None, number))
    return found


def check(text: str, reported: Sequence[Diagnostic], file: str, *, only_expected_remarks: bool = True) -> list[str]:
    """Complaints, one a line: what was expected and not reported, and what was reported and not expected.

    Notes need no expectation, nor do remarks with `only_expected_remarks`.
    """
    waiting = expected_in(text)
    complaints = []
    optional = {"note", "remark"} if only_expected_remarks else {"note"}
    for diagnostic in reported:
        match = next((expected for expected in waiting if expected.matches(diagnostic)), None)
        if match is not None:
            waiting.remove(match)
        elif diagnostic.severity not in optional:
            place = f"{file}:{diagnostic.line}" if diagnostic.line else file
            complaints.append(f"{place}: unexpected {diagnostic.severity}: {diagnostic.text}")
    complaints += [f'{file}:{e.written_at}: expected {e.severity} "{e.text}" was not reported' for e in waiting]
    return complaints


def _target_line(where: str | None, number: int, lines: list[str]) -> int:
    if where is None:
        return number
    if where == "unknown":
        return 0
    if where not in ("above", "below"):
        return number + int(where)
    step = -1 if where == "above" else 1
    target = number + step
    while 0 < target <= len(lines) and _EXPECTED.search(lines[target - 1]):
        target += step
    return target


def _as_regex(text: str) -> str:
    """The text of an `-re` expectation: plain, with regular expressions between double braces."""
    parts = re.split(r"\{\{(.*?)\}\}", text)
    return "".join(part if position % 2 else re.escape(part) for position, part in enumerate(parts))

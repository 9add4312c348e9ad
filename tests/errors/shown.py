"""Compare everything that an error shows: class, message, place, source line, carets, notes and help."""

from __future__ import annotations

import difflib
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlirml.errors import MlirmlError


def check_error(call: Callable[[], Any], expected: str) -> MlirmlError:
    """Assert that a call fails with an `MlirmlError` that shows this text; folders are left out of file names."""
    with pytest.raises(MlirmlError) as caught:
        call()
    shown, wanted = _comparable(_shown(caught.value)), _comparable(textwrap.dedent(expected).strip("\n"))
    assert shown == wanted, "\n".join(difflib.unified_diff(wanted, shown, "expected", "shown", lineterm=""))
    return caught.value


def _shown(error: MlirmlError) -> str:
    kind = type(error)
    text = f"{kind.__module__}.{kind.__qualname__}: {error}"
    file = error.location.file if error.location is not None else ""
    return text.replace(file, Path(file).name) if file else text


def _comparable(text: str) -> list[str]:
    """The lines; on Python 3.10, which keeps no columns, without columns and carets."""
    lines = text.split("\n")
    if sys.version_info >= (3, 11):
        return lines
    return [_without_column(line) for line in lines if set(line) - set(" |^") or "^" not in line]


def _without_column(line: str) -> str:
    if not line.startswith("  --> "):
        return line
    place, _, function = line.partition(" (")
    file, number, *_ = place.split(":")
    return f"{file}:{number} ({function}"

"""User source locations from MLIR locations: file, line, columns, function.

`loc("loss"("train.py":31:12 to :17))` is column 12 up to, but not including, column 17 of line 31, in function `loss`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace

from mlirml.errors import SourceLocation
from mlirml.ir.upstream import mlir

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_MARKED = "<mlirml "
"""The beginning of the file names of marks."""
_TEXT = r'"(?P<file>(?:[^"\\]|\\.)*)":(?P<line>\d+):(?P<column>\d+)'


def source_location(location: mlir.Location) -> SourceLocation | None:
    """The innermost location in the user's files that `location` names; None if it names none."""
    found = source_locations(location)
    return found[0] if found else None


def source_locations(location: mlir.Location) -> list[SourceLocation]:
    """All locations in the user's files that `location` names, the innermost call first.

    Locations in mlirml's own files are returned only if there are no others.
    """
    found = list(dict.fromkeys(_walk(location, "")))
    return [source for source in found if not source.file.startswith(_PACKAGE)] or found


def marked(location: mlir.Location, mark: str, number: int) -> mlir.Location:
    """The location with a numbered mark, which passes keep as they keep locations; no source location names it."""
    context = location.context
    mark_location = mlir.Location.file(f"{_MARKED}{mark}>", number, 0, context=context)
    return mlir.Location.fused([location, mark_location], context=context)


def marks_of(location: mlir.Location, mark: str) -> list[int]:
    """The numbers of the marks of this name in a location, each once, in order."""
    return list(dict.fromkeys(_marks(location, f"{_MARKED}{mark}>")))


def is_unknown(location: mlir.Location) -> bool:
    """True if a location names nothing at all: neither a file nor a name."""
    location = _downcast(location)
    if isinstance(location, mlir.FusedLoc):
        return all(is_unknown(part) for part in location.locations)
    if isinstance(location, mlir.CallSiteLoc):
        return is_unknown(location.callee) and is_unknown(location.caller)
    return isinstance(location, mlir.UnknownLoc)


def location_in_text(text: str) -> SourceLocation | None:
    """The first `"file":line:column` in a message, for errors that carry their location only as text."""
    match = re.search(_TEXT, text)
    return SourceLocation(match["file"], int(match["line"]), int(match["column"])) if match else None


def _downcast(location: mlir.Location) -> mlir.Location:
    """The location as its own class; the bindings give those of diagnostics as plain `Location`s."""
    if type(location) is mlir.Location:
        for kind in (mlir.FileLineColLoc, mlir.NameLoc, mlir.CallSiteLoc, mlir.FusedLoc, mlir.UnknownLoc):
            if location.typeid == kind.static_typeid:
                return kind(location)
    return location


def _marks(location: mlir.Location, file: str) -> Iterator[int]:
    location = _downcast(location)
    if isinstance(location, mlir.FileLineColLoc):
        if location.filename == file:
            yield location.start_line
    elif isinstance(location, mlir.NameLoc):
        yield from _marks(location.child_loc, file)
    elif isinstance(location, mlir.CallSiteLoc):
        yield from _marks(location.callee, file)
        yield from _marks(location.caller, file)
    elif isinstance(location, mlir.FusedLoc):
        for part in location.locations:
            yield from _marks(part, file)


def _walk(location: mlir.Location, function: str) -> Iterator[SourceLocation]:
    location = _downcast(location)
    if isinstance(location, mlir.FileLineColLoc):
        if location.start_line and not location.filename.startswith(_MARKED):
            yield replace(_file_range(location), function=function)
    elif isinstance(location, mlir.NameLoc):
        yield from _walk(location.child_loc, location.name_str)
    elif isinstance(location, mlir.CallSiteLoc):
        yield from _walk(location.callee, function)
        yield from _walk(location.caller, "")
    elif isinstance(location, mlir.FusedLoc):
        for part in location.locations:
            yield from _walk(part, function)


def _file_range(location: mlir.FileLineColLoc) -> SourceLocation:
    start = SourceLocation(location.filename, location.start_line, location.start_col)
    end = (location.end_line, location.end_col)
    if end <= (location.start_line, location.start_col):
        return start
    return replace(start, end_line=end[0], end_column=end[1])

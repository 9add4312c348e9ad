"""The user's source location: the innermost frame that is not in mlirml, NumPy or the standard library."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType

from mlirml.errors import CaptureError, SourceLocation

# Keyed by the code's id, with the code kept alive so that the id is not reused: equal code may come from different
# files.
_CACHE: dict[tuple[int, int], tuple[CodeType, SourceLocation]] = {}
_CACHE_LIMIT = 1 << 14
_INTERNAL: dict[int, tuple[CodeType, bool]] = {}
_IDS: set[int] = set()  # of the codes in it that are internal
_POSITIONS: dict[int, tuple[CodeType, list[tuple[int | None, int | None, int | None, int | None]]]] = {}
_HOOKS = ("mlirml.frontend.loops.hooks", "mlirml.frontend.loops.list_hooks", "mlirml.frontend.loops.membership")
_MOST_CODES = 64
_DECORATOR_LINES = 50
_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep


def is_internal(frame: FrameType) -> bool:
    """True if a frame belongs to mlirml, NumPy or the standard library."""
    code = frame.f_code
    known = _INTERNAL.get(id(code))
    if known is None:
        if len(_INTERNAL) >= _CACHE_LIMIT:
            _INTERNAL.clear()
            _IDS.clear()
        known = _INTERNAL[id(code)] = code, _is_internal(frame)
        if known[1]:
            _IDS.add(id(code))
    return known[1]


def above_internal(frame: FrameType | None) -> tuple[FrameType | None, FrameType | None]:
    """The innermost user frame from a frame on, after the frame that it has called; None for either if there is none.

    Each operation asks for it, from below some thirty frames.
    """
    call = None
    while frame is not None and (id(frame.f_code) in _IDS or is_internal(frame)):
        call, frame = frame, frame.f_back
    return call, frame


def _is_internal(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__", "")
    root = name.partition(".")[0] if isinstance(name, str) else ""
    file = frame.f_code.co_filename
    # Compare files, not module names: a module of the user's may be called `test` or `code` too.
    is_library = file.startswith((_STANDARD_LIBRARY, "<frozen ")) and "-packages" not in file
    return root in ("mlirml", "numpy") or is_library


def is_of_user(frame: FrameType) -> bool:
    """True if a frame is the user's, or of a function that carries out an operation of the user's rewritten code."""
    return not is_internal(frame) or frame.f_globals["__name__"] in _HOOKS


def is_in_library() -> bool:
    """True if what is traced now is arithmetic of mlirml's own functions, such as those of `mlirml.special`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if not name.startswith("mlirml.frontend"):
            return name.startswith("mlirml.")
        frame = frame.f_back
    return False


def user_frame(depth: int = 1) -> FrameType | None:
    """The user's frame that is executing now, or None outside of any."""
    return above_internal(sys._getframe(depth))[1]


def user_variables() -> Iterator[tuple[str, object]]:
    """The local variables of the functions that are being traced, each once, with their values."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != "mlirml.frontend.tracing.trace":
        if not is_internal(frame):
            own = {*frame.f_code.co_varnames, *frame.f_code.co_cellvars}
            yield from ((name, value) for name, value in frame.f_locals.items() if name in own)
        frame = frame.f_back


def user_location(depth: int = 1) -> SourceLocation | None:
    """The user's source location that is executing now, or None outside of any."""
    frame = user_frame(depth + 1)
    return None if frame is None else frame_location(frame)


def innermost_location(traceback: TracebackType | None) -> SourceLocation | None:
    """The user's source location that raised an exception."""
    found = None
    while traceback is not None:
        if not is_internal(traceback.tb_frame):
            found = code_location(traceback.tb_frame.f_code, traceback.tb_lasti)
        traceback = traceback.tb_next
    return found


def frame_location(frame: FrameType) -> SourceLocation:
    """The source location that a frame is executing."""
    key = id(frame.f_code), frame.f_lasti
    known = _CACHE.get(key)
    if known is None:
        if len(_CACHE) >= _CACHE_LIMIT:
            _CACHE.clear()
        known = _CACHE[key] = frame.f_code, code_location(frame.f_code, frame.f_lasti)
    return known[1]


def code_location(code: CodeType, offset: int) -> SourceLocation:
    """The source location of the instruction at a byte offset."""
    name = getattr(code, "co_qualname", code.co_name).rpartition(".<locals>.")[2]
    if sys.version_info >= (3, 11):
        line, end_line, column, end_column = _positions(code)[offset // 2]
        if line is not None and column is not None and end_column is not None:
            return SourceLocation(code.co_filename, line, column + 1, end_line or line, end_column + 1, name)
    lines = [number for start, end, number in code.co_lines() if start <= offset < end and number is not None]
    return SourceLocation(code.co_filename, lines[0] if lines else code.co_firstlineno, function=name)


def _positions(code: CodeType) -> list[tuple[int | None, int | None, int | None, int | None]]:
    """The source ranges of a code object's instructions, cached: Python finds one by counting from the first."""
    known = _POSITIONS.get(id(code))
    if known is None and sys.version_info >= (3, 11):
        if len(_POSITIONS) >= _MOST_CODES:
            _POSITIONS.clear()
        known = _POSITIONS[id(code)] = code, [*code.co_positions()]
    return [] if known is None else known[1]


def _lambda_location(code: CodeType) -> SourceLocation:
    """The value of a lambda: the source range of its instructions."""
    if sys.version_info >= (3, 11):
        spans = [p for p in code.co_positions() if None not in p and p[2:] != (0, 0)]
        if spans:
            (line, column), (end_line, end) = min((p[0], p[2]) for p in spans), max((p[1], p[3]) for p in spans)
            return SourceLocation(code.co_filename, line, column + 1, end_line, end + 1, "<lambda>")
    return SourceLocation(code.co_filename, code.co_firstlineno, function="<lambda>")


def function_location(code: CodeType) -> SourceLocation:
    """The line of a `def`, or the value of a lambda; Python's own first line is that of the first decorator."""
    first, name = code.co_firstlineno, code.co_name
    if name == "<lambda>":
        return _lambda_location(code)
    lines = linecache.getlines(code.co_filename)[first - 1 : first - 1 + _DECORATOR_LINES]
    start = f"def {name}(", f"async def {name}("
    skipped = next((i for i, line in enumerate(lines) if line.lstrip().startswith(start)), 0)
    return SourceLocation(code.co_filename, first + skipped, function=name)


class at_user_line:
    """Context manager: a `CaptureError` without a location gets the user's current one."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, error_type: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, CaptureError) and error.location is None:
            error.location = user_location(2)

"""Tracebacks without the frames of this package: an error shows the user's code only, from the call to the line."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from types import CodeType, TracebackType
from typing import Any, TypeVar

from mlirml.core.config import config
from mlirml.errors import InternalError, MlirmlError, SourceLocation

_Function = TypeVar("_Function", bound=Callable[..., Any])


def without_own_frames(function: _Function) -> _Function:
    """Decorator: exceptions leave the function without the frames of this package."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise  # adds no frame of its own

    return called  # type: ignore[return-value]


def shorten(error: Exception) -> None:
    """Take our frames out of the traceback of an exception, unless `config.tracebacks` is "full" or the error is ours.

    Frames of NumPy go with those of our errors: it has called us.
    """
    entries, entry = [], error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    roots = [_root(entry) for entry in entries]
    is_bug = isinstance(error, InternalError) or (not isinstance(error, MlirmlError) and roots[-1:] == ["mlirml"])
    if config.tracebacks == "full" or is_bug:
        return
    hidden = ("mlirml", "numpy") if isinstance(error, MlirmlError) else ("mlirml",)
    found: TracebackType | None = None
    for entry, root in zip(reversed(entries), reversed(roots)):
        if root not in hidden:
            found = TracebackType(found, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = found


def _root(entry: TracebackType) -> str:
    return str(entry.tb_frame.f_globals.get("__name__", "")).partition(".")[0]


def code_at(location: SourceLocation, source: str) -> CodeType:
    """The code of a statement whose frames are at a line of the user's source."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt, ast.expr)):
            node.lineno, node.end_lineno = location.line, location.end_line or location.line
            node.col_offset, node.end_col_offset = (location.column or 1) - 1, (location.end_column or 1) - 1
    code: CodeType = compile(tree, location.file, "exec")
    if not location.function:
        return code
    names = {"co_name": location.function}
    return code.replace(**names, **({"co_qualname": location.function} if hasattr(code, "co_qualname") else {}))  # type: ignore[arg-type]


def raised_at(error: Exception, location: SourceLocation | None) -> Exception:
    """An exception whose traceback ends at a line of the user's source that was compiled and did not run in Python."""
    error = error.with_traceback(None)
    if location is None:
        return error
    try:
        exec(code_at(location, "raise error"), {"__name__": "<compiled>", "error": error})
    except Exception as raised:
        trace = raised.__traceback__
        return error.with_traceback(None if trace is None else trace.tb_next)
    raise AssertionError("the code raises")

"""Errors of tracing that a function catches, which would decide what it computes: they are raised at its end.

try:
    v = 1 / float(x)            refused, as `x` is a number of the program; Python has an error for 0 only
except Exception:
    v = 0.0
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType

from mlirml.errors import NOTED, CaptureError
from mlirml.frontend.frames import is_internal
from mlirml.frontend.iteration_limits import LongIteration

_OF_PYTHON = (LookupError, ArithmeticError, ValueError, TypeError, AssertionError, NameError, RecursionError)
_SETUP = 122  # SETUP_FINALLY, of Python 3.10


@contextmanager
def caught_errors() -> Iterator[None]:
    """Context manager: raise the first error that the user's code has caught, unless Python would raise it too."""
    raised: list[CaptureError | LongIteration] = []

    def note(error: CaptureError | LongIteration) -> None:
        if isinstance(error, _OF_PYTHON):
            return
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_globals.get("__name__") != "mlirml.frontend.capture":
            if not is_internal(frame) and _may_catch(frame.f_code):
                raised.append(error)
                return
            frame = frame.f_back

    token = NOTED.set(note)
    try:
        yield
    except Exception as error:
        if not isinstance(error, CaptureError):
            _check(raised)
        raise
    else:
        _check(raised)
    finally:
        NOTED.reset(token)
        raised.clear()


def _may_catch(code: CodeType) -> bool:
    """True if there is a `try` or `with` in a function."""
    table = getattr(code, "co_exceptiontable", None)
    return _SETUP in code.co_code[::2] if table is None else bool(table)


def _check(raised: list[CaptureError | LongIteration]) -> None:
    """Raise the first error whose way through the frames has ended in one of the user's."""
    for error in raised:
        way = error.__traceback__
        if way is not None and not is_internal(way.tb_frame):
            if isinstance(error, CaptureError):
                error.notes += ("the function catches this error, which Python would not raise",)
            raise error

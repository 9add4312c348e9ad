"""Limits of tracing iteration by iteration: long loops are better captured as loops.

Those of functions whose source cannot be read, as of `exec`, are refused.
"""

from __future__ import annotations

import dis
import linecache
import sys
from types import CodeType, FrameType

from mlirml.capture import rows
from mlirml.capture.frames import code_location, is_internal, user_location
from mlirml.errors import SourceLocation, UnsupportedSyntaxError

MOST_OPERATIONS = 20_000
_JUMPS = frozenset([*dis.hasjabs, *dis.hasjrel])


class Places:
    """The user's place of each operation. Counts them, and raises for loops that go on and on."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self) -> SourceLocation | None:
        self._count += 1
        if self._count == rows.MOST_OPERATIONS and rows.MOST_ROWS.get() is not None:
            raise rows.LongIteration
        if self._count % MOST_OPERATIONS == 0:
            _refuse_unread_loops(sys._getframe(1))
        return user_location(3)


def _refuse_unread_loops(frame: FrameType | None) -> None:
    """Raises `UnsupportedSyntaxError` inside of such a loop, at the nearest line around it that can be shown."""
    unread: FrameType | None = None
    while frame is not None:
        if not is_internal(frame):
            code = frame.f_code
            if linecache.getlines(code.co_filename, frame.f_globals):
                if unread is not None:
                    raise _refusal(unread.f_code, code_location(code, frame.f_lasti))
            elif unread is None and _has_loops(code):
                unread = frame
        frame = frame.f_back
    if unread is not None:
        raise _refusal(unread.f_code, code_location(unread.f_code, unread.f_lasti))


def _refusal(code: CodeType, location: SourceLocation) -> UnsupportedSyntaxError:
    return UnsupportedSyntaxError(
        f"the loops of `{code.co_name}` make more than {MOST_OPERATIONS} operations, but it has no source",
        location=location,
        help="define the function in a file, so that its loops stay loops, or compute with whole arrays",
    )


def _has_loops(code: CodeType) -> bool:
    return any(one.opcode in _JUMPS and one.argval < one.offset for one in dis.get_instructions(code))

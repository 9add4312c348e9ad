"""Limits of tracing iteration by iteration: long loops are better captured as loops.

Those of functions whose source cannot be read, as of `exec`, are refused.
"""

from __future__ import annotations

import dis
import linecache
import sys
from collections.abc import Iterator
from types import CodeType, FrameType

from mlirml.core.dataclass import dataclass
from mlirml.errors import SourceLocation, UnsupportedSyntaxError
from mlirml.frontend.frames import code_location, frame_location, is_internal
from mlirml.frontend.tracing import iteration_limits

_Loop = tuple[int, int, int]  # its first instruction, its last one, and its line
MOST_OPERATIONS = 20_000
_JUMPS = frozenset([*dis.hasjabs, *dis.hasjrel])
_BACKWARD = frozenset(code for name, code in dis.opmap.items() if "BACKWARD" in name) or _JUMPS


@dataclass(eq=False)
class _Place:
    """A place in the user's code that operations come from, the loop around it, and how often it was passed there.

    The loop may be one of a caller's. `run` operations came from it one after the other, in `calls` calls.
    """

    location: SourceLocation
    loop: SourceLocation | None
    copies: int = 0
    run: int = 0
    stores: int = 0
    calls: int = 0

    @property
    def is_long(self) -> bool:
        """True if the loop is better captured as one. Operations of one call are of one iteration."""
        most = iteration_limits.MOST_COPIES
        is_long = max(self.copies, self.calls) > most or self.run > most * 8
        return self.loop is not None and (is_long or self.stores > iteration_limits.MOST_STORES)


class Places:
    """The user's place of each operation. Raises for loops that go on and on, and tells which ones are unrolled.

    `outside` is the address of the frame that traces: loops around that are none of the program.
    """

    def __init__(self, outside: int) -> None:
        self._count = 0
        self._outside = outside
        self._last: _Place | None = None
        self._call: FrameType | None = None  # of the last operation: kept, so that no other one has its address
        self._passed: dict[tuple[int, int, int], _Place] = {}
        self._loops: dict[int, tuple[CodeType, tuple[_Loop, ...]]] = {}  # by the address of the code

    def __call__(self) -> SourceLocation | None:
        self._count += 1
        limited = iteration_limits.LIMITED.get()
        if limited and self._count == iteration_limits.MOST_OPERATIONS:
            raise iteration_limits.LongIteration
        if self._count % MOST_OPERATIONS == 0:
            _refuse_unread_loops(sys._getframe(1))
        frame: FrameType | None = sys._getframe(2)
        call: FrameType | None = None
        while frame is not None and is_internal(frame):
            call, frame = frame, frame.f_back
        if frame is None:
            return None
        location = frame_location(frame)
        place = self._last
        if place is None or location is not place.location:
            place = self._last = self._place(frame, location)
            place.copies += 1
            place.run = place.calls = 0
        place.run += 1
        place.calls += call is not self._call
        self._call = call
        if limited and place.is_long:
            raise iteration_limits.LongIteration
        return location

    def store(self) -> None:
        """A part of an array is stored into at the place of the last operation."""
        if self._last is not None:
            self._last.stores += 1
            if iteration_limits.LIMITED.get() and self._last.is_long:
                raise iteration_limits.LongIteration

    def _place(self, frame: FrameType, location: SourceLocation) -> _Place:
        """Where an operation comes from, which is another place in another call of a function."""
        around: FrameType | None = frame
        loop: SourceLocation | None = None
        while around is not None and loop is None and id(around) != self._outside:
            loop = self._loop_around(around)
            caller, around = around, around.f_back
        key = id(location), id(caller.f_code), caller.f_lasti
        place = self._passed.get(key)
        if place is None:
            place = self._passed[key] = _Place(location, loop)
        return place

    def _loop_around(self, frame: FrameType) -> SourceLocation | None:
        """The line of the innermost loop of the user's that a frame is in."""
        code, offset = frame.f_code, frame.f_lasti
        known = self._loops.get(id(code))
        if known is None:
            known = self._loops[id(code)] = code, () if is_internal(frame) else _loops(code)
        around = [loop for loop in known[1] if loop[0] <= offset <= loop[1]] if known[1] else None
        return SourceLocation(code.co_filename, max(around)[2]) if around else None

    def unrolled(self) -> dict[SourceLocation, str]:
        """How many copies of the body of each loop there are, by the line where it begins."""
        found: dict[SourceLocation, int] = {}
        for place in self._passed.values():
            if place.loop is not None and place.copies > 1:
                found[place.loop] = max(place.copies, found.get(place.loop, 0))
        return {line: f"unrolled: {copies} copies of its body" for line, copies in found.items()}


def _loops(code: CodeType) -> tuple[_Loop, ...]:
    """The loops of some code."""
    if not _BACKWARD.intersection(code.co_code[::2]):
        return ()
    starts = dict(dis.findlinestarts(code))

    def line(offset: int) -> int:
        return next((n for at, n in reversed(starts.items()) if at <= offset and n is not None), code.co_firstlineno)

    return tuple((one.argval, one.offset, min(line(one.argval), line(one.offset))) for one in _jumps_back(code))


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
    return any(True for _ in _jumps_back(code))


def _jumps_back(code: CodeType) -> Iterator[dis.Instruction]:
    """The jumps that end the iterations of loops."""
    return (one for one in dis.get_instructions(code) if one.opcode in _JUMPS and one.argval < one.offset)

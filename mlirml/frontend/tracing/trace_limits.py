"""Limits of tracing iteration by iteration: long loops are better captured as loops.

Long loops in functions without source, as of `exec`, are refused.
"""

from __future__ import annotations

import dis
import linecache
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FrameType

from mlirml.core.dataclass import dataclass
from mlirml.errors import SourceLocation, UnsupportedSyntaxError
from mlirml.frontend import iteration_limits
from mlirml.frontend.frames import above_internal, code_location, frame_location, is_internal

_Loop = tuple[int, int, int]  # its first instruction, its last one, and its line
MOST_OPERATIONS = 20_000
_JUMPS = frozenset([*dis.hasjabs, *dis.hasjrel])
_BACKWARD = frozenset(code for name, code in dis.opmap.items() if "BACKWARD" in name) or _JUMPS


@dataclass(eq=False)
class _Passed:
    """A position in the user's code, the enclosing loop, and how often operations were traced there.

    The loop may be one of a caller's. `run` consecutive operations were traced there, in `calls` calls.
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


_Around = tuple[SourceLocation | None, CodeType, int]


@dataclass(frozen=True)
class _Active:
    """A frame, the instruction that it was at, and what is around it."""

    frame: FrameType
    offset: int
    around: _Around

    def is_at(self, frame: FrameType) -> bool:
        return self.frame is frame and self.offset == frame.f_lasti


class LocationTracker:
    """The user's source location of each operation. Raises for loops that exceed the limits, and records unrolled ones.

    `outside` is the address of the frame that traces: loops around it are not part of the program.
    """

    def __init__(self, outside: int) -> None:
        self._count = 0
        self._outside = outside
        self._last: _Passed | None = None
        self._call: FrameType | None = None  # of the last operation: kept alive, so that its address is not reused
        self._passed: dict[tuple[int, int, int], _Passed] = {}
        self._loops: dict[int, tuple[CodeType, tuple[_Loop, ...]]] = {}  # by the address of the code
        self._stack: list[_Active] = []  # the frames of the last operation, the outermost first
        self._index: dict[int, int] = {}  # their positions, by their addresses

    def __call__(self) -> SourceLocation | None:
        self._count += 1
        limited = iteration_limits.LIMITED.get()
        if limited and self._count == iteration_limits.MOST_OPERATIONS and any(p.loop for p in self._passed.values()):
            raise iteration_limits.LongIteration
        if self._count % MOST_OPERATIONS == 0:
            _refuse_unread_loops(sys._getframe(1))
        call, frame = above_internal(sys._getframe(2))
        if frame is None:
            return None
        location = frame_location(frame)
        passed = self._last
        if passed is None or location is not passed.location:
            passed = self._last = self._passed_at(frame, location)
            passed.copies += 1
            passed.run = passed.calls = 0
        passed.run += 1
        passed.calls += call is not self._call
        self._call = call
        if limited and passed.is_long:
            raise iteration_limits.LongIteration
        return location

    def release(self) -> None:
        """Let go of the frames around the last operation, and of what their variables hold."""
        self._stack.clear()
        self._index.clear()

    def store(self) -> None:
        """Count a store into a slice of an array at the location of the last operation."""
        if self._last is not None:
            self._last.stores += 1
            if iteration_limits.LIMITED.get() and self._last.is_long:
                raise iteration_limits.LongIteration

    def _passed_at(self, frame: FrameType, location: SourceLocation) -> _Passed:
        """The record of a location, which is separate for each call of a function."""
        loop, caller, offset = self._around(frame)
        key = id(location), id(caller), offset
        passed = self._passed.get(key)
        if passed is None:
            passed = self._passed[key] = _Passed(location, loop)
        return passed

    def _around(self, frame: FrameType) -> _Around:
        """The innermost user loop around a frame, and the position in the frame that has it, or in the outermost one.

        Frames around one are the same as long as it is active: those of the last call are known.
        """
        new: list[FrameType] = []
        while (known := self._index.get(id(frame))) is None or not self._stack[known].is_at(frame):
            new.append(frame)
            loop, back = self._loop_around(frame), frame.f_back
            if loop is not None or back is None or id(back) == self._outside:
                known, found = -1, (loop, frame.f_code, frame.f_lasti)
                break
            frame = back
        else:
            found = self._stack[known].around
        for left in self._stack[known + 1 :]:
            self._index.pop(id(left.frame), None)
        del self._stack[known + 1 :]
        for frame in reversed(new):
            self._index[id(frame)] = len(self._stack)
            self._stack.append(_Active(frame, frame.f_lasti, found))
        return found

    def _loop_around(self, frame: FrameType) -> SourceLocation | None:
        """The line of the innermost user loop around a frame."""
        code, offset = frame.f_code, frame.f_lasti
        known = self._loops.get(id(code))
        if known is None:
            known = self._loops[id(code)] = code, () if is_internal(frame) else _loops(code)
        around = [loop for loop in known[1] if loop[0] <= offset <= loop[1]] if known[1] else None
        return SourceLocation(code.co_filename, max(around)[2]) if around else None

    def unrolled(self) -> dict[SourceLocation, str]:
        """The number of copies of the body of each loop, by the line where it begins."""
        found: dict[SourceLocation, int] = {}
        for passed in self._passed.values():
            if passed.loop is not None and passed.copies > 1:
                found[passed.loop] = max(passed.copies, found.get(passed.loop, 0))
        return {line: f"unrolled: {copies} copies of its body" for line, copies in found.items()}


@lru_cache(maxsize=1024)  # the disassembler is slow, and the more so in the run that looks for the line of an error
def _loops(code: CodeType) -> tuple[_Loop, ...]:
    """The loops of a code object."""
    if not _BACKWARD.intersection(code.co_code[::2]):
        return ()
    starts = dict(dis.findlinestarts(code))

    def line(offset: int) -> int:
        return next((n for at, n in reversed(starts.items()) if at <= offset and n is not None), code.co_firstlineno)

    return tuple((one.argval, one.offset, min(line(one.argval), line(one.offset))) for one in _jumps_back(code))


def _refuse_unread_loops(frame: FrameType | None) -> None:
    """Raise `UnsupportedSyntaxError` inside of such a loop, at the nearest enclosing line that can be shown."""
    opaque_frame: FrameType | None = None
    while frame is not None:
        if not is_internal(frame):
            code = frame.f_code
            if linecache.getlines(code.co_filename, frame.f_globals):
                if opaque_frame is not None:
                    raise _refusal(opaque_frame.f_code, code_location(code, frame.f_lasti))
            elif opaque_frame is None and _has_loops(code):
                opaque_frame = frame
        frame = frame.f_back
    if opaque_frame is not None:
        raise _refusal(opaque_frame.f_code, code_location(opaque_frame.f_code, opaque_frame.f_lasti))


def _refusal(code: CodeType, location: SourceLocation) -> UnsupportedSyntaxError:
    return UnsupportedSyntaxError(
        f"the loops of `{code.co_name}` make more than {MOST_OPERATIONS} operations, but it has no source",
        location=location,
        help="define the function in a file, so that its loops stay loops, or compute with whole arrays",
    )


def _has_loops(code: CodeType) -> bool:
    return any(True for _ in _jumps_back(code))


def _jumps_back(code: CodeType) -> Iterator[dis.Instruction]:
    """The backward jumps, which end the iterations of loops."""
    return (one for one in dis.get_instructions(code) if one.opcode in _JUMPS and one.argval < one.offset)

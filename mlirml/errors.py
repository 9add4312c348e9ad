"""Every error that mlirml raises, and how it shows the user's file, line and caret."""

from __future__ import annotations

import linecache
import zlib
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass


@dataclass(frozen=True)
class SourceLocation:
    """A range in the user's Python source.

    Lines and columns count from 1; `end_column` is one past the last character, and columns count the bytes of UTF-8,
    as Python and MLIR do. Column 0 means that only the line is known (Python 3.10 keeps no columns).
    """

    file: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    function: str = ""

    def __str__(self) -> str:
        position = f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")
        return f"{position} ({self.function})" if self.function else position

    def excerpt(self) -> list[str]:
        """The source line with a caret line under it; empty when the source cannot be read."""
        source = linecache.getline(self.file, self.line).rstrip("\n").expandtabs(1)
        if not source.strip():
            return []
        raw = source.encode()
        first = self.column or len(raw) - len(raw.lstrip()) + 1
        same_line = self.end_line in (0, self.line) and self.end_column > first
        last = self.end_column if self.column and same_line else len(raw) + 1
        before, marked = (len(part.decode(errors="replace")) for part in (raw[: first - 1], raw[first - 1 : last - 1]))
        gutter = " " * len(str(self.line))
        carets = " " * before + "^" * max(1, marked)
        return [f"{gutter} |", f"{self.line} | {source}", f"{gutter} | {carets}"]


def shown_at(message: str, location: SourceLocation | None) -> list[str]:
    """A message, the source location it is about and the excerpt of that line, as errors and remarks show them."""
    if location is None:
        return [message]
    return [message, f"  --> {location}", *(f" {line}" for line in location.excerpt())]


class MlirmlError(Exception):
    """Base of all errors. `str(error)` is the whole message: what, where, the source line, notes and help.

    Attributes: `message` (one line), `location` (`SourceLocation` or None), `notes` (tuple of lines), `help` (what to
    write instead, or None), `stage` (the compiler stage that failed, or None).
    """

    def __init__(
        self,
        message: str,
        *,
        location: SourceLocation | None = None,
        notes: tuple[str, ...] = (),
        help: str | None = None,
        stage: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.notes = tuple(notes)
        self.help = help
        self.stage = stage

    def __str__(self) -> str:
        lines = shown_at(self.message, self.location)
        if self.stage is not None:
            lines.append(f"   = stage: {self.stage}")
        lines += [f"   = note: {note}" for note in self.notes]
        if self.help is not None:
            lines.append(f"   = help: {self.help}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        # The classes show themselves as `mlirml.X`, which is not where pickle finds them.
        return _rebuild, (type(self).__name__, self.message, self.__dict__)


def _rebuild(name: str, message: str, state: dict[str, Any]) -> MlirmlError:
    error: MlirmlError = globals()[name](message)
    error.__dict__.update(state)
    return error


NOTED: ContextVar[Callable[[Any], None] | None] = ContextVar("NOTED", default=None)
"""The function that gets each new `CaptureError` while a function is traced."""


class CaptureError(MlirmlError):
    """The Python function cannot be turned into MLIR."""

    def __init__(self, message: str, **parts: Any) -> None:
        super().__init__(message, **parts)
        note = NOTED.get()
        if note is not None:
            note(self)

    roots: frozenset[Any] = frozenset()  # loops that may be unrolled instead, which would avoid this error
    first: bool = False  # whether peeling the first iteration of those may avoid it
    sizes: frozenset[str] = frozenset()  # Python integer arguments that would have to be static
    layout: bool = False  # whether it depends on the memory layout of the arguments
    final: bool = False  # whether it says more than those of earlier attempts
    asked: str = ""  # the SSA name of the value that has to be static
    lists: frozenset[str] = (
        frozenset()
    )  # the sites of lists that would have to be open, see `frontend.arrays.open_lists`
    unassigned: tuple[Any, ...] = ()  # the variable without a value, by the code of a zero-trip loop, and by the file
    chosen: tuple[str, tuple[Any, ...]] = "", ()  # a variable of other structures after branches, and these
    masks: frozenset[Any] = frozenset()  # the locations of masks whose elements would have to be side by side
    conversion: str = ""  # the function by which Python asks for a value, which a builtin may call: "`float()`", say
    subject: str = ""  # the operation that needs a static value, "`float()`" say, or a real array


class ShapeError(CaptureError, ValueError):
    """Shapes, axes or sizes do not fit together."""


class IndexOutOfBoundsError(ShapeError, IndexError):
    """An index or an axis lies outside of the array, when the function is traced or when the program runs."""

    needs: tuple[int, int] | None = None  # the axis of the array, and the least size of it that has the index


class FailedAssertionError(MlirmlError, AssertionError):
    """An `assert` statement of the function, whose condition is a dynamic value, does not hold."""


class FloatOperationError(MlirmlError, FloatingPointError):
    """An operation makes a NaN or an infinity where that is an error: `config.check_nan`, `np.errstate`."""


class LinAlgError(MlirmlError, np.linalg.LinAlgError):
    """A matrix is singular or not positive definite, or an iteration does not converge, as in NumPy."""


class MatrixShapeError(ShapeError, LinAlgError):
    """An array is not the matrices, or not the square ones, that a function of linear algebra needs."""


class InvalidIndexError(ShapeError, IndexError):
    """The expression in brackets is no index."""


class DTypeError(CaptureError, TypeError):
    """A dtype is not supported here, or a value would be silently truncated."""


class IntegerRangeError(DTypeError, OverflowError):
    """A Python integer does not fit the dtype that it meets."""


class NegativePowerError(DTypeError, ValueError):
    """Integers are raised to a negative power, which NumPy refuses."""


class OutgrownListError(MlirmlError, MemoryError):
    """A list of a compiled function gets more items than there is room for: more than 2^26, or after it has printed.

    `site` is the expression that creates the list, `capacity` the number of items that there is room for. A call is
    repeated with more room, unless the program has called functions of Python's meanwhile, `print` say: then the next
    call has more room.
    """

    repeatable = False  # whether the call had no other effect

    def __init__(self, site: str, capacity: int = 0, **shown: Any) -> None:
        super().__init__(f"the list of {site} has more than {capacity} items, for which there is no room", **shown)
        self.site, self.capacity = site, capacity


class TracedValueError(CaptureError):
    """A size, an index, a Python number or text needs a value that is known only at run time."""


class TracedBoolError(TracedValueError):
    """Python control flow needs the truth of a value that is known only at run time."""

    of_array: bool = False  # whether that is an array, whose elements no branch turns on


class UnboundedRecursionError(CaptureError, RecursionError):
    """A function calls itself without an end that is known when it is traced."""


class LeakedTracerError(CaptureError):
    """A traced array is used after the function that made it was traced."""


class UnassignedNameError(CaptureError, UnboundLocalError):
    """A variable of a loop function is read where it may have no value."""


class UnsupportedSyntaxError(CaptureError):
    """A Python construct or NumPy function that mlirml does not compile."""


class ArgumentError(CaptureError, TypeError):
    """The call does not fit the function's signature, or an argument is no array, number or container of them."""


class TransformError(MlirmlError):
    """Differentiation or batching failed."""


class NoDerivativeError(TransformError):
    """An operation that a derivative goes through has no rule for it."""


class NoBatchingError(TransformError):
    """An operation on a batch has no rule for it."""


class LoweringError(MlirmlError):
    """A pass failed. `reproducer` is the path of a file that shows it with `mlirml-opt --run-reproducer`."""

    reproducer: str | None = None
    op: str | None = None
    pass_name: str | None = None


class PreconditionError(LoweringError):
    """A module does not have the form that a pass is made for; `location` is what is not of that form."""


class ParseError(MlirmlError, ValueError):
    """MLIR text, as for `mlirml-opt`, is not valid."""


class FileFormatError(MlirmlError, ValueError):
    """A file of parameters is not of its format, or does not hold what it should."""


class PipelineError(MlirmlError, ValueError):
    """Pipeline text, a pass or an option of a pass is wrong; the message shows where in the text.

    `anchor` is the operation that the pass must be nested on, where that is the mistake.
    """

    anchor: str | None = None

    def __init__(self, message: str, *, text: str = "", position: int = 0, length: int = 1, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.text = text
        self.position = position
        self.length = length

    def __str__(self) -> str:
        what, *rest = super().__str__().split("\n")
        where = [f"   {self.text}", "   " + " " * self.position + "^" * max(1, self.length)] if self.text else []
        return "\n".join([what, *where, *rest])


class TargetError(MlirmlError):
    """The target does not exist here, or cannot do what was asked."""


class LaunchError(MlirmlError, ValueError):
    """A compiled program could not be run with these arguments."""


class InternalError(MlirmlError):
    """A bug in mlirml, not in the user's code. `before` is the module, as text, that the pass `pass_name` failed on."""

    pass_name: str | None = None
    before: str | None = None


CHECK_BITS = 20
CHECK_LIMIT = 1 << 42
NAN_CHECK = 1 << CHECK_BITS - 2
"""Checks with an index of at least this are NaN checks: their index encodes a hash of the operation's location."""


class KeyReuseWarning(UserWarning):
    """A key of `mlirml.random` is used twice in a compiled function: the same numbers are drawn again."""


class CacheWarning(UserWarning):
    """The disk cache is not used, because somebody else may have written what is in it."""


class TuningWarning(UserWarning):
    """Tuned schedules are not used or not kept, and programs are compiled with the default ones."""


class CheckFailed(Exception):
    """The exception that a target raises when a check of the program failed.

    The argument is the index of the check and, above `CHECK_BITS` bits, the checked integer, if the highest of these
    bits is set. `mlirml.driver.argument_errors` makes the user's error of it.
    """

    @property
    def check(self) -> int:
        """The index of the check."""
        code = int(self.args[0])
        return code if code == -1 else code & ((1 << CHECK_BITS - 1) - 1)

    @property
    def about(self) -> int | None:
        """The checked integer, if it was passed."""
        code = int(self.args[0])
        if code == -1 or not code >> CHECK_BITS - 1 & 1 or abs(code >> CHECK_BITS) >= CHECK_LIMIT:
            return None
        return code >> CHECK_BITS


def nan_check(line: int, column: int) -> int:
    """The index of the check that an operation makes no NaN: a hash of the operation's location."""
    return NAN_CHECK + zlib.crc32(f"{line}:{column}".encode()) % NAN_CHECK


def check_code(check: int, about: int) -> int:
    """The argument of `CheckFailed` for a check and the checked integer, clamped to what the encoding holds."""
    return min(max(about, -CHECK_LIMIT), CHECK_LIMIT) << CHECK_BITS | 1 << CHECK_BITS - 1 | check


for _class in list(globals().values()):
    if isinstance(_class, type) and issubclass(_class, MlirmlError):
        _class.__module__ = "mlirml"  # tracebacks read `mlirml.ShapeError: ...`

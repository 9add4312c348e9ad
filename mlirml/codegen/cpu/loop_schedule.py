"""The schedule of a chain of elementwise operations and reductions, as words, and the one that loops are made by.

The operations of a chain have it as the attribute `mlirml.loops`, a text such as
`loops=1/join=1/rows=4/width=16/interleave=2/together=0/stream=0`. Each field that is 0 is chosen as without a tuner.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields

from mlirml.analysis.traits import COUNTED_LOOPS
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import mlir, operations

NAME = "mlirml.loops"
STREAM = "mlirml.stream"
"""Marks loops whose results are stored past the cache, or are not, whatever their size."""
ANNOTATION = "llvm.loop_annotation"
FIELDS = {
    "join": (1, 0),
    "rows": (1, 2, 4, 8, 16),
    "width": (0, 4, 8, 16, 32),
    "interleave": (0, 1, 2, 4, 8),
    "together": (0, 1, 2, 4, 8, 16),
    "stream": (0, 1, 2),
}
"""The values of each field, the default one first."""
_FIRST = "loops=1"
AUTO, NEVER, ALWAYS = range(3)


@dataclass(frozen=True)
class LoopSchedule:
    """The loops of a chain.

    `join`: 1 if operations on the same rows share their loop over the rows, 0 for one pass each; `rows`: the rows of a
    joined loop at a time. `width` and `interleave`: the lanes of vectors, and the vectors of an iteration. `together`:
    the rows that a reduction over rows adds at a time. `stream`: stores past the cache by the size of a result, never,
    or always.
    """

    join: int = 1
    rows: int = 1
    width: int = 0
    interleave: int = 0
    together: int = 0
    stream: int = AUTO


DEFAULT = LoopSchedule()
_current: ContextVar[LoopSchedule] = ContextVar("loops", default=DEFAULT)


def current() -> LoopSchedule:
    """The schedule that loops are made by."""
    return _current.get()


@contextmanager
def using(schedule: LoopSchedule) -> Iterator[None]:
    """Make loops by a schedule in a `with` block."""
    before = _current.set(schedule)
    try:
        yield
    finally:
        _current.reset(before)


def to_words(schedule: LoopSchedule) -> str:
    """The schedule as text; the reverse of `from_words`."""
    return "/".join([_FIRST, *(f"{name}={getattr(schedule, name)}" for name in FIELDS)])


def from_words(text: str) -> LoopSchedule | None:
    """The schedule of a text that `to_words` has made; None for any other text."""
    first, *words = text.split("/")
    pairs = [word.partition("=")[::2] for word in words]
    if first != _FIRST or [name for name, _ in pairs] != [field.name for field in fields(LoopSchedule)]:
        return None
    if not all(value.isascii() and value.isdigit() and int(value) in FIELDS[name] for name, value in pairs):
        return None
    return LoopSchedule(**{name: int(value) for name, value in pairs})


def schedule_of(op: mlir.Operation) -> LoopSchedule:
    """The schedule of an operation; the default one without the attribute, or for one that is no schedule."""
    if NAME not in op.attributes:
        return DEFAULT
    return from_words(mlir.StringAttr(op.attributes[NAME]).value) or DEFAULT


def space(*, joins: bool, columns: bool, streams: bool, lanes: int) -> list[str]:
    """The texts of all schedules but the default one, those with the fewest fields that differ from it first.

    `joins`: several operations with a reduction share rows; `columns`: rows are added up; `streams`: results are large;
    `lanes` is twice the number of lanes of a vector.
    """
    values = dict(FIELDS)
    if not joins:
        values |= {"join": (1,), "rows": (1,)}
    if not columns:
        values["together"] = (0,)
    if not streams:
        values["stream"] = (AUTO,)
    values["width"] = tuple(width for width in FIELDS["width"] if width <= lanes)
    found = [LoopSchedule(**dict(zip(values, row, strict=True))) for row in itertools.product(*values.values())]
    found = [each for each in found if each.join or each.rows == 1]
    return [to_words(each) for each in sorted(found, key=_changes) if each != DEFAULT]


def _changes(schedule: LoopSchedule) -> int:
    return sum(getattr(schedule, name) != getattr(DEFAULT, name) for name in FIELDS)


def annotate(ops: Sequence[mlir.Operation], schedule: LoopSchedule) -> None:
    """Annotate the loops among operations, and in them, as a schedule says."""
    words = []
    if schedule.width:
        words.append(f"vectorize = <width = {schedule.width} : i32>")
    if schedule.interleave:
        words.append(f"interleave = <count = {schedule.interleave} : i32>")
    for op in ops:
        for loop in operations(op):
            if loop.name not in COUNTED_LOOPS:
                continue
            if schedule.stream != AUTO:
                loop.attributes[STREAM] = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), schedule.stream)
            if words and not any(inner.name in COUNTED_LOOPS for inner in operations(loop) if inner != loop):
                loop.attributes[ANNOTATION] = mlir.Attribute.parse(f"#llvm.loop_annotation<{', '.join(words)}>")

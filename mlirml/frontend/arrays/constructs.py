"""The loops and branches around an operation, as arrays and lists know them: which are retraced because of a store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mlirml.ir.text.builder import Builder, Region

if TYPE_CHECKING:
    from mlirml.frontend.arrays.list_parts import PartedList
    from mlirml.frontend.arrays.tracer import Cell
    from mlirml.frontend.tracing.trace import Trace


class Construct:
    """A loop or a branch that is being traced. `key` identifies its code."""

    key: Any

    @property
    def certain(self) -> bool:
        """True if its code is executed for every value of the loop variable."""
        return False


class Retrace(BaseException):
    """A loop or branch has to be retraced. No error: user code must not catch it."""

    def __init__(self, construct: Construct, lists: Sequence[PartedList] = ()) -> None:
        super().__init__()
        self.construct, self.lists = construct, lists  # lists of numbers to convert to arrays, or wider ones


class Restart(BaseException):
    """The function has to be traced anew, with what has been learned of its lists. No error either."""


class InlineStore(BaseException):
    """An expression that was evaluated inline stores: it has to be a branch. No error either."""


@contextmanager
def inline(b: Builder) -> Iterator[None]:
    """Context manager: operations emitted within may be erased, so that nothing is remembered about them."""
    region = b.region
    b.region = Region(region, region.owner, construct=region.construct, inline=True)  # see `is_certain`
    inner = b.region
    try:
        yield
    finally:
        inner.open = False
        if b.region is inner:
            b.region = region


def is_certain(region: Region) -> bool:
    """True if code in a region is executed in every iteration of the enclosing loops."""
    inner: Region | None = region
    while inner is not None and inner.parent is not None:
        construct = inner.construct
        # A nested region of the same loop is that of an expression, which may not be executed.
        if construct is None or not construct.certain or inner.parent.construct is construct:
            return False
        inner = inner.parent
    return True


def note_store(trace: Trace, cell: Cell) -> None:
    """Note a store into an allocation from outside: the outermost loop that does not contain it is retraced.

    What is evaluated inline becomes a branch first.
    """
    region: Region | None = trace.builder.region
    around: list[Construct] = []
    while region is not None and region is not cell.region:
        if region.inline:
            raise InlineStore
        if not isinstance(region.construct, Construct):
            return
        around.append(region.construct)
        region = region.parent
    if region is None or not around:
        return
    for construct in around:
        cells = trace.stored_in.setdefault(construct.key, [])
        if cell not in cells:
            cells.append(cell)
    raise Retrace(around[-1])

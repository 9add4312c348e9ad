"""What loops and branches have in common: they are written again until it is known what they carry."""

from __future__ import annotations

import types
from collections.abc import Iterable, Sequence
from typing import Any

from mlirml.frontend.loops.containers import Held, Place
from mlirml.frontend.loops.variables import Stored, Variables
from mlirml.frontend.state.recursion import DEEPEST
from mlirml.frontend.tracing.array import Cell, Traced
from mlirml.frontend.tracing.carry import Kind
from mlirml.frontend.tracing.growing_list import GrowingList
from mlirml.frontend.tracing.number_lists import settle
from mlirml.frontend.tracing.trace import Trace
from mlirml.ir.text.builder import Region


class Again(BaseException):
    """A loop or branch has to be written again. No error: user code must not catch it."""

    def __init__(self, construct: Construct, lists: Sequence[GrowingList] = ()) -> None:
        super().__init__()
        self.construct, self.lists = construct, lists  # the lists of numbers that become arrays, or wider ones, before


class Construct:
    """A loop or a branch that is being written.

    `own` are the variables that it assigns to, `key` is the code that it stands for. `cells` are the allocations that
    it stores into: those that its source shows, and those that turn out when it is written.
    """

    owner = "a loop"

    def __init__(self, trace: Trace, parts: Sequence[types.FunctionType], own: Sequence[str], changed: Sequence[str]):
        self.trace = trace
        self.variables = Variables(*parts)
        self.named = self.own = tuple(own)
        self.key = parts[0].__code__
        self._changed = changed
        self.held = Held(())

    def signature(self) -> Any:
        """What tells whether an earlier attempt in the same trace was about the same: the kinds of all variables."""
        variables = list(self.variables.items())
        self.trace.signed += [value for _, value in variables]
        places = [(name, place.get(None)) for name, place in self.variables.places.items()]
        self.trace.signed += [value for _, value in places]
        return self.key, tuple((name, _sign(value)) for name, value in (*variables, *places))

    def run(self) -> None:
        """Write it."""
        self.trace.constructs += 1
        try:
            if self.trace.constructs > DEEPEST:
                raise RecursionError
            self._attempts()
        finally:
            self.trace.constructs -= 1

    def _attempts(self) -> None:
        b = self.trace.builder
        self.held = Held(self.variables.items())
        self.add_places(self.held.known(self.trace.places.get(self.key, ())))
        while True:
            before = {name: self.variables.get(name) for name in self.own}
            self.prepare(before)
            stored = Stored(self.trace, self._cells())
            mark = b.mark()
            try:
                self.write(before, stored)
                return
            except BaseException as reason:
                stored.restore()
                for name, value in before.items():
                    self.variables.set(name, value)
                self.held.restore()
                b.rewind(mark)
                if not isinstance(reason, Again) or reason.construct is not self:
                    raise
                if reason.lists:
                    self._settle(reason.lists)

    def _settle(self, lists: Sequence[GrowingList]) -> None:
        """Make arrays of lists, whose items are no variables any more."""
        for one in lists:
            settle(one)
        places = {path: p for path, p in self.variables.places.items() if all(p.kept.holder is not x for x in lists)}
        self.variables.places = places
        self.own = (*self.named, *places)
        self.held = Held(self.variables.items())

    def add_places(self, places: Iterable[Place]) -> bool:
        """Let elements of containers be variables that this assigns to; whether there are new ones among them."""
        new = {place.path: place for place in places if place.path not in self.variables.places}
        self.variables.places |= new
        self.own = (*self.named, *self.variables.places)
        return bool(new)

    def check_places(self) -> None:
        """Raise `Again` where an element of a container turns out to be assigned."""
        places = self.held.places()
        self.trace.places[self.key] = places
        if self.add_places(places):
            raise Again(self)

    @property
    def certain(self) -> bool:
        """True if what is in it is done for every value of the loop variable."""
        return False

    def prepare(self, before: dict[str, Any]) -> None:
        """Read what is needed in front of the construct. What is written now stays for all attempts."""

    def write(self, before: dict[str, Any], stored: Stored) -> None:
        """One attempt, which raises `Again` where what is carried turns out to be something else."""
        raise NotImplementedError

    def seen(self) -> list[str]:
        """The variables of arrays that it is seen to store into."""
        return list(self._changed)

    def _cells(self) -> list[Cell]:
        """The allocations from outside that it stores into, as far as is known."""
        known = {id(cell): cell for cell in self.variables.arrays(self.seen())}
        known |= {id(cell): cell for cell in self.trace.stored_in.get(self.key, ())}
        found = []
        for cell in known.values():
            if cell.frozen is None and cell.region is not self.trace.builder.region:
                note_store(self.trace, cell)
            elif cell.frozen is None:
                found.append(cell)
        return found

    def enter(self) -> None:
        """The builder is in a region of this construct now."""
        self.trace.builder.region.construct = self


def _sign(value: Any) -> Any:
    if isinstance(value, Traced):
        return value.shape, value.dtype, value._is_weak(), value._scalar, () if value._scalar else id(value._cell)
    if type(value) in (bool, int, float, complex):
        return type(value), repr(value)
    if type(value) is not GrowingList and isinstance(value, (tuple, list)):
        return type(value), tuple(map(_sign, value))
    return id(value)


def is_certain(region: Region) -> bool:
    """True if what is written in a region is done in every round of the loops around it."""
    inner: Region | None = region
    while inner is not None and inner.parent is not None:
        construct = inner.construct
        # A region of the same loop again is that of an expression, which may not be reached.
        if construct is None or not construct.certain or inner.parent.construct is construct:
            return False
        inner = inner.parent
    return True


def note_store(trace: Trace, cell: Cell) -> None:
    """A store into an allocation from outside: the outermost loop that it is outside of is written again."""
    region: Region | None = trace.builder.region
    around: list[Construct] = []
    while region is not None and region is not cell.region:
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
    raise Again(around[-1])


Kinds = list[Kind]

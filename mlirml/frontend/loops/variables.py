"""The local variables of a rewritten function, and the arrays that its loops and branches store into."""

from __future__ import annotations

import types
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.tree import TreeDef, flatten
from mlirml.errors import SourceLocation
from mlirml.frontend.loops.containers import Place
from mlirml.frontend.tracing.array import Cell, Traced
from mlirml.frontend.tracing.carry import Kind, kind_of
from mlirml.frontend.tracing.growing_list import GrowingList
from mlirml.frontend.tracing.indexing import is_varying
from mlirml.frontend.tracing.trace import Trace, value_of
from mlirml.ir.text.builder import Region, Value
from mlirml.ir.text.dtypes import check_integer

PYTHON = (bool, int, float, complex)


class _Unbound:
    """Stands for a variable that has no value."""

    def __repr__(self) -> str:
        return "unbound"


UNBOUND = _Unbound()


class Variables:
    """Local variables by name: the cells of the closures that the parts of a function are."""

    def __init__(self, *parts: types.FunctionType) -> None:
        self._cells: dict[str, types.CellType] = {}
        for part in parts:
            self._cells.update(zip(part.__code__.co_freevars, part.__closure__ or ()))
        self.places: dict[str, Place] = {}  # elements of containers that are variables too, by their paths

    def get(self, name: str) -> Any:
        """The value, or `UNBOUND`."""
        if name in self.places:
            return self.places[name].get(UNBOUND)
        cell = self._cells.get(name)
        try:
            return UNBOUND if cell is None else cell.cell_contents
        except ValueError:
            return UNBOUND

    def set(self, name: str, value: Any) -> None:
        """Give the variable a value, or with `UNBOUND` none."""
        if name in self.places:
            if value is UNBOUND:
                self.places[name].remove()
            else:
                self.places[name].set(value)
            return
        cell = self._cells.get(name)
        if cell is None:
            return
        if value is not UNBOUND:
            cell.cell_contents = value
            return
        try:
            del cell.cell_contents
        except ValueError:
            return

    def items(self) -> list[tuple[str, Any]]:
        """All variables that the parts of the function use, with their values."""
        return [(name, self.get(name)) for name in self._cells]

    def arrays(self, names: Iterable[str]) -> list[Cell]:
        """The allocations that variables are arrays in."""
        found: dict[int, Cell] = {}
        for name in names:
            value = self.get(name)
            if isinstance(value, Traced) and not value._scalar:
                found[id(value._cell)] = value._cell
        return list(found.values())


def is_number(leaf: Any) -> bool:
    """True if a value is a number, which a loop carries as such."""
    return type(leaf) in PYTHON or isinstance(leaf, np.generic) or (isinstance(leaf, Traced) and leaf._scalar)


def is_array(leaf: Any) -> bool:
    """True if a value is an array of the program, which a variable refers to."""
    return isinstance(leaf, Traced) and not leaf._scalar


def same(one: Any, other: Any) -> bool:
    """True if two values that are no numbers are one: the same object, or the same part of the same array."""
    if isinstance(one, Traced) or is_varying(one):
        return bool(one._same_place(other))
    if is_varying(other):
        return False
    if one is other:
        return True
    try:
        return type(one) is type(other) and not is_array(one) and bool(one == other)
    except (TypeError, ValueError):
        return False


@dataclass
class Slot:
    """A number or an array that a variable holds and a loop carries, or a branch gives.

    `value` is what it holds in front of the loop: a value of the program, or a Python number. `zero` stands for what a
    variable without a value is carried as.
    """

    path: str
    kind: Kind
    scalar: bool
    value: Value | bool | int | float | complex

    @classmethod
    def of(cls, trace: Trace, leaf: Any, path: str) -> Slot:
        """The slot of a leaf."""
        value = leaf if type(leaf) in PYTHON else value_of(trace, leaf, path)
        return cls(path, kind_of(leaf, path), not is_array(leaf), value)

    @classmethod
    def zero(cls, path: str, kind: Kind, scalar: bool) -> Slot:
        """The slot of a variable that gets its first value in a loop."""
        return cls(path, kind, scalar, 0)

    def start(self, trace: Trace) -> Value:
        """What the loop starts from, of the kind that it carries."""
        return as_kind(trace, self.value, self.kind, self.path)

    def inside(self, trace: Trace, value: Value) -> Traced:
        """A value of a region as the user sees it."""
        return Traced(trace, Cell(replace(value, weak=self.kind.weak), owned=True), scalar=self.scalar)


def as_kind(trace: Trace, leaf: Any, kind: Kind, path: str) -> Value:
    """A leaf as a value of a kind."""
    if type(leaf) in PYTHON:
        if type(leaf) is int:
            check_integer(path, leaf, kind.dtype)
        return trace.builder.filled(kind.shape, kind.dtype, leaf)
    value = leaf if isinstance(leaf, Value) else value_of(trace, leaf, path)
    return trace.builder.cast(value, kind.dtype)


@dataclass
class Tree:
    """What a variable holds, as leaves."""

    leaves: list[Any]
    treedef: TreeDef

    @classmethod
    def of(cls, value: Any) -> Tree:
        """The leaves of a value."""
        return cls(*(value.tree() if type(value) is GrowingList else flatten(value)))

    def paths(self, name: str) -> list[str]:
        """What the leaves are called."""
        return self.treedef.paths(name)


@dataclass
class _Outside:
    """The state of an allocation in front of a region."""

    value: Value | np.ndarray
    version: int
    written: bool
    stored_at: SourceLocation | None
    owned: bool
    emitted: tuple[Value, Region] | None
    region: Region | None


class Stored:
    """The allocations that a loop or branch stores into: their values enter it and come out of it."""

    def __init__(self, trace: Trace, cells: Iterable[Cell]) -> None:
        self.trace = trace
        self.cells = list(cells)
        self.starts = [Traced(trace, cell)._read() for cell in self.cells]
        self._outside = [
            _Outside(c.value, c.version, c.written, c.stored_at, c.owned, c.emitted, c.region) for c in self.cells
        ]
        self._entered: list[int] = []
        self.changed = [False for _ in self.cells]

    def enter(self, values: Iterable[Value]) -> None:
        """In the region that the builder is in, the allocations hold these values."""
        for cell, value in zip(self.cells, values):
            cell.value = value
            cell.version += 1
            cell.emitted = None
            cell.region = self.trace.builder.region
        self._entered = [cell.version for cell in self.cells]

    def values(self) -> list[Value]:
        """What they hold at the end of the region."""
        for number, (cell, version) in enumerate(zip(self.cells, self._entered)):
            self.changed[number] |= cell.version != version
        return [Traced(self.trace, cell)._read() for cell in self.cells]

    def leave(self) -> None:
        """Go back to the region around; what the values are there is told by `end`."""
        for cell, outside in zip(self.cells, self._outside):
            cell.value, cell.region, cell.emitted = outside.value, outside.region, None

    def end(self, results: Iterable[Value]) -> None:
        """Behind the loop or branch the allocations hold its results."""
        self.leave()
        for cell, result, outside, changed in zip(self.cells, results, self._outside, self.changed):
            if changed:
                cell.store(result)
            else:
                cell.version, cell.emitted = outside.version, outside.emitted

    def restore(self) -> None:
        """Forget everything since the start."""
        for cell, outside in zip(self.cells, self._outside):
            cell.value, cell.version, cell.written = outside.value, outside.version, outside.written
            cell.stored_at, cell.owned = outside.stored_at, outside.owned
            cell.emitted, cell.region = outside.emitted, outside.region

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
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.carry import LeafType, leaf_type_of
from mlirml.frontend.arrays.growing_list import GrowingList
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.loops.containers import Element
from mlirml.frontend.tracing.trace import Trace, value_of
from mlirml.ir.text.builder import Region, Value
from mlirml.ir.text.dtypes import check_integer

PYTHON = (bool, int, float, complex)


class _Unbound:
    """The value of a variable that is unassigned."""

    def __repr__(self) -> str:
        return "unbound"


UNBOUND = _Unbound()


class Variables:
    """Local variables by name: the cells of the closures that a rewritten function consists of."""

    def __init__(self, *parts: types.FunctionType) -> None:
        self._cells: dict[str, types.CellType] = {}
        for part in parts:
            self._cells.update(zip(part.__code__.co_freevars, part.__closure__ or ()))
        self.elements: dict[str, Element] = {}  # elements of containers that are variables too, by their paths

    def get(self, name: str) -> Any:
        """The value, or `UNBOUND`."""
        if name in self.elements:
            return self.elements[name].get(UNBOUND)
        cell = self._cells.get(name)
        try:
            return UNBOUND if cell is None else cell.cell_contents
        except ValueError:
            return UNBOUND

    def set(self, name: str, value: Any) -> None:
        """Assign the variable, or with `UNBOUND` delete it."""
        if name in self.elements:
            if value is UNBOUND:
                self.elements[name].remove()
            else:
                self.elements[name].set(value)
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
        """All variables of the rewritten functions, with their values."""
        return [(name, self.get(name)) for name in self._cells]

    def arrays(self, names: Iterable[str]) -> list[Cell]:
        """The allocations of the arrays that variables refer to."""
        found: dict[int, Cell] = {}
        for name in names:
            value = self.get(name)
            if isinstance(value, Traced) and not value._scalar:
                found[id(value._cell)] = value._cell
        return list(found.values())


def is_number(leaf: Any) -> bool:
    """True for a number, which a loop carries as a value."""
    return type(leaf) in PYTHON or isinstance(leaf, np.generic) or (isinstance(leaf, Traced) and leaf._scalar)


def is_array(leaf: Any) -> bool:
    """True for a traced array, which a variable refers to."""
    return isinstance(leaf, Traced) and not leaf._scalar


def cell_of(leaf: Any) -> Cell | None:
    """The allocation that an array, or a slice of dynamic length, refers to."""
    location = getattr(leaf, "_location", None) if is_dynamic(leaf) else None
    base = leaf if location is None else location.base
    return base._cell if is_array(base) else None


def same(one: Any, other: Any) -> bool:
    """True if two values other than numbers are the same object, or the same slice of the same array."""
    if isinstance(one, Traced) or is_dynamic(one):
        return bool(one._is_same_part(other))
    if is_dynamic(other):
        return False
    if one is other:
        return True
    try:
        return type(one) is type(other) and not is_array(one) and bool(one == other)
    except (TypeError, ValueError):
        return False


@dataclass
class Slot:
    """A number or array of a variable that a loop carries, or that is the result of a branch.

    `value` is the value before the loop: a traced value, or a Python number. `zero` is the init for a variable that has
    none.
    """

    path: str
    leaf_type: LeafType
    scalar: bool
    value: Value | bool | int | float | complex

    @classmethod
    def of(cls, trace: Trace, leaf: Any, path: str) -> Slot:
        """The slot of a leaf."""
        value = leaf if type(leaf) in PYTHON else value_of(trace, leaf, path)
        return cls(path, leaf_type_of(leaf, path), not is_array(leaf), value)

    @classmethod
    def zero(cls, path: str, leaf_type: LeafType, scalar: bool) -> Slot:
        """The slot of a variable that gets its first value in a loop."""
        return cls(path, leaf_type, scalar, 0)

    def start(self, trace: Trace) -> Value:
        """The init value, of the type that the loop carries."""
        return value_of_type(trace, self.value, self.leaf_type, self.path)

    def in_region(self, trace: Trace, value: Value) -> Traced:
        """A value of a region as the user sees it."""
        return Traced(trace, Cell(replace(value, weak=self.leaf_type.weak), owned=True), scalar=self.scalar)


def value_of_type(trace: Trace, leaf: Any, leaf_type: LeafType, path: str) -> Value:
    """A leaf as a value of a type."""
    if type(leaf) in PYTHON:
        if type(leaf) is int:
            check_integer(path, leaf, leaf_type.dtype)
        return trace.builder.filled(leaf_type.shape, leaf_type.dtype, leaf)
    value = leaf if isinstance(leaf, Value) else value_of(trace, leaf, path)
    return trace.builder.cast(value, leaf_type.dtype)


@dataclass
class Tree:
    """A variable's value as a pytree."""

    leaves: list[Any]
    treedef: TreeDef

    @classmethod
    def of(cls, value: Any) -> Tree:
        """The leaves of a value."""
        return cls(*(value.tree() if type(value) is GrowingList else flatten(value)))

    def paths(self, name: str) -> list[str]:
        """The names of the leaves."""
        return self.treedef.paths(name)


@dataclass
class _Outside:
    """The state of an allocation before a region."""

    value: Value | np.ndarray
    version: int
    written: bool
    stored_at: SourceLocation | None
    owned: bool
    emitted: tuple[Value, Region] | None
    region: Region | None


class Stored:
    """The allocations that a loop or branch stores into: their contents are its operands and results."""

    def __init__(self, trace: Trace, cells: Iterable[Cell]) -> None:
        self.trace = trace
        self.cells = list(cells)
        self.starts = [Traced(trace, cell)._value() for cell in self.cells]
        self._outside = [
            _Outside(c.value, c.version, c.written, c.stored_at, c.owned, c.emitted, c.region) for c in self.cells
        ]
        self._entered: list[int] = []
        self.changed = [False for _ in self.cells]

    def enter(self, values: Iterable[Value]) -> None:
        """In the builder's region, the allocations have these contents."""
        for cell, value in zip(self.cells, values):
            cell.value = value
            cell.version += 1
            cell.emitted = None
            cell.region = self.trace.builder.region
        self._entered = [cell.version for cell in self.cells]

    def values(self) -> list[Value]:
        """The contents at the end of the region."""
        for number, (cell, version) in enumerate(zip(self.cells, self._entered)):
            self.changed[number] |= cell.version != version
        return [Traced(self.trace, cell)._value() for cell in self.cells]

    def any_changed(self) -> bool:
        """True if an allocation was stored into since the region was entered."""
        return any(cell.version != version for cell, version in zip(self.cells, self._entered))

    def leave(self) -> None:
        """Go back to the enclosing region; `end` sets the values there."""
        for cell, outside in zip(self.cells, self._outside):
            cell.value, cell.region, cell.emitted = outside.value, outside.region, None

    def end(self, results: Iterable[Value]) -> None:
        """After the loop or branch the allocations have its results as contents."""
        self.leave()
        for cell, result, outside, changed in zip(self.cells, results, self._outside, self.changed):
            if changed:
                cell.store(result)
            else:
                cell.version, cell.emitted = outside.version, outside.emitted

    def restore(self) -> None:
        """Undo all changes since the start."""
        for cell, outside in zip(self.cells, self._outside):
            cell.value, cell.version, cell.written = outside.value, outside.version, outside.written
            cell.stored_at, cell.owned = outside.stored_at, outside.owned
            cell.emitted, cell.region = outside.emitted, outside.region

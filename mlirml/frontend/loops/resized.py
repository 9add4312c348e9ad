"""Arrays whose lengths depend on the data of each iteration, as in `z = z[abs(z) < 2]`, or on the branch that ran.

    for i in range(n):                     z, length = z, len(z)
        z = z[abs(z) < 2]                  for i in range(n):
                                               z, length = compacted(z[:length], abs(z[:length]) < 2)

The loop carries a buffer of the lengths before the first iteration, if these are the greatest, and the lengths as
numbers: in an iteration the variable is the slice of the buffer that is in use. An array that may grow has the room of
a list (`core/rooms.py`). Arrays that have one length before an iteration
and after it share the number. The results of branches are a buffer and its lengths likewise.
"""  # fmt: skip

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.errors import ShapeError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.loops.dynamic_indices import Axis, Number, python_integer
from mlirml.frontend.loops.dynamic_slices.compaction import as_slice, beginning_of, whole_buffer
from mlirml.frontend.loops.dynamic_slices.counted_functions import room_for
from mlirml.frontend.loops.dynamic_slices.slices import DynamicSlice, check_unchanged, named, part, store, whole
from mlirml.frontend.loops.variables import UNBOUND, Slot, Tree, cell_of, is_array
from mlirml.frontend.tracing.trace import Trace
from mlirml.frontend.user_objects import attributes_of
from mlirml.ir.text.builder import Value


@dataclass(frozen=True)
class Resized:
    """The greatest lengths and the dtype of an array, and for each dimension the name of its length, None if static."""

    most: tuple[int, ...]
    dtype: np.dtype
    lengths: tuple[str | None, ...]

    def slice_of(self, buffer: Traced, lengths: Mapping[str, Number]) -> DynamicSlice:
        """The part of a buffer that is in use."""
        shape = [size if name is None else lengths[name] for size, name in zip(self.most, self.lengths)]
        return part(buffer, [Axis(0, 1, dim) for dim in range(len(shape))], shape, self.most)

    @property
    def nothing(self) -> tuple[int, ...]:
        """The shape of such an array without elements."""
        return tuple(size if name is None else 0 for size, name in zip(self.most, self.lengths))

    def named(self) -> Iterable[tuple[int, str]]:
        """The dimensions whose lengths change, with the names of these."""
        return ((dim, name) for dim, name in enumerate(self.lengths) if name is not None)


def is_sized(leaf: Any) -> bool:
    """True for an array of static or dynamic lengths."""
    return is_array(leaf) or is_dynamic(leaf)


def sliced(leaf: Any) -> DynamicSlice:
    """An array of any class as a slice."""
    return whole(leaf) if is_array(leaf) else as_slice(leaf)


def laid_out(value: Any, before: Any) -> Any:
    """A value at the end of a branch: what a mask picks is brought side by side there, unless it was there before."""
    if value is UNBOUND or value is before:
        return value
    tree, old = Tree.of(value), [] if before is UNBOUND else Tree.of(before).leaves
    new = [is_dynamic(leaf) and all(leaf is not one for one in old) for leaf in tree.leaves]
    if not any(new):
        return value
    leaves = [named(as_slice(leaf)) if is_new else leaf for leaf, is_new in zip(tree.leaves, new)]
    return tree.treedef.unflatten(leaves)


def check_resized(path: str, before: DynamicSlice, after: DynamicSlice) -> None:
    """Raise `ShapeError` for an array that an iteration leaves as one of another type."""
    name = path.strip("`")
    if before.ndim != after.ndim or before.dtype != after.dtype:
        raise ShapeError(
            f"`{name}` changes its type in the loop: {before._describe()} before an iteration, "
            f"{after._describe()} after it",
            help="use another name for the new array, or convert it to the dtype that it had before",
        )


def within_room(path: str, before: DynamicSlice, after: DynamicSlice) -> tuple[DynamicSlice, tuple[int, ...]]:
    """The array after an iteration, and its greatest lengths: the room that there is by now where it may grow."""
    trace, most = after._trace, list(after._most)
    for dim, (size, longest) in enumerate(zip(before._most, after._most)):
        if longest > size:
            most[dim] = room_for(trace, after._length(dim), size, f" of {path}")
            after = after[(slice(None),) * dim + (slice(most[dim]),)]
    return after, tuple(map(max, before._most, most))


class Lengths:
    """Pairs of lengths by name: before a loop and after an iteration, or in two branches."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.known: dict[str, tuple[Number, Number]] = {}

    def name_for(self, name: str, start: Number, end: Number) -> str:
        """`name`, or the one of an equal pair. A new pair gets the name."""
        alike = (other for other, known in self.known.items() if all(map(self._equal, known, (start, end))))
        if name in self.known and all(map(self._equal, self.known[name], (start, end))):
            return name
        found = next(alike, name)
        self.known.setdefault(found, (start, end))
        return found

    def _equal(self, one: Number, other: Number) -> bool:
        forms = [self.trace.integers.of(n) for n in (one, other)]
        return one is other or (None not in forms and forms[0] - forms[1] == Linear(0))


def form_of(
    path: str, before: DynamicSlice, after: DynamicSlice, lengths: Lengths, room: tuple[int, ...] | None = None
) -> Resized:
    """The form of an array that is one of two, of which the lengths are added to the known ones."""
    names: list[str | None] = []
    most = tuple(map(max, before._most, after._most)) if room is None else room
    for dim, (one, other, size) in enumerate(zip(before._shape, after._shape, most)):
        if type(one) is int and type(other) is int and one == other == size:
            names.append(None)
            continue
        names.append(lengths.name_for(f"{path}.shape[{dim}]", one, other))
    return Resized(most, before.dtype, tuple(names))


def slots_of(trace: Trace, leaf: Any, path: str, form: Resized, seen: set[str]) -> list[Slot]:
    """The slots of an array: its lengths that have none yet, and the buffer."""
    x = sliced(leaf)
    found = []
    for dim, name in form.named():
        if name not in seen:
            seen.add(name)
            found.append(Slot.of(trace, x._length(dim), name))
    return [*found, Slot.of(trace, buffer_of(x, form), path)]


def buffer_of(x: DynamicSlice, form: Resized, onto: Cell | None = None) -> Traced:
    """An array of the greatest lengths that begins with `x`; in the buffer of `onto`, if that is such an array.

    Then a loop or a branch copies what is in use, and not all of the buffer.
    """
    buffer = None if x._most != form.most else beginning_of(x)
    if onto is None or tuple(onto.value.shape) != form.most or onto.value.dtype != form.dtype:
        return buffer if buffer is not None else (whole_buffer(x) if x._most == form.most else _with_room(x, form.most))
    if buffer is not None and is_grown_from(buffer._cell, onto):
        return buffer
    check_unchanged(x)
    cell = Cell(Traced(x._trace, onto)._read(), owned=True)
    cell.root = onto
    out = Traced(x._trace, cell)
    store(form.slice_of(out, dict(zip(filter(None, form.lengths), _lengths(x, form)))), x)
    return out


def _lengths(x: DynamicSlice, form: Resized) -> list[Number]:
    return [x._shape[dim] for dim, _ in form.named()]


def is_grown_from(cell: Cell, root: Cell) -> bool:
    """True if an allocation takes the place of another one."""
    one: Cell | None = cell
    while one is not None and one is not root:
        one = one.root
    return one is root


def _with_room(x: DynamicSlice, most: tuple[int, ...]) -> Traced:
    """A new array of the greatest lengths that begins with `x`."""
    out = Traced(x._trace, Cell(x._trace.builder.empty(most, x.dtype), owned=True))
    store(part(out, [Axis(0, 1, dim) for dim in range(x.ndim)], x._shape, most), x)
    return out


def length_in_region(trace: Trace, value: Value, size: int, symbol: Any = None) -> Traced:
    """A carried length as a Python integer of the program, of which the limits are known."""
    trace.integers.forms[value.name] = trace.integers.symbol(Linear(0), Linear(size)) if symbol is None else symbol
    return python_integer(trace, value)


def is_alone(leaf: Any, variables: Iterable[tuple[str, Any]]) -> bool:
    """True if an array is in memory of the program, and no two of these variables refer to that.

    Then a store into it changes nothing else. An object with attributes might refer to it. What is one of several
    arrays is alone if all of them are.
    """
    cell = cell_of(leaf)
    if cell is None:
        return is_dynamic(leaf)
    others = [other for other, _ in cell.watched]
    own = all(one.owned or isinstance(one.value, np.ndarray) for one in (cell, *others))
    if not own or any(one.frozen is not None for one in (others or [cell])):
        return False
    leaves = [one for _, value in variables for one in Tree.of(value).leaves]
    if any(not is_sized(one) and attributes_of(one) for one in leaves):
        return False
    return sum(any(cell_of(one) is c for c in (cell, *others)) for one in leaves) <= 1

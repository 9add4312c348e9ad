"""Loop-carried values: the variables that are carried, their types, and checks that the types do not change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import field, replace
from typing import Any

import numpy as np

from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.core.tree import TreeDef
from mlirml.errors import CaptureError, DTypeError, ShapeError, UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.carry import LeafType, are_integer_and_double, carried, common, leaf_type_of
from mlirml.frontend.arrays.constructs import Retrace
from mlirml.frontend.arrays.growing_list import GrowingList
from mlirml.frontend.arrays.indexing import DYNAMIC, is_dynamic
from mlirml.frontend.arrays.list_parts import Counts, Growth, close_items, note_joined
from mlirml.frontend.arrays.number_lists import alike, become_rows, numbers_in, pays, settle
from mlirml.frontend.arrays.open_lists import match_rooms
from mlirml.frontend.arrays.optional import Optional, leaves_of, structure_of
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.frames import user_variables
from mlirml.frontend.loops.construct import RetracedConstruct
from mlirml.frontend.loops.containers import Element, is_flat_list, with_other_name
from mlirml.frontend.loops.dynamic_slices.slices import DynamicSlice
from mlirml.frontend.loops.failing import FAILURES
from mlirml.frontend.loops.growing import Writer, learned, opened
from mlirml.frontend.loops.references import check_alone, ended, exchanged, find_turns, position_of, watch
from mlirml.frontend.loops.resized import (
    Lengths,
    Resized,
    buffer_of,
    check_resized,
    form_of,
    is_alone,
    is_sized,
    length_in_region,
    sliced,
    slots_of,
    within_room,
)
from mlirml.frontend.loops.shrinking import Steps, lengthened, remaining, shortened, steps_between
from mlirml.frontend.loops.variables import UNBOUND, Slot, Stored, Tree, is_array, is_number, same, value_of_type
from mlirml.ir.text import control
from mlirml.ir.text.builder import Check, Value

_BOOL, _I64 = np.dtype(np.bool_), np.dtype(np.int64)


@dataclass
class First:
    """A variable that gets its first value in the loop: its structure and the types of its leaves."""

    treedef: TreeDef
    slots: list[Slot]


@dataclass
class LoopInfo:
    """Facts about a loop from earlier attempts to trace it, by the paths of leaves and the names of variables."""

    leaf_types: dict[str, LeafType] = field(default_factory=dict)
    scalars: dict[str, bool] = field(default_factory=dict)
    by_value: set[str] = field(default_factory=set)  # arrays of variables that are assigned other arrays
    first: dict[str, First] = field(default_factory=dict)  # variables, and elements, that have no value before the loop
    turns: dict[str, str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)  # variables that an iteration leaves unassigned
    rebound: set[str] = field(default_factory=set)  # variables that get another list in an iteration
    steps: dict[str, Steps] = field(default_factory=dict)  # arrays that each iteration leaves shorter
    resized: dict[str, Resized] = field(default_factory=dict)  # arrays whose lengths depend on data
    longer: set[str] = field(default_factory=set)  # the lengths of those that grow, which unrolling would not settle
    uneven: set[str] = field(default_factory=set)  # arrays that an iteration leaves shorter by another amount
    named: set[str] = field(default_factory=set)  # arrays of those to which something else may refer
    optional: dict[str, First] = field(default_factory=dict)  # variables that are None or not, depending on data
    grown: dict[str, Growth] = field(default_factory=dict)  # lists that an iteration appends to
    differ: str = ""  # the difference between iterations for which the loop is unrolled


class Loop(RetracedConstruct):
    """A `for` or a `while`. `head` are the variables that an iteration reads from the previous one, `after` those that
    are read after the loop, and `renewed` those that get new values in each iteration, as their source shows.
    """

    def __init__(
        self, *arguments: Any, head: Sequence[str], after: Sequence[str], renewed: Sequence[str] = (), keep: str = ""
    ) -> None:
        super().__init__(*arguments)
        self.head, self.after, self.renewed = frozenset(head), frozenset(after), frozenset(renewed)
        self.info = self._learned()
        self.keep = keep
        self.gains: dict[str, Any] = {}  # by how much an iteration changes carried integers, at least and at most
        self.symbols: dict[str, Any] = {}  # linear forms of carried integers, the same in all regions of the loop
        self.shared: set[str] = set()
        self.ends: dict[str, Any] = {}
        self.inside: dict[str, tuple[Any, Sequence[Any]]] = {}  # their values at its start, and the leaves of these
        self.last: dict[str, Any] = {}  # the values of variables at the end of an iteration
        self.slots: dict[str, list[Slot]] = {}
        self.buffers: dict[str, Cell] = {}  # those of the arrays of changing lengths, at the start of an iteration
        self.lengths = Lengths(self.trace)  # the lengths of arrays at the end of an iteration
        self.relearned = False  # whether an iteration shows that an array is carried in another way
        self.writers: list[Writer] = []  # the appends to lists
        # The numbers of items by which some iterations append fewer than others, by list, for each iteration.
        self.missing: dict[int, np.ndarray] = {}
        self.count: Any = None
        self.number: Any = None  # the index of the iteration that is being traced
        self.guessed: list[tuple[GrowingList, Any]] = []  # lists, and indices, as if the loop appended to them
        self.runs = False  # whether it has certainly a first iteration
        self.peels = False  # whether its first iteration may be peeled, after which its variables have values
        self.is_predicated = False  # whether iterations after the end are predicated
        self.either: set[str] = set()  # variables of lists with a second name if the trip count is 0

    def add_elements(self, elements: Iterable[Element]) -> bool:
        if not super().add_elements(elements):
            return False
        self.head |= self.variables.elements.keys()
        self.after |= self.variables.elements.keys()
        self.info = self._learned()
        return True

    def run(self) -> None:
        try:
            super().run()
        except FAILURES as error:
            if not self.certain:
                error.in_loop = True  # type: ignore[union-attr]  # what it is in may never be executed
            raise

    def _learned(self) -> LoopInfo:
        """The facts of earlier attempts. A loop of the same code that this contains may not change them meanwhile."""
        self.signed = self.signature()
        info = self.trace.learned.get(self.signed, LoopInfo())
        return LoopInfo(**{name: copy(facts) for name, facts in vars(info).items()})

    def learn(self) -> None:
        self.trace.learned[self.signed] = self.info

    @property
    def passed(self) -> list[str]:
        """The loop-carried variables."""
        read = self.head | self.after
        return [n for n in self.own if n in read and n != self.keep and n not in self.info.dropped]

    @property
    def turns(self) -> dict[str, str]:
        """The variables that exchange their arrays."""
        return self.info.turns

    # Before the loop.

    def prepare(self, before: dict[str, Any]) -> None:
        """Compute the slots of each variable: its leaves that are carried as values."""
        # An attempt would find these too: this saves it.
        self.info.by_value |= {f"`{n}`" for n in self.passed if n in self.renewed and is_array(before[n])}
        for name, first in self.info.optional.items():
            if before[name] is None or before[name] is UNBOUND:
                leaves = (
                    0 if slot.scalar else self.trace.known(np.zeros(slot.leaf_type.shape, slot.leaf_type.dtype))
                    for slot in first.slots
                )
                before[name] = Optional(False, first.treedef.unflatten([*leaves]))
            elif type(before[name]) is not Optional:
                before[name] = Optional(True, before[name])
        self.slots = self._slots(before)
        self.writers, self.guessed = [], []
        self.inside = {}  # with the elements of a list that has become an array since
        for kept in self.held.growing():
            growth = self.info.grown.get(kept.path)
            kept.grows = growth is not None  # reset if, with more variables than before, it is another loop
            if growth is not None:
                self.writers.append(opened(self, kept.holder, growth, kept.path))

    def _cells(self) -> list[Cell]:
        starts = [writer.start for writer in self.writers if writer.outer is None]
        own = [array._cell for rows in starts for array in (*rows.columns, rows.counter) if array is not None]
        return [*super()._cells(), *own]

    @property
    def appends(self) -> bool:
        """True if the numbers of rows that it appends to lists are known."""
        return False

    def seen(self) -> list[str]:
        return [*super().seen(), *self.turns]

    def _slots(self, before: dict[str, Any]) -> dict[str, list[Slot]]:
        found: dict[str, list[Slot]] = {}
        seen: set[str] = set()
        for name in self.passed:
            value = before[name]
            if self._is_list(name, value):
                continue
            if value is UNBOUND:
                first = self.info.first.get(name)
                if first is not None:
                    found[name] = [self._known(slot) for slot in first.slots]
                continue
            tree, found[name] = Tree.of(value), []
            for leaf, path in zip(tree.leaves, (f"`{path}`" for path in tree.paths(name))):
                form = self.info.resized.get(path)
                if form is not None:
                    found[name] += slots_of(self.trace, leaf, path, form, seen)
                    if path not in self.info.named and not is_alone(leaf, user_variables()):
                        self.info.named.add(path)
                elif self._is_carried(path, leaf):
                    found[name].append(self._known(Slot.of(self.trace, leaf, path)))
        return found

    def _is_carried(self, path: str, leaf: Any) -> bool:
        """True for a leaf that the loop carries as a value."""
        return is_number(leaf) or path in self.info.resized or (is_array(leaf) and path in self.info.by_value)

    def _is_list(self, name: str, value: Any) -> bool:
        """True if a variable is the same list in all iterations, which may grow."""
        return type(value) is GrowingList and name not in self.info.rebound

    def _known(self, slot: Slot) -> Slot:
        leaf_type = self.info.leaf_types.get(slot.path, slot.leaf_type)
        return replace(slot, leaf_type=leaf_type, scalar=self.info.scalars.get(slot.path, slot.scalar))

    # In the loop.

    def begin(self, before: dict[str, Any], values: Sequence[Value]) -> None:
        """Assign the variables their values at the start of an iteration."""
        rest = iter(values)
        lengths: dict[str, Any] = {}
        for name in self.own:
            self.variables.set(name, UNBOUND if name not in self.passed else before[name])
        for name, group in self.slots.items():
            inside = self._joined([(slot, self._argument(slot, next(rest))) for slot in group], lengths)
            filled = self._filled(name, before[name], inside)
            self.variables.set(name, filled)
            self.inside[name] = filled, () if filled is UNBOUND else Tree.of(filled).leaves
        self.note_unassigned(self.slots)

    def _joined(self, values: Sequence[tuple[Slot, Any]], lengths: dict[str, Any]) -> list[Any]:
        """The carried leaves of a variable: buffers become slices of the carried lengths, which are added."""
        found: list[Any] = []
        for slot, value in values:
            form = self.info.resized.get(slot.path)
            if slot.path in self._limits():
                lengths[slot.path] = value
            else:
                if form is not None:
                    self.buffers[slot.path] = value._cell
                found.append(value if form is None else form.slice_of(value, lengths))
        return found

    def _limits(self) -> dict[str, int]:
        """The carried lengths of arrays, with the greatest value of each."""
        return {name: form.most[dim] for form in self.info.resized.values() for dim, name in form.named()}

    def _argument(self, slot: Slot, value: Value) -> Traced | DynamicSlice:
        most = self._limits().get(slot.path)
        if most is not None:
            if slot.path not in self.symbols:
                roots = frozenset([] if slot.path in self.info.longer else [self])
                self.symbols[slot.path] = self.trace.integers.symbol(Linear(0), Linear(most), roots)
            return length_in_region(self.trace, value, most, self.symbols[slot.path])
        array = slot.in_region(self.trace, value)
        if slot.scalar and slot.leaf_type.dtype == _I64:
            integers = self.trace.integers
            if slot.path not in self.symbols:
                self.symbols[slot.path] = integers.symbol(roots=frozenset([self]))
            integers.forms[value.name] = self.symbols[slot.path]
        if not slot.scalar and (slot.path not in self.info.resized or slot.path in self.info.named):
            array._cell.frozen = (
                f"a store into {slot.path}, which is another array in the next iteration of the loop: compiled code "
                "cannot tell whose elements change"
            )
        steps = self.info.steps.get(slot.path)
        return array if steps is None else shortened(array, steps, self.number)

    def _filled(self, name: str, before: Any, values: Sequence[Traced | DynamicSlice]) -> Any:
        """The value of a variable, with these values for its carried leaves."""
        first = self.info.first.get(name)
        if before is UNBOUND:
            assert first is not None
            carries = name in self.head and (name.startswith(".") or self.is_predicated)
            return first.treedef.unflatten(list(values)) if carries else UNBOUND
        if self._is_list(name, before):
            return before
        tree, rest = Tree.of(before), iter(values)
        leaves = [
            next(rest) if self._is_carried(f"`{path}`", leaf) else leaf
            for leaf, path in zip(tree.leaves, tree.paths(name))
        ]
        return tree.treedef.unflatten(leaves)

    def carried_on(self, before: dict[str, Any], stored: Stored) -> list[Value]:
        """The values at the end of an iteration. Raises `Retrace` if one differs in type from the carried value."""
        close_items(self.trace)
        for writer in self.writers:
            writer.check_count()
            self.missing.pop(id(writer.growing), None)
        self._learn_growth()
        self._check_structures()
        self.check_elements()
        held = stored.values()
        for writer in self.writers:
            writer.check_held(cell for cell, changed in zip(stored.cells, stored.changed) if changed)
        turns = find_turns(before, {name: self.variables.get(name) for name in self.passed})
        if turns != self.turns:
            frozen = any(before[name]._cell.frozen is not None for name in turns)
            if self.turns or frozen or not self.counts_turns(turns):
                raise CaptureError(
                    "arrays are exchanged in a way that differs between iterations, as far as is known",
                    help="exchange them once in each iteration of one loop without `break`, or copy: `a[:] = b`",
                )
            self.info.turns = turns
            raise Retrace(self)
        self._find_by_value(before)
        self.last = {name: self.variables.get(name) for name in self.own}
        for name, (value, leaves) in self.inside.items():
            if value is not UNBOUND and value is not self.last[name]:
                note_joined(self.trace, value, [self.last[name]], leaves)
        self.lengths, self.relearned = Lengths(self.trace), False
        found = [self._ends(name, before[name], self.slots.get(name, [])) for name in self.passed]
        if self.relearned:
            raise Retrace(self)
        pairs = [(slot, self._lengthened(slot, leaf)) for group in found for slot, leaf in group]
        self._check_references(pairs, before, stored)
        changed = False
        for slot, leaf in pairs:
            leaf_type = carried(slot.leaf_type, leaf_type_of(leaf, slot.path)) or self._widened(slot, leaf)
            if leaf_type is None:
                self.info.steps[slot.path] = self._steps(slot, leaf)
                changed = True
                continue
            scalar = slot.scalar or is_number(leaf)
            changed |= leaf_type != slot.leaf_type or scalar != slot.scalar
            self.info.leaf_types[slot.path], self.info.scalars[slot.path] = leaf_type, scalar
        if changed:
            raise Retrace(self)
        if self.turns:
            check_alone(self.variables, before, self.turns)
        values = [value_of_type(self.trace, leaf, slot.leaf_type, slot.path) for slot, leaf in pairs]
        self._note_gains([slot for slot, _ in pairs], values)
        return [*values, *ended(stored, before, self.turns, held)]

    def _note_gains(self, slots: Sequence[Slot], values: Sequence[Value]) -> None:
        """Record by how much an iteration changes the integers that the loop carries."""
        integers = self.trace.integers
        self.gains = {}
        for slot, value in zip(slots, values):
            form, symbol = integers.of(value), self.symbols.get(slot.path)
            if form is not None and symbol is not None and slot.path not in self._limits():
                self.gains[slot.path] = integers.limits(form - symbol)

    def most_iterations(self) -> int | None:
        """An upper bound of the trip count, if one is known."""
        return None

    def _widened(self, slot: Slot, leaf: Any) -> LeafType | None:
        """The wider type of a Python float that becomes an integer, if it stays a float where nothing iterates."""
        before, leaf_types = slot.value, (slot.leaf_type, leaf_type_of(leaf, slot.path))
        of_float = type(before) is float or (isinstance(before, Value) and before.weak and before.dtype.kind == "f")
        numbers = self.count is None and of_float and slot.scalar and is_number(leaf)
        return common(*leaf_types) if numbers and are_integer_and_double(*leaf_types) else None

    def _steps(self, slot: Slot, leaf: Any) -> Steps:
        """The decrements of an array's sizes in an iteration; an error for other changes of shape."""
        leaf_type = leaf_type_of(leaf, slot.path)
        if self.appends and slot.path not in self.info.steps:
            steps = steps_between(slot.leaf_type, leaf_type, self.count)
            if steps is not None:
                return steps
        raise self._mismatch(slot, leaf_type)

    def _lengthened(self, slot: Slot, leaf: Any) -> Any:
        """An array padded to its first shape, if each iteration leaves it shorter."""
        steps = self.info.steps.get(slot.path)
        if steps is None or not isinstance(leaf, DynamicSlice):
            return leaf
        array = lengthened(self.trace, leaf, slot.leaf_type, steps, self.number)
        if array is None:
            del self.info.steps[slot.path]
            self.info.uneven.add(slot.path)
            raise Retrace(self)
        return array

    def note_read(self, growing: GrowingList, index: Any) -> bool:
        """Record that an item of a list was read as if the loop appended to it; False for another list."""
        if all(kept.holder is not growing for kept in self.held.growing()):
            return False
        if not growing.parts:  # no item has its type: after the first iteration there is one
            raise self._guess_error(first=True)
        self.guessed.append((growing, index))
        return True

    def _guess_error(self, first: bool = False) -> CaptureError:
        error = UnsupportedSyntaxError(
            "an index into a list is known only at run time",
            help="index an array of the program, `np.stack(items)[i]`",
        )
        error.roots, error.first = frozenset([self]), first
        return error

    def _learn_growth(self) -> None:
        """Retrace the loop, with rows for the lists that an iteration appends to."""
        if not self.appends:
            return
        found = {}
        for kept in self.held.growing():
            count = kept.holder.counted - kept.counted
            if kept.grows or not count:
                continue
            missing = self.missing.pop(id(kept.holder), None)
            counts = Counts(count, self.count, None if missing is None else count - missing)
            growth = learned(kept.holder, [*kept.before.values()], counts, kept.path)
            if growth is not None:
                found[kept.path] = growth
        self.info.grown |= found
        if found:
            raise Retrace(self)
        for growing, index in self.guessed:
            growing.grows = False  # from the next attempt on
            if pays(self.trace, index) and numbers_in(growing.parts) is not None:
                become_rows(growing)
        if self.guessed or self.missing:
            raise self._guess_error()

    def _check_structures(self) -> None:
        """Refuse iterations that change the keys of a container. A `for` loop is unrolled then."""
        for holder, keys in self.held.structures().items():
            path, before = self.held.described(holder)
            error = UnsupportedSyntaxError(
                f"`{path}` has {_size(before)} before an iteration of the loop and {_size(keys)} after it",
                help="store into an array made before the loop, `out[i] = x`",
            )
            error.roots, error.first = frozenset([self]), True
            error.lists = self.held.sites(holder)
            raise error

    def counts_turns(self, turns: dict[str, str]) -> bool:
        """True if the number of exchanges of these arrays will be known."""
        return False

    def _check_references(self, pairs: list[tuple[Slot, Any]], before: dict[str, Any], stored: Stored) -> None:
        """Check that arrays that are carried as values do not change meanwhile."""
        arrays = [(slot, leaf) for slot, leaf in pairs if is_array(leaf)]
        self.shared = {
            slot.path
            for slot, leaf in arrays
            if not self.runs
            or leaf._cell.region is not self.trace.builder.region
            or leaf._cell.watched
            or sum(leaf._cell is other._cell for _, other in arrays) > 1
        }
        self.ends = {slot.path: leaf for slot, leaf in arrays}
        held = {id(cell) for cell, changed in zip(stored.cells, stored.changed) if changed}
        starts = {leaf._cell for slot, _ in arrays for leaf in self._leaves(before, slot) if is_array(leaf)}
        for slot, leaf in arrays:
            if id(leaf._cell) in held or any(id(cell) in held for cell in starts):
                raise CaptureError(
                    f"{slot.path} refers to an array that the loop stores into, and to another one in other iterations",
                    help="take a `.copy()` of it, or store with `x[:] = y` so that one name is always one array",
                )

    def _leaves(self, before: dict[str, Any], slot: Slot) -> list[Any]:
        """The leaves of a slot before the loop."""
        name = next(name for name, group in self.slots.items() if slot in group)
        return [] if before[name] is UNBOUND else Tree.of(before[name]).leaves

    def _find_by_value(self, before: dict[str, Any]) -> None:
        """Raise `Retrace` if array variables are assigned other arrays: once for all of them, as each attempt costs."""
        new = set()
        for name in self.passed:
            start, value = before[name], self.variables.get(name)
            arrays = isinstance(value, Traced) and isinstance(start, Traced) and is_array(start)
            if arrays and name not in self.turns and not is_number(start) and not same(start, value):
                new.add(f"`{name}`")
        if not new <= self.info.by_value:
            self.info.by_value |= new
            raise Retrace(self)

    def _ends(self, name: str, before: Any, slots: list[Slot]) -> list[tuple[Slot, Any]]:
        """The values of a variable's slots at the end of an iteration."""
        value = self.variables.get(name)
        if value is UNBOUND:
            if before is UNBOUND and not slots:
                return []
            self.info.dropped.add(name)
            raise Retrace(self)
        if before is UNBOUND:
            if not self.may_be_unassigned(name):
                return self._first(name, value, slots)
            before = None
        if self._is_list(name, before):
            if value is before:
                return []
            self._check_names(name, before, value)
            self.info.rebound.add(name)
            raise Retrace(self)
        old, new = Tree.of(before), Tree.of(value)
        if old.treedef != new.treedef:
            other = alike(before, value)
            if other is not None and other is before:
                raise Retrace(self, (before,))
            if other is not None:
                settle(other)
                new = Tree.of(value)
            match_rooms(before, value)
        if old.treedef != new.treedef:
            new = self._optional(name, before, value)
        elif value is not before:
            self._check_names(name, before, value)
        rest, pairs, again = iter(slots), [], False
        for path, leaf, after in zip((f"`{path}`" for path in old.paths(name)), old.leaves, new.leaves):
            form = self.info.resized.get(path)
            if is_sized(leaf) and is_sized(after) and self._is_resized(path, leaf, after):
                if form is None and (name in self.turns or same(leaf, after)):
                    continue
                pairs += self._resized(path, leaf, after, rest)
            elif self._is_carried(path, leaf):
                pairs.append((next(rest), after))
            elif not same(leaf, after) and name not in self.turns:
                if not is_array(leaf) or not isinstance(after, Traced):
                    raise self._no_number(path.strip("`"), after)
                self.info.by_value.add(path)
                again = True
        if again:
            raise Retrace(self)
        return pairs

    def _optional(self, name: str, before: Any, value: Any) -> Tree:
        """The leaves of a variable that is None, or may be, before an iteration or after it; raises `Retrace` if it is
        not carried like that, and an error for other structures that differ.
        """
        treedef = structure_of([before, value])
        if treedef is None or (self.peels and before is None and type(value) is not Optional):
            raise self._restructured(name, before, value)
        if type(before) is Optional:
            return Tree(leaves_of(value, treedef, self.inside[name][1]), treedef)
        leaves = leaves_of(before if value is None else value, treedef)[1:]
        slots = [
            Slot.zero(f"`{path}`", leaf_type_of(leaf, path), is_number(leaf))
            for path, leaf in zip(treedef.paths(name)[1:], leaves)
        ]
        self.info.optional[name] = First(treedef.children[1], slots)
        self.info.by_value |= {slot.path for slot in slots if not slot.scalar}
        if before is None:
            self.info.leaf_types |= {slot.path: slot.leaf_type for slot in slots}
        raise Retrace(self)

    def _is_resized(self, path: str, before: Any, after: Any) -> bool:
        """True for an array of which a length changes by as much as the data say, or differently in each iteration."""
        if path in self.info.resized or path in self.info.uneven:
            return True
        return path not in self.info.steps and (is_dynamic(before) or is_dynamic(after))

    def _resized(self, path: str, leaf: Any, after: Any, slots: Iterator[Slot]) -> list[tuple[Slot, Any]]:
        """The values of an array of changing length at the end of an iteration: its lengths, and the buffer."""
        start, end = sliced(leaf), sliced(after)
        check_resized(path, start, end)
        end, room = within_room(path, start, end)
        known = self.info.resized.get(path)
        first = len(self.lengths.known)
        form = form_of(path, start, end, self.lengths, room)
        self.info.longer |= {name for dim, name in form.named() if end._most[dim] > start._most[dim]}
        if known is None or form.lengths != known.lengths:
            self.info.resized[path] = form
            self.info.steps.pop(path, None)
            self.relearned = True
            return []
        new = list(self.lengths.known.values())[first:]
        pairs: list[tuple[Slot, Any]] = [(next(slots), length) for _, length in new]
        if path not in self.info.named and not is_alone(after, user_variables()):
            self.info.named.add(path)
            self.relearned = True
        return [*pairs, (next(slots), buffer_of(end, form, self.buffers.get(path)))]

    def _check_names(self, name: str, before: Any, value: Any) -> None:
        """Refuse a variable that is assigned another list or dict, if one of the two has another name and may change.

        After a loop whose trip count may be zero, a flat list may still be the one with another name: it is only read.
        """
        dead = {name, *self.own} - {*self.passed} | {name}
        named = [pair for pair in user_variables() if pair[0] not in dead]
        ends = named if name in self.variables.elements else [*named, (name, value)]
        other = with_other_name(before, value, [*named, (name, before)])
        kept = other and not self.certain and name in self.after
        reads = is_flat_list(before) and name not in self.variables.elements
        if kept and reads:
            self.either.add(name)
        if (
            with_other_name(value, before, ends)
            or (other and self.held.has_changed(before))
            or (kept and not reads)
        ):  # fmt: skip
            error = UnsupportedSyntaxError(
                f"`{name}` refers to a list or dict that has another name, and to another one in another iteration",
                help="give it a copy, `list(a)` or `dict(a)`, so that one name is always one list",
            )
            error.roots = frozenset([self])
            raise error

    def _restructured(self, name: str, before: Any, value: Any) -> CaptureError:
        error = CaptureError(
            f"`{name}` has another structure after an iteration of the loop than before it",
            help="give it the same containers, with the same keys, in each iteration",
        )
        if before is None or value is None:
            error = CaptureError(
                f"`{name}` is {_a(before)} before an iteration of the loop, and {_a(value)} after it",
                help="start with a number, such as `-np.inf` or -1, or with an array",
            )
        error.roots, error.first = frozenset([self]), True
        error.lists = frozenset().union(*(one.sites() for one in (before, value) if type(one) is GrowingList))
        return error

    def _first(self, name: str, value: Any, slots: list[Slot]) -> list[tuple[Slot, Any]]:
        """The slots of a variable that had no value before the loop."""
        checks = self.count is None and (name, self.key) in self.trace.assigned
        if not slots and (name not in self.after or not (self.runs or checks or name.startswith("."))):
            return []
        tree = Tree.of(value)
        if name not in self.info.first:
            made = []
            for leaf, path in zip(tree.leaves, tree.paths(name)):
                if not is_number(leaf) and not is_array(leaf):
                    raise self._no_number(path, leaf)
                made.append(Slot.zero(f"`{path}`", leaf_type_of(leaf, path), is_number(leaf)))
            self.info.first[name] = First(tree.treedef, made)
            raise Retrace(self)
        return list(zip(slots, tree.leaves))

    def _no_number(self, path: str, leaf: Any) -> CaptureError:
        error = UnsupportedSyntaxError(
            f"`{path}` is assigned {_a(leaf)} in a loop, which carries numbers and arrays only",
            help="assign it outside of the loop, or write the numbers into variables of their own",
        )
        if any(path.startswith(element) for element in self.variables.elements):
            error.roots = frozenset([self])
        return error

    def _mismatch(self, slot: Slot, leaf_type: LeafType) -> CaptureError:
        name = slot.path.strip("`").lstrip(".")
        if leaf_type.shape != slot.leaf_type.shape:
            return ShapeError(
                f"`{name}` changes its shape in the loop: {slot.leaf_type} before an iteration, {leaf_type} after it",
                help="use another name for the new array, or store into an array of the right shape",
            )
        return DTypeError(
            f"`{name}` changes its dtype in the loop: {slot.leaf_type} before an iteration, {leaf_type} after it",
            help=f"start with {_started(leaf_type)}, or convert the new value, `{_converted(slot.leaf_type)}`",
        )

    # After the loop.

    def end(self, before: dict[str, Any], results: Sequence[Value]) -> None:
        """Assign the variables their values after the loop."""
        rest = iter(results)
        lengths: dict[str, Any] = {}
        for name in self.own:
            if name not in self.passed or (before[name] is UNBOUND and name not in self.slots):
                self.variables.set(name, UNBOUND)
                if name in self.after:
                    self.trace.unbound[name] = self
        unassigned = self.unassigned(before)
        if unassigned and not self.runs:
            self.check_assigned(unassigned, self.iterates())
        for name, group in self.slots.items():
            values = self._joined([(slot, self._result(slot, next(rest), before[name])) for slot in group], lengths)
            first = self.info.first.get(name)
            if before[name] is UNBOUND and first is not None:
                filled = first.treedef.unflatten(values)
            else:
                filled = self._filled(name, before[name], values)
                if name in self.either:
                    filled = GrowingList(self.trace, filled, grows=False)
                    filled.only_read([before[name]])
            note_joined(self.trace, filled, [self.last.get(name)])
            self.variables.set(name, filled)

    def unassigned(self, before: dict[str, Any]) -> list[str]:
        """The variables that get their first value in the loop and are read after it."""
        return [name for name in self.info.first if before[name] is UNBOUND and not name.startswith(".")]

    def iterates(self) -> Any:
        """True if there is a first iteration, which may be known at run time only."""
        raise NotImplementedError

    def check_assigned(self, names: Sequence[str], condition: Any) -> None:
        """Check a condition at run time, without which variables that are read after the loop have no values."""
        b, truth = self.trace.builder, self.trace.hooks.truth(condition)
        shown = " and ".join(f"`{name}`" for name in names)
        check = Check(
            "UnassignedNameError",
            f"{shown} may have no value: {self.owner} has no iterations",
            f"give {shown} {'a value' if len(names) == 1 else 'values'} before {self.owner}",
        )
        if b.checked:
            b.check(control.to_scalar(b, truth) if isinstance(truth, Value) else b.scalar(truth, _BOOL), check)

    def _result(self, slot: Slot, value: Value, before: Any) -> Traced:
        most = self._limits().get(slot.path)
        if most is not None:
            return length_in_region(self.trace, value, most)
        result = slot.in_region(self.trace, value)
        most_iterations = self.most_iterations()
        if slot.path in self.gains and most_iterations is not None:
            self.trace.integers.note_sum(slot.value, self.gains[slot.path], most_iterations, value)
        if not slot.scalar:
            for writer in self.writers:
                writer.note_result(self.ends[slot.path], result)
        if not slot.scalar and slot.path in self.shared:
            result._cell.frozen = f"a store into {slot.path}, which may be one of several arrays after the loop"
            known = [self.ends[slot.path], *([] if before is UNBOUND else Tree.of(before).leaves)]
            watch(result, known)
        steps = self.info.steps.get(slot.path)
        return result if steps is None else remaining(result, steps, self.count)

    def end_of_unknown_turns(self, before: dict[str, Any], stored: Stored, arrays: list[Value], odd: Any) -> None:
        """Select the arrays after a dynamic number of exchanges, by its parity."""
        b, hooks = self.trace.builder, self.trace.hooks
        turned_once = exchanged(stored, before, self.turns, arrays, 1)
        condition = control.to_scalar(b, hooks.truth(odd))
        stored.end(control.conditional(b, condition, lambda: turned_once, lambda: arrays, self.owner))

    def set_either(self, before: dict[str, Any], stored: Stored, arrays: list[Value]) -> None:
        """Make variables refer to arrays of which only the contents are known, as they are one of two."""
        for name in self.turns:
            result = Traced(self.trace, Cell(arrays[position_of(stored, before[name])], owned=True))
            result._cell.frozen = f"a store into `{name}`, which is one array or another after the loop"
            watch(result, [before[other] for other in self.turns])
            self.variables.set(name, result)

    def outside(self) -> list[Value]:
        """The init values of the loop."""
        return [slot.start(self.trace) for group in self.slots.values() for slot in group]

    def split(self, values: Sequence[Value], stored: Stored) -> tuple[list[Value], list[Value]]:
        """Split the loop's values into those of variables, and those of allocations."""
        count = len(values) - len(stored.cells)
        return list(values[:count]), list(values[count:])


def _started(leaf_type: LeafType) -> str:
    return (
        f"{leaf_type}"
        if leaf_type.weak
        else f"`np.{leaf_type.dtype.name}(...)`"
        if not leaf_type.shape
        else f"an array of {leaf_type.dtype.name}"
    )


def _size(keys: tuple[Any, ...]) -> str:
    return f"{len(keys)} element{'' if len(keys) == 1 else 's'}"


def _converted(leaf_type: LeafType) -> str:
    return f"x.astype(np.{leaf_type.dtype.name})"


def _a(leaf: Any) -> str:
    if leaf is None:
        return "None"
    if is_dynamic(leaf):
        return str(getattr(type(leaf), DYNAMIC))
    name = "array" if isinstance(leaf, Traced) else type(leaf).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"

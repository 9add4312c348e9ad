"""What a loop carries from round to round: which variables, as what, and that they stay of one kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.tree import TreeDef
from mlirml.errors import CaptureError, DTypeError, ShapeError, UnsupportedSyntaxError
from mlirml.frontend.frames import user_variables
from mlirml.frontend.loops.construct import Again, Construct
from mlirml.frontend.loops.containers import Place, is_flat_list, with_other_name
from mlirml.frontend.loops.dynamic_slices.slices import Varying
from mlirml.frontend.loops.growing import Writer, learned, opened
from mlirml.frontend.loops.references import check_alone, ended, exchanged, find_turns, place_of, watch
from mlirml.frontend.loops.shrinking import Steps, lengthened, remaining, shortened, steps_between
from mlirml.frontend.loops.variables import UNBOUND, Slot, Stored, Tree, as_kind, is_array, is_number, same
from mlirml.frontend.tracing.array import Cell, Traced
from mlirml.frontend.tracing.carry import Kind, carried, kind_of
from mlirml.frontend.tracing.growing_list import Counts, GrowingList, Growth
from mlirml.frontend.tracing.indexing import VARYING, is_varying
from mlirml.frontend.tracing.number_lists import alike, become_rows, numbers_in, pays, settle
from mlirml.ir.text import control
from mlirml.ir.text.builder import Value

_I64 = np.dtype(np.int64)


@dataclass
class First:
    """A variable that gets its first value in the loop: the structure and the kinds of it."""

    treedef: TreeDef
    slots: list[Slot]


@dataclass
class Rounds:
    """What is known of a loop from earlier attempts to write it, by the paths of leaves and the names of variables."""

    kinds: dict[str, Kind] = field(default_factory=dict)
    scalars: dict[str, bool] = field(default_factory=dict)
    by_value: set[str] = field(default_factory=set)  # arrays that a variable does not keep
    first: dict[str, First] = field(default_factory=dict)
    turns: dict[str, str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)  # variables that a round leaves without a value
    rebound: set[str] = field(default_factory=set)  # variables that get another list in an iteration
    steps: dict[str, Steps] = field(default_factory=dict)  # arrays that each iteration leaves shorter
    grown: dict[str, Growth] = field(default_factory=dict)  # lists that an iteration appends to
    differ: str = ""  # why one iteration is not like another, so that the loop is unrolled


class Loop(Construct):
    """A `for` or a `while`. `head` are the variables that a round reads from the one before, `after` those that are
    read after the loop, and `renewed` those that get new values in each iteration, as their source shows."""

    def __init__(
        self, *arguments: Any, head: Sequence[str], after: Sequence[str], renewed: Sequence[str] = (), keep: str = ""
    ) -> None:
        super().__init__(*arguments)
        self.head, self.after, self.renewed = frozenset(head), frozenset(after), frozenset(renewed)
        self.rounds: Rounds = self.trace.learned.setdefault(self.signature(), Rounds())
        self.keep = keep
        self.symbols: dict[str, Any] = {}  # what is known of carried integers, the same in all parts of the loop
        self.shared: set[str] = set()
        self.ends: dict[str, Any] = {}
        self.slots: dict[str, list[Slot]] = {}
        self.writers: list[Writer] = []  # what it appends to lists
        # How many items fewer than others some iterations append, by the list, for each iteration.
        self.missing: dict[int, np.ndarray] = {}
        self.count: Any = None
        self.number: Any = None  # of the iteration that is being written
        self.guessed: list[tuple[GrowingList, Any]] = []  # lists, and indices, as if the loop appended to them
        self.runs = False  # whether there is a first round for certain
        self.either: set[str] = set()  # variables of lists that keep a list with a second name where there is none

    def add_places(self, places: Iterable[Place]) -> bool:
        if not super().add_places(places):
            return False
        self.head |= self.variables.places.keys()
        self.after |= self.variables.places.keys()
        self.rounds = self.trace.learned.setdefault(self.signature(), Rounds())
        return True

    @property
    def passed(self) -> list[str]:
        """The variables that go from round to round."""
        read = self.head | self.after
        return [n for n in self.own if n in read and n != self.keep and n not in self.rounds.dropped]

    @property
    def turns(self) -> dict[str, str]:
        """The variables that exchange their arrays."""
        return self.rounds.turns

    # In front of the loop.

    def prepare(self, before: dict[str, Any]) -> None:
        """The leaves of each variable that are carried as values."""
        # An iteration would show this of them: it need not be written once in vain.
        self.rounds.by_value |= {f"`{n}`" for n in self.passed if n in self.renewed and is_array(before[n])}
        self.slots = self._slots(before)
        self.writers, self.guessed = [], []
        for kept in self.held.growing():
            growth = self.rounds.grown.get(kept.path)
            kept.grows = growth is not None  # not, where more variables than before make it another loop
            if growth is not None:
                self.writers.append(opened(self, kept.holder, growth, kept.path))

    def _cells(self) -> list[Cell]:
        own = [column._cell for writer in self.writers if writer.outer is None for column in writer.start.columns]
        return [*super()._cells(), *own]

    @property
    def appends(self) -> bool:
        """True if it is known how many rows it adds to lists."""
        return False

    def seen(self) -> list[str]:
        return [*super().seen(), *self.turns]

    def _slots(self, before: dict[str, Any]) -> dict[str, list[Slot]]:
        found: dict[str, list[Slot]] = {}
        for name in self.passed:
            value = before[name]
            if self._is_list(name, value):
                continue
            if value is UNBOUND:
                first = self.rounds.first.get(name)
                if first is not None:
                    found[name] = [self._known(slot) for slot in first.slots]
                continue
            tree = Tree.of(value)
            found[name] = [
                self._known(Slot.of(self.trace, leaf, f"`{path}`"))
                for leaf, path in zip(tree.leaves, tree.paths(name))
                if is_number(leaf) or (is_array(leaf) and f"`{path}`" in self.rounds.by_value)
            ]
        return found

    def _is_list(self, name: str, value: Any) -> bool:
        """True if a variable is the same list in all iterations, which may grow."""
        return type(value) is GrowingList and name not in self.rounds.rebound

    def _known(self, slot: Slot) -> Slot:
        kind = self.rounds.kinds.get(slot.path, slot.kind)
        return replace(slot, kind=kind, scalar=self.rounds.scalars.get(slot.path, slot.scalar))

    # In the loop.

    def begin(self, before: dict[str, Any], values: Sequence[Value]) -> None:
        """Give the variables the values that they have in a round."""
        rest = iter(values)
        for name in self.own:
            self.variables.set(name, UNBOUND if name not in self.passed else before[name])
        for name, group in self.slots.items():
            inside = [self._argument(slot, next(rest)) for slot in group]
            self.variables.set(name, self._filled(name, before[name], inside))

    def _argument(self, slot: Slot, value: Value) -> Traced | Varying:
        array = slot.inside(self.trace, value)
        if slot.scalar and slot.kind.dtype == _I64:
            integers = self.trace.integers
            if slot.path not in self.symbols:
                self.symbols[slot.path] = integers.symbol(roots=frozenset([self]))
            integers.forms[value.name] = self.symbols[slot.path]
        if not slot.scalar:
            array._cell.frozen = (
                f"a store into {slot.path}, which is another array in the next round of the loop: compiled code cannot "
                "tell whose elements change"
            )
        steps = self.rounds.steps.get(slot.path)
        return array if steps is None else shortened(array, steps, self.number)

    def _filled(self, name: str, before: Any, values: Sequence[Traced | Varying]) -> Any:
        """What a variable holds, with these values for what is carried."""
        first = self.rounds.first.get(name)
        if before is UNBOUND:
            assert first is not None
            return first.treedef.unflatten(list(values)) if name in self.head else UNBOUND
        if self._is_list(name, before):
            return before
        tree, rest = Tree.of(before), iter(values)
        leaves = [
            next(rest) if is_number(leaf) or (is_array(leaf) and f"`{path}`" in self.rounds.by_value) else leaf
            for leaf, path in zip(tree.leaves, tree.paths(name))
        ]
        return tree.treedef.unflatten(leaves)

    def carried_on(self, before: dict[str, Any], stored: Stored) -> list[Value]:
        """The values at the end of a round. Raises `Again` where one is something else than the loop carries."""
        for writer in self.writers:
            writer.check_count()
            self.missing.pop(id(writer.growing), None)
        self._learn_growth()
        self._check_structures()
        self.check_places()
        held = stored.values()
        for writer in self.writers:
            writer.check_held(cell for cell, changed in zip(stored.cells, stored.changed) if changed)
        turns = find_turns(before, {name: self.variables.get(name) for name in self.passed})
        if turns != self.turns:
            frozen = any(before[name]._cell.frozen is not None for name in turns)
            if self.turns or frozen or not self.counts_turns(turns):
                raise CaptureError(
                    "arrays are exchanged in a way that differs from round to round, as far as is known",
                    help="exchange them once in each round of one loop without `break`, or copy: `a[:] = b`",
                )
            self.rounds.turns = turns
            raise Again(self)
        self._find_by_value(before)
        found = [self._ends(name, before[name], self.slots.get(name, [])) for name in self.passed]
        pairs = [(slot, self._lengthened(slot, leaf)) for group in found for slot, leaf in group]
        self._check_references(pairs, before, stored)
        changed = False
        for slot, leaf in pairs:
            kind = carried(slot.kind, kind_of(leaf, slot.path))
            if kind is None:
                self.rounds.steps[slot.path] = self._steps(slot, leaf)
                changed = True
                continue
            scalar = slot.scalar or is_number(leaf)
            changed |= kind != slot.kind or scalar != slot.scalar
            self.rounds.kinds[slot.path], self.rounds.scalars[slot.path] = kind, scalar
        if changed:
            raise Again(self)
        if self.turns:
            check_alone(self.variables, before, self.turns)
        values = [as_kind(self.trace, leaf, slot.kind, slot.path) for slot, leaf in pairs]
        return [*values, *ended(stored, before, self.turns, held)]

    def _steps(self, slot: Slot, leaf: Any) -> Steps:
        """By how much an array gets shorter in an iteration; an error for what is carried otherwise."""
        kind = kind_of(leaf, slot.path)
        if self.appends and slot.path not in self.rounds.steps:
            steps = steps_between(slot.kind, kind, self.count)
            if steps is not None:
                return steps
        raise self._mismatch(slot, kind)

    def _lengthened(self, slot: Slot, leaf: Any) -> Any:
        """An array as the loop carries it, where each iteration leaves it shorter."""
        steps = self.rounds.steps.get(slot.path)
        if steps is None or not isinstance(leaf, Varying):
            return leaf
        array = lengthened(self.trace, leaf, slot.kind, steps, self.number)
        if array is None:
            raise ShapeError(
                f"{slot.path} gets shorter in the loop, by another amount in one iteration than in another",
                help="store into an array of the first shape, and count in a variable",
            )
        return array

    def note_read(self, growing: GrowingList, index: Any) -> bool:
        """Take note that an item of a list was read as if the loop appended to it; False for another list."""
        if all(kept.holder is not growing for kept in self.held.growing()):
            return False
        if not growing.parts:  # no item tells its kind: after the first iteration there is one
            raise self._guess_error(first=True)
        self.guessed.append((growing, index))
        return True

    def _guess_error(self, first: bool = False) -> CaptureError:
        error = UnsupportedSyntaxError(
            "an index into a list is known only when the program runs",
            help="index an array of the program, `np.stack(items)[i]`",
        )
        error.roots, error.first = frozenset([self]), first
        return error

    def _learn_growth(self) -> None:
        """Write the loop again, with rows for the lists that an iteration appends to."""
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
        self.rounds.grown |= found
        if found:
            raise Again(self)
        for growing, index in self.guessed:
            growing.grows = False  # from the next attempt on
            if pays(self.trace, index) and numbers_in(growing.parts) is not None:
                become_rows(growing)
        if self.guessed or self.missing:
            raise self._guess_error()

    def _check_structures(self) -> None:
        """Refuse rounds that leave a container with other keys than they found. A `for` loop is unrolled then."""
        for holder, keys in self.held.structures().items():
            path, before = self.held.words(holder)
            error = UnsupportedSyntaxError(
                f"`{path}` has {_size(before)} in front of a round of the loop and {_size(keys)} behind it",
                help="store into an array made in front of the loop, `out[i] = x`",
            )
            error.roots, error.first = frozenset([self]), True
            raise error

    def counts_turns(self, turns: dict[str, str]) -> bool:
        """True if it will be known, how often these arrays were exchanged."""
        return False

    def _check_references(self, pairs: list[tuple[Slot, Any]], before: dict[str, Any], stored: Stored) -> None:
        """Arrays that are carried as values must not change while they are."""
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
                    f"{slot.path} refers to an array that the loop stores into, and to another one in another round",
                    help="take a `.copy()` of it, or store with `x[:] = y` so that one name is always one array",
                )

    def _leaves(self, before: dict[str, Any], slot: Slot) -> list[Any]:
        """What a slot held in front of the loop."""
        name = next(name for name, group in self.slots.items() if slot in group)
        return [] if before[name] is UNBOUND else Tree.of(before[name]).leaves

    def _find_by_value(self, before: dict[str, Any]) -> None:
        """Raise `Again` where variables of arrays become other arrays: once for all of them, as each attempt costs."""
        new = set()
        for name in self.passed:
            start, value = before[name], self.variables.get(name)
            arrays = isinstance(value, Traced) and isinstance(start, Traced) and is_array(start)
            if arrays and name not in self.turns and not is_number(start) and not same(start, value):
                new.add(f"`{name}`")
        if not new <= self.rounds.by_value:
            self.rounds.by_value |= new
            raise Again(self)

    def _ends(self, name: str, before: Any, slots: list[Slot]) -> list[tuple[Slot, Any]]:
        """What becomes of the slots of a variable in a round."""
        value = self.variables.get(name)
        if value is UNBOUND:
            if before is UNBOUND and not slots:
                return []
            self.rounds.dropped.add(name)
            raise Again(self)
        if before is UNBOUND:
            return self._first(name, value, slots)
        if self._is_list(name, before):
            if value is before:
                return []
            self._check_names(name, before, value)
            self.rounds.rebound.add(name)
            raise Again(self)
        old, new = Tree.of(before), Tree.of(value)
        if old.treedef != new.treedef:
            other = alike(before, value)
            if other is not None and other is before:
                raise Again(self, (before,))
            if other is not None:
                settle(other)
                new = Tree.of(value)
        if old.treedef != new.treedef:
            raise self._restructured(name, before, value)
        if value is not before:
            self._check_names(name, before, value)
        rest, pairs, again = iter(slots), [], False
        for path, leaf, after in zip(old.paths(name), old.leaves, new.leaves):
            if is_number(leaf) or (is_array(leaf) and f"`{path}`" in self.rounds.by_value):
                pairs.append((next(rest), after))
            elif not same(leaf, after) and name not in self.turns:
                if not is_array(leaf) or not isinstance(after, Traced):
                    raise self._no_number(path, after)
                self.rounds.by_value.add(f"`{path}`")
                again = True
        if again:
            raise Again(self)
        return pairs

    def _check_names(self, name: str, before: Any, value: Any) -> None:
        """Refuse a variable that becomes another list or dict, if one of the two has another name and may change.

        After a loop whose trip count may be zero, a flat list may still be the one with another name: it is only read.
        """
        dead = {name, *self.own} - {*self.passed} | {name}
        named = [pair for pair in user_variables() if pair[0] not in dead]
        ends = named if name in self.variables.places else [*named, (name, value)]
        other = with_other_name(before, value, [*named, (name, before)])
        kept = other and not self.certain and name in self.after
        reads = is_flat_list(before) and name not in self.variables.places
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
            f"`{name}` has another structure after a round of the loop than before it",
            help="give it the same containers, with the same keys, in each round",
        )
        if before is None or value is None:
            error = CaptureError(
                f"`{name}` is {_a(before)} before a round of the loop, and {_a(value)} after it",
                help="start with a number, such as `-np.inf` or -1, or with an array",
            )
        error.roots, error.first = frozenset([self]), True
        return error

    def _first(self, name: str, value: Any, slots: list[Slot]) -> list[tuple[Slot, Any]]:
        """A variable that had no value in front of the loop."""
        if name not in self.after or not (self.runs or name.startswith(".")):
            return []
        tree = Tree.of(value)
        if name not in self.rounds.first:
            made = []
            for leaf, path in zip(tree.leaves, tree.paths(name)):
                if not is_number(leaf) and not is_array(leaf):
                    raise self._no_number(path, leaf)
                made.append(Slot.zero(f"`{path}`", kind_of(leaf, path), is_number(leaf)))
            self.rounds.first[name] = First(tree.treedef, made)
            raise Again(self)
        return list(zip(slots, tree.leaves))

    def _no_number(self, path: str, leaf: Any) -> CaptureError:
        error = UnsupportedSyntaxError(
            f"`{path}` is assigned {_a(leaf)} in a loop, which carries numbers and arrays only",
            help="assign it outside of the loop, or write the numbers into variables of their own",
        )
        if any(path.startswith(place) for place in self.variables.places):
            error.roots = frozenset([self])
        return error

    def _mismatch(self, slot: Slot, kind: Kind) -> CaptureError:
        name = slot.path.strip("`").lstrip(".")
        if kind.shape != slot.kind.shape:
            return ShapeError(
                f"`{name}` changes its shape in the loop: {slot.kind} before a round, {kind} after it",
                help="use another name for the new array, or store into an array of the right shape",
            )
        return DTypeError(
            f"`{name}` changes its dtype in the loop: {slot.kind} before a round, {kind} after it",
            help=f"start with {_started(kind)}, or convert the new value, `{_converted(slot.kind)}`",
        )

    # Behind the loop.

    def end(self, before: dict[str, Any], results: Sequence[Value]) -> None:
        """Give the variables the values that they have behind the loop."""
        rest = iter(results)
        for name in self.own:
            if name not in self.passed or (before[name] is UNBOUND and name not in self.slots):
                self.variables.set(name, UNBOUND)
                if name in self.after:
                    self.trace.unbound[name] = self.owner
        for name, group in self.slots.items():
            values = [self._result(slot, next(rest), before[name]) for slot in group]
            first = self.rounds.first.get(name)
            if before[name] is UNBOUND and first is not None:
                self.variables.set(name, first.treedef.unflatten(values))
            else:
                filled = self._filled(name, before[name], values)
                if name in self.either:
                    filled = GrowingList(self.trace, filled, grows=False)
                    filled.only_read([before[name]])
                self.variables.set(name, filled)

    def _result(self, slot: Slot, value: Value, before: Any) -> Traced:
        result = slot.inside(self.trace, value)
        if not slot.scalar:
            for writer in self.writers:
                writer.note_result(self.ends[slot.path], result)
        if not slot.scalar and slot.path in self.shared:
            result._cell.frozen = f"a store into {slot.path}, which may be one of several arrays behind the loop"
            known = [self.ends[slot.path], *([] if before is UNBOUND else Tree.of(before).leaves)]
            watch(result, known)
        steps = self.rounds.steps.get(slot.path)
        return result if steps is None else remaining(result, steps, self.count)

    def end_of_unknown_turns(self, before: dict[str, Any], stored: Stored, arrays: list[Value], odd: Any) -> None:
        """Two arrays were exchanged an even or an odd number of times."""
        b, hooks = self.trace.builder, self.trace.hooks
        turned_once = exchanged(stored, before, self.turns, arrays, 1)
        condition = control.to_scalar(b, hooks.truth(odd))
        stored.end(control.conditional(b, condition, lambda: turned_once, lambda: arrays, self.owner))

    def set_either(self, before: dict[str, Any], stored: Stored, arrays: list[Value]) -> None:
        """What variables refer to then: one array or the other, of which only the contents are known."""
        for name in self.turns:
            result = Traced(self.trace, Cell(arrays[place_of(stored, before[name])], owned=True))
            result._cell.frozen = f"a store into `{name}`, which is one array or another behind the loop"
            watch(result, [before[other] for other in self.turns])
            self.variables.set(name, result)

    def outside(self) -> list[Value]:
        """The values that the loop starts with."""
        return [slot.start(self.trace) for group in self.slots.values() for slot in group]

    def split(self, values: Sequence[Value], stored: Stored) -> tuple[list[Value], list[Value]]:
        """The values of variables, and those of allocations."""
        count = len(values) - len(stored.cells)
        return list(values[:count]), list(values[count:])


def _started(kind: Kind) -> str:
    return (
        f"{kind}"
        if kind.weak
        else f"`np.{kind.dtype.name}(...)`"
        if not kind.shape
        else f"an array of {kind.dtype.name}"
    )


def _size(keys: tuple[Any, ...]) -> str:
    return f"{len(keys)} element{'' if len(keys) == 1 else 's'}"


def _converted(kind: Kind) -> str:
    return f"x.astype(np.{kind.dtype.name})"


def _a(leaf: Any) -> str:
    if leaf is None:
        return "None"
    if is_varying(leaf):
        return str(getattr(type(leaf), VARYING))
    name = "array" if isinstance(leaf, Traced) else type(leaf).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"

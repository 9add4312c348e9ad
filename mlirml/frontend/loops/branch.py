"""`if` on a dynamic value: an `scf.if` whose results are the variables that the branches assign."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.tree import TreeDef, flatten
from mlirml.errors import CaptureError, DTypeError, UnassignedNameError, UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.carry import LeafType, are_integer_and_double, common, joined, leaf_type_of
from mlirml.frontend.arrays.constructs import Retrace
from mlirml.frontend.arrays.growing_list import GrowingList
from mlirml.frontend.arrays.indexing import DYNAMIC, is_dynamic
from mlirml.frontend.arrays.list_parts import CopiedItem, close_items, note_joined
from mlirml.frontend.arrays.open_lists import match_rooms
from mlirml.frontend.arrays.optional import NO_EXAMPLE, example_of, has_structure, leaves_of
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.frames import user_variables
from mlirml.frontend.loops.construct import RetracedConstruct
from mlirml.frontend.loops.containers import Element, is_flat_list, with_other_name
from mlirml.frontend.loops.failing import FAILURES, fail, is_of_python
from mlirml.frontend.loops.growing import Branched, appending_loop, holds, mask_of
from mlirml.frontend.loops.narrowing import narrowed
from mlirml.frontend.loops.references import watch
from mlirml.frontend.loops.resized import (
    Lengths,
    Resized,
    buffer_of,
    form_of,
    is_sized,
    laid_out,
    length_in_region,
    sliced,
)
from mlirml.frontend.loops.variables import (
    UNBOUND,
    Stored,
    Tree,
    cell_of,
    is_array,
    is_number,
    same,
    value_of_type,
)
from mlirml.frontend.source.unbound import in_user_words
from mlirml.frontend.tracing.affine import Condition
from mlirml.ir.text import control
from mlirml.ir.text.builder import Mark, Value

_NOTHING = object()
"""The value of an array that a branch leaves unassigned."""
_LENGTH = LeafType((), np.dtype(np.int64), True)
EXPRESSION = "value"  # the variable name for the value of a conditional expression


@dataclass
class Merged:
    """A variable after the branches: its structure, and for each leaf the type of its result.

    A leaf without a type is the same object in both branches, that in `kept`. One with a form is an array whose lengths
    depend on the branch.
    """

    treedef: TreeDef
    leaf_types: list[LeafType | None]
    kept: list[Any]
    scalars: list[bool]
    forms: list[Resized | None]
    unchanged: bool = False  # one list or dict in both branches, whose elements are variables of their own


class _End(dict[str, Any]):
    """The variables at the end of a branch, with their leaves there, as lists and dicts are restored later."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.trees = {name: Tree.of(value) for name, value in values.items() if value is not UNBOUND}


def _tree_of(state: dict[str, Any], name: str) -> Tree:
    return state.trees[name] if isinstance(state, _End) else Tree.of(state[name])


class Branch(RetracedConstruct):
    """An `if` with its two branches."""

    owner = "a branch"

    def __init__(
        self,
        *arguments: Any,
        condition: str,
        assumptions: Condition,
        parts: tuple[Callable[[], Any], Callable[[], Any]],
        assigned: tuple[Sequence[str], Sequence[str]],
        after: Sequence[str],
        fills: Sequence[str] = (),
        test: Callable[[], Any] | None = None,
        sizes: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(*arguments)
        self.test = test  # recomputes the condition
        self.sizes = sizes  # the Python integer arguments that alone decide the branch
        self.condition, self.assumptions, self.parts = condition, assumptions, parts
        self.assigned, self.read, self.fills = assigned, tuple(after), fills
        self.failing: set[int] = set()  # the branches that fail in this attempt
        self.signed = self.signature()
        self.either: dict[str, list[Any]] = {}  # variables that are one of two lists, one of which has a second name

    @property
    def after(self) -> tuple[str, ...]:
        """The variables and container elements that are read after the branches."""
        return (*self.read, *self.variables.elements)

    def add_elements(self, elements: Iterable[Element]) -> bool:
        new = super().add_elements(elements)
        if new:
            self.signed = self.signature()
        return new

    @property
    def merged(self) -> dict[str, Merged] | None:
        """The results of the branches as far as an earlier attempt found them."""
        return self.trace.learned.get(self.signed)

    def write(self, before: dict[str, Any], stored: Stored) -> None:
        found: list[dict[str, Any]] = []
        guess: dict[str, Merged] = {}
        appended: list[dict[str, int]] = []
        structures: list[dict[int, tuple[Any, ...]]] = []
        ends: list[list[Value]] = []
        settled: list[CopiedItem] = []
        known_items, open_items = len(self.trace.copied_items), [*self.trace.open_items]
        self.failing.clear()
        loop, lists = appending_loop(self.trace), [Branched(kept) for kept in self.held.growing() if kept.grows]
        known = loop is not None and self.test is not None and self.held.growing()
        mask = mask_of(self.test, loop) if known and self.test is not None else None

        def branch(number: int) -> list[Value]:
            self.enter()
            self.held.restore()
            for name, value in before.items():
                self.variables.set(name, value)
            stored.enter(stored.starts)
            if loop is not None:
                loop.missing = {}
            presence = self.assumptions.false_presence if number else self.assumptions.true_presence
            with narrowed(self.parts, presence):
                return traced(number)

        def traced(number: int) -> list[Value]:
            with self.trace.integers.given(self.assumptions.false if number else self.assumptions.true):
                mark = self.trace.builder.mark()
                try:
                    self.parts[number]()
                except FAILURES as error:
                    if not is_of_python(error):
                        raise
                    del self.trace.copied_items[known_items:]
                    self.trace.open_items[:] = open_items
                    self._fail(number, error, mark, before)
                except NameError as error:
                    unassigned = self._unassigned(error)
                    if unassigned is None:
                        raise
                    self._fail(number, unassigned, mark, before)
                close_items(self.trace)
            settled.extend(one for one in self.trace.copied_items[known_items:] if not one.has_changed())
            missing = {} if loop is None else loop.missing
            for one in lists:
                one.note(missing)
            appended.append(self._appended(missing))
            if number:
                self._check_lists(lists, appended, mask)
            structures.append(self.held.structures())
            if number:
                self._check_structures(*structures)
            self.check_elements()
            found.append(_End({name: laid_out(self.variables.get(name), before.get(name)) for name in self.after}))
            values = self._values(found[-1], self._plan(found, guess, before), before)
            held = stored.values()
            stored.leave()
            ends.append(values)
            return [*values, *held]

        b, missing_before = self.trace.builder, None if loop is None else loop.missing
        symbols = self.trace.integers.mark()
        try:
            results = control.conditional(b, self.condition, lambda: branch(0), lambda: branch(1), self.owner)
        finally:
            if loop is not None:
                loop.missing = missing_before
        plan = guess if self.merged is None else self.merged
        count = len(results) - len(stored.cells)
        for one, other, result in zip(*ends, results):
            self.trace.integers.note_either(self.assumptions, one, other, result, symbols)
        stored.end(results[count:])
        self._set(plan, results[:count], found, before)
        for one in lists:
            one.join(loop, mask)
        for item in settled:
            item.rebase()

    def _unassigned(self, error: NameError) -> UnassignedNameError | None:
        """The error for a variable that may be unassigned; None for any other name."""
        found = in_user_words(error, self.trace.unbound)
        return found if found is not None and found.unassigned[-1] in self.trace.assigned else None

    def _fail(self, number: int, error: Exception, mark: Mark, before: dict[str, Any]) -> None:
        """Make a branch that raises an error of Python's fail at run time; otherwise it does nothing."""
        b = self.trace.builder
        if b.region is not mark.region:  # it was raised in an operation with regions, which is not complete
            b.rewind(mark)
        fail(self.trace, error)
        self.failing.add(number)
        self.held.restore()
        for name, value in before.items():
            self.variables.set(name, UNBOUND if name in self.assigned[1 - number] else value)

    def _check_failing(self) -> None:
        """Raise `Retrace` if other branches fail than in the attempt that found the results."""
        key = self.signed, "failing"
        if self.trace.learned.get(key, set()) != self.failing:
            self.trace.learned[key] = {*self.failing}
            if self.trace.learned.pop(self.signed, None) is not None:
                raise Retrace(self)

    def _plan(
        self, found: Sequence[dict[str, Any]], guess: dict[str, Merged], before: dict[str, Any]
    ) -> dict[str, Merged]:
        """The results of the branches, after the first of them those that are guessed; raises `Retrace` if wrong."""
        if len(found) > 1:
            self._check_failing()
        if self.merged is not None:
            if len(found) > 1 and any(form for merged in self.merged.values() for form in merged.forms):
                self._check_forms(self.merged, found)
            return self.merged
        if len(found) == 1:
            guess.update(self._guess(found[0], before))
            return guess
        plan = self._join(found)
        if not _alike(plan, guess):
            self.trace.learned[self.signed] = plan
            raise Retrace(self)
        return plan

    def prepare(self, before: dict[str, Any]) -> None:
        known = self.trace.learned.get((self.signed, "lists"), ())
        for kept in self.held.growing():
            kept.grows = kept.path in known or kept.open_rows is not None
        for path, element in [*self.variables.elements.items()]:
            if getattr(element.kept, "grows", False):  # an element recorded before the list was found to grow
                del self.variables.elements[path]
        self.own = (*self.named, *self.variables.elements)

    def _check_lists(
        self, lists: Sequence[Branched], appended: Sequence[dict[str, Any]], mask: np.ndarray | None
    ) -> None:
        """After the branches: raise `Retrace` where one of them appends more to a list than the other one."""
        loop = appending_loop(self.trace)
        for one in lists:
            if loop is None and np.any(np.isnan(one.each(mask))):
                keys = (tuple(range(count)) for count in one.counts)
                raise self._uneven(one.kept.path, *keys, sites=one.kept.holder.sites())
        then, other = appended
        new = {path for path in then if then[path] != other[path] or then[path][1] or other[path][1]}
        if loop is not None and mask is None:
            new = {kept.path for kept in self.held.growing() if kept.path in new and holds(loop, kept.holder)}
        if new and loop is not None:
            known = self.trace.learned.setdefault((self.signed, "lists"), set())
            known |= new
            raise Retrace(self)

    def _appended(self, missing: dict[int, Any]) -> dict[str, Any]:
        """The numbers of items in lists that are not known to grow here, and whether iterations differ in that."""
        lists = [kept for kept in self.held.growing() if not kept.grows]
        return {kept.path: (kept.holder.counted, id(kept.holder) in missing) for kept in lists}

    def _uneven(self, path: str, *keys: tuple[Any, ...], sites: frozenset[str]) -> CaptureError:
        error = UnsupportedSyntaxError(
            f"`{path}` holds {_keys(keys[0])} in one branch and {_keys(keys[1])} in the other",
            help="store numbers into an array, and count them in a variable",
        )
        error.lists = sites
        return self._decided(error)

    def _decided(self, error: CaptureError) -> CaptureError:
        """An error that does not arise where the arguments that decide the branch are static."""
        error.sizes, error.subject = self.sizes, self.owner
        return error

    def _check_structures(self, then: dict[int, tuple[Any, ...]], other: dict[int, tuple[Any, ...]]) -> None:
        """Refuse branches after which the structure of a container depends on the branch."""
        for holder in (*then, *other):
            path, before = self.held.described(holder)
            keys = then.get(holder, before), other.get(holder, before)
            if keys[0] != keys[1]:
                raise self._uneven(path, *keys, sites=self.held.sites(holder))

    def _guess(self, then: dict[str, Any], before: dict[str, Any]) -> dict[str, Merged]:
        """The results as far as the first branch determines them; the other one usually assigns the same types."""
        other = {name: before[name] if name not in self.assigned[1] else value for name, value in then.items()}
        return self._join([then, other], guess=True)

    def _check_forms(self, plan: dict[str, Merged], found: Sequence[dict[str, Any]]) -> None:
        """Raise `Retrace` if two arrays do not have the one length that they had in an earlier attempt."""
        again = self._join(found)
        if [merged.forms for merged in again.values()] != [merged.forms for merged in plan.values()]:
            self.trace.learned[self.signed] = again
            raise Retrace(self)

    def _join(self, found: Sequence[dict[str, Any]], guess: bool = False) -> dict[str, Merged]:
        plan: dict[str, Merged] = {}
        lengths = Lengths(self.trace)
        for name in self.after:
            states = [f for f in found if f[name] is not UNBOUND]
            bound = [f[name] for f in states]
            filled = self.failing or name in self.fills or name.startswith(".")
            absent = len(bound) == 1 and not filled and bound[0] is not None and self.may_be_unassigned(name)
            if not bound or (len(bound) == 1 and not filled and not absent):
                continue
            alone = len(bound) == 1  # the other branch yields any value, which is not read, or none
            bound, states = (bound * 2, states * 2) if alone else (bound, states)
            trees = [_tree_of(state, name) for state in states]
            if not alone and bound[0] is bound[1] and isinstance(bound[0], (list, dict)):
                plan[name] = Merged(trees[0].treedef, [], [], [], [], unchanged=True)
                continue
            if absent or trees[0].treedef != trees[1].treedef:
                trees = self._optional(name, [bound[0], None] if absent else bound)
                alone = True
            elif bound[0] is not bound[1] and not guess:
                self._check_names(name, bound, found)
            paths = trees[0].paths(name)
            merged = plan[name] = Merged(trees[0].treedef, [], [], [], [])
            for path, one, other in zip(paths, trees[0].leaves, trees[1].leaves):
                form = self._form(path, one, other, alone, lengths)
                if form is not None:
                    found_leaf: tuple[LeafType | None, Any, bool] = LeafType(form.most, form.dtype), None, False
                else:
                    found_leaf = self._leaf(path, one, other, alone)
                leaf_type, kept, scalar = found_leaf
                merged.leaf_types.append(leaf_type)
                merged.kept.append(kept)
                merged.scalars.append(scalar)
                merged.forms.append(form)
        return plan

    def _optional(self, name: str, values: Sequence[Any]) -> list[Tree]:
        """A variable that is None, or may be, in one of the branches; an error for other structures that differ."""
        example = example_of(values)
        if example is NO_EXAMPLE:
            match_rooms(*values)
            raise self._different(name, values)
        there, treedef = flatten(example)
        return [Tree(leaves_of(value, treedef, there), treedef) for value in values]

    def _check_names(self, name: str, values: Sequence[Any], found: Sequence[dict[str, Any]]) -> None:
        """Refuse a variable that is one of two containers, one of which has a second name; a list may be read only."""
        dead = {name, *self.own} - {*self.after} | {name}
        for value, other, state in zip(values, values[::-1], found):
            named = [pair for pair in user_variables() if pair[0] not in {*dead, *state}]
            named += [pair for pair in state.items() if pair[0] != name]
            if with_other_name(value, other, named if name in self.variables.elements else [*named, (name, value)]):
                if all(map(is_flat_list, values)) and name not in self.variables.elements:
                    self.either[name] = [*values]
                    return
                raise UnsupportedSyntaxError(
                    f"{_subject(name)} one list or dict or another, and one of them has another name",
                    help="give it a copy, `list(a)` or `dict(a)`, so that one name is always one list",
                )

    def _form(self, path: str, one: Any, other: Any, alone: bool, lengths: Lengths) -> Resized | None:
        """The form of an array of which a length depends on the data in a branch; None for other values."""
        if not (is_sized(one) and is_sized(other)):
            return None
        if not (is_dynamic(one) or is_dynamic(other)) and (one.shape == other.shape or one.ndim != other.ndim):
            return None
        if not alone and (one is other or same(one, other)):
            return None
        pair = sliced(one), sliced(other)
        if pair[0].ndim != pair[1].ndim or pair[0].dtype != pair[1].dtype:
            raise self._different(path, [one, other])
        return form_of(path, *pair, lengths)

    def _leaf(self, path: str, one: Any, other: Any, alone: bool) -> tuple[LeafType | None, Any, bool]:
        numbers = is_number(one), is_number(other)
        if not any(numbers) and same(one, other) and not (alone and is_array(one)):
            return None, one, False
        if one is other and not alone:
            return None, one, True
        if not all(is_number(x) or is_array(x) for x in (one, other)):
            raise self._different(path, [one, other])
        leaf_types = leaf_type_of(one, path), leaf_type_of(other, path)
        leaf_type = joined(*leaf_types)
        if leaf_type is None and all(numbers) and (path == EXPRESSION or are_integer_and_double(*leaf_types)):
            leaf_type = common(*leaf_types)
        if leaf_type is None:
            error = DTypeError(
                f"{_subject(path)} {leaf_types[0]} in one branch and {leaf_types[1]} in the other",
                help="convert one of them, so that shape and dtype are the same",
            )
            raise self._decided(error)
        return leaf_type, None, any(numbers)

    def _different(self, path: str, values: Sequence[Any]) -> CaptureError:
        one, other = (_shown(value) for value in values)
        lengths = [*map(_known_length, values)]
        if one == other and None not in lengths:
            one, other = (f"{shown} of {length} items" for shown, length in zip((one, other), lengths))
        error = UnsupportedSyntaxError(
            f"{_subject(path)} {one} in one branch and {other} in the other, and which one is known only at run time",
            help=_advice(path, values),
        )
        error.lists = frozenset().union(*(value.sites() for value in values if type(value) is GrowingList))
        error.chosen = path, tuple(Tree.of(value).treedef for value in values)
        return self._decided(error)

    def _values(self, found: dict[str, Any], plan: dict[str, Merged], before: dict[str, Any]) -> list[Value]:
        values = []
        seen: set[str] = set()
        for name, merged in plan.items():
            if found[name] is UNBOUND:
                leaves: list[Any] = [0 if form is None else _NOTHING for form in merged.forms]
            else:
                leaves = self._leaves(name, found, merged)
            roots = self._roots(name, merged, before)
            for leaf, leaf_type, form, root in zip(leaves, merged.leaf_types, merged.forms, roots):
                if form is not None:
                    x = sliced(self.trace.known(np.zeros(form.nothing, form.dtype)) if leaf is _NOTHING else leaf)
                    for dim, length_name in form.named():
                        if length_name not in seen:
                            seen.add(length_name)
                            values.append(value_of_type(self.trace, x._length(dim), _LENGTH, f"`{name}`"))
                    leaf = buffer_of(x, form, root)
                if leaf_type is not None:
                    values.append(value_of_type(self.trace, leaf, leaf_type, f"`{name}`"))
        return values

    def _leaves(self, name: str, state: dict[str, Any], merged: Merged) -> list[Any]:
        """The leaves of a value in the structure of the results."""
        value, tree = state[name], _tree_of(state, name)
        if tree.treedef == merged.treedef:
            return tree.leaves
        if not has_structure(value, merged.treedef):
            raise self._different(name, [value, merged.treedef])
        return leaves_of(value, merged.treedef)

    def _roots(self, name: str, merged: Merged, before: dict[str, Any]) -> list[Cell | None]:
        """The allocations in whose buffers the arrays of a variable are computed: those that it had before."""
        nothing: list[Cell | None] = [None for _ in merged.forms]
        value = before.get(name, UNBOUND)
        if not any(merged.forms) or value is UNBOUND:
            return nothing
        tree = Tree.of(value)
        if tree.treedef != merged.treedef:
            return nothing
        return [cell_of(leaf) if is_dynamic(leaf) else None for leaf in tree.leaves]

    def _forget(self) -> NoReturn:
        """Retrace without the results that an earlier attempt has found."""
        self.trace.learned.pop(self.signed, None)
        raise Retrace(self)

    def _set(
        self,
        plan: dict[str, Merged],
        results: Sequence[Value],
        found: Sequence[dict[str, Any]],
        before: dict[str, Any],
    ) -> None:
        rest = iter(results)
        lengths: dict[str, Any] = {}
        for name in self.own:
            self.variables.set(name, UNBOUND)
            if name in self.after and name not in plan:
                self.trace.unbound[name] = self
        for name, merged in plan.items():
            leaves = []
            given = [self._leaves(name, f, merged) for f in found if f[name] is not UNBOUND]
            if merged.unchanged:
                self.variables.set(name, found[0][name])
                if found[0][name] is not found[1][name]:
                    self._forget()
                continue
            for number, (leaf_type, scalar) in enumerate(zip(merged.leaf_types, merged.scalars)):
                if leaf_type is None:  # `kept` may be of an earlier attempt
                    leaves.append(given[0][number])
                    if not all(same(x[number], given[0][number]) for x in given):
                        self._forget()
                    continue
                form = merged.forms[number]
                if form is not None:
                    for dim, length_name in form.named():
                        if length_name not in lengths:
                            lengths[length_name] = length_in_region(self.trace, next(rest), form.most[dim])
                value = replace(next(rest), weak=leaf_type.weak)
                array = Traced(self.trace, Cell(value, owned=True), scalar=scalar)
                array._cell.root = self._roots(name, merged, before)[number]
                older = [g[number] for g in given if is_open(g[number])]
                if older:
                    array._cell.frozen = f"a store into `{name}`, which is one array or another after the `if`"
                    watch(array, older)
                leaves.append(array if form is None else form.slice_of(array, lengths))
            either = merged.treedef.unflatten(leaves)
            if name in self.either:
                either = GrowingList(self.trace, either, grows=False)
                either.only_read(self.either[name])
            note_joined(self.trace, either, [values[name] for values in found])
            self.variables.set(name, either)


def is_open(leaf: Any) -> bool:
    """True if an array is in memory that was there before the branches."""
    cell = cell_of(leaf)
    return cell is not None and cell.region is not None and cell.region.open


def _known_length(value: Any) -> int | None:
    """The length of a list or tuple; None for anything else, and for one that the program appends to."""
    if type(value) is GrowingList and value.rows is None:
        return int(value.length)
    return len(value) if type(value) in (list, tuple) else None


def _advice(path: str, values: Sequence[Any]) -> str:
    if None not in map(_known_length, values):
        return "take tuples of one length, an array of that length, or None beside a tuple"
    if all(type(value) is str for value in values):
        return "take numbers in place of the strings, `up, down = 0, 1`, and compare with these"
    if all(value is not None for value in values):
        return "assign numbers or arrays of one shape and dtype in both branches"
    return "beside None only a number, an array, or a tuple of them can be chosen by data"


def _subject(path: str) -> str:
    if path.startswith("."):
        return "the function returns"
    return "an expression is" if path == EXPRESSION else f"`{path}` is"


def _alike(one: dict[str, Merged], other: dict[str, Merged]) -> bool:
    if list(one) != list(other):
        return False
    return all(
        (one[n].treedef, one[n].unchanged) == (other[n].treedef, other[n].unchanged)
        and one[n].leaf_types == other[n].leaf_types
        and one[n].forms == other[n].forms
        and all(k is not None or same(a, b) or a is b for k, a, b in zip(one[n].leaf_types, one[n].kept, other[n].kept))
        for n in one
    )


def _keys(keys: tuple[Any, ...]) -> str:
    if keys == tuple(range(len(keys))):
        return f"{len(keys)} element{'' if len(keys) == 1 else 's'}"
    return ", ".join(map(repr, keys)) or "nothing"


def _shown(value: Any) -> str:
    if value is None or type(value) is str:
        return repr(value)
    if isinstance(value, Traced):
        return value._describe()
    if is_dynamic(value):
        return str(getattr(type(value), DYNAMIC))
    name = "list" if isinstance(value, TreeDef) else value.__class__.__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"

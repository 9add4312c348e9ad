"""Base class of loops and branches: their regions are retraced until it is known which values they carry."""

from __future__ import annotations

import types
from collections.abc import Iterable, Sequence
from typing import Any

from mlirml.errors import CaptureError, UnsupportedSyntaxError
from mlirml.frontend.arrays.constructs import Construct, Retrace, note_store
from mlirml.frontend.arrays.list_parts import PartedList, update_items
from mlirml.frontend.arrays.number_lists import settle
from mlirml.frontend.arrays.optional import Optional
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.loops.containers import Element, Snapshot
from mlirml.frontend.loops.signatures import Signature
from mlirml.frontend.loops.variables import Stored, Variables
from mlirml.frontend.source.tail_calls import check_depth
from mlirml.frontend.source.unbound import maybe
from mlirml.frontend.state.recursion import DEEPEST
from mlirml.frontend.tracing.affine import value_in
from mlirml.frontend.tracing.trace import Trace

MOST_ATTEMPTS = 500
"""Each attempt to trace a construct learns something, and few need more than ten."""


class RetracedConstruct(Construct):
    """A loop or a branch that is being traced.

    `own` are the variables that it assigns, `key` identifies its code. `cells` are the allocations that it stores into:
    those found in its source, and those found while tracing.
    """

    owner = "a loop"

    def __init__(self, trace: Trace, parts: Sequence[types.FunctionType], own: Sequence[str], changed: Sequence[str]):
        self.trace = trace
        self.variables = Variables(*parts)
        self.named = self.own = tuple(own)
        self.key = parts[0].__code__
        self._changed = changed
        self.held = Snapshot(())

    def signature(self) -> Any:
        """A key for facts learned in an earlier attempt of the same trace: the types of all variables.

        The class is in it: an iteration that is predicated is a branch with the code of the loop's body.
        """
        described = Signature()
        elements = [(name, element.get(None)) for name, element in self.variables.elements.items()]
        key = type(self), self.key, described.of([*self.variables.items(), *elements])
        self.trace.signed += described.met
        return key

    def run(self) -> None:
        """Trace it."""
        depth = self.trace.nested.get(self.key, 0)
        self.trace.nested[self.key] = depth + 1
        try:
            check_depth(self.key, depth)
            if depth == DEEPEST:
                raise RecursionError
            self._attempts()
        finally:
            self.trace.nested[self.key] = depth
        self.note_unassigned(self.own)

    def may_be_unassigned(self, name: str) -> bool:
        """True for a variable that is None after the construct where it has no value, which reads of it check."""
        return maybe(name, self.key) in self.trace.assigned

    def note_unassigned(self, names: Iterable[str]) -> None:
        """Note the variables that are unassigned where their values are None."""
        for name in names if self.trace.assigned else ():
            value = self.variables.get(name) if self.may_be_unassigned(name) else None
            present = value_in(value.present) if type(value) is Optional else None
            if present is not None:
                self.trace.unassigned[present.name] = name

    def _attempts(self) -> None:
        b = self.trace.builder
        update_items(self.trace)
        self.held = Snapshot(self.variables.items())
        self.add_elements(self.held.known(self.trace.changed_elements.get((type(self), self.key), ())))
        for _ in range(MOST_ATTEMPTS):
            before = {name: self.variables.get(name) for name in self.own}
            copied, opened = len(self.trace.copied_items), [*self.trace.open_items]
            if not self._prepared(before):
                continue
            stored = Stored(self.trace, self._cells())
            mark = b.mark()
            try:
                self.write(before, stored)
                self._check_iterators()
                return
            except BaseException as reason:
                stored.restore()
                for name, value in before.items():
                    self.variables.set(name, value)
                self.held.restore()
                b.rewind(mark)
                del self.trace.copied_items[copied:]
                self.trace.open_items[:] = opened
                self._check_iterators()
                if not isinstance(reason, Retrace) or reason.construct is not self:
                    raise
                if reason.lists:
                    self._settle(reason.lists)
            finally:
                self.learn()
        raise CaptureError(
            f"{self.owner} cannot be compiled: each of {MOST_ATTEMPTS} attempts to trace it finds other types of its "
            "variables and lists than the one before",
            help="keep numbers in arrays made before it, and give each variable one type",
        )

    def _check_iterators(self) -> None:
        """Refuse items that a function without hooks has taken of an iterator, which cannot be restored."""
        for path, iterator in self.held.moved():
            if not self.trace.hooks.iterators.is_spent(iterator):
                raise UnsupportedSyntaxError(
                    f"an item of the iterator `{path}` is taken in {self.owner}, by a function that is called as it is",
                    help="take it before, or make a list of the items, `items = list(...)`, and index that",
                )

    def _prepared(self, before: dict[str, Any]) -> bool:
        """True if the operands are emitted; False if that has shown that the carried values are different."""
        try:
            self.prepare(before)
        except Retrace as reason:
            if reason.construct is not self or reason.lists:
                raise
            self.learn()
            return False
        return True

    def _settle(self, lists: Sequence[PartedList]) -> None:
        """Convert lists to arrays; their items are no variables any more."""
        for one in lists:
            settle(one)
        elements = {
            path: p for path, p in self.variables.elements.items() if all(p.kept.holder is not x for x in lists)
        }
        self.variables.elements = elements
        self.own = (*self.named, *elements)
        self.held = Snapshot(self.variables.items())

    def add_elements(self, elements: Iterable[Element]) -> bool:
        """Make elements of containers variables that this assigns; True if there are new ones among them."""
        new = {element.path: element for element in elements if element.path not in self.variables.elements}
        self.variables.elements |= new
        self.own = (*self.named, *self.variables.elements)
        return bool(new)

    def check_elements(self) -> None:
        """Raise `Retrace` where an element of a container turns out to be assigned."""
        elements = self.held.elements()
        self.trace.changed_elements[type(self), self.key] = elements
        if self.add_elements(elements):
            raise Retrace(self)

    def prepare(self, before: dict[str, Any]) -> None:
        """Emit the operands before the operation; they are kept when tracing is retried."""

    def write(self, before: dict[str, Any], stored: Stored) -> None:
        """Trace once; raises `Retrace` if the carried values turn out to be different."""
        raise NotImplementedError

    def learn(self) -> None:
        """Keep the facts that an attempt found for the next time that the same code is traced."""

    def seen(self) -> list[str]:
        """The array variables that it is seen to store into."""
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
        """Mark the builder's region as one of this construct."""
        self.trace.builder.region.construct = self

"""`while` on a dynamic value: an `scf.while`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.core.affine import Linear
from mlirml.errors import UnsupportedSyntaxError
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.loops.containers import Snapshot
from mlirml.frontend.loops.loop_carried import Loop
from mlirml.frontend.loops.references import order
from mlirml.frontend.loops.variables import Stored
from mlirml.frontend.tracing.trace import value_of
from mlirml.ir.text import control
from mlirml.ir.text.builder import Value

_BOOL = np.dtype(np.bool_)


class WhileLoop(Loop):
    """A `while`; `test` returns its condition, which may read loop-carried variables."""

    owner = "the `while` loop"

    def __init__(self, *arguments: Any, test: Callable[[], Any], body: Callable[[], Any], **names: Any) -> None:
        super().__init__(*arguments, **names)
        self.test, self.body = test, body
        self.entered: Any = False  # the condition before the first iteration, if variables get values in the loop only

    def write(self, before: dict[str, Any], stored: Stored) -> None:
        b, trace = self.trace.builder, self.trace
        # The parity of the number of exchanges of arrays.
        parity = [b.filled((), _BOOL, False)] if self.turns else []
        starts = [*parity, *self.outside(), *stored.starts]
        known: list[Linear] = []
        self.entered = bool(self.unassigned(before)) and self.test()
        self.symbols.clear()

        def proceeds(arguments: list[Value]) -> Value:
            self.enter()
            values, held = self.split(arguments[len(parity) :], stored)
            self.begin(before, values)
            stored.enter(held)
            reached = Snapshot([("", self.test)])
            found = self.test()
            known.extend(trace.integers.condition(found).true)
            truth = trace.hooks.truth(found)
            stored.values()
            if stored.any_changed() or not reached.is_same():
                raise _changed_by_condition(reached)
            stored.leave()
            return truth if isinstance(truth, Value) else b.filled((), _BOOL, truth)

        def again(arguments: list[Value]) -> list[Value]:
            self.enter()
            values, held = self.split(arguments[len(parity) :], stored)
            self.begin(before, values)
            stored.enter(held)
            with trace.integers.given(known):
                self.body()
            ends = self.carried_on(before, stored)
            turned = [value_of(trace, trace.hooks.not_(self._flag(one)), "a flag") for one in arguments[: len(parity)]]
            return [*turned, *ends]

        results = control.while_loop(b, starts, proceeds, again, (self.owner, self.owner))
        values, arrays = self.split(results[len(parity) :], stored)
        if not self.turns:
            stored.end(arrays)
            self.end(before, values)
            return
        self.end_of_unknown_turns(before, stored, arrays, self._flag(results[0]))
        self.end(before, values)
        self.set_either(before, stored, arrays)

    def iterates(self) -> Any:
        return self.entered

    def _flag(self, value: Value) -> Traced:
        return Traced(self.trace, Cell(value), scalar=True)

    def counts_turns(self, turns: dict[str, str]) -> bool:
        return order(turns) == 2


def _changed_by_condition(reached: Snapshot) -> UnsupportedSyntaxError:
    """The error for a condition that changes something; it does not arise where the lists have room for any items."""
    error = UnsupportedSyntaxError(
        "the condition of a `while` changes an array, a list or an object",
        help="evaluate it in the body: `while True:`, then `if not condition: break`",
    )
    error.lists = reached.changed_sites()
    return error

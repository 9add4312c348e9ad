"""`while` on a number of the program: an `scf.while`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.capture.loops.affine import Linear
from mlirml.capture.loops.rounds import Loop
from mlirml.capture.loops.variables import Stored
from mlirml.dialects import control
from mlirml.dialects.build import Value

_BOOL = np.dtype(np.bool_)


class WhileLoop(Loop):
    """A `while`; `test` gives its condition, which may read what the rounds change."""

    owner = "the `while` loop"

    def __init__(self, *arguments: Any, test: Callable[[], Any], body: Callable[[], Any], **names: Any) -> None:
        super().__init__(*arguments, **names)
        self.test, self.body = test, body

    def write(self, before: dict[str, Any], stored: Stored) -> None:
        b, trace = self.trace.builder, self.trace
        starts = [*self.outside(), *stored.starts]
        known: list[Linear] = []
        self.symbols.clear()

        def proceeds(arguments: list[Value]) -> Value:
            self.enter()
            values, held = self.split(arguments, stored)
            self.begin(before, values)
            stored.enter(held)
            found = self.test()
            known.extend(trace.integers.condition(found).true)
            truth = trace.hooks.truth(found)
            stored.values()
            stored.leave()
            return truth if isinstance(truth, Value) else b.filled((), _BOOL, truth)

        def again(arguments: list[Value]) -> list[Value]:
            self.enter()
            values, held = self.split(arguments, stored)
            self.begin(before, values)
            stored.enter(held)
            with trace.integers.given(known):
                self.body()
            return self.carried_on(before, stored)

        results = control.while_loop(b, starts, proceeds, again, (self.owner, self.owner))
        values, arrays = self.split(results, stored)
        stored.end(arrays)
        self.end(before, values)

"""`for` over a range: an `scf.for`, or an `scf.while` if a `break` may end it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mlirml.core.affine import Linear
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.loops.loop_carried import Loop
from mlirml.frontend.loops.ranges import Parallel, TracedRange
from mlirml.frontend.loops.references import exchanged, order, turned
from mlirml.frontend.loops.variables import UNBOUND, Stored
from mlirml.frontend.tracing.trace import value_of
from mlirml.ir.text import control
from mlirml.ir.text.builder import Value


class ForLoop(Loop):
    """A `for` over a range with a known step.

    If iterations after its end are predicated, the list `predicated` gets the variables that have no value before them.
    """

    owner = "the `for` loop"

    def __init__(
        self,
        *arguments: Any,
        iterable: Any,
        body: Any,
        target: str,
        stop: str,
        predicated: list[str] | None,
        **names: Any,
    ) -> None:
        super().__init__(*arguments, keep=target, **names)
        self.is_predicated, self.predicated = predicated is not None, predicated
        self.body, self.target, self.flag = body, target, stop
        self.parallel = isinstance(iterable, Parallel) or (isinstance(iterable, TracedRange) and iterable.parallel)
        real = iterable.range if isinstance(iterable, Parallel) else iterable
        self.start, self.stop, self.step = real.start, real.stop, real.step
        self.range = real
        self.count = len(real) if isinstance(real, range) else None
        self.runs = bool(self.count)

    def write(self, before: dict[str, Any], stored: Stored) -> None:
        b = self.trace.builder
        starts = [*self.outside(), *stored.starts]
        if self.flag:
            self._write_stopped(before, starts, stored)
            return
        lower, upper = self._index(self.start), self._index(self.stop)
        backwards = self.step < 0
        if backwards:
            first, last = control.index(b, 0), self._count(lower, upper)
        else:
            first, last = lower, upper
        loop = control.ForLoop(b, first, last, self.owner, 1 if backwards else self.step)
        self.enter()
        values, held = self.split([loop.carry(value) for value in starts], stored)
        item = self._item(loop.index, lower, backwards)
        self.number, self.missing = self._number(item), {}
        self.begin(before, values)
        stored.enter(held)
        for writer in self.writers:
            writer.begin()
        with self.trace.integers.given(self._entered()):
            self.body(item)
        ends = self.carried_on(before, stored)
        attributes = "{mlirml.parallel}" if self.parallel else ""
        results, arrays = self.split(loop.end(ends, attributes), stored)
        if self.turns and self.count is None:
            hooks, iterable = self.trace.hooks, self._max_trip_count()
            odd = hooks.and_(iterable > 0, lambda: iterable % 2 == 1)
            self.end_of_unknown_turns(before, stored, arrays, odd)
            self.end(before, results)
            self.set_either(before, stored, arrays)
        else:
            stored.end(exchanged(stored, before, self.turns, arrays, self.count or 0))
            self.end(before, results)
            for name in self.turns:
                self.variables.set(name, before[turned(self.turns, name, self.count or 0)])
        self._set_target(before)
        for writer in self.writers:
            writer.close()

    def _entered(self) -> list[Linear]:
        """The forms that are not negative in an iteration, as there is one."""
        integers = self.trace.integers
        start, stop = integers.of(self.start), integers.of(self.stop)
        if start is None or stop is None:
            return []
        return [(stop - start if self.step > 0 else start - stop) - Linear(1)]

    def roots(self) -> frozenset[Any]:
        """The loops whose iterations the bounds vary with."""
        integers = self.trace.integers
        return integers.roots(self.start) | integers.roots(self.stop)

    def argument_sizes(self) -> frozenset[str]:
        """The Python integer arguments that the bounds are computed from, if they are computed from nothing else."""
        sizes = [bound._sizes() for bound in (self.start, self.stop) if isinstance(bound, Traced)]
        return frozenset().union(*sizes) if all(sizes) else frozenset()

    @property
    def certain(self) -> bool:
        return bool(self.count) and not self.flag

    @property
    def appends(self) -> bool:
        return bool(self.count) and not self.flag

    def _number(self, item: Any) -> Any:
        """The index of an iteration, from 0."""
        if self.step == 1:
            return item - self.start
        if self.step == -1:
            return self.start - item
        number, integers = (item - self.start) // self.step, self.trace.integers
        if self.count:
            limits = Linear(0), Linear(self.count - 1)
            integers.forms[number._read().name] = integers.symbol(*limits, frozenset([self]), True)
        return number

    def counts_turns(self, turns: dict[str, str]) -> bool:
        return not self.flag and (self.count is not None or order(turns) == 2)

    def _write_stopped(self, before: dict[str, Any], starts: list[Value], stored: Stored) -> None:
        """Emit an `scf.while` that counts the iterations."""
        b, trace = self.trace.builder, self.trace
        count, first = self._max_trip_count(), b.filled((), np.dtype(np.int64), 0)
        counter = trace.integers.symbol(Linear(0), self._last(count), frozenset([self]))

        def begin(arguments: list[Value]) -> Any:
            self.enter()
            values, held = self.split(arguments[1:], stored)
            self.begin(before, values)
            stored.enter(held)
            trace.integers.forms[arguments[0].name] = counter
            return Traced(trace, Cell(replace(arguments[0], weak=True)), scalar=True)

        def proceeds(arguments: list[Value]) -> Value:
            number = begin(arguments)
            going_on = trace.hooks.and_(number < count, lambda: trace.hooks.not_(self.variables.get(self.flag)))
            stored.values()
            stored.leave()
            truth = trace.hooks.truth(going_on)
            return truth if isinstance(truth, Value) else b.filled((), np.dtype(np.bool_), truth)

        def again(arguments: list[Value]) -> list[Value]:
            number = begin(arguments)
            with self.trace.integers.given(self._entered()):
                self.body(number * self.step + self.start)
            following = number + 1
            return [following._read(), *self.carried_on(before, stored)]

        results = control.while_loop(b, [first, *starts], proceeds, again, (self.owner, self.owner))
        values, arrays = self.split(results[1:], stored)
        stored.end(arrays)
        self.end(before, values)

    def begin(self, before: dict[str, Any], values: Sequence[Value]) -> None:
        super().begin(before, values)
        if self.predicated is not None:
            self.predicated[:] = self.unassigned(before)

    def iterates(self) -> Any:
        return self._max_trip_count() > 0

    def _max_trip_count(self) -> Any:
        """An upper bound of the trip count."""
        if self.count is not None:
            return self.count
        length = self.stop - self.start if self.step > 0 else self.start - self.stop
        return -(-length // abs(self.step)) if abs(self.step) != 1 else length

    def most_iterations(self) -> int | None:
        count = self._max_trip_count()
        if type(count) is int:
            return max(count, 0)
        form = self.trace.integers.of(count)
        greatest = None if form is None else self.trace.integers.limits(form)[1]
        return None if greatest is None else max(greatest, 0)

    def _index(self, bound: Any) -> str:
        b = self.trace.builder
        if not isinstance(bound, Traced):
            return control.index(b, int(bound))
        return control.to_index(b, value_of(self.trace, bound, "a bound of the loop"))

    def _count(self, lower: str, upper: str) -> str:
        """The trip count of a loop with a negative step; a negative count means none."""
        b = self.trace.builder
        if self.count is not None:
            return control.index(b, self.count)
        step = control.index(b, -self.step)
        length = b.named(f"arith.subi {lower}, {upper} : index")
        return length if self.step == -1 else b.named(f"arith.ceildivsi {length}, {step} : index")

    def _item(self, index: str, lower: str, backwards: bool) -> Traced:
        """The loop variable, a Python integer."""
        b = self.trace.builder
        if backwards:
            if self.step != -1:
                index = b.named(f"arith.muli {index}, {control.index(b, -self.step)} : index")
            index = b.named(f"arith.subi {lower}, {index} : index")
        number = control.from_index(b, index)
        self.trace.integers.forms[number.name] = self._symbol()
        return Traced(self.trace, Cell(replace(number, weak=True)), scalar=True)

    def _symbol(self) -> Linear:
        """The linear form of the loop variable, with its limits."""
        integers = self.trace.integers
        start, stop = integers.of(self.start), integers.of(self.stop)
        if self.count:
            last = self.start + (self.count - 1) * self.step
            start, end = Linear(self.start), Linear(last)
        elif stop is not None:
            end = stop + Linear(-1 if self.step > 0 else 1)
        else:
            end = None
        least, greatest = (start, end) if self.step > 0 else (end, start)
        return integers.symbol(least, greatest, frozenset([self]), bool(self.count))

    def _last(self, count: Any) -> Linear | None:
        form = self.trace.integers.of(count)
        return None if form is None else form + Linear(-1)

    def _set_target(self, before: dict[str, Any]) -> None:
        """Assign the loop variable its last value."""
        if not self.target or self.target not in self.after:
            return
        if self.count:
            self.variables.set(self.target, self.start + (self.count - 1) * self.step)
        elif self.count == 0:
            self.variables.set(self.target, before[self.target])
        elif (self.target, self.key) not in self.trace.assigned:
            self.variables.set(self.target, UNBOUND)
            self.trace.unbound[self.target] = self
        else:
            last, old = self.start + (self._max_trip_count() - 1) * self.step, before[self.target]
            if old is UNBOUND:
                self.check_assigned([self.target], self.iterates())
                self.variables.set(self.target, last)
            else:
                self.variables.set(self.target, self.trace.hooks.select(self.iterates(), lambda: last, lambda: old))

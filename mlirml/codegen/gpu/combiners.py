"""The state of a reduction while it runs, its update by an element, and the merge of two states."""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.reductions import argmaxes_of
from mlirml.analysis.structured import index_dim, reductions_of
from mlirml.codegen.cpu.nest import read_body
from mlirml.codegen.cpu.reduce.combiners import Reducer, match_reducer
from mlirml.codegen.gpu.elements import Elements, apply, out_map
from mlirml.codegen.gpu.index import Form
from mlirml.codegen.gpu.outs import carried_outs
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch

Values = list[mlir.Value]


class Combiner:
    """The state of a structured operation whose reduced outputs are sums, extrema and the like."""

    def __init__(self, op: mlir.Operation) -> None:
        self.op = op
        self.body = read_body(op)
        self.carried = carried_outs(op)
        self.arguments = list(self.body.arguments)[len(self.body.arguments) - len(op.results) :]
        self.reducers = self.match()

    def match(self) -> list[Reducer]:
        """The reducers; NoMatch if an output is accumulated in another way."""
        return [match_reducer(n, self.body.yields[n], self.arguments[n], self.body) for n in self.carried]

    @property
    def types(self) -> list[mlir.Type]:
        return [self.arguments[n].type for n in self.carried]

    @property
    def idempotent(self) -> bool:
        """True if combining an element twice has no further effect."""
        return all(r.combiner.is_idempotent for r in self.reducers)

    def start(self, elements: Elements, point: Sequence[Form]) -> Values:
        """The state before any element."""
        return [reducer.identity() for reducer in self.reducers]

    def take(self, elements: Elements, point: Sequence[Form], state: Values, valid: mlir.Value | None) -> Values:
        """The state after the element at a point, which is masked if it is not `valid`."""
        values = self.values(elements, point)
        if valid is not None and not self.idempotent:
            values = [
                emit.same_type("arith.select", valid, value, reducer.identity())
                for reducer, value in zip(self.reducers, values, strict=True)
            ]
        return self.merge(state, values)

    def values(self, elements: Elements, point: Sequence[Form]) -> Values:
        """The values to combine at a point; outputs with all loops are registered as known elements there."""
        skip = {op for reducer in self.reducers for op in reducer.ops}
        environment = elements.arguments(self.op, point, {self.arguments[n]: self.arguments[n] for n in self.carried})
        for inner in self.body.ops:
            if inner not in skip:
                elements.body_op(inner, point, environment)
        for n, result in enumerate(self.op.results):
            value = self.body.yields[n]
            if n not in self.carried and value in environment:
                elements.give(result, apply(out_map(self.op, n), point), environment[value])
        return [elements.value_of(reducer.value, environment) for reducer in self.reducers]

    def merge(self, a: Values, b: Values) -> Values:
        """Merge two states; `a` has the earlier elements."""
        return [r.combine(x, y) for r, x, y in zip(self.reducers, a, b, strict=True)]

    def finish(self, elements: Elements, point: Sequence[Form], state: Values) -> None:
        """Merge with the inits, and register the results as known elements at a parallel point."""
        first = len(self.op.operands) - len(self.op.results)
        indices = [apply(out_map(self.op, n), point) for n in self.carried]
        before = [
            elements.get(self.op.operands[first + n], index) for n, index in zip(self.carried, indices, strict=True)
        ]
        for n, index, value in zip(self.carried, indices, self.merge(before, state), strict=True):
            elements.give(self.op.results[n], index, value)


class Extreme(Combiner):
    """argmax and argmin: `better = x > best; yield select(better, x, best), select(better, index, place)`.

    Among equal elements the first index wins, in whatever order states are merged.
    """

    def match(self) -> list[Reducer]:
        reduced = [d for d, reduces in enumerate(reductions_of(self.op)) if reduces]
        if len(self.carried) != 2 or len(self.op.results) != 2 or len(reduced) != 1:
            raise NoMatch("not two outputs and one reduction loop")
        found = next(argmaxes_of(self.body.yields, self.arguments, lambda value: index_dim(value) in reduced), None)
        if found is None or any(op.regions for op in self.body.ops):
            raise NoMatch("no extreme and its index")
        self.found = found
        return []

    @property
    def idempotent(self) -> bool:
        return True

    def start(self, elements: Elements, point: Sequence[Form]) -> Values:
        """An extremum starts from the inits: there is no identity for all values."""
        self.elements = elements
        first = len(self.op.operands) - 2
        return [elements.get(self.op.operands[first + n], apply(out_map(self.op, n), point)) for n in self.carried]

    def take(self, elements: Elements, point: Sequence[Form], state: Values, valid: mlir.Value | None) -> Values:
        given = dict(zip(self.arguments, state, strict=True))
        environment = elements.arguments(self.op, point, given)
        return elements.run(self.op.regions[0].blocks[0], point, environment)

    def merge(self, a: Values, b: Values) -> Values:
        v, p = self.found.value, self.found.index
        wins = self._better(b[v], a[v])
        loses = self._better(a[v], b[v])
        earlier = emit.compare("slt", b[p], a[p])
        ones = emit.number(wins.type, 1)
        tie = emit.same_type("arith.andi", emit.same_type("arith.xori", loses, ones), earlier)
        chosen = emit.same_type("arith.ori", wins, tie)
        return [emit.same_type("arith.select", chosen, y, x) for x, y in zip(a, b, strict=True)]

    def _better(self, candidate: mlir.Value, best: mlir.Value) -> mlir.Value:
        """The condition of the body for two values."""
        environment = {self.found.term: candidate, self.arguments[self.found.value]: best}
        self._build(self.found.better, environment)
        return environment[self.found.better]

    def _build(self, value: mlir.Value, environment: dict[mlir.Value, mlir.Value]) -> None:
        if value in environment:
            return
        op = defining_op(value)
        if op is None or op not in self.body.ops:
            environment[value] = self.elements.scalar(value)
            return
        for operand in op.operands:
            self._build(operand, environment)
        emit.body_op(op, environment)

    def finish(self, elements: Elements, point: Sequence[Form], state: Values) -> None:
        for n in self.carried:
            elements.give(self.op.results[n], apply(out_map(self.op, n), point), state[n])


def match_combiner(op: mlir.Operation) -> Combiner:
    """The combiner of a structured operation; raises NoMatch."""
    try:
        return Combiner(op)
    except NoMatch:
        return Extreme(op)

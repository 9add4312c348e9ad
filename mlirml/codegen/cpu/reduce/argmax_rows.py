"""The rows of argmax and argmin: read once, in vectors whose lanes are searched apart.

For each vector of a row:
    better = vector > best                               each lane for itself
    best, start = better ? (vector, its start) : (best, start)
m = max(best)
index = min(start + lane where best == m)
"""  # fmt: skip

from __future__ import annotations

import math

from mlirml.analysis.cost import element_bytes
from mlirml.codegen.cpu import cost
from mlirml.codegen.cpu.elementwise.loops import innermost_dim, nested, outer_grain, outer_order
from mlirml.codegen.cpu.frame import Cursor, Frame
from mlirml.codegen.cpu.nest import Body, Nest
from mlirml.codegen.cpu.reduce.argmax import Position, Search
from mlirml.codegen.cpu.reduce.lanes import Lanes, check_lanes
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

VECTORS = 4
"""The number of vectors that are searched at the same time: each waits for its own comparison."""
_NARROW, _WIDE = 32, 64
"""Bits of an index: as many as those of the values where that is enough, so that one mask serves both."""


def check_rows(nest: Nest) -> None:
    """Raises NoMatch if the reduced loop is not the one to vectorise."""
    if 0 in nest.sizes:
        raise NoMatch("there is nothing to search")
    nest = nest.without_unit_dims()
    if nest.rank == 0 or not nest.reduction[innermost_dim(nest)]:
        raise NoMatch("the innermost loop is parallel")


def lower_position(
    frame: Frame, nest: Nest, body: Body, plan: Position, inits: dict[mlir.Value, mlir.Value], vector_bits: int
) -> None:
    """Build the loops of a nest that passed `check_rows`; `inits` are the known scalar inits of outputs."""
    nest = nest.without_unit_dims()
    parallel = [d for d in range(nest.rank) if not nest.reduction[d]]
    nest = nest.permuted([*outer_order(nest, parallel), nest.reduction.index(True)])
    search = Search(frame, nest, body, plan, inits)
    try:
        row = match_lanes(search, vector_bits).row
    except NoMatch:
        row = search.row
    grain = outer_grain(nest, cost.iteration_ns(nest, body.ops)) if nest.rank > 1 else 0
    nested(Cursor.start(frame, nest), 0, nest.rank - 1, row, grain=grain)


@dataclass(frozen=True)
class LaneSearch:
    """Builds the search of a row in the lanes of `vectors`, whose indices are integers of `index` type."""

    search: Search
    vectors: Lanes
    index: mlir.IntegerType

    @property
    def lanes(self) -> int:
        """The number of lanes."""
        return self.vectors.count

    def row(self, cursor: Cursor) -> None:
        """Build the search of one row."""
        search, frame = self.search, self.search.frame
        size = search.nest.sizes[-1]
        whole = size // self.lanes * self.lanes
        best, index = search.first(cursor)
        extremum, starts = self.extremum(cursor, whole)
        types = [best.type, index.type]
        state = emit.conditional(
            search.is_better(extremum, best),
            lambda: [extremum, self.position(cursor, whole, extremum, starts, index.type)],
            lambda: [best, index],
            types,
        )
        if whole < size:
            state = search.block(cursor, frame.index(whole), frame.index(size), state)
        for value, out in zip(state, search.outputs, strict=True):
            cursor.store(value, out)

    def extremum(self, cursor: Cursor, whole: int) -> tuple[mlir.Value, list[mlir.Value]]:
        """The extremum of the first `whole` elements, NaN if NaN wins, and the best values and starts of all lanes."""
        search, reducer = self.search, self.search.plan.reducer
        frame, type_ = search.frame, reducer.type

        def step(i: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
            best, starts, *strange = carried
            values = self.operand_at(cursor, i)
            better = emit.compare(reducer.combiner.better, values, best)
            at = self.splat(emit.value("arith.index_cast", [i], self.index))
            new = [emit.same_type("arith.select", better, values, best)]
            new.append(emit.same_type("arith.select", better, at, starts))
            return new + [
                emit.same_type("arith.select", emit.compare("uno", values, values), values, x) for x in strange
            ]

        zeros = self.splat(emit.number(type_, 0))
        state = [self.splat(reducer.identity()), self.splat(emit.number(self.index, 0))]
        state += [zeros] if reducer.is_nan_aware else []
        best, starts, *strange = emit.for_loop(frame.index(0), frame.index(whole), frame.index(self.lanes), step, state)
        extremum = self.combined(reducer.combiner.vector_kind.replace("imum", "num"), best, type_)
        for values in strange:
            flag = self.combined("or", emit.compare("uno", values, values), mlir.IntegerType.get_signless(1))
            extremum = emit.same_type("arith.select", flag, emit.number(type_, math.nan), extremum)
        return extremum, [best, starts]

    def position(
        self, cursor: Cursor, whole: int, extremum: mlir.Value, state: list[mlir.Value], type_: mlir.Type
    ) -> mlir.Value:
        """The first index of the extremum, of which `state` has the best values and the starts of the lanes."""
        search, reducer = self.search, self.search.plan.reducer
        if not reducer.is_nan_aware:
            return self.among_lanes(extremum, state, type_)
        first, last = search.frame.index(0), search.frame.index(whole)
        return emit.conditional(
            emit.compare("uno", extremum, extremum),
            lambda: [search.find(cursor, first, last, extremum, type_)],
            lambda: [self.among_lanes(extremum, state, type_)],
            [type_],
        )[0]

    def among_lanes(self, extremum: mlir.Value, state: list[mlir.Value], type_: mlir.Type) -> mlir.Value:
        """The smallest index among lanes that have the extremum."""
        best, starts = state
        equal = emit.compare("oeq" if isinstance(extremum.type, mlir.FloatType) else "eq", best, self.splat(extremum))
        number = mlir.DenseIntElementsAttr.get(
            [mlir.IntegerAttr.get(self.index, i) for i in range(self.lanes)], starts.type
        )
        index = emit.same_type("arith.addi", starts, emit.constant(number))
        none = self.splat(emit.number(self.index, (1 << self.index.width - 1) - 1))
        found = self.combined("minsi", emit.same_type("arith.select", equal, index, none), self.index)
        at = emit.value("arith.index_cast", [found], mlir.IndexType.get())
        return at if isinstance(type_, mlir.IndexType) else emit.value("arith.index_cast", [at], type_)

    def operand_at(self, cursor: Cursor, i: mlir.Value) -> mlir.Value:
        """The compared values from index `i` of the row on."""
        here = cursor.enter(self.search.nest.rank - 1, i)
        return self.vectors.values(here, [self.search.plan.operand])[0]

    def splat(self, scalar: mlir.Value) -> mlir.Value:
        return self.vectors.splat(scalar)

    def combined(self, word: str, lanes: mlir.Value, type_: mlir.Type) -> mlir.Value:
        """All lanes, which are not NaN, combined."""
        attributes = {"kind": mlir.Attribute.parse(f"#vector.kind<{word}>")}
        if isinstance(type_, mlir.FloatType):
            attributes["fastmath"] = mlir.Attribute.parse("#arith.fastmath<nnan,nsz>")
        return emit.value("vector.reduction", [lanes], type_, **attributes)


def match_lanes(search: Search, vector_bits: int) -> LaneSearch:
    """The lanes for rows of several vectors, whose values are computed by `arith` from contiguous elements."""
    nest, type_ = search.nest, search.plan.operand.type
    check_lanes(nest, search.body, [search.plan.operand])
    bits = 8 * element_bytes(type_)
    index = _WIDE if bits == _WIDE or nest.sizes[-1] >= 1 << _NARROW - 1 else _NARROW
    lanes = VECTORS * vector_bits // max(bits, index)
    if nest.sizes[-1] < 2 * lanes:
        raise NoMatch("the rows are too short")
    return LaneSearch(search, Lanes(lanes, search.body), mlir.IntegerType.get_signless(index))

"""Batching: operations on one lane become operations on all lanes, which are indexed by a new first dimension.

Before:
    %0 = mlirml.unbatch %xs {group = 0} : tensor<8x4xf32> -> tensor<4xf32>
    %y = linalg.generic {maps = [(i) -> (i), (i) -> (i)]} ins(%0) { math.sin }
    %b = mlirml.vmap %y {group = 0, size = 8} : tensor<4xf32> -> tensor<8x4xf32>
After:
    %b = linalg.generic {maps = [(b, i) -> (b, i), (b, i) -> (b, i)]} ins(%xs) { math.sin }

A scalar of a lane becomes a tensor of one dimension. Values that do not depend on the lane are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlirml.analysis.values import element_type, outer_variables
from mlirml.autodiff import tensors
from mlirml.autodiff.no_rule import why_no_rule
from mlirml.autodiff.rule_table import RuleTable
from mlirml.errors import NoBatchingError
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.ir.location import source_location

STAYS = {"mlirml.unbatch"}
"""The start marker of another request."""

Rule = Callable[["Batch", mlir.Operation], None]

batching: RuleTable[Rule] = RuleTable("batch_control", "batch_linalg", "batch_shapes", "library_calls")
"""Decorator of batching rules."""


class Batch:
    """Batched values, built after the operations that compute those of one lane."""

    def __init__(self, size: int, dead: list[mlir.Operation] | None = None, *, is_differentiated: bool = False) -> None:
        self.size = size
        self.is_differentiated = is_differentiated  # in reverse mode, by a request around it
        self.values: dict[mlir.Value, mlir.Value] = {}
        self.dead: list[mlir.Operation] = [] if dead is None else dead
        self.alive: mlir.Value | None = None  # i1 of each lane: the code being batched is executed for it

    def __contains__(self, value: mlir.Value) -> bool:
        return value in self.values

    def inner(self) -> Batch:
        """For a region: values that are batched outside of it are batched in it."""
        batch = Batch(self.size, self.dead, is_differentiated=self.is_differentiated)
        batch.values.update(self.values)
        batch.alive = self.alive
        return batch

    def batched_type(self, type_: mlir.Type) -> mlir.Type:
        """The batched type of a type."""
        shape = type_.shape if isinstance(type_, mlir.RankedTensorType) else ()
        return mlir.RankedTensorType.get([self.size, *shape], element_type(type_))

    def full(self, value: mlir.Value) -> mlir.Value:
        """The batched value, broadcast where it does not depend on the lane."""
        if value in self.values:
            return self.values[value]
        type_ = self.batched_type(value.type)
        rank = len(type_.shape)
        if not isinstance(value.type, mlir.RankedTensorType):
            return scalars(type_, lambda: value)
        dims = [mlir.AffineDimExpr.get(d) for d in range(1, rank)]
        maps = [mlir.AffineMap.get(rank, 0, dims), mlir.AffineMap.get_identity(rank)]
        out = tensors.empty(type_, value)
        return emit.generic([value], [out], maps, ["parallel"] * rank, lambda xs: xs[:1]).results[0]

    def run(self, ops: Sequence[mlir.Operation], after: Sequence[mlir.Operation]) -> None:
        """Apply the rules to operations; the code for `ops[i]` is built before `after[i]`."""
        for op, next_op in zip(ops, after):
            if not any(x in self.values for x in outer_variables(op)):
                continue
            with op.location, mlir.InsertionPoint(next_op):
                rule = batching.of(op)
                if rule is None:
                    raise refuse(op)
                rule(self, op)
            if op.name not in STAYS:
                self.dead.append(op)


class NoLanes(Batch):
    """A batch of no lanes: its results have no elements, and nothing is computed for them."""

    def full(self, value: mlir.Value) -> mlir.Value:
        """An array of no lanes."""
        return emit.empty(self.batched_type(value.type))

    def run(self, ops: Sequence[mlir.Operation], after: Sequence[mlir.Operation]) -> None:
        """Drop the operations that depend on the lane."""
        for op in ops:
            if op.name not in STAYS and any(x in self.values for x in outer_variables(op)):
                self.values.update((x, x) for x in op.results)
                self.dead.append(op)


def refuse(op: mlir.Operation, why: str = "") -> NoBatchingError:
    """The error for an operation without a rule, at the user's source line."""
    why = why or why_no_rule(op.name) or ""
    return NoBatchingError(
        f"`{op.name}` has no batched form{': ' + why if why else ''}",
        location=source_location(op.location),
        help="keep it out of `ml.vmap`, or write a loop over the examples with `ml.scan`",
    )


def scalars(type_: mlir.Type, body: Callable[[], mlir.Value]) -> mlir.Value:
    """A tensor each element of which is computed by `body`, from outer values only."""
    rank = len(type_.shape)
    maps = [mlir.AffineMap.get_identity(rank)]
    return emit.generic([], [emit.empty(type_)], maps, ["parallel"] * rank, lambda xs: [body()]).results[0]


def chosen(condition: mlir.Value, a: mlir.Value, b: mlir.Value) -> mlir.Value:
    """For each lane `a` or `b`, tensors whose first dimension is that of `condition`."""
    rank = len(a.type.shape)
    first = mlir.AffineMap.get(rank, 0, [mlir.AffineDimExpr.get(0)])
    identity = mlir.AffineMap.get_identity(rank)
    maps = [first, identity, identity, identity]
    op = emit.generic(
        [condition, a, b], [tensors.empty(a.type, a)], maps, ["parallel"] * rank,
        lambda xs: [emit.same_type("arith.select", *xs[:3])],
    )  # fmt: skip
    return op.results[0]


def index(dim: int) -> mlir.Value:
    """`linalg.index`."""
    return emit.value("linalg.index", (), mlir.IndexType.get(), dim=emit.i64(dim))


def gather(
    type_: mlir.Type, inputs: Sequence[mlir.Value], element: Callable[[list[mlir.Value], list[mlir.Value]], mlir.Value]
) -> mlir.Value:
    """A batched tensor whose elements are `element(indices, scalars)`, with the scalars of the element's lane."""
    rank = len(type_.shape)
    first = mlir.AffineMap.get(rank, 0, [mlir.AffineDimExpr.get(0)])
    maps = [*[first] * len(inputs), mlir.AffineMap.get_identity(rank)]

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        return [element([index(d) for d in range(rank)], xs[:-1])]

    return emit.generic(inputs, [emit.empty(type_)], maps, ["parallel"] * rank, body).results[0]

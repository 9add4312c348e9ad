"""A `linalg.generic` as the recognisers see it: its loops, the maps of its operands, and its scalar body."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from mlirml.analysis.structured import dims_of, reductions_of, sizes_of
from mlirml.analysis.values import operands_first, walk
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import NoMatch

Loops = frozenset[int]
UNKNOWN = 1 << 20
"""The assumed value of a dynamic size."""


@dataclass(frozen=True, eq=False)
class Nest:
    """A generic on tensors. `sizes` and `reduction` are by loop; `arguments` are the body's, accumulators last."""

    op: mlir.Operation
    maps: tuple[mlir.AffineMap, ...]
    sizes: tuple[int, ...]
    reduction: tuple[bool, ...]
    inputs: tuple[mlir.Value, ...]
    inits: tuple[mlir.Value, ...]
    arguments: tuple[mlir.Value, ...]
    yields: tuple[mlir.Value, ...]
    body: tuple[mlir.Operation, ...]
    offsets: tuple[int, ...] = ()
    """The lower bound of each loop, which is added to `linalg.index` of the body."""
    _loops: dict[mlir.Value, Loops] = field(default_factory=dict)

    @property
    def operands(self) -> tuple[mlir.Value, ...]:
        return (*self.inputs, *self.inits)

    @property
    def rank(self) -> int:
        return len(self.sizes)

    def inner(self, value: mlir.Value) -> mlir.Operation | None:
        """The operation of the body that defines a value; None for arguments and outer values."""
        op = defining_op(value)
        return op if op is not None and op.block == self.op.regions[0].blocks[0] else None

    def number(self, value: mlir.Value) -> int | None:
        """The number of the operand that a value of the body is an element of."""
        return next((n for n, argument in enumerate(self.arguments) if argument == value), None)

    def loops(self, value: mlir.Value) -> Loops:
        """The loops that a value of the body depends on."""
        if value not in self._loops:
            for each in operands_first(value, self._operands):
                if each not in self._loops:
                    self._loops[each] = self._find_loops(each)
        return self._loops[value]

    def _operands(self, value: mlir.Value) -> Sequence[mlir.Value]:
        op = self.inner(value)
        return op.operands if op is not None else ()

    def _find_loops(self, value: mlir.Value) -> Loops:
        number = self.number(value)
        if number is not None:
            return dims_of(self.maps[number])
        op = self.inner(value)
        if op is None:
            return frozenset()
        if op.name == "linalg.index":
            return frozenset([op.attributes["dim"].value])
        if op.regions:
            raise NoMatch(f"the body has a {op.name}")
        return union(self._loops[operand] for operand in op.operands)

    def sources(self, value: mlir.Value) -> Iterator[mlir.Value]:
        """A value of the body and the values that it is computed from, each once, depth first."""
        return walk(value, self._operands)

    def reads_out(self, value: mlir.Value) -> bool:
        """True if a value of the body depends on an accumulator."""
        accumulators = self.arguments[len(self.inputs) :]
        return any(source in accumulators for source in self.sources(value))

    def leaves(self, value: mlir.Value) -> list[int]:
        """The operands that a value of the body is computed from, in order."""
        return [number for number in map(self.number, self.sources(value)) if number is not None]

    def volume(self, loops: Iterable[int]) -> int:
        """The number of iterations of some of the loops."""
        return math.prod(UNKNOWN if self.sizes[d] < 0 else self.sizes[d] for d in loops)

    def is_static(self, loops: Iterable[int]) -> bool:
        return all(self.sizes[d] >= 0 for d in loops)


def union(parts: Iterable[Loops]) -> Loops:
    return frozenset[int]().union(*parts)


def read_nest(op: mlir.Operation) -> Nest:
    """Raises `NoMatch` unless the operation is a generic on tensors whose loop sizes its operands have."""
    if op.name != "linalg.generic":
        raise NoMatch("no generic")
    types = [value.type for value in op.operands]
    if not all(isinstance(kind, mlir.RankedTensorType) for kind in types):
        raise NoMatch("an operand is no tensor")
    maps = tuple(attribute.value for attribute in op.attributes["indexing_maps"])
    block = op.regions[0].blocks[0]
    *body, final = block_ops(block)
    count = maps[0].n_dims if maps else 0
    alone = {e.position for map_ in maps for e in map_.results if isinstance(e, mlir.AffineDimExpr)}
    if len(alone) != count or any(map_.n_symbols for map_ in maps):
        raise NoMatch("no operand is indexed by a loop alone")
    split = len(types) - len(final.operands)
    operands = list(op.operands)
    return Nest(
        op,
        maps,
        tuple(sizes_of(op, maps)),
        reductions_of(op),
        tuple(operands[:split]),
        tuple(operands[split:]),
        tuple(block.arguments),
        tuple(final.operands),
        tuple(body),
        (0,) * count,
    )


def loop_of_dims(map_: mlir.AffineMap) -> tuple[int, ...]:
    """The loop that indexes each dimension; `NoMatch` unless each is indexed by a different loop."""
    if not map_.is_projected_permutation:
        raise NoMatch(f"{map_} is no projected permutation")
    found = tuple(e.position if isinstance(e, mlir.AffineDimExpr) else -1 for e in map_.results)
    if -1 in found:
        raise NoMatch(f"{map_} has a constant")
    return found


def restricted(map_: mlir.AffineMap, order: Sequence[int]) -> mlir.AffineMap:
    """The map with the loops `order` only, renumbered; others must not occur."""
    new = {old: mlir.AffineDimExpr.get(number) for number, old in enumerate(order)}
    zero = mlir.AffineConstantExpr.get(0)
    change = mlir.AffineMap.get(len(order), 0, [new.get(d, zero) for d in range(map_.n_dims)])
    return mlir.AffineMap.get(len(order), 0, [expression.compose(change) for expression in map_.results])


def narrowed(nest: Nest, ranges: Mapping[int, tuple[int, int]]) -> Nest:
    """The nest with some loops restricted to ranges (start and end); its operands are sliced here."""
    operands = [cut(value, map_, ranges) for value, map_ in zip(nest.operands, nest.maps, strict=True)]
    bounds = [ranges.get(d, (0, size)) for d, size in enumerate(nest.sizes)]
    return replace(
        nest,
        sizes=tuple(high - low for low, high in bounds),
        inputs=tuple(operands[: len(nest.inputs)]),
        inits=tuple(operands[len(nest.inputs) :]),
        offsets=tuple(offset + low for offset, (low, _) in zip(nest.offsets, bounds, strict=True)),
    )


def cut(value: mlir.Value, map_: mlir.AffineMap, ranges: Mapping[int, tuple[int, int]]) -> mlir.Value:
    """The slice of an operand for restricted loops; each dimension is indexed by one loop at most."""
    kind = mlir.RankedTensorType(value.type)
    offsets, sizes = [], []
    for size, expression in zip(kind.shape, map_.results, strict=True):
        loop = expression.position if isinstance(expression, mlir.AffineDimExpr) else -1
        low, high = ranges.get(loop, (0, size))
        offsets.append(low)
        sizes.append(high - low)
    if sizes == list(kind.shape):
        return value
    return emit.extract_slice(value, offsets, sizes)


class Rebuild:
    """Clones values of a nest's body into the body of another generic over the loops `order`."""

    def __init__(self, nest: Nest, order: Sequence[int], operands: dict[int, mlir.Value]) -> None:
        self._nest = nest
        self._order = list(order)
        self._values = {nest.arguments[number]: value for number, value in operands.items()}

    def __call__(self, value: mlir.Value) -> mlir.Value:
        for each in operands_first(value, self._operands):
            if each not in self._values:
                made = self._build(each)
                if made != each:
                    self._values[each] = made
        return self._values.get(value, value)

    def _operands(self, value: mlir.Value) -> Sequence[mlir.Value]:
        op = self._nest.inner(value) if value not in self._values else None
        return op.operands if op is not None and op.name != "linalg.index" else ()

    def _build(self, value: mlir.Value) -> mlir.Value:
        op = self._nest.inner(value)
        if op is None:
            return value
        if op.name == "linalg.index":
            loop = op.attributes["dim"].value
            place = emit.value("linalg.index", (), value.type, dim=emit.i64(self._order.index(loop)))
            offset = self._nest.offsets[loop]
            return emit.same_type("arith.addi", place, emit.index(offset)) if offset else place
        environment = {operand: self._values.get(operand, operand) for operand in op.operands}
        emit.body_op(op, environment)
        self._values.update(environment)
        return self._values[value]

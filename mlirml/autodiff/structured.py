"""Structured operations as maps and a body: named ones have them as `linalg.generic` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mlirml.analysis.affine import linear_of
from mlirml.analysis.structured import dims_of, indexing_maps, sizes_of
from mlirml.autodiff import tensors
from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, mlir


@dataclass(frozen=True)
class Read:
    """A tensor that is read at each point of an iteration space."""

    tensor: mlir.Value
    map: mlir.AffineMap


@dataclass(frozen=True)
class Structured:
    """A linalg operation on tensors. `fixed` are dimensions with a fixed index, and that index."""

    op: mlir.Operation
    inputs: list[Read]
    inits: list[Read]
    sizes: list[int]
    fixed: Mapping[int, int]

    @staticmethod
    def of(op: mlir.Operation) -> Structured:
        """The maps and body of a linalg operation with tensor results."""
        maps = indexing_maps(op)
        count = len(op.operands) - len(op.results)
        reads = [Read(value, m) for value, m in zip(op.operands, maps)]
        return Structured(op, reads[:count], reads[count:], sizes_of(op, maps), {})

    @property
    def block(self) -> mlir.Block:
        return self.op.regions[0].blocks[0]

    @property
    def body(self) -> list[mlir.Operation]:
        """The scalar operations without the terminator."""
        return block_ops(self.block)[:-1]

    @property
    def yields(self) -> list[mlir.Value]:
        return list(block_ops(self.block)[-1].operands)

    @property
    def out_map(self) -> mlir.AffineMap:
        return self.inits[0].map

    @property
    def reduces(self) -> bool:
        """True if a dimension is missing from the results."""
        return any(len(dims_of(r.map)) < len(self.sizes) for r in self.inits)

    def argument(self, number: int) -> mlir.Value:
        """The block argument of an operand."""
        return self.block.arguments[number]

    def empty_accumulators(self) -> dict[mlir.Value, mlir.Value]:
        """Zeros for the accumulators of a reduction."""
        accumulators = [self.argument(len(self.inputs) + k) for k in range(len(self.inits))]
        return {x: emit.number(x.type, 0) for x in accumulators}

    def copy_body(self, environment: dict[mlir.Value, mlir.Value], indices: Sequence[mlir.Value] | None = None) -> None:
        """Clone the body; `environment` maps the block arguments and is extended by all other values.

        Indices are `linalg.index` within a generic; outside of one, they are `indices`.
        """
        for op in self.body:
            if op.name == "linalg.index":
                environment[op.results[0]] = self._index(op, indices)
            elif op.regions:
                clone_with(op, environment)
            else:
                emit.body_op(op, environment)

    def _index(self, op: mlir.Operation, indices: Sequence[mlir.Value] | None) -> mlir.Value:
        dim = mlir.IntegerAttr(op.attributes["dim"]).value
        if dim in self.fixed:
            return emit.index(self.fixed[dim])
        moved = dim - sum(other < dim for other in self.fixed)
        if indices is not None:
            return indices[moved]
        return emit.value("linalg.index", (), mlir.IndexType.get(), dim=emit.i64(moved))

    def at(self, fixed: Mapping[int, int]) -> Structured:
        """The operation at one index of some dimensions, on slices of the tensors."""
        move = [self.cut(read, fixed) for read in (*self.inputs, *self.inits)]
        sizes = [n for d, n in enumerate(self.sizes) if d not in fixed]
        return replace(
            self, inputs=move[: len(self.inputs)], inits=move[len(self.inputs) :], sizes=sizes, fixed=dict(fixed)
        )

    def cut(self, read: Read, fixed: Mapping[int, int]) -> Read:
        """The slice of a tensor that is read at one index of some dimensions."""
        if not read.map.results:
            return Read(read.tensor, mlir.AffineMap.get(len(self.sizes) - len(fixed), 0, []))
        window = self.window(read.map, read.tensor.type, fixed)
        part = tensors.extract(read.tensor, window.kind, window.offsets, window.counts, window.strides)
        return Read(part, window.map)

    def window(self, map_: mlir.AffineMap, type_: mlir.Type, fixed: Mapping[int, int]) -> Window:
        """The slice that is read at one index of some dimensions."""
        left = [d for d in range(len(self.sizes)) if d not in fixed]
        offsets, counts, strides, kept = [], [], [], []
        for expression in map_.results:
            form = linear_form(expression)
            offsets.append(form.constant + sum(f * fixed[d] for d, f in form.factors.items() if d in fixed))
            free = {d: f for d, f in form.factors.items() if d not in fixed}
            if free:
                ((dim, stride),) = free.items()
                counts.append(self.sizes[dim])
                strides.append(stride)
                kept.append(left.index(dim))
            else:
                counts.append(1)
                strides.append(1)
        dims = [mlir.AffineDimExpr.get(d) for d in kept]
        shape = [n for n, e in zip(counts, map_.results) if set(linear_form(e).factors) - set(fixed)]
        return Window(offsets, counts, strides, tensors.type_like(type_, shape), mlir.AffineMap.get(len(left), 0, dims))


@dataclass(frozen=True)
class Window:
    """A static slice, its rank-reduced type, and the map that reads it."""

    offsets: list[int]
    counts: list[int]
    strides: list[int]
    kind: mlir.Type
    map: mlir.AffineMap


def linear_form(expression: mlir.AffineExpr) -> Linear:
    """An affine expression of dimensions as a sum; ValueError for divisions and products of dimensions."""
    found = linear_of(expression)
    if found is None:
        raise ValueError(f"{expression} is not linear")
    return found


def is_projection(map_: mlir.AffineMap) -> bool:
    """True if every result is a different dimension."""
    return all(isinstance(e, mlir.AffineDimExpr) for e in map_.results) and len(dims_of(map_)) == len(map_.results)


def window_dims(map_: mlir.AffineMap, sizes: Sequence[int]) -> list[int] | None:
    """The dimensions to fix so that every result has one dimension of its own; None if there are none."""
    fixed: list[int] = []
    seen: set[int] = set()
    for expression in map_.results:
        factors = linear_form(expression).factors
        free = sorted((d for d in factors if d not in fixed), key=lambda d: sizes[d])
        fixed += free[:-1]
        if free and (free[-1] in seen or factors[free[-1]] < 1):
            return None
        seen.update(free[-1:])
    return fixed

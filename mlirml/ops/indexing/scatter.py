"""Scatters: stores of elements at positions given by arrays, as loops over the positions that update one tensor.

    %r = scf.for %k = %c0 to %c8 step %c1 iter_args(%t = %x) -> (tensor<16x4xf32>) {
      %i = ...  // position %k
      %old = tensor.extract_slice %t[%i, 0] [1, 4] [1, 1] : tensor<16x4xf32> to tensor<4xf32>
      %new = tensor.extract_slice %v[%k, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
      %sum = linalg.generic {...} ins(%old, %new) ...
      %u = tensor.insert_slice %sum into %t[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
      scf.yield %u : tensor<16x4xf32>
    } {mlirml.scatter = "add"}

The attribute of the outermost loop names the combiner for repeated positions: "set" keeps the last element.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.ir.text.builder import Builder, Operand, Value
from mlirml.ir.text.complex import ComplexValue, parts_of
from mlirml.ops.indexing.gather import broadcast_indices
from mlirml.ops.indexing.positions import Inline, Positions
from mlirml.ops.registry import refuse_complex

Update = Callable[[Builder, Value, Operand], Value]
"""Combines the old elements with the new ones; the result has the dtype of the old."""


@dataclass(frozen=True)
class Scatter:
    """A scatter along `axes` of `base` at `indices`, whose dimensions are at `first_dim` in the new elements.

    `kind` is the value of the attribute `mlirml.scatter`. Without `update` the new elements replace the old.
    """

    base: Value
    axes: tuple[int, ...]
    indices: tuple[Positions, ...]
    first_dim: int
    kind: str
    update: Update | None = None

    def write(self, b: Builder, new: Operand) -> Value:
        """`base` with the elements stored. `new` broadcasts to the shape of the elements."""
        base = self.base
        if isinstance(base, ComplexValue):
            return self._write_parts(b, base, new)
        common = broadcast_indices([i.values.shape for i in self.indices])
        rest = [d for d in range(len(base.shape)) if d not in self.axes]
        sizes = [base.shape[d] for d in rest]
        shape = (*sizes[: self.first_dim], *common, *sizes[self.first_dim :])
        if 0 in shape:
            return base
        values = [b.squeezed(i.values, common) for i in self.indices]
        source = b.squeezed(new, shape) if isinstance(new, Value) else None
        loops = [d for d, n in enumerate(common) if n > 1]
        zero, one = _index(b, 0), _index(b, 1)
        ends = [_index(b, common[d]) for d in loops]
        at = dict.fromkeys(range(len(common)), zero)

        def store(target: Value) -> Value:
            positions = []
            for item, (value, map_) in zip(self.indices, values):
                number = b.named(f"tensor.extract {value.name}[{', '.join(at[d] for d in map_)}] : {value.type}")
                positions.append(item.write(Inline(b), number))
            offsets = [positions[self.axes.index(d)] if d in self.axes else 0 for d in range(len(base.shape))]
            sizes = [1 if d in self.axes else n for d, n in enumerate(base.shape)]
            steps = [1] * len(sizes)
            row = self._row(b, source, at, len(common)) if source is not None else new
            old_shape = tuple(base.shape[d] for d in rest)
            if self.update is None:
                row = b.broadcast(row, old_shape, base.dtype)
            else:
                row = self.update(b, b.extract_slice(target, offsets, sizes, steps, self.axes), row)
            return b.insert_slice(row, target, offsets, sizes, steps)

        def nest(depth: int, target: Value) -> Value:
            if depth == len(loops):
                return store(target)
            line = b.begin("a store")
            variable, inside = b.fresh(), Value(b.fresh(), base.shape, base.dtype)
            at[loops[depth]] = variable
            result = nest(depth + 1, inside)
            b.line(f"scf.yield {result.name} : {base.type}")
            outside = Value(b.fresh(), base.shape, base.dtype)
            b.set_line(
                line,
                f"{outside.name} = scf.for {variable} = {zero} to {ends[depth]} step {one} "
                f"iter_args({inside.name} = {target.name}) -> ({base.type}) {{",
            )
            b.end(f'{{mlirml.scatter = "{self.kind}"}}' if depth == 0 else "")
            return outside

        return nest(0, base)

    def _write_parts(self, b: Builder, base: ComplexValue, new: Operand) -> Value:
        if self.kind not in ("set", "add", "subtract"):
            raise refuse_complex(f"{self.kind}.at")
        pair = b.broadcast(new, new.shape, np.result_type(base.dtype, new.dtype))
        assert isinstance(pair, ComplexValue)
        stored = [replace(self, base=part).write(b, x) for part, x in zip(parts_of(base), parts_of(pair))]
        return ComplexValue.of(*stored)

    def _row(self, b: Builder, source: tuple[Value, list[int]], at: dict[int, str], count: int) -> Value:
        """The slice of the new elements that one iteration stores, in the dimensions of the base that are not indexed.

        It may lack leading dimensions along which it is broadcast.
        """
        value, map_ = source
        inside = [self.first_dim <= d < self.first_dim + count for d in map_]
        offsets = [at[d - self.first_dim] if own else 0 for d, own in zip(map_, inside)]
        sizes = [1 if own else n for n, own in zip(value.shape, inside)]
        drop = [i for i, own in enumerate(inside) if own]
        if drop:
            value = b.extract_slice(value, offsets, sizes, [1] * len(sizes), drop)
        # The dimensions of the base that are left, counted in the rows: put those of size 1 back that were squeezed.
        kept = [d if d < self.first_dim else d - count for d, own in zip(map_, inside) if not own]
        if not kept:
            return value
        rank = len(self.base.shape) - len(self.axes)
        sizes_of = dict(zip(kept, value.shape))
        return b.reshape(value, tuple(sizes_of.get(d, 1) for d in range(min(kept), rank)))


def _index(b: Builder, number: int) -> str:
    return b.index(number)

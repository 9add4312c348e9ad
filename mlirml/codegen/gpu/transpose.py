"""Tensors that are read transposed: through shared memory, so that both sides are contiguous.

shared[j, i] = x[.., j, i]        adjacent threads have adjacent i
out[.., i, j] = f(shared[j, i])   adjacent threads have adjacent j
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from mlirml.analysis.values import depends_on
from mlirml.codegen.gpu.elements import Elements, Indices
from mlirml.codegen.gpu.index import Form, cut_up, flat
from mlirml.codegen.gpu.kernel import Host, Kernel, is_tensor
from mlirml.codegen.gpu.reads import Untraceable, reads, symbols
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch

_SIDE, _ROWS = 32, 8
"""A tile is square; a block has fewer rows of threads than the tile has."""


@dataclass(frozen=True)
class Transposition:
    """`value` reads `source`, whose last dimension is dimension `across` of the result, element by element."""

    value: mlir.Value
    out: mlir.Value
    source: mlir.Value
    across: int

    @property
    def shape(self) -> list[int]:
        return list(self.value.type.shape)

    def source_indices(self, indices: Indices) -> Indices:
        """The indices of the source for an element of the result."""
        return reads(self.value, indices, [self.source])[0][1]


def match_transposition(host: Host, value: mlir.Value, out: mlir.Value) -> Transposition:
    """Read a returned tensor as one that reads another transposed; raises NoMatch."""
    shape = list(value.type.shape)
    if len(shape) < 2 or shape[-1] < _SIDE:
        raise NoMatch("the rows are short")
    own = symbols("own", shape)
    for source in sources_of(host, value):
        if math.prod(source.type.shape) != math.prod(shape):
            continue
        try:
            found = {indices for _, indices in reads(value, tuple(own), [source])}
        except Untraceable:
            continue
        if len(found) != 1:
            continue
        last = found.pop()[-1]
        if last in own[:-1] and shape[own.index(last)] >= _SIDE:
            return Transposition(value, out, source, own.index(last))
    raise NoMatch("nothing is read across")


def sources_of(host: Host, value: mlir.Value) -> list[mlir.Value]:
    """The tensors in memory that a tensor is computed from."""
    found, todo, seen = [], [value], set[mlir.Value]()
    while todo:
        tensor = todo.pop()
        if tensor in seen or not is_tensor(tensor):
            continue
        seen.add(tensor)
        if tensor in host.buffers:
            found.append(tensor)
            continue
        op = defining_op(tensor)
        todo += list(op.operands) if op is not None else []
    return [tensor for tensor in found if depends_on(value, [tensor])]


def lower_transposition(host: Host, plan: Transposition) -> None:
    """Build the kernel."""
    with host.kernel("transpose", (_SIDE * _ROWS,)) as kernel:
        Tiles(kernel, plan).build()


class Tiles:
    """The kernel: the positions of its block and thread."""

    def __init__(self, kernel: Kernel, plan: Transposition) -> None:
        self.kernel = kernel
        self.plan = plan
        self.elements = Elements(kernel)
        shape = plan.shape
        self.sizes = (shape[plan.across], shape[-1])
        self.others = [1 if d in (plan.across, len(shape) - 1) else n for d, n in enumerate(shape)]
        counts = [math.prod(self.others), *(-(-n // _SIDE) for n in self.sizes)]
        blocks = math.prod(counts)
        block = kernel.cover(blocks)
        self.in_grid = kernel.below(block, blocks)
        number, *tile = cut_up(kernel.clamped(block, blocks), counts)
        self.around = cut_up(number, self.others)
        self.origin = [index * _SIDE for index in tile]
        self.row, self.column = cut_up(kernel.thread(), [_ROWS, _SIDE])
        self.shared = kernel.shared([_SIDE, _SIDE + 1], plan.source.type.element_type)

    def build(self) -> None:
        """Fill the tile along the source, then read it along the result."""
        kernel = self.kernel
        for first in range(0, _SIDE, _ROWS):
            row = self.row + first
            position = [kernel.clamped(self.origin[0] + self.column, self.sizes[0]),
                      kernel.clamped(self.origin[1] + row, self.sizes[1])]  # fmt: skip
            indices = self.plan.source_indices(self.result_indices(position))
            kernel.write(self.elements.get(self.plan.source, indices), self.shared, row, self.column)
        kernel.barrier()
        for first in range(0, _SIDE, _ROWS):
            row = self.row + first
            position = [self.origin[0] + row, self.origin[1] + self.column]
            guards = [self.in_grid, *(kernel.below(i, n) for i, n in zip(position, self.sizes, strict=True))]
            kernel.guarded(guards, partial(self.store, row, position))

    def result_indices(self, position: Sequence[Form]) -> Indices:
        """The indices in the result of an element of the tile."""
        indices = list(self.around)
        indices[self.plan.across], indices[-1] = position
        return tuple(indices)

    def store(self, row: Form, position: Sequence[Form]) -> None:
        """Store an element of the result, computed from the tile."""
        indices = self.result_indices(position)
        value = self.kernel.read(self.shared, self.column, row)
        self.elements.give(self.plan.source, self.plan.source_indices(indices), value)
        found = self.elements.get(self.plan.value, indices)
        self.kernel.store(self.plan.out, [(flat(indices, self.plan.shape), found)])

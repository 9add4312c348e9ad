"""Tensors that are read transposed: through shared memory, so that both sides are contiguous.

shared[j, i] = x[.., j, i]        adjacent threads have adjacent i, some of them each
out[.., i, j] = f(shared[j, i])   adjacent threads have adjacent j

Where both sizes allow it, a thread loads and stores 16 bytes, eight of which are a row of the tile. Rows of the tile
are one element longer, so that in both directions the elements of a warp are in different banks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from mlirml.analysis.cost import element_bytes
from mlirml.analysis.values import depends_on, is_tensor
from mlirml.codegen.gpu.elements import Elements, Indices
from mlirml.codegen.gpu.index import Form, cut_up, flat, split
from mlirml.codegen.gpu.kernel import THREADS, Host, Kernel
from mlirml.codegen.gpu.reads import Untraceable, reads, symbols
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch

_SIDE = 32
"""The side of a tile of single elements, and the fewest rows and columns of what is transposed through tiles."""
_CHUNKS, _BYTES = 8, 16
"""The chunks of a row of a tile, and the bytes of a chunk."""
_MOST_LANES = 8


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


def lanes_of(plan: Transposition) -> int:
    """The adjacent elements that a thread loads, and stores: as many as fill 16 bytes if the sizes are multiples."""
    sizes = (plan.shape[plan.across], plan.shape[-1])
    widest = max(element_bytes(tensor.type.element_type) for tensor in (plan.source, plan.out))
    lanes = min(_MOST_LANES, max(1, _BYTES // widest))
    while lanes > 1 and (any(size % lanes for size in sizes) or min(sizes) < _CHUNKS * lanes // 2):
        lanes //= 2
    return lanes


def lower_transposition(host: Host, plan: Transposition) -> None:
    """Build the kernel."""
    lanes = lanes_of(plan)
    side = _CHUNKS * lanes if lanes > 1 else _SIDE
    with host.kernel("transpose", (min(THREADS, side * side // lanes),)) as kernel:
        Tiles(kernel, plan, side, lanes).build()


class Tiles:
    """The kernel: the positions of its block and thread, with `lanes` adjacent elements at a time."""

    def __init__(self, kernel: Kernel, plan: Transposition, side: int, lanes: int) -> None:
        self.kernel = kernel
        self.plan = plan
        self.side, self.lanes = side, lanes
        self.elements = Elements(kernel)
        shape = plan.shape
        self.sizes = (shape[plan.across], shape[-1])
        self.others = [1 if d in (plan.across, len(shape) - 1) else n for d, n in enumerate(shape)]
        counts = [math.prod(self.others), *(-(-n // side) for n in self.sizes)]
        blocks = math.prod(counts)
        block = kernel.cover(blocks)
        self.in_grid = kernel.below(block, blocks)
        number, *tile = cut_up(kernel.clamped(block, blocks), counts)
        self.around = cut_up(number, self.others)
        self.origin = [index * side for index in tile]
        chunks = side // lanes
        self.step = kernel.threads[0] // chunks
        self.row, self.chunk = cut_up(kernel.thread(), [self.step, chunks])
        self.shared = kernel.shared([side, side + 1], plan.source.type.element_type)

    def build(self) -> None:
        """Fill the tile along the source, then read it along the result."""
        kernel = self.kernel
        kernel.lanes = self.lanes if self.lanes > 1 else 0
        for first in range(0, self.side, self.step):
            self.fill(self.filled_row() + first)
        kernel.barrier()
        for first in range(0, self.side, self.step):
            row = self.row + first
            own = self.origin[0] + row
            last = self.origin[1] + self.chunk * self.lanes + (self.lanes - 1)
            guards = [self.in_grid, kernel.below(own, self.sizes[0]), kernel.below(last, self.sizes[1])]
            kernel.guarded(guards, partial(self.store, row, own))

    def filled_row(self) -> Form:
        """The first row of the tile that the thread fills.

        The rows of a warp are two apart where elements have two bytes: adjacent ones begin in one bank.
        """
        if element_bytes(self.plan.source.type.element_type) != 2 or self.step % 8:
            return self.row
        above, half, four = cut_up(self.row, [self.step // 8, 2, 4])
        return above * 8 + four * 2 + half

    def fill(self, row: Form) -> None:
        """Store a chunk of a row of the source into the tile."""
        kernel, lanes = self.kernel, self.lanes
        # Chunks are clamped whole, so that they stay aligned.
        number = kernel.clamped(self.tile_chunk(0), self.sizes[0] // lanes)
        column = kernel.clamped(self.origin[1] + row, self.sizes[1])
        for lane in range(lanes):
            indices = self.plan.source_indices(self.result_indices([number * lanes + lane, column]))
            value = self.elements.get(self.plan.source, indices)
            kernel.write(value, self.shared, row, self.chunk * lanes + lane)

    def tile_chunk(self, dimension: int) -> Form:
        """The number of the thread's chunk in the whole dimension."""
        (first, _) = split(self.origin[dimension], self.lanes)
        return first + self.chunk

    def result_indices(self, position: Sequence[Form]) -> Indices:
        """The indices in the result of an element of the tile."""
        indices = list(self.around)
        indices[self.plan.across], indices[-1] = position
        return tuple(indices)

    def store(self, row: Form, own: Form) -> None:
        """Store a chunk of a row of the result, computed from the tile."""
        points = []
        for lane in range(self.lanes):
            column = self.chunk * self.lanes + lane
            indices = self.result_indices([own, self.origin[1] + column])
            value = self.kernel.read(self.shared, column, row)
            self.elements.give(self.plan.source, self.plan.source_indices(indices), value)
            points.append(indices)
        found = [(flat(indices, self.plan.shape), self.elements.get(self.plan.value, indices)) for indices in points]
        self.kernel.store(self.plan.out, found)

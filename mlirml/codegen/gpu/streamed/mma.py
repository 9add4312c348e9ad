"""Streamed scores on tensor cores: a subgroup has 16 or 32 rows, and scores and sums are fragments in its registers.

    copy the rows' factors of the scores into shared memory, and the first tile of the columns'
    for each pass, for tile in the tiles of the columns:
        wait until the tile is there;  barrier;  start to copy the next one into the other slot
        scores = mma.sync(the rows, the tile)
        state = the reductions of the pass, merged by the four threads of a row
        sums = mma.sync(the weights, the tile of the other factor, sums)

Two adjacent fragments of scores have the elements that a thread needs of a left factor of 16 columns, so that weights
go from registers to registers (T. Dao, "FlashAttention-2", 2023). Factors are f16 or bf16, and sums f32. Weights that
are f32, as those of bf16 in NumPy, are the sums of three bf16, with all their bits: three products in place of one. If
they are known to be 1 at most, and the other factor is f16, they are the sums of two f16, to 22 bits; else the other
factor is the sum of two bf16, and there are five products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from mlirml.codegen.gpu.contract.fragments import COLUMNS, ROWS, SUMS, halves, joined, multiply
from mlirml.codegen.gpu.contract.panels import CHUNK_BYTES, Panel, token
from mlirml.codegen.gpu.contract.product import Product
from mlirml.codegen.gpu.contract.tiles import SharedTiles, Tile
from mlirml.codegen.gpu.elements import Elements
from mlirml.codegen.gpu.groups import shuffles
from mlirml.codegen.gpu.index import Base, Digit, Form, cut_up, form
from mlirml.codegen.gpu.kernel import Host, Kernel, extract
from mlirml.codegen.gpu.streamed.kernel import Streamed
from mlirml.codegen.gpu.streamed.online import match_online
from mlirml.codegen.gpu.streamed.plan import Pass, Plan, Store
from mlirml.codegen.gpu.streamed.split import Split, choose_split, lower_merge, most_parts
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import applies
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

_SUBGROUP, _DEPTH = 32, 16
_ACROSS = 4
"""The threads that share a row."""
_BYTES = 2
_SLOTS = 2
_WIDEST = 256
"""The largest depth of scores, and the most columns of a sink."""
_SUMS, _REGISTERS = 136, 167
"""Those for fragments, and all that are counted; the rest of 255 are for addresses and what is computed."""
_WORTH = 64 * 32
_SPLIT = 3
"""The bf16 whose sum an f32 is."""
_SCALE = 1 << 15
"""The factor of weights of at most 1 that makes most of the range of f16: two of them have 22 bits down to 2^-18, and
further down the multiples of 2^-39.
"""
_SMALL = (mlir.F16Type, mlir.BF16Type)


@dataclass(frozen=True)
class MmaLayout:
    """The subgroups of a block, the fragments of 16 rows that each has, and the columns of a tile."""

    subgroups: int
    fragments: int
    columns: int

    @property
    def down(self) -> int:
        return self.subgroups * COLUMNS

    @property
    def across(self) -> int:
        return _ACROSS

    @property
    def rows(self) -> int:
        return self.subgroups * self.fragments * ROWS

    @property
    def threads(self) -> int:
        return self.subgroups * _SUBGROUP

    def slots(self, plan: Plan) -> int:
        """The tiles of the columns that are in shared memory at a time."""
        return min(_SLOTS, -(-plan.columns // self.columns))

    def shared_bytes(self, plan: Plan) -> int:
        """The shared memory of a block."""
        depths = [padded(product.size(product.depth)) for product in plan.products]
        widths = [padded(sink.size(sink.columns)) for sink in plan.sinks]
        elements = self.rows * sum(depths) + self.slots(plan) * self.columns * sum((*depths, *widths))
        types = [type_ for combiner in plan.reductions for type_ in combiner.types]
        merged = 0 if all(map(shuffles, types)) else sum(max(4, type_.width // 8) for type_ in types)
        return elements * _BYTES + merged * self.threads

    def sums(self, plan: Plan) -> int:
        """The registers of a thread for fragments of scores and sums."""
        scores = max(len(each.products) for each in plan.passes) * self.columns
        sums = sum(_DEPTH * -(-sink.size(sink.columns) // _DEPTH) for sink in plan.sinks)
        return self.fragments * SUMS * (scores + sums) // COLUMNS

    def has_registers(self, plan: Plan) -> bool:
        """True if fragments, parts of weights and states of rows fit into the registers of a thread."""
        parts = max((sum(parts_of(plan, sink)) - 1 for sink in plan.sinks), default=0)
        states = sum(len(combiner.types) for combiner in plan.reductions)
        sums = self.sums(plan)
        return sums <= _SUMS and sums + 4 * self.fragments * (parts + states) <= _REGISTERS


LAYOUTS = tuple(
    MmaLayout(*each)
    for each in (
        (4, 2, 64),
        (4, 2, 32),
        (4, 1, 64),
        (4, 1, 32),
        (4, 1, 16),
        (2, 1, 64),
        (2, 1, 16),
        (1, 1, 64),
        (1, 1, 16),
    )
)
"""The layouts to choose from, largest first."""


def padded(extent: int) -> int:
    """The elements of a row of a panel: a power of two of chunks, or a multiple of eight."""
    return next((n for n in (16, 32) if extent <= n), -(-extent // 64) * 64)


def check_tensor_streamed(host: Host, plan: Plan) -> None:
    """Raise NoMatch if the device has no tensor cores, or they do not support the factors."""
    if not host.device.tensor_cores or host.device.subgroup != _SUBGROUP:
        raise NoMatch("no tensor cores")
    for product in (*plan.products, *plan.sinks):
        if not isinstance(product.combiner.types[0], mlir.F32Type):
            raise NoMatch("the sum is not f32")
        if max(product.size(product.columns if product in plan.sinks else product.depth), 1) > _WIDEST:
            raise NoMatch("the sums do not fit into registers")
        left, right = (product.op.operands[side.operand].type.element_type for side in product.sides)
        if not isinstance(right, _SMALL) or not is_extended(product, 1):
            raise NoMatch("the factors are no small floats")
        if left == right and is_extended(product, 0):
            continue
        if product not in plan.sinks or not is_split(product):
            raise NoMatch("the factors have other types")


def is_extended(product: Product, side: int) -> bool:
    """True if a factor is multiplied as it is, but for its extension to f32."""
    return [op.name for op in product.sides[side].ops] == ["arith.extf"]


def is_split(sink: Product) -> bool:
    """True if the weights are f32, which are computed as sums of small floats."""
    return isinstance(sink.op.operands[sink.sides[0].operand].type.element_type, mlir.F32Type) and not sink.sides[0].ops


def is_half(sink: Product) -> bool:
    """True if the factor that is not the weights is f16."""
    return isinstance(sink.op.operands[sink.sides[1].operand].type.element_type, mlir.F16Type)


def is_online(plan: Plan) -> bool:
    """True if all passes become one, where weights are exponentials of what is not positive."""
    return applies(match_online, plan)


def parts_of(plan: Plan, sink: Product) -> tuple[int, int]:
    """The numbers of small floats whose sums the weights of a sink, and the elements of its other factor, are."""
    if not is_split(sink):
        return 1, 1
    if not is_half(sink):
        return _SPLIT, 1
    return (2, 1) if is_online(plan) else (_SPLIT, 2)


def choose_mma_layout(host: Host, plan: Plan) -> MmaLayout:
    """The largest layout that fits a block, and of which there are enough blocks to fill the device.

    More shared memory than every launch has is for tiles of up to `_WORTH` scores, as it leaves room for fewer blocks.
    """
    usual, most = host.device.shared_bytes, max(host.device.shared_bytes, host.device.most_shared_bytes)
    fitting = [
        each
        for each in LAYOUTS
        if each.shared_bytes(plan) <= (most if each.rows * each.columns <= _WORTH else usual)
        and each.has_registers(plan)
    ]
    if not fitting:
        raise NoMatch("too little shared memory, or too few registers")
    for layout in fitting:
        blocks = plan.batches * -(-plan.rows // layout.rows) * most_parts(host, plan, layout.columns)
        if blocks >= host.device.processors and plan.rows > layout.rows // 2:
            return layout
    return min(fitting, key=lambda each: (each.rows, -each.columns))


def lower_tensor_streamed(host: Host, plan: Plan) -> None:
    """Build the kernel; raises NoMatch."""
    check_tensor_streamed(host, plan)
    layout = choose_mma_layout(host, plan)
    split = choose_split(host, plan, layout.rows, layout.columns)
    host.op.context.get_dialect_descriptor("nvgpu")  # loads it
    with host.kernel("streamed", (layout.threads,)) as kernel:
        TensorStreamed(kernel, plan, layout, split).build()
    if split is not None:
        lower_merge(host, plan, match_online(plan), split)


class MatrixTiles(SharedTiles):
    """The factors of a product as they are in memory, which `threads` threads copy into panels."""

    vector = CHUNK_BYTES // _BYTES

    def __init__(self, kernel: Kernel, elements: Elements, product: Product, tile: Tile, threads: int) -> None:
        self._threads = threads
        super().__init__(kernel, elements, product, tile)

    @property
    def threads(self) -> int:
        return self._threads

    def share(self) -> list[mlir.Value]:
        return []

    def is_plain(self, side: int) -> bool:
        """True if the shared elements of a factor are those in memory."""
        return True

    def factor(self, side: int, point: Sequence[Form]) -> mlir.Value:
        return self.product.raw(self.elements, side, point)


class Stream:
    """The panel of a factor that has other elements in each tile of the columns.

    The columns are across a product of the scores, or along the depth of a sink.
    """

    def __init__(self, panel: Panel, tiles: MatrixTiles, columns: int | None) -> None:
        self.panel = panel
        self.tiles = tiles
        self.columns = columns

    def seek(self, number: Form) -> Form:
        """Set the origin to a tile; the step along the depth."""
        if self.columns is None:
            return number
        self.tiles.origin = (self.tiles.origin[0], number * self.columns)
        return Form()

    def copy(self, slot: Form, number: Form) -> None:
        """Start the copies of a tile."""
        self.panel.copy(slot, self.seek(number))

    def load(self, number: Form) -> list[list[mlir.Value]]:
        """The elements of a tile that a thread stores into the panel."""
        kernel = self.panel.kernel
        kernel.lanes = self.tiles.vector
        found = self.panel.load(self.seek(number))
        kernel.lanes = 0
        return found


class TensorStreamed(Streamed):
    """The kernel, with panels of all factors but the weights."""

    lanes = 2

    def __init__(self, kernel: Kernel, plan: Plan, layout: MmaLayout, split: Split | None = None) -> None:
        self.own = layout
        self.slots = layout.slots(plan)
        self.rights: dict[mlir.Operation, Stream] = {}
        self.lefts: dict[mlir.Operation, Panel] = {}
        self.now = Form()
        self.filled = False
        self.warp, self.group, _ = cut_up(kernel.thread(), [layout.subgroups, COLUMNS, _ACROSS])
        self.parts = {sink.op: parts_of(plan, sink) for sink in plan.sinks}
        super().__init__(kernel, plan, layout, split)
        _, high, low, self.lane_row = cut_up(kernel.thread(), [layout.subgroups, 2, 2, 8])
        self.orders = ((low, high), (high, low))

    def own_rows(self) -> list[Form]:
        first = self.warp * (ROWS * self.own.fragments) + self.group
        return [first + (ROWS * n + half) for n in range(self.own.fragments) for half in (0, 8)]

    def own_columns(self) -> list[Form]:
        return [self.member * 2 + (first + lane) for first in range(0, self.own.columns, COLUMNS) for lane in (0, 1)]

    def tiles(self, product: Product, columns: int, depth: int) -> MatrixTiles:
        """The tile of a product."""
        tile = Tile(self.own.rows, columns, depth, self.own.rows, columns)
        found = MatrixTiles(self.kernel, self.elements, product, tile, self.own.threads)
        found.batch, found.in_grid = self.batch, self.in_grid
        found.origin = (self.first_row, Form())
        return found

    def score_tiles(self, product: Product) -> SharedTiles:
        columns = self.own.columns
        found = self.tiles(product, columns, padded(product.size(product.depth)))
        self.lefts[product.op] = Panel(found, 0, 1)
        self.rights[product.op] = Stream(Panel(found, 1, self.slots), found, columns)
        return found

    def sink_tiles(self, sink: Product) -> SharedTiles:
        found = self.tiles(sink, padded(sink.size(sink.columns)), self.own.columns)
        self.rights[sink.op] = Stream(Panel(found, 1, self.slots), found, None)
        return found

    def zeros(self, sink: Product) -> list[mlir.Value]:
        pieces = -(-sink.size(sink.columns) // _DEPTH) * 2
        return [self.kernel.constant(0, sink.combiner.types[0])] * (pieces * 2 * len(self.rows))

    def sink_columns(self, sink: Product) -> list[Form]:
        width = -(-sink.size(sink.columns) // _DEPTH) * _DEPTH
        return [self.member * 2 + (first + lane) for first in range(0, width, COLUMNS) for lane in (0, 1)]

    def each_tile(
        self,
        each: Pass,
        bounds: tuple[Form | int, Form | int],
        step: Callable[[Form, list[mlir.Value]], list[mlir.Value]],
        carried: list[mlir.Value],
    ) -> list[mlir.Value]:
        kernel = self.kernel
        steps = -(-self.plan.columns // self.own.columns)
        streams = [self.rights[product.op] for product in (*each.products, *each.sinks)]
        direct = [stream for stream in streams if stream.panel.direct]
        staged = [stream for stream in streams if not stream.panel.direct]
        lower, upper = bounds
        if self.filled:
            kernel.barrier()  # the last tile of the pass before has been read
        with kernel.scope():
            self.fill_rows()
            first = kernel.clamped(form(lower) if isinstance(lower, int) else lower, steps)
            self.copy(direct, first)
            self.store(staged, first, self.load(staged, first))
        group = commit()

        def body(number: Form, values: list[mlir.Value]) -> list[mlir.Value]:
            emit.create("nvgpu.device_async_wait", [group], (), {"numGroups": emit.i32(0)})
            kernel.barrier()
            later = number + 1
            if self.slots > 1:
                kernel.guarded([self.is_before(later, upper)], partial(self.copy, direct, later))
                commit()
            loaded = self.load(staged, kernel.clamped(later, steps)) if self.slots > 1 else []
            self.now = self.slot_of(number)
            values = step(number, values)
            if self.slots > 1:
                self.store(staged, later, loaded)
            return values

        return kernel.loop((lower, upper, 1), body, carried, steps)

    def is_before(self, number: Form, upper: Form | int) -> mlir.Value | None:
        """True (i1) if a tile is needed; None if it always is."""
        if isinstance(upper, int):
            return self.kernel.below(number, upper)
        return emit.compare("slt", self.kernel.at(number), self.kernel.at(upper))

    def slot_of(self, number: Form) -> Form:
        """The slot of a tile."""
        if not number.terms:
            return form(number.constant % self.slots)
        steps = -(-self.plan.columns // self.own.columns)
        return form(Digit(Base(self.kernel.at(number), steps + 1), 1, self.slots))

    def fill_rows(self) -> None:
        """Start to fill the panels of the factors of the rows, before the first pass."""
        for panel in self.lefts.values() if not self.filled else ():
            if panel.direct:
                panel.copy(Form(), Form())
                continue
            self.kernel.lanes = MatrixTiles.vector
            loaded = panel.load(Form())
            self.kernel.lanes = 0
            panel.store(Form(), loaded)
        self.filled = True

    def copy(self, streams: Sequence[Stream], number: Form) -> None:
        """Start the copies of a tile of some factors."""
        for stream in streams:
            stream.copy(self.slot_of(number), number)

    def load(self, streams: Sequence[Stream], number: Form) -> list[list[list[mlir.Value]]]:
        """The elements of a tile of some factors that are computed."""
        return [stream.load(number) for stream in streams]

    def store(self, streams: Sequence[Stream], number: Form, loaded: Sequence[list[list[mlir.Value]]]) -> None:
        """Store the elements of a tile."""
        for stream, values in zip(streams, loaded, strict=True):
            stream.panel.store(self.slot_of(number), values)

    def left(self, product: Product, depth: int) -> list[mlir.Value]:
        """The fragments of the rows of the subgroup, at a step along the depth of the scores."""
        panel, first = self.lefts[product.op], self.warp * (ROWS * self.own.fragments)
        return [
            joined(self.kernel, panel.fragment(Form(), first + n * ROWS, depth, self.orders[0], self.lane_row))
            for n in range(self.own.fragments)
        ]

    def right(self, product: Product, across: int, depth: int) -> list[list[mlir.Value]]:
        """The parts of two fragments of 8 columns of the other factor, at a step along the depth."""
        panel = self.rights[product.op].panel
        registers = panel.fragment(self.now, form(across), depth, self.orders[1], self.lane_row)
        if self.parts.get(product.op, (1, 1))[1] == 1:
            return [[half] for half in halves(self.kernel, registers)]
        parts = zip(*map(halves_of_register, registers), strict=True)
        return [list(each) for each in zip(*(halves(self.kernel, part) for part in parts), strict=True)]

    def multiply_scores(self, product: Product, start: Form, columns: Sequence[Form]) -> None:
        with product.op.location:
            zero = self.kernel.constant(0, product.combiner.types[0])
            sums = [zero] * (len(self.rows) * len(columns))
            for depth in range(0, product.size(product.depth), _DEPTH):
                left = [[fragment] for fragment in self.left(product, depth)]
                sums = self.add_products(product, left, self.own.columns, depth, sums)
        for i, row in enumerate(self.rows):
            for j, column in enumerate(columns):
                indices = product.result_indices(self.batch, row, column)
                self.elements.give(product.result, indices, sums[i * len(columns) + j])

    def add_to_sink(
        self,
        sink: Product,
        start: Form,
        columns: Sequence[Form],
        valid: Sequence[mlir.Value | None],
        sums: list[mlir.Value],
    ) -> list[mlir.Value]:
        kernel = self.kernel
        for depth in range(0, self.own.columns, _DEPTH):
            kernel.lanes = self.lanes
            own = slice(depth // 4, depth // 4 + 4)  # two columns in each of two fragments of scores
            weights = [self.weights(sink, row, columns[own], valid[own]) for row in self.rows]
            kernel.lanes = 0
            left = []
            for first in range(0, len(self.rows), 2):
                # The parts of each register: two columns of two rows, and of the same rows eight columns on.
                registers = [weights[first + n % 2][n // 2] for n in range(4)]
                left.append([joined(kernel, parts) for parts in zip(*registers, strict=True)])
            sums = self.add_products(sink, left, sink.size(sink.columns), depth, sums)
        kernel.lanes = self.lanes
        return sums

    def add_products(
        self,
        product: Product,
        left: Sequence[Sequence[mlir.Value]],
        columns: int,
        depth: int,
        sums: Sequence[mlir.Value],
    ) -> list[mlir.Value]:
        """The sums, row by row, after a step along the depth; `left` has the parts of each fragment of rows."""
        wide = len(sums) // len(self.rows)
        found = list(sums)
        for across in range(0, columns, 2 * COLUMNS):
            for half, others in enumerate(self.right(product, across, depth)):
                first = across // COLUMNS * 2 + half * 2
                for n, parts in enumerate(left):
                    at = [(2 * n + row) * wide + first + lane for row in (0, 1) for lane in (0, 1)]
                    own = [found[number] for number in at]
                    for a, b in smallest_first(parts, others):
                        own = multiply(self.kernel, a, b, own, depth=_DEPTH)
                    for number, value in zip(at, own, strict=True):
                        found[number] = value
        return found

    def weights(
        self, sink: Product, row: Form, columns: Sequence[Form], valid: Sequence[mlir.Value | None]
    ) -> list[list[mlir.Value]]:
        """The registers of two weights each of a row, in their parts; 0 beyond the last column."""
        values = []
        for column, is_valid in zip(columns, valid, strict=True):
            value = sink.raw(self.elements, 0, sink.point(self.batch, row, Form(), column))
            if is_valid is not None:
                value = emit.same_type("arith.select", is_valid, value, self.kernel.constant(0, value.type))
            values.append(self.parts_of(sink, value))
        return [[pair(a, b) for a, b in zip(*values[n : n + 2], strict=True)] for n in range(0, len(values), 2)]

    def parts_of(self, sink: Product, weight: mlir.Value) -> list[mlir.Value]:
        """The small floats whose sum is a weight, times the scale of the sink."""
        if self.parts[sink.op][0] == 1:
            return [weight]
        if self.is_scaled(sink):
            return split_in_two(emit.same_type("arith.mulf", weight, self.kernel.constant(_SCALE, weight.type)))
        return split_in(weight, _SPLIT)

    def is_scaled(self, sink: Product) -> bool:
        """True if the parts of the weights are f16, whose exponents are few: they are scaled, and are 1 at most."""
        return self.parts[sink.op] == (2, 1)

    def unscaled(self, sink: Product, sums: list[mlir.Value]) -> list[mlir.Value]:
        if not self.is_scaled(sink):
            return sums
        by = self.kernel.constant(1 / _SCALE, sums[0].type)
        return [emit.same_type("arith.mulf", value, by) for value in sums]

    def store_sink(self, tiles: SharedTiles, sums: list[mlir.Value], stores: Sequence[Store]) -> None:
        kernel, product = self.kernel, tiles.product
        kernel.lanes = self.lanes
        wide, across = len(sums) // len(self.rows), self.sink_columns(product)
        together = tiles.sizes[1] % 2 == 0
        for i, (offset, row) in enumerate(zip(self.row_offsets, self.rows, strict=True)):
            for first in range(0, wide, 2):
                for lanes in ((0, 1),) if together else ((0,), (1,)):
                    columns = [across[first + lane] for lane in lanes]
                    guards = [
                        self.in_grid, kernel.below(self.first_row + offset, self.plan.rows),
                        kernel.below(columns[-1], tiles.sizes[1]),
                    ]  # fmt: skip
                    points = [product.result_indices(self.batch, row, column) for column in columns]
                    values = [sums[i * wide + first + lane] for lane in lanes]
                    kernel.guarded(guards, partial(tiles.store, points, values, stores))
        kernel.lanes = 0


def commit() -> mlir.Value:
    """End a group of asynchronous copies."""
    return emit.value("nvgpu.device_async_create_group", (), token())


def pair(a: mlir.Value, b: mlir.Value) -> mlir.Value:
    """A register of two small floats."""
    return emit.value("vector.from_elements", [a, b], mlir.VectorType.get([2], a.type))


def split_in_two(value: mlir.Value) -> list[mlir.Value]:
    """Two f16 whose sum is an f32 of at most 2^15 to 22 bits, the larger one first."""
    half = mlir.F16Type.get()
    first = emit.value("arith.truncf", [value], half)
    rest = emit.same_type("arith.subf", value, emit.value("arith.extf", [first], value.type))
    return [first, emit.value("arith.truncf", [rest], half)]


def split_in(value: mlir.Value, count: int) -> list[mlir.Value]:
    """The bf16 whose sum an f32 is, the largest first: three for all bits, two for those of an f16.

    Bits are cut off, so that nothing overflows. An infinity is the first part, and a NaN too: the rests are 0. What is
    below 2^-133 is cut off.
    """
    found: list[mlir.Value] = []
    word, half = (mlir.IntegerType.get_signless(width) for width in (32, 16))
    for number in range(count):
        if number:
            value = emit.same_type("arith.subf", value, emit.value("arith.extf", [found[-1]], value.type))
            zero = emit.number(value.type, 0)
            value = emit.same_type("arith.select", emit.compare("uno", value, value), zero, value)
        bits = emit.value("arith.bitcast", [value], word)
        above = emit.value("arith.trunci", [emit.same_type("arith.shrui", bits, emit.number(word, 16))], half)
        found.append(emit.value("arith.bitcast", [above], mlir.BF16Type.get()))
    return found


def halves_of_register(register: mlir.Value) -> list[mlir.Value]:
    """Two registers of bf16 whose sum one of f16 is."""
    wide = [emit.value("arith.extf", [extract(register, lane)], mlir.F32Type.get()) for lane in range(2)]
    return [pair(a, b) for a, b in zip(*(split_in(value, 2) for value in wide), strict=True)]


def smallest_first(left: Sequence[mlir.Value], right: Sequence[mlir.Value]) -> list[tuple[mlir.Value, mlir.Value]]:
    """The products of parts that count, in the order in which they are added."""
    numbers = [(i, j) for i in range(len(left)) for j in range(len(right)) if i + j < max(len(left), len(right))]
    return [(left[i], right[j]) for i, j in sorted(numbers, key=sum, reverse=True)]

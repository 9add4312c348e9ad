"""Scans along long rows: the threads of a block, and several blocks if there are few rows, share a row.

    v[0..3] = the elements of a thread, combined sequentially; shared memory brings them there and back
    before  = the exclusive prefix over the threads, by steps of 1, 2, 4, ... in shared memory
    out[..] = carry + before + v[..];  carry = carry + total of the group

A row that several blocks share is split into pieces: one kernel combines each piece, one computes the exclusive prefix
of the pieces, and the third scans each piece as above (reduce, then scan: Merrill and Grimshaw, "Parallel Scan for
Stream Architectures"). The order of the combinations is always the same, but not that of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlirml.analysis.cost import element_bytes
from mlirml.analysis.ordered_loops import store_of
from mlirml.analysis.reductions import combination_of
from mlirml.analysis.values import has_one_use
from mlirml.codegen.cpu.reduce.combiners import Reducer
from mlirml.codegen.gpu.combiners import Combiner, Values
from mlirml.codegen.gpu.elements import Elements
from mlirml.codegen.gpu.groups import merge_group
from mlirml.codegen.gpu.index import Form, cut_up
from mlirml.codegen.gpu.kernel import THREADS, Host, Kernel, extract, vectorisable
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations
from mlirml.passes import NoMatch

SHORT = 64
"""Shorter rows are scanned by one thread each."""
_ITEMS = 4
_PIECE = 4096
_PIECES = 64

SetRow = Callable[[Kernel, Form], None]
"""Sets the row that a kernel runs on."""
Insert = Callable[[Elements, mlir.Operation, mlir.Value], None]
"""Stores a value of the loop at the indices of an insertion."""


class Scan(Combiner):
    """A loop that combines the elements of `count` rows and stores each prefix."""

    def __init__(
        self, op: mlir.Operation, row: int, count: int, bounds: Sequence[int], set_row: SetRow, insert: Insert
    ) -> None:
        self.op = op
        self.count = count
        self.low, self.high, step = bounds
        self.set_row = set_row
        self.insert = insert
        block = op.regions[0].blocks[0]
        *ops, end = block_ops(block)
        self.variable, *carried = block.arguments
        self.argument = carried[row]
        self.next_value = end.operands[row]
        self.start_value = op.operands[3 + row]
        if step != 1 or self.high - self.low < SHORT:
            raise NoMatch("the rows are short")
        self.insertion = store_of(end.operands[len(carried) - 1], self.next_value)
        self.first = store_of(op.operands[len(op.operands) - 1], self.start_value)
        self.reducer = self._match(row, ops, list(carried))

    def _match(self, row: int, ops: Sequence[mlir.Operation], carried: Sequence[mlir.Value]) -> Reducer:
        if self.insertion is None:
            raise NoMatch("a scan stores in another way")
        value_uses = [use.owner.operation for use in self.next_value.uses]
        found = combination_of(self.next_value, self.argument)
        # Where all elements so far are NaN, an extreme that ignores NaN is NaN, which its identity does not keep.
        if (
            found is None
            or found.combiner.ignores_nan
            or any(u.name not in ("tensor.insert", "scf.yield") for u in value_uses)
        ):
            raise NoMatch("what is carried is not combined")
        if not has_one_use(self.argument):
            raise NoMatch("what is carried is used in another way")
        todo, seen = [found.term], set[mlir.Value]()
        while todo:
            value = todo.pop()
            if value in carried:
                raise NoMatch("an element depends on what is carried")
            owner = defining_op(value)
            if value not in seen and owner is not None and owner in ops:
                seen.add(value)
                todo += [operand for inner in operations(owner) for operand in inner.operands]
        return Reducer(found.combiner, self.next_value.type, found.ops, found.term, 0)

    @property
    def length(self) -> int:
        return self.high - self.low

    @property
    def types(self) -> list[mlir.Type]:
        return [self.reducer.type]

    def merge(self, a: Values, b: Values) -> Values:
        return [self.reducer.combine(a[0], b[0])]

    def combine(self, a: mlir.Value, b: mlir.Value) -> mlir.Value:
        return self.reducer.combine(a, b)


@dataclass(frozen=True)
class Layout:
    """`group` threads share a row or a piece of one, of `span` elements; `rows` of them are in a block."""

    group: int
    rows: int
    pieces: int
    span: int


def choose_layout(scan: Scan, threads: int) -> Layout:
    """As many threads as a row has work for, and pieces if there are few rows."""
    group = min(threads, 1 << max(3, (scan.length // _ITEMS).bit_length() - 1))
    rows = 1 if group == threads else min(threads // group, 1 << (scan.count - 1).bit_length())
    pieces = 1
    if scan.count < _PIECES and scan.length >= 2 * _PIECE:
        pieces = min(_PIECES, scan.length // _PIECE)
    step = group * _ITEMS
    span = -(-scan.length // pieces)
    span = -(-span // step) * step
    return Layout(group, rows, -(-scan.length // span), span)


def lower_scan(host: Host, scan: Scan) -> None:
    """Build the kernels."""
    layout = choose_layout(scan, THREADS)
    before = None
    if layout.pieces > 1:
        before = host.array([scan.count, layout.pieces], scan.reducer.type)
        with host.kernel("pieces", (layout.group * layout.rows,)) as kernel:
            Pieces(kernel, scan, layout).total(before)
        with host.kernel("starts", (min(scan.count, THREADS),)) as kernel:
            add_up_pieces(kernel, scan, layout, before)
    with host.kernel("scan", (layout.group * layout.rows,)) as kernel:
        Pieces(kernel, scan, layout).scan(before)


def add_up_pieces(kernel: Kernel, scan: Scan, layout: Layout, memory: mlir.Value) -> None:
    """Replace the total of each piece of a row by its exclusive prefix, including the init of the row."""
    threads = kernel.threads[0]
    number = kernel.cover(-(-scan.count // threads)) * threads + kernel.thread()

    def body() -> None:
        scan.set_row(kernel, number)
        argument = kernel.argument(memory)
        type_ = scan.reducer.type

        def step(piece: Form, state: Values) -> Values:
            offset = number * layout.pieces + piece
            own = emit.value("memref.load", [argument, kernel.at(offset)], type_)
            kernel.write(state[0], argument, offset)
            return [scan.combine(state[0], own)]

        kernel.loop((0, layout.pieces, 1), step, [Elements(kernel).scalar(scan.start_value)])

    kernel.guarded([kernel.below(number, scan.count)], body)


class Pieces:
    """A kernel whose groups of threads run along a row or a piece of one."""

    def __init__(self, kernel: Kernel, scan: Scan, layout: Layout) -> None:
        self.kernel = kernel
        self.scan_loop = scan
        self.layout = layout
        self.elements = Elements(kernel)
        slot, self.member = cut_up(kernel.thread(), [layout.rows, layout.group])
        self.slot = slot
        blocks = -(-scan.count // layout.rows) * layout.pieces
        block = kernel.cover(blocks)
        self.guards = [kernel.below(block, blocks)]
        block, self.piece = cut_up(kernel.clamped(block, blocks), [blocks // layout.pieces, layout.pieces])
        number = block * layout.rows + slot
        self.guards.append(kernel.below(number, scan.count))
        self.row = kernel.clamped(number, scan.count)
        scan.set_row(kernel, self.row)

    def element(self, index: Form) -> tuple[mlir.Value, mlir.Value | None]:
        """The element of iteration `index` (the identity past the end), and its in-bounds predicate."""
        kernel, scan = self.kernel, self.scan_loop
        valid = kernel.below(index, scan.length)
        with kernel.scope():
            clamped = kernel.clamped(index, scan.length)
            kernel.known["scalar", scan.variable] = kernel.at(clamped + scan.low)
            value = self.elements.scalar(scan.reducer.value)
        if valid is not None:
            value = emit.same_type("arith.select", valid, value, scan.reducer.identity())
        return value, valid

    def total(self, memory: mlir.Value) -> None:
        """Store the total of the piece."""
        kernel, scan, layout = self.kernel, self.scan_loop, self.layout

        def step(k: Form, state: Values) -> Values:
            value, _ = self.element(self.piece * layout.span + k * layout.group + self.member)
            return [scan.combine(state[0], value)]

        state = kernel.loop((0, layout.span // layout.group, 1), step, [scan.reducer.identity()])
        state = merge_group(kernel, scan, state, self.member, self.slot, layout.group, layout.rows)
        offset = self.row * layout.pieces + self.piece
        first = kernel.below(self.member, 1)
        kernel.guarded([*self.guards, first], lambda: kernel.write(state[0], kernel.argument(memory), offset))

    def scan(self, before: mlir.Value | None) -> None:
        """Store the results along the piece."""
        kernel, scan, layout = self.kernel, self.scan_loop, self.layout
        start = self.elements.scalar(scan.start_value)
        if scan.first is not None:
            stored = scan.first
            first = [kernel.below(self.member, 1), kernel.below(self.piece, 1)]
            kernel.guarded([*self.guards, *first], lambda: scan.insert(self.elements, stored, scan.start_value))
        if before is not None:
            offset = kernel.at(self.row * layout.pieces + self.piece)
            start = emit.value("memref.load", [kernel.argument(before), offset], scan.reducer.type)
        shared = kernel.shared([layout.group * layout.rows], scan.reducer.type)
        wide = layout.group * _ITEMS
        tile = kernel.shared([wide * layout.rows], scan.reducer.type)
        row = self.slot * wide

        def step(k: Form, carry: Values) -> Values:
            # Adjacent threads read and store adjacent elements; a thread combines four adjacent ones.
            places = [self.member + item * layout.group for item in range(_ITEMS)]
            indices = [self.piece * layout.span + k * wide + place for place in places]
            valid = []
            for place, index in zip(places, indices, strict=True):
                value, in_bounds = self.element(index)
                kernel.write(value, tile, row + place)
                valid.append(in_bounds)
            kernel.barrier()
            values: Values = []
            for value in self.own_items(tile, row):
                values.append(scan.combine(values[-1], value) if values else value)
            ahead, whole = self.exchange(shared, values[-1])
            start_here = scan.combine(carry[0], ahead)
            for item in range(_ITEMS):
                kernel.write(scan.combine(start_here, values[item]), tile, row + (self.member * _ITEMS + item))
            kernel.barrier()
            for place, index, in_bounds in zip(places, indices, valid, strict=True):
                kernel.guarded([*self.guards, in_bounds], self.storing(index, kernel.read(tile, row + place)))
            kernel.barrier()
            return [scan.combine(carry[0], whole)]

        kernel.loop((0, layout.span // wide, 1), step, [start])

    def own_items(self, tile: mlir.Value, row: Form) -> Values:
        """The adjacent elements of this thread, as vectors of 16 bytes where they have so many."""
        first = row + self.member * _ITEMS
        if element_bytes(tile.type.element_type) * _ITEMS > 16 or not vectorisable(tile.type.element_type):
            return [self.kernel.read(tile, first + item) for item in range(_ITEMS)]
        vector = self.kernel.load_vector(tile, first, _ITEMS)
        return [extract(vector, item) for item in range(_ITEMS)]

    def storing(self, index: Form, value: mlir.Value) -> Callable[[], None]:
        """Store the result of an iteration."""
        kernel, scan = self.kernel, self.scan_loop
        assert scan.insertion is not None
        insertion = scan.insertion

        def body() -> None:
            kernel.known["scalar", scan.variable] = kernel.at(index + scan.low)
            kernel.known["scalar", scan.next_value] = value
            scan.insert(self.elements, insertion, scan.next_value)

        return body

    def exchange(self, shared: mlir.Value, own: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
        """Exclusive prefix and total of the thread group (Hillis-Steele)."""
        kernel, scan, group = self.kernel, self.scan_loop, self.layout.group
        offset = self.slot * group + self.member
        kernel.write(own, shared, offset)
        kernel.barrier()
        step, mine = 1, own
        while step < group:
            with kernel.scope():
                far = emit.compare("uge", kernel.at(self.member), kernel.constant(step))
                other = self.at_or_identity(far, shared, offset - step)
                mine = scan.combine(other, mine)
                kernel.barrier()
                kernel.write(mine, shared, offset)
                kernel.barrier()
            step *= 2
        any_ahead = emit.compare("uge", kernel.at(self.member), kernel.constant(1))
        ahead = self.at_or_identity(any_ahead, shared, offset - 1)
        whole = kernel.read(shared, self.slot * group + (group - 1))
        kernel.barrier()
        return ahead, whole

    def at_or_identity(self, condition: mlir.Value, shared: mlir.Value, offset: Form) -> mlir.Value:
        """An element of shared memory if a condition holds, else the identity."""
        scan = self.scan_loop
        return self.kernel.choose(
            condition, lambda: self.kernel.read(shared, offset), scan.reducer.identity, scan.reducer.type
        )

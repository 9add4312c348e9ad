"""Reductions and computations with their results over the same rows: softmax, norms, sums, argmax, in one kernel.

The elements of a reduction are a row. Some threads of a block share it: each has elements at the distance of a group,
then their states are merged in shared memory or by shuffles. A row that fits into the registers of its threads is read
once.

    r0 = thread % group                                   row = block * rows + thread / group
    part = identity
    for k: part = combine(part, x[row, (k * group + r0) * 4 ..])
    total = merge over the group                          known as element `row` of the reduced tensor
    out[row, ..] = elements of the results                computed from known elements

If the rows are strided in memory, adjacent threads have adjacent rows. Few long rows are split: a first kernel reduces
pieces, a second one reduces their results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial

from mlirml.analysis.cost import element_bytes
from mlirml.analysis.structured import indexing_maps, sizes_of
from mlirml.analysis.values import is_tensor
from mlirml.codegen.gpu.bitonic import load
from mlirml.codegen.gpu.combiners import Combiner, Values, match_combiner
from mlirml.codegen.gpu.elements import Elements, apply, out_map, uses_dim
from mlirml.codegen.gpu.groups import merge_group
from mlirml.codegen.gpu.index import Form, cut_up, flat, form
from mlirml.codegen.gpu.kernel import THREADS, Host, Kernel
from mlirml.codegen.gpu.reads import Untraceable, read_indices, reads, reads_of_operands, symbols
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

Store = tuple[mlir.Value, mlir.Value]
_HELD = 32
"""The maximal number of elements of a row in the registers of a thread."""
_FEWEST_GROUPS = 32
"""The fewest groups of adjacent rows: adjacent threads of a subgroup have adjacent groups."""


@dataclass(frozen=True)
class Problem:
    """Reductions over the same rows. `across`: adjacent elements in memory belong to different rows.

    `rows` and `columns` are the sizes of the parallel and of the reduced loops; a thread computes `lanes` adjacent
    elements of a row at once, and has `row_lanes` adjacent rows; `whole` are returned tensors with an
    element for each element of a row, with the order of their dimensions, `each` those with one for each row.
    """

    combiners: tuple[Combiner, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    reduced_dims: tuple[int, ...]
    whole: tuple[tuple[mlir.Value, mlir.Value, bool], ...]
    each: tuple[tuple[mlir.Value, mlir.Value, tuple[int, ...]], ...]
    across: bool
    lanes: int = field(default=1)
    row_lanes: int = field(default=1)

    @property
    def groups(self) -> int:
        """The number of rows, or of groups of adjacent ones that a thread has."""
        return self.count // self.row_lanes

    @property
    def count(self) -> int:
        return math.prod(self.rows)

    @property
    def length(self) -> int:
        return math.prod(self.columns)

    def point(self, row: Sequence[Form], column: Sequence[Form]) -> list[Form]:
        """The indices of all loops at a point."""
        rows, columns = iter(row), iter(column)
        return [next(columns) if d in self.reduced_dims else next(rows) for d in range(len(row) + len(column))]


def match_rows(ops: Sequence[mlir.Operation], stores: Sequence[Store]) -> Problem:
    """Read reductions and stores as one problem of rows; raises NoMatch."""
    combiners = tuple(match_combiner(op) for op in ops)
    shapes = {split_loops(combiner) for combiner in combiners}
    if len(shapes) != 1:
        raise NoMatch("the reductions have different loops")
    reduced_dims, rows, columns = shapes.pop()
    if 0 in (*rows, *columns):
        raise NoMatch("there is nothing to reduce")
    problem = Problem(combiners, rows, columns, reduced_dims, (), (), False)
    targets = {result: combiner for combiner in combiners for result in combiner.op.results}
    try:
        check_rows_meet(problem, targets)
        whole, each = place_stores(problem, stores, targets)
    except Untraceable:
        raise NoMatch("a result reads another row") from None
    across = is_across(combiners[0], reduced_dims)
    lanes = 1 if across else lanes_of(problem, [out for _, out, _ in whole])
    row_lanes = row_lanes_of(problem) if across and not whole else 1
    return Problem(combiners, rows, columns, reduced_dims, whole, each, across, lanes, row_lanes)


def split_loops(combiner: Combiner) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The reduced loops, and the sizes of the other ones and of them."""
    sizes = sizes_of(combiner.op)
    reduced_dims = [d for d in range(len(sizes)) if not uses_dim(out_map(combiner.op, combiner.carried[0]), d)]
    for n in combiner.carried:
        if any(uses_dim(out_map(combiner.op, n), d) == (d in reduced_dims) for d in range(len(sizes))):
            raise NoMatch("the outputs have different loops")
    rows = tuple(size for d, size in enumerate(sizes) if d not in reduced_dims)
    return tuple(reduced_dims), rows, tuple(sizes[d] for d in reduced_dims)


def check_rows_meet(problem: Problem, targets: dict[mlir.Value, Combiner]) -> None:
    """Check that every reduction reads the results of others at its own row only."""
    row, column = symbols("row", problem.rows), symbols("column", problem.columns)
    point = problem.point(row, column)
    for combiner in problem.combiners:
        for target, indices in reads_of_operands(combiner.op, point, set(targets) - set(combiner.op.results)):
            if indices != at_row(targets[target], target, point):
                raise NoMatch("a reduction reads another row")


def at_row(combiner: Combiner, target: mlir.Value, point: Sequence[Form]) -> tuple[Form, ...]:
    """The indices of a result of a reduction at a point."""
    return apply(out_map(combiner.op, list(combiner.op.results).index(target)), point)


def place_stores(
    problem: Problem, stores: Sequence[Store], targets: dict[mlir.Value, Combiner]
) -> tuple[tuple[tuple[mlir.Value, mlir.Value, bool], ...], tuple[tuple[mlir.Value, mlir.Value, tuple[int, ...]], ...]]:
    """The returned tensors with an element for each point, and those with one for each row."""
    row, column = symbols("row", problem.rows), symbols("column", problem.columns)
    point = problem.point(row, column)
    whole: list[tuple[mlir.Value, mlir.Value, bool]] = []
    each: list[tuple[mlir.Value, mlir.Value, tuple[int, ...]]] = []
    for value, out in stores:
        shape = value.type.shape
        size = math.prod(shape)
        if size == problem.count and (problem.length > 1 or not whole):
            permutation = row_permutation(value, problem, targets, point)
            if permutation is None:
                raise NoMatch("a result for each row reads other rows")
            each.append((value, out, permutation))
            continue
        if size != problem.count * problem.length:
            raise NoMatch("a result has another size")
        whole.append((value, out, column_first(value, problem, targets, point)))
    return tuple(whole), tuple(each)


def row_permutation(
    value: mlir.Value, problem: Problem, targets: dict[mlir.Value, Combiner], point: Sequence[Form]
) -> tuple[int, ...] | None:
    """The permutation of the row's coordinates in a returned tensor; None if it reads other rows.

    The empty permutation: the tensor has the row-major index of the row.
    """
    number = flat([p for d, p in enumerate(point) if d not in problem.reduced_dims], problem.rows)
    straight = tuple(cut_up(number, value.type.shape))
    found = reads(value, straight, targets)
    if all(indices == at_row(targets[target], target, point) for target, indices in found):
        return ()
    target = found[0][0]
    indices = read_indices(value, target, at_row(targets[target], target, point))
    row = [p for d, p in enumerate(point) if d not in problem.reduced_dims]
    if indices is None or sorted(map(str, indices)) != sorted(map(str, row)) or len(indices) != len(row):
        return None
    if any(i != at_row(targets[t], t, point) for t, i in reads(value, indices, targets)):
        return None
    return tuple(row.index(index) for index in indices)


def column_first(
    value: mlir.Value, problem: Problem, targets: dict[mlir.Value, Combiner], point: Sequence[Form]
) -> bool:
    """True if the reduced dimensions of a returned tensor are before the others, False if they are after them."""
    for first in (False, True):
        own = element_indices(value, problem, point, first)
        if all(indices in (at_row(targets[t], t, point),) for t, indices in reads(value, own, targets)):
            return first
    raise NoMatch("a result for each element reads another row")


def element_indices(value: mlir.Value, problem: Problem, point: Sequence[Form], first: bool) -> tuple[Form, ...]:
    """The indices of a returned tensor at a point."""
    row = [p for d, p in enumerate(point) if d not in problem.reduced_dims]
    column = [p for d, p in enumerate(point) if d in problem.reduced_dims]
    if first:
        number = flat([*column, *row], [*problem.columns, *problem.rows])
    else:
        number = flat([*row, *column], [*problem.rows, *problem.columns])
    return tuple(cut_up(number, value.type.shape))


def is_across(combiner: Combiner, reduced_dims: Sequence[int]) -> bool:
    """True if the last dimension of the largest operand is not a reduced loop."""
    best, across = 0, False
    for operand, map_ in zip(combiner.op.operands, indexing_maps(combiner.op), strict=True):
        if is_tensor(operand) and map_.results and math.prod(operand.type.shape) > best:
            best = math.prod(operand.type.shape)
            last = map_.results[-1]
            across = isinstance(last, mlir.AffineDimExpr) and last.position not in reduced_dims
    return across


def lanes_of(problem: Problem, outputs: Sequence[mlir.Value]) -> int:
    """The number of adjacent elements of a row that a thread computes at once."""
    lanes = most_lanes([*read_by(problem), *outputs])
    while problem.length % lanes:
        lanes //= 2
    return lanes


def row_lanes_of(problem: Problem) -> int:
    """The number of adjacent rows that a thread has, where adjacent elements in memory belong to different rows."""
    lanes = most_lanes(read_by(problem))
    while problem.rows[-1] % lanes or (problem.count < lanes * _FEWEST_GROUPS and lanes > 1):
        lanes //= 2
    return lanes


def read_by(problem: Problem) -> list[mlir.Value]:
    """The tensors that the reductions read most of: what they reduce, without their results."""
    combiner = problem.combiners[0]
    inputs = list(combiner.op.operands)[: len(combiner.op.operands) - len(combiner.op.results)]
    sizes = [math.prod(v.type.shape) if is_tensor(v) else 0 for v in inputs]
    return [value for value, size in zip(inputs, sizes, strict=True) if size == max(sizes) and is_tensor(value)]


def most_lanes(values: Sequence[mlir.Value]) -> int:
    """The number of elements in 16 bytes of the widest of some tensors, at most 8."""
    return max(1, min(16 // max((element_bytes(v.type.element_type) for v in values), default=4), 8))


@dataclass(frozen=True)
class Layout:
    """The assignment of the threads of a block: `group` threads share a row, `rows` rows are in a block.

    `pieces` are the parts of a row that are reduced by different blocks.
    """

    group: int
    rows: int
    pieces: int = 1


def choose_layout(problem: Problem, threads: int) -> Layout:
    """Enough threads for a row, rows to fill a block, and pieces to fill a device."""
    chunks = problem.length // problem.lanes
    if problem.length <= _HELD:
        rows, group = min(threads, power_of_two(problem.groups)), 1
    elif problem.across:
        rows = min(32, power_of_two(problem.groups))
        group = max(1, min(threads // rows, power_of_two(chunks) // 4))
    else:
        group = min(threads, power_of_two(max(1, chunks // 4)), power_of_two(chunks))
        group = min(threads, max(group, min(32, power_of_two(chunks))))
        rows = max(1, min(threads // group, power_of_two(problem.count)))
    pieces = 1
    blocks = -(-problem.groups // rows)
    if blocks < 64 and not problem.whole and len(problem.combiners) == 1:
        pieces = min(256, max(1, 256 // blocks), max(1, chunks // (group * 8)))
    return Layout(group, rows, power_of_two(pieces))


def power_of_two(number: int) -> int:
    """The greatest power of two that is not above a number."""
    return 1 << (number.bit_length() - 1)


class Rows:
    """The kernel for one problem: the position of its thread, and the elements that it computes."""

    def __init__(self, kernel: Kernel, problem: Problem, layout: Layout) -> None:
        self.kernel = kernel
        self.problem = problem
        self.layout = layout
        self.elements = Elements(kernel)
        kernel.lanes = max(problem.lanes, problem.row_lanes)
        thread = kernel.thread()
        if problem.across:
            (inner,), self.member = self._cut(thread, layout.rows)
            row, self.member = self.member, inner
        else:
            (row,), self.member = self._cut(thread, layout.group)
        self.slot = row
        blocks = -(-problem.groups // layout.rows)
        block = kernel.cover(blocks * layout.pieces)
        self.in_grid = kernel.below(block, blocks * layout.pieces)
        block = kernel.clamped(block, blocks * layout.pieces)
        part = cut_up(block, [blocks, layout.pieces])
        self.piece = part[1]
        number = part[0] * layout.rows + row
        self.row_valid = kernel.below(number, problem.groups)
        first = kernel.clamped(number, problem.groups) * problem.row_lanes
        self.numbers = [first + lane for lane in range(problem.row_lanes)]
        self.rows = [cut_up(each, problem.rows) for each in self.numbers]

    @staticmethod
    def _cut(thread: Form, by: int) -> tuple[list[Form], Form]:
        above, below = cut_up(thread, [-1, by])
        return [above], below

    @property
    def chunks(self) -> int:
        """The chunks of `lanes` elements in a row."""
        return self.problem.length // self.problem.lanes

    @property
    def stride(self) -> int:
        """The distance of a thread's chunks."""
        return self.layout.group * self.layout.pieces

    def steps(self) -> tuple[int, bool]:
        """The maximal number of chunks of a thread; True if the last one may be beyond the row."""
        return -(-self.chunks // self.stride), self.chunks % self.stride != 0

    def columns_at(self, k: Form, ragged: bool) -> tuple[list[list[Form]], mlir.Value | None]:
        """The columns of chunk `k` of this thread, and the condition that they are in the row."""
        chunk = k * self.stride + self.piece * self.layout.group + self.member
        valid = None
        if ragged:
            valid = self.kernel.below(chunk, self.chunks)
            chunk = self.kernel.clamped(chunk, self.chunks)
        lanes = self.problem.lanes
        return [cut_up(chunk * lanes + lane, self.problem.columns) for lane in range(lanes)], valid

    def each_chunk(
        self, body: Callable[[list[list[Form]], mlir.Value | None, Values], Values], state: Values
    ) -> Values:
        """Run over the chunks of this thread: unrolled if they are few, or else in a loop of several at once."""
        steps, ragged = self.steps()
        if steps * self.problem.lanes <= _HELD:
            for k in range(steps):
                columns, valid = self.columns_at(form(k), ragged and k == steps - 1)
                state = body(columns, valid, state)
            return state
        whole = steps - ragged
        unroll = next(u for u in (4, 2, 1) if whole % u == 0)

        def several(k: Form, inner: Values) -> Values:
            for offset in range(unroll):
                columns, valid = self.columns_at(k * unroll + offset, False)
                inner = body(columns, valid, inner)
            return inner

        state = self.kernel.loop((0, whole // unroll, 1), several, state)
        if ragged:
            with self.kernel.scope():
                columns, valid = self.columns_at(form(whole), True)
                state = body(columns, valid, state)
        return state

    def reduce(self, combiner: Combiner) -> list[Values]:
        """The states of a reduction over the rows of the thread, or this piece of them, in all threads of a group."""
        starts = [combiner.start(self.elements, point) for point in self.first_points()]
        size = len(combiner.types)

        def take(columns: list[list[Form]], valid: mlir.Value | None, state: Values) -> Values:
            states = in_groups(state, size)
            for column in columns:
                for lane, row in enumerate(self.rows):
                    point = self.problem.point(row, column)
                    states[lane] = combiner.take(self.elements, point, states[lane], valid)
            return [value for each in states for value in each]

        with combiner.op.location:
            state = self.each_chunk(take, [value for start in starts for value in start])
            layout, together = self.layout, Lanes(combiner, len(self.rows))
            merged = merge_group(self.kernel, together, state, self.member, self.slot, layout.group, layout.rows)
            return in_groups(merged, size)

    def first_points(self) -> list[list[Form]]:
        """The first point of each row of the thread."""
        return [self.problem.point(row, [Form()] * len(self.problem.columns)) for row in self.rows]

    def store_each(self) -> None:
        """Store the results with one element for each row."""
        guards = [self.row_valid, self.in_grid, is_first(self.kernel, self.member, self.layout.group)]

        def body() -> None:
            for value, out, order in self.problem.each:
                shape = value.type.shape
                rows = [
                    [row[d] for d in order] if order else cut_up(number, shape)
                    for number, row in zip(self.numbers, self.rows, strict=True)
                ]
                self.kernel.store(out, [(flat(row, shape), self.elements.get(value, tuple(row))) for row in rows])

        self.kernel.guarded(guards, body)

    def store_whole(self) -> None:
        """Store the results with one element for each point."""
        if not self.problem.whole:
            return

        def body(columns: list[list[Form]], valid: mlir.Value | None, state: Values) -> Values:
            (row,) = self.rows
            points = [self.problem.point(row, column) for column in columns]
            for value, out, first in self.problem.whole:
                indices = [element_indices(value, self.problem, point, first) for point in points]
                found = [self.elements.get(value, element) for element in indices]
                numbers = [flat(element, value.type.shape) for element in indices]
                stores = list(zip(numbers, found, strict=True))
                guards = [self.row_valid, self.in_grid, valid]
                self.kernel.guarded(guards, partial(self.kernel.store, out, stores))
            return state

        self.each_chunk(body, [])


class Lanes:
    """The states of adjacent rows as one."""

    def __init__(self, combiner: Combiner, count: int) -> None:
        self.combiner = combiner
        self.types = combiner.types * count

    def merge(self, a: Values, b: Values) -> Values:
        """Merge the states of each row."""
        size = len(self.combiner.types)
        pairs = zip(in_groups(a, size), in_groups(b, size), strict=True)
        return [value for x, y in pairs for value in self.combiner.merge(x, y)]


def in_groups(values: Values, size: int) -> list[Values]:
    """Values in groups of a size."""
    return [values[first : first + size] for first in range(0, len(values), size)]


def is_first(kernel: Kernel, member: Form, group: int) -> mlir.Value | None:
    """True (i1) if a thread is the first of its group; None for groups of one."""
    return None if group == 1 else kernel.once(("first", member), lambda: kernel.below(member, 1))


def lower_rows(host: Host, problem: Problem) -> None:
    """Build the kernels of a problem."""
    layout = choose_layout(problem, THREADS)
    if layout.pieces > 1:
        lower_pieces(host, problem, layout)
        return
    with host.kernel("rows", (layout.group * layout.rows,)) as kernel:
        rows = Rows(kernel, problem, layout)
        for combiner in problem.combiners:
            for point, state in zip(rows.first_points(), rows.reduce(combiner), strict=True):
                combiner.finish(rows.elements, point, state)
            rows.elements.reduced.add(combiner.op)
        rows.store_each()
        rows.store_whole()


def lower_pieces(host: Host, problem: Problem, layout: Layout) -> None:
    """Two kernels: the first one stores a state for each piece of a row, the second one merges them."""
    (combiner,) = problem.combiners
    parts = [host.array([problem.count, layout.pieces], type_) for type_ in combiner.types]
    with host.kernel("pieces", (layout.group * layout.rows,)) as kernel:
        rows = Rows(kernel, problem, layout)
        states = rows.reduce(combiner)

        def store() -> None:
            for number, state in zip(rows.numbers, states, strict=True):
                for memory, value in zip(parts, state, strict=True):
                    kernel.write(value, kernel.argument(memory), number * layout.pieces + rows.piece)

        kernel.guarded([rows.row_valid, rows.in_grid, is_first(kernel, rows.member, layout.group)], store)
    group = layout.pieces
    second = Layout(group, max(1, min(THREADS // group, power_of_two(problem.count))))
    with host.kernel("merge", (second.group * second.rows,)) as kernel:
        rows = Rows(kernel, mergeable(problem), second)
        index = rows.numbers[0] * group + rows.member
        values = [load(kernel, memory, index) for memory in parts]
        (point,) = rows.first_points()
        combiner.start(rows.elements, point)
        state = merge_group(kernel, combiner, values, rows.member, rows.slot, second.group, second.rows)
        combiner.finish(rows.elements, point, state)
        rows.elements.reduced.add(combiner.op)
        rows.store_each()


def mergeable(problem: Problem) -> Problem:
    """The problem of the second kernel: threads of a group are adjacent, with one element each."""
    return Problem(
        problem.combiners, problem.rows, problem.columns, problem.reduced_dims, problem.whole, problem.each, False, 1
    )

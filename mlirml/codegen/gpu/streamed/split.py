"""Attention of few rows over many columns: blocks take parts of the columns, and a second kernel merges them.

    for each part, in a block of its own:
        most, totals, sums = the online softmax over the tiles of the part, stored
    for each element of the result, in a thread of the second kernel:
        for part in the parts, in order:
            most' = max(most, the maximum of the part)
            totals, sums = each times exp(its maximum - most'), and added
        the results, computed from sums / totals

That is "Flash-Decoding" (T. Dao, D. Haziza, F. Massa and G. Sizov, 2023), for whatever the scores are. The parts are
added in order, so that the result is the same in every call.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mlirml.codegen.gpu.combiners import Values
from mlirml.codegen.gpu.elements import Elements
from mlirml.codegen.gpu.index import Base, Digit, Form, cut_up, flat, form
from mlirml.codegen.gpu.kernel import THREADS, Host, Kernel
from mlirml.codegen.gpu.reads import read_indices
from mlirml.codegen.gpu.streamed.online import Online, factor_of, known_maximum, match_online
from mlirml.codegen.gpu.streamed.plan import Plan, row_indices
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import attempt
from mlirml.ir import emit
from mlirml.ir.bindings import mlir

if TYPE_CHECKING:
    from mlirml.codegen.gpu.streamed.kernel import Streamed

LONG, PART = 512, 128
"""The fewest columns of which parts have blocks of their own, and the fewest of a part: several tiles overlap."""
_FULL = 4
"""The blocks for each processor that wait for memory at the same time."""


@dataclass(frozen=True)
class Split:
    """The parts of the columns, of `tiles` tiles each, and the memory of their states.

    `most` and each of `totals` have a number for each part and row, `sums` a row of the result.
    """

    parts: int
    tiles: int
    most: mlir.Value
    totals: tuple[mlir.Value, ...]
    sums: mlir.Value


def most_parts(host: Host, plan: Plan, columns: int) -> int:
    """The largest number of parts of the columns, in tiles of some; 1 if they are not worth it, or not possible."""
    if plan.columns < LONG or find_online(host, plan) is None:
        return 1
    return -(-plan.columns // max(PART, columns))


def find_online(host: Host, plan: Plan) -> Online | None:
    """All passes of a plan as one, where threads shuffle: without, the maxima of each tile take many barriers."""
    return attempt(match_online, plan) if host.device.subgroup else None


def choose_split(host: Host, plan: Plan, rows: int, columns: int) -> Split | None:
    """The parts of the columns, and their memory, if blocks of some rows are too few to fill the device."""
    found, tiles = find_online(host, plan), -(-plan.columns // columns)
    blocks = plan.batches * -(-plan.rows // rows)
    if found is None or most_parts(host, plan, columns) == 1 or 2 * blocks > host.device.processors:
        return None
    own = max(-(-PART // columns), -(-tiles * blocks // (_FULL * host.device.processors)))
    parts, count = -(-tiles // own), plan.batches * plan.rows
    if parts == 1:
        return None
    (most,) = found.maximum.types
    return Split(
        parts,
        own,
        host.array([parts, count], most),
        tuple(host.array([parts, count], type_) for type_ in found.sums.types),
        host.array([parts, count, found.sink.size(found.sink.columns)], found.sink.combiner.types[0]),
    )


def store_part(
    streamed: Streamed, split: Split, found: Online, most: Values, totals: list[Values], sums: Values
) -> None:
    """Store the states of the rows of a block: the maxima and totals by the first thread of each row."""
    kernel, plan = streamed.kernel, streamed.plan
    width = found.sink.size(found.sink.columns)
    columns = streamed.sink_columns(found.sink)
    wide = len(columns)
    first = kernel.below(streamed.member, 1)
    for i, (offset, row) in enumerate(zip(streamed.row_offsets, streamed.rows, strict=True)):
        number = (streamed.part * plan.batches + streamed.batch) * plan.rows + row
        is_row = [streamed.in_grid, kernel.below(streamed.first_row + offset, plan.rows)]

        def store_row(number: Form = number, i: int = i) -> None:
            for memory, value in zip((split.most, *split.totals), (most[i], *totals[i]), strict=True):
                kernel.write(value, kernel.argument(memory), number)

        kernel.guarded([*is_row, first], store_row)
        lanes = streamed.lanes if width % streamed.lanes == 0 else 1
        kernel.lanes = lanes
        for n in range(0, wide, lanes):
            elements = [
                (number * width + column, sums[i * wide + n + lane])
                for lane, column in enumerate(columns[n : n + lanes])
            ]

            def store(elements: list[tuple[Form, mlir.Value]] = elements) -> None:
                kernel.store(split.sums, elements)

            kernel.guarded([*is_row, kernel.below(columns[n + lanes - 1], width)], store)
        kernel.lanes = 0


def lower_merge(host: Host, plan: Plan, found: Online, split: Split) -> None:
    """Build the kernel that merges the parts and computes the results."""
    width = found.sink.size(found.sink.columns)
    total = plan.batches * plan.rows * width
    with host.kernel("merge", (THREADS,)) as kernel:
        number = kernel.cover(-(-total // THREADS)) * THREADS + kernel.thread()
        kernel.guarded([kernel.below(number, total)], lambda: Merge(kernel, plan, found, split, number).build())


class Merge:
    """The computation of an element of the result of the sink, and by the thread of the first one that of its row."""

    def __init__(self, kernel: Kernel, plan: Plan, found: Online, split: Split, number: Form) -> None:
        self.kernel, self.plan, self.found, self.split = kernel, plan, found, split
        self.elements = Elements(kernel)
        width = found.sink.size(found.sink.columns)
        whole = form(Digit(Base(number, plan.batches * plan.rows * width)))
        self.batch, self.row, self.column = cut_up(whole, [plan.batches, plan.rows, width])

    def build(self) -> None:
        """Build the merge of the parts, and the stores."""
        kernel, plan, found = self.kernel, self.plan, self.found
        point = plan.point(self.batch, self.row, Form())
        lowest = emit.number(found.maximum.types[0], -math.inf)
        types = [*found.sums.types, found.sink.combiner.types[0]]
        zeros = [emit.number(type_, 0) for type_ in types]
        state = kernel.loop((0, self.split.parts, 1), self.merge, [lowest, *zeros])
        most, *totals, value = state
        found.maximum.finish(self.elements, point, [most])
        found.sums.finish(self.elements, point, totals)
        self.elements.reduced |= {found.maximum.op, found.sums.op}
        divisor = self.elements.get(found.total, row_indices(plan, found.total, point))
        if divisor.type != value.type:
            divisor = emit.value("arith.extf", [divisor], value.type)
        self.store_element(emit.same_type("arith.divf", value, divisor))
        kernel.guarded([kernel.below(self.column, 1)], self.store_row)

    def merge(self, part: Form, state: Values) -> Values:
        """The state after a part."""
        kernel, found, split = self.kernel, self.found, self.split
        row = (part * self.plan.batches + self.batch) * self.plan.rows + self.row
        at = row * found.sink.size(found.sink.columns) + self.column
        other = [
            *(kernel.load(memory, row) for memory in (split.most, *split.totals)),
            kernel.load(split.sums, at),
        ]
        before, after = state[0], other[0]
        (now,) = found.maximum.merge([before], [after])
        known = known_maximum(now)
        forms = [*found.forms, found.form_of_sink]
        merged = []
        for form_, a, b in zip(forms, state[1:], other[1:], strict=True):
            own = emit.same_type("arith.mulf", a, factor_of(form_, before, now, known, a.type))
            more = emit.same_type("arith.mulf", b, factor_of(form_, after, now, known, b.type))
            merged.append(emit.same_type("arith.addf", own, more))
        return [now, *merged]

    def store_element(self, value: mlir.Value) -> None:
        """Store what is computed of an element of the sink."""
        sink = self.found.sink
        point = sink.result_indices(self.batch, self.row, self.column)
        self.elements.give(sink.result, point, value)
        self.elements.reduced.add(sink.op)
        (number,) = [n for n, each in enumerate(self.plan.sinks) if each.op == sink.op]
        for tensor, out in self.plan.sink_stores[number]:
            indices = read_indices(tensor, sink.result, point)
            assert indices is not None
            self.kernel.store(out, [(flat(indices, tensor.type.shape), self.elements.get(tensor, indices))])

    def store_row(self) -> None:
        """Store the results with an element for each row."""
        point = self.plan.point(self.batch, self.row, Form())
        for (value, out), target in self.plan.row_stores:
            indices = read_indices(value, target, row_indices(self.plan, target, point))
            assert indices is not None
            self.kernel.store(out, [(flat(indices, value.type.shape), self.elements.get(value, indices))])

"""Build the loops over blocks of a masked matrix, which leave out those that are masked whole.

for each block of rows:
    [may_low, may_high), [low, high) = the columns where the mask may hold, and where it holds in all rows
    for each segment of operations, which ends where something needs a whole row:
        for each tile of columns from may_low to low:      the operations on the tile
        for each tile of columns from low to high:         the same, with the mask known to hold
        for each tile of columns from high to may_high:    as the first
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field

from mlirml.analysis.dimensions import Member, Part, Parts
from mlirml.analysis.masks.bounds import Bound, Largest
from mlirml.analysis.masks.limits import Limits
from mlirml.analysis.masks.terms import ELEMENT, Term
from mlirml.analysis.values import uses_any
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.pipelines.tensor.tiling import masked
from mlirml.pipelines.tensor.tiling.masked import COLUMNS, ROWS, Group, Masked, has_columns, truths
from mlirml.pipelines.tensor.tiling.row_limits import Columns, Elements, block_columns, can_build
from mlirml.pipelines.tensor.tiling.tile import Tile


def build_masked(
    found: Masked, largest: dict[mlir.Value, mlir.Value], renamed: dict[mlir.Value, mlir.Value]
) -> list[mlir.Value]:
    """Build the loops at the insertion point; returns the replacements of the results of the group.

    `largest` has the largest elements of tensors that were computed before, and `renamed` what has replaced tensors.
    """
    group = found.group
    blocks = math.ceil(group.rows.size / group.block)
    guard = build_guards(found, largest, renamed)

    def body(t: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
        return Block(found, guard, *block_start(group, blocks, t)).build(carried)

    inits = [emit.empty(result.type) for result in group.results]
    return emit.for_loop(emit.index(0), emit.index(group.batches * blocks), emit.index(1), body, inits)


def block_start(group: Group, blocks: int, t: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
    """The batch and the first row of block `t`; the last block ends with the last row."""
    batch = emit.same_type("arith.divui", t, emit.index(blocks))
    row = emit.same_type("arith.muli", emit.same_type("arith.remui", t, emit.index(blocks)), emit.index(group.block))
    if group.rows.size % group.block:
        row = emit.same_type("arith.minsi", row, emit.index(group.rows.size - group.block))
    return batch, row


@dataclass
class Block:
    """Builds the operations on a block of rows, which begins with `row` of a batch."""

    found: Masked
    guard: mlir.Value
    batch: mlir.Value
    row: mlir.Value
    buffers: dict[mlir.Value, mlir.Value] = field(default_factory=dict)

    @property
    def group(self) -> Group:
        return self.found.group

    def tile(self, start: mlir.Value | int, width: int, replaced: dict[mlir.Value, Callable[..., mlir.Value]]) -> Tile:
        """A tile of the block."""
        group = self.group
        sizes, lengths = (group.batches, group.rows.size, group.columns.size), (1, group.block, width)
        return Tile(sizes, lengths, (self.batch, self.row, start), replaced=replaced)

    def build(self, carried: list[mlir.Value]) -> list[mlir.Value]:
        """Build the block; returns the tensors of results with it."""
        group = self.group
        self.columns = self.limits()
        self.whole = self.tile(0, group.columns.size, {})
        for segment in segments_of(group.members):
            if has_columns(segment[0]):
                self.segment(segment)
            else:
                for member in segment:
                    self.whole.add(member)
        results = []
        for (value, parts), into in zip(group.results.items(), carried, strict=True):
            if value in self.buffers:
                self.whole.values[value, parts] = self.fill(value, parts)
            results.append(self.whole.insert(value, parts, into))
        return results

    def limits(self) -> Columns:
        """The columns that are computed, and those that are not masked in any row."""
        group = self.group
        count = group.columns.size
        index = self.index_of
        found, some = block_columns(self.found.limits, index, group.rows, group.block, count)
        skips = self.guard
        if any(part == group.columns for part, _, _ in self.found.needs):
            skips = emit.same_type("arith.andi", skips, some)
        low = emit.same_type("arith.select", skips, found.may_low, emit.index(0))
        high = emit.same_type("arith.select", skips, found.may_high, emit.index(count))
        return Columns(low, high, found.low, found.high)

    def index_of(self, part: Part) -> mlir.Value:
        """The first index of the block in a part of a tiled dimension."""
        return part_index(part, self.group, self.batch, self.row)

    def segment(self, members: Sequence[Member]) -> None:
        """Build operations on tiles of columns, whose reductions are complete after the last one."""
        group = self.group
        own = {value: parts for member in members for value, parts in member.results.items()}
        sums = [value for value, parts in own.items() if group.columns not in parts]
        kept = [value for value, parts in own.items() if group.columns in parts and self.is_kept(value, members)]
        inits = [self.init(value, members, own) for value in sums]
        for value in kept:
            self.buffers[value] = emit.empty(self.whole._type(value, own[value]))
        carried = inits + [self.buffers[value] for value in kept]
        names = sums + kept

        def step(start: mlir.Value, width: int, holds: bool, carried: list[mlir.Value]) -> list[mlir.Value]:
            current = dict(zip(names, carried, strict=True))
            self.buffers.update({value: current[value] for value in kept})
            tile = self.tile(start, width, self.replaced(holds))
            self.lend(tile, members, own)
            tile.sums = {value: current[value] for value in sums}
            for member in members:
                tile.add(member)
            done = [tile.values[value, own[value]] for value in sums]
            for value in kept:
                offsets = [start if part == group.columns else 0 for part in own[value]]
                done.append(emit.insert_slice(tile.values[value, own[value]], current[value], offsets))
            return done

        masks = any(value in self.found.facts for member in members for value in truths(member))
        carried = self.tiles(step, carried, masks)
        for value, result in zip(names, carried, strict=True):
            if value in kept:
                self.buffers[value] = result
            else:
                self.whole.values[value, own[value]] = result

    def tiles(self, step: Callable[..., list[mlir.Value]], carried: list[mlir.Value], masks: bool) -> list[mlir.Value]:
        """Build loops over the tiles of columns that are computed."""
        count, width = self.group.columns.size, masked.tile_width(self.group.columns.size)
        whole = count // width
        may_low, may_high = self.computed(whole, width)
        low = high = may_low
        if masks:
            low = _clamped(_tiles_up(self.columns.low, width), may_low, may_high)
            high = _clamped(_tiles_down(self.columns.high, width), low, may_high)
        between = emit.same_type("arith.subi", high, low) if masks else low

        def touched(t: mlir.Value, inner: list[mlir.Value]) -> list[mlir.Value]:
            tile = t
            if masks:
                after = emit.same_type("arith.addi", t, between)
                tile = emit.same_type("arith.select", emit.compare("slt", t, low), t, after)
            return step(emit.same_type("arith.muli", tile, emit.index(width)), width, False, inner)

        def untouched(t: mlir.Value, inner: list[mlir.Value]) -> list[mlir.Value]:
            return step(emit.same_type("arith.muli", t, emit.index(width)), width, True, inner)

        last = emit.same_type("arith.subi", may_high, between) if masks else may_high
        carried = emit.for_loop(may_low, last, emit.index(1), touched, carried)
        if masks:
            carried = emit.for_loop(low, high, emit.index(1), untouched, carried)
        if count % width:
            start = emit.index(whole * width)
            some = emit.compare("sgt", self.columns.may_high, start)
            times = emit.same_type("arith.select", some, emit.index(1), emit.index(0))

            def rest(_: mlir.Value, inner: list[mlir.Value]) -> list[mlir.Value]:
                return step(emit.index(whole * width), count % width, False, inner)

            carried = emit.for_loop(emit.index(0), times, emit.index(1), rest, carried)
        return carried

    def computed(self, whole: int, width: int) -> tuple[mlir.Value, mlir.Value]:
        """The first tile that is computed, and the one after the last."""
        high = emit.same_type("arith.minsi", _tiles_up(self.columns.may_high, width), emit.index(whole))
        return emit.same_type("arith.minsi", _tiles_down(self.columns.may_low, width), high), high

    def replaced(self, holds: bool) -> dict[mlir.Value, Callable[..., mlir.Value]]:
        """The builders of truth values of the mask on a tile: constants, or comparisons without a mask in memory."""
        if holds:
            return {
                v: lambda _, fact=fact: emit.constant(mlir.BoolAttr.get(fact)) for v, fact in self.found.facts.items()
            }
        if any_element(self.found.condition) or not can_build(self.found.condition):
            return {}
        arguments = [value for value in self.found.facts if defining_op(value) is None]
        return {value: lambda index: Elements(index).build(self.found.condition) for value in arguments}

    def is_kept(self, value: mlir.Value, members: Sequence[Member]) -> bool:
        """True if a value is used after the segment that computes it."""
        inner = {member.op for member in members}
        later = {member.op for member in self.group.members} - inner
        return value in self.group.results or any(use.owner.operation in later for use in value.uses)

    def init(self, value: mlir.Value, members: Sequence[Member], own: dict[mlir.Value, Parts]) -> mlir.Value:
        """The init of a reduction."""
        member = next(member for member in members if value in member.results)
        init = member.op.operands[member.inputs + list(member.op.results).index(value)]
        return self.whole._init(init, own[value], value)

    def lend(self, tile: Tile, members: Sequence[Member], own: dict[mlir.Value, Parts]) -> None:
        """Let a tile have the rows that are complete, and the tiles of values that earlier segments have computed."""
        group = self.group
        for (value, parts), known in self.whole.values.items():
            if group.columns not in parts:
                tile.values[value, parts] = known
        for member in members:
            for value, parts in zip(member.op.operands, member.parts):
                if value in self.buffers and value not in own:
                    sizes = tile._shape(value, parts)
                    offsets = [tile.starts[COLUMNS] if part == group.columns else 0 for part in parts]
                    tile.values[value, parts] = emit.extract_slice(self.buffers[value], offsets, sizes)

    def fill(self, value: mlir.Value, parts: Parts) -> mlir.Value:
        """A result of a block with its tiles that are not computed filled."""
        count, width = self.group.columns.size, masked.tile_width(self.group.columns.size)
        whole = count // width
        first, last = self.computed(whole, width)
        number = emit.number(value.type.element_type, self.found.fills[value])

        def filled(start: mlir.Value, size: int, into: mlir.Value) -> list[mlir.Value]:
            shape = self.tile(start, size, {})._type(value, parts)
            offsets = [start if part == self.group.columns else 0 for part in parts]
            return [emit.insert_slice(emit.fill(number, emit.empty(shape)).results[0], into, offsets)]

        def body(t: mlir.Value, inner: list[mlir.Value]) -> list[mlir.Value]:
            return filled(emit.same_type("arith.muli", t, emit.index(width)), width, inner[0])

        current = [self.buffers[value]]
        for low, high in ((emit.index(0), first), (last, emit.index(whole))):
            current = emit.for_loop(low, high, emit.index(1), body, current)
        if count % width:
            start = emit.index(whole * width)
            none = emit.compare("sle", self.columns.may_high, start)
            times = emit.same_type("arith.select", none, emit.index(1), emit.index(0))
            current = emit.for_loop(
                emit.index(0),
                times,
                emit.index(1),
                lambda _, inner: filled(emit.index(whole * width), count % width, inner[0]),
                current,
            )
        return current[0]


def segments_of(members: Sequence[Member]) -> list[list[Member]]:
    """Members in order, split where one needs a whole row that the segment reduces."""
    segments: list[list[Member]] = []
    reduced: set[mlir.Value] = set()
    wide = False
    for member in members:
        own = has_columns(member)
        if not segments or wide != own or uses_any(member.op, reduced):
            segments.append([])
            reduced = set()
        wide = own
        segments[-1].append(member)
        reduced |= {
            value for value, parts in member.results.items() if all(p is None or p.axis != COLUMNS for p in parts)
        }
    return segments


def part_index(part: Part, group: Group, batch: mlir.Value, row: mlir.Value) -> mlir.Value:
    """The index of a part of the batches, or of the rows."""
    if part.axis == ROWS:
        return row
    start = batch
    if part.step > 1:
        start = emit.same_type("arith.divui", start, emit.index(part.step))
    if part.step * part.size < group.batches:
        start = emit.same_type("arith.remui", start, emit.index(part.size))
    return start


def build_guards(
    found: Masked, largest: dict[mlir.Value, mlir.Value], renamed: dict[mlir.Value, mlir.Value]
) -> mlir.Value:
    """The condition under which masked blocks may be left out."""
    result = emit.constant(mlir.BoolAttr.get(True))
    for guard in found.guards:
        less, more = (build_bound(bound, largest, renamed) for bound in (guard.less, guard.more))
        result = emit.same_type("arith.andi", result, emit.compare("olt", less, more))
    for part, other, limits in found.needs:
        if part != found.group.columns:
            result = emit.same_type("arith.andi", result, build_need(found.group, part, other, limits))
    return result


def build_need(group: Group, part: Part, other: Part, limits: Limits) -> mlir.Value:
    """True if there is a position in dimension `part` that is not masked for all indices of the other one."""

    def body(batch: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
        def index(own: Part) -> mlir.Value:
            return emit.index(0) if own == other else part_index(own, group, batch, emit.index(0))

        _, some = block_columns(limits, index, other, other.size, part.size)
        return [emit.same_type("arith.andi", carried[0], some)]

    inits = [emit.constant(mlir.BoolAttr.get(True))]
    return emit.for_loop(emit.index(0), emit.index(group.batches), emit.index(1), body, inits)[0]


def build_bound(
    bound: Bound, largest: dict[mlir.Value, mlir.Value], renamed: dict[mlir.Value, mlir.Value]
) -> mlir.Value:
    """The value of a bound, an f64."""
    f64 = mlir.F64Type.get()
    if isinstance(bound, float):
        return emit.number(f64, bound)
    if isinstance(bound, Largest):
        tensor = renamed.get(bound.tensor, bound.tensor)
        if tensor not in largest:
            largest[tensor] = build_largest(tensor)
        return largest[tensor]
    a, b = (build_bound(each, largest, renamed) for each in (bound.a, bound.b))
    return emit.same_type({"add": "arith.addf", "mul": "arith.mulf", "max": "arith.maximumf"}[bound.name], a, b)


def build_largest(tensor: mlir.Value) -> mlir.Value:
    """The largest absolute value of the elements of a tensor, an f64."""
    element, rank = tensor.type.element_type, tensor.type.rank
    init = emit.fill(emit.zero(element), emit.empty(mlir.RankedTensorType.get([], element))).results[0]
    maps = [mlir.AffineMap.get_identity(rank), mlir.AffineMap.get(rank, 0, [])]
    op = emit.generic(
        [tensor],
        [init],
        maps,
        ["reduction"] * rank,
        lambda a: [emit.same_type("arith.maximumf", emit.same_type("math.absf", a[0]), a[1])],
    )
    value = emit.value("tensor.extract", [op.results[0]], element)
    f64 = mlir.F64Type.get()
    return value if element == f64 else emit.value("arith.extf", [value], f64)


def any_element(term: Term) -> bool:
    """True if a term reads a tensor."""
    return term.name == ELEMENT or any(map(any_element, term.args))


def _tiles_down(column: mlir.Value, width: int) -> mlir.Value:
    return emit.same_type("arith.divui", column, emit.index(width))


def _tiles_up(column: mlir.Value, width: int) -> mlir.Value:
    return _tiles_down(emit.same_type("arith.addi", column, emit.index(width - 1)), width)


def _clamped(number: mlir.Value, low: mlir.Value, high: mlir.Value) -> mlir.Value:
    return emit.same_type("arith.maxsi", low, emit.same_type("arith.minsi", number, high))

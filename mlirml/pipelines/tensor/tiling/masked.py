"""Groups of operations on a masked matrix, and the loops over its blocks that leave out those that are masked whole.

    for each block of rows:
        [may_low, may_high), [low, high) = the columns where the mask may hold, and where it holds in all rows
        for each segment of operations, which ends where something needs a whole row:
            for each tile of columns from may_low to low:      the operations on the tile
            for each tile of columns from low to high:         the same, with the mask known to hold
            for each tile of columns from high to may_high:    as the first
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import field

from mlirml.analysis.constants import float_of
from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.dimensions import Member, Part, Parts, along, follow
from mlirml.analysis.masks.bounds import Bound, Calculation, Guard, Largest
from mlirml.analysis.masks.limits import Limits, Not, has_limits, is_truth, limits_of
from mlirml.analysis.masks.skipped import Skipping, check
from mlirml.analysis.masks.terms import ELEMENT, Term, Terms, is_parallel_result
from mlirml.analysis.values import captured_values
from mlirml.codegen.cpu.contract.problem import Contraction, match_contraction
from mlirml.core.dataclass import dataclass, replace
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import NoMatch
from mlirml.pipelines.tensor.tiling.attention import block_rows, chain_from, used_after
from mlirml.pipelines.tensor.tiling.row_limits import Columns, Elements, block_columns, can_build, terms_of
from mlirml.pipelines.tensor.tiling.tile import Tile

_BATCH, _ROWS, _COLUMNS = 0, 1, 2
_FEWEST = 256
"""The minimum number of rows and of columns."""
_NARROWEST, _WIDEST = 128, 512
"""The limits of the number of columns of a tile."""
_BLOCK = 128
"""The number of rows of a block of one product."""


@dataclass(frozen=True)
class Group:
    """Operations in order that are tiled by rows and columns, and the values of them that others use."""

    members: tuple[Member, ...]
    results: dict[mlir.Value, Parts]
    batches: int
    rows: Part
    columns: Part
    block: int

    @property
    def last(self) -> mlir.Operation:
        """The last operation."""
        return self.members[-1].op


@dataclass(frozen=True)
class Masked:
    """A group with the limits of its mask, and the conditions under which blocks outside of them are left out.

    `needs` are the dimensions of which each row must have a position that is not masked. `fills` has the numbers that
    results are at masked positions, and `facts` whether truth values in the bodies hold where nothing is masked.
    """

    group: Group
    condition: Term
    limits: Limits
    guards: tuple[Guard, ...]
    needs: tuple[tuple[Part, Part, Limits], ...]
    fills: dict[mlir.Value, float]
    facts: dict[mlir.Value, bool]


def match_masked(op: mlir.Operation, used: Container[mlir.Operation] = ()) -> Masked:
    """Match a group that begins with an operation, without operations that are `used`. Raises `NoMatch`."""
    for find in (product_chains, masked_products):
        for group in find(op):
            if any(member.op in used for member in group.members):
                continue
            try:
                return match_mask(group)
            except NoMatch:
                continue
    raise NoMatch("nothing is masked by a comparison of indices")


def product_chains(first: mlir.Operation) -> Iterator[Group]:
    """The groups of a product and what is computed from its elements, up to another product if there is one."""
    try:
        contraction = match_contraction(first)
    except NoMatch:
        return
    for find in (chain_from, consumers_of):
        for side in (0, 1):
            try:
                yield chain(contraction, side, find(first))
            except NoMatch:
                continue


def consumers_of(first: mlir.Operation) -> list[mlir.Operation]:
    """A product and the elementwise operation that alone uses it."""
    users = [use.owner.operation for use in first.results[0].uses]
    if len(users) != 1 or users[0].name != "linalg.generic" or users[0].block != first.block:
        raise NoMatch("no one operation uses the product")
    return [first, users[0]]


def chain(contraction: Contraction, side: int, ops: list[mlir.Operation]) -> Group:
    """The operations, tiled by the rows of operand `side` of the first product and the columns of the other one."""
    first, *others = ops
    own, other, out = (set(contraction.maps[n]) for n in (side, 1 - side, 2))
    rows = [d for d in contraction.maps[2] if d in own - other and contraction.sizes[d] > 1]
    columns = [d for d in contraction.maps[2] if d in other - own and contraction.sizes[d] > 1]
    if len(rows) != 1 or len(columns) != 1 or len(first.results) != 1:
        raise NoMatch("not one dim of rows and one of columns")
    (row,), (column,) = rows, columns
    loops = {row: Part(_ROWS, contraction.sizes[row]), column: Part(_COLUMNS, contraction.sizes[column])}
    batches = add_batches(loops, contraction, own & other & out)
    members = [along(first, loops)]
    extend(members, others)
    element = first.results[0].type.element_type.width // 8
    return finished(members, ops, batches, loops[row], loops[column], block_rows(loops[row].size, element * loops[column].size))


def masked_products(op: mlir.Operation) -> Iterator[Group]:
    """The groups of one product, whose sum is over the columns of one operand, with what computes this operand."""
    try:
        contraction = match_contraction(op)
    except NoMatch:
        return
    for side in (0, 1):
        try:
            yield masked_product(op, contraction, side)
        except NoMatch:
            continue


def masked_product(op: mlir.Operation, contraction: Contraction, side: int) -> Group:
    """A product, tiled by the dimension of operand `side` that it keeps and by the one that it sums over."""
    own, other, out = (set(contraction.maps[n]) for n in (side, 1 - side, 2))
    rows = [d for d in contraction.maps[side] if d in (own & out) - other and contraction.sizes[d] > 1]
    columns = [d for d in contraction.maps[side] if d in (own & other) - out and contraction.sizes[d] > 1]
    if len(rows) != 1 or len(columns) != 1 or len(op.results) != 1:
        raise NoMatch("not one dim of rows and one of columns")
    (row,), (column,) = rows, columns
    loops = {row: Part(_ROWS, contraction.sizes[row]), column: Part(_COLUMNS, contraction.sizes[column])}
    batches = add_batches(loops, contraction, own & other & out)
    members, ops = [along(op, loops)], [op]
    made = defining_op(op.operands[side])
    if made is not None and made.name == "linalg.generic" and made.block == op.block and len(made.results) == 1:
        users = [use.owner.operation for use in made.results[0].uses]
        producer = follow(made, {len(made.operands): members[0].parts[side]})
        if users == [op] and is_parallel_result(producer, 0):
            members, ops = [producer, *members], [made, op]
    return finished(members, ops, batches, loops[row], loops[column], min(_BLOCK, loops[row].size))


def add_batches(loops: dict[int, Part], contraction: Contraction, dims: set[int]) -> int:
    """Add the dims of all operands to the tiled ones, one index at a time; returns the number of their indices."""
    batches = 1
    for d in reversed([d for d in contraction.maps[2] if d in dims and contraction.sizes[d] > 1]):
        loops[d] = Part(_BATCH, contraction.sizes[d], batches, single=True)
        batches *= contraction.sizes[d]
    return batches


def extend(members: list[Member], others: Sequence[mlir.Operation]) -> None:
    """Add operations that depend on the first one."""
    parts = dict(members[0].results)
    for op in others:
        member = follow(op, {n: parts[value] for n, value in enumerate(op.operands) if value in parts})
        for result in member.results.values():
            lost = set(member.loops.values()) - set(result)
            if any(part.axis != _COLUMNS for part in lost):
                raise NoMatch("rows are reduced")
        if any(value in parts for value in captured_values(op)):
            raise NoMatch("a body reads the chain")
        members.append(member)
        parts |= member.results


def finished(
    members: list[Member], ops: list[mlir.Operation], batches: int, rows: Part, columns: Part, block: int
) -> Group:
    """The group of these members; raises `NoMatch` if it cannot be tiled, or need not be."""
    if rows.size < _FEWEST or columns.size < _FEWEST:
        raise NoMatch("a small matrix")
    parts: dict[mlir.Value, Parts] = {}
    for member in members:
        parts |= member.results
    results = {value: parts[value] for value in used_after(ops)}
    for found in results.values():
        if sum(part is not None and part.axis == _ROWS for part in found) != 1 or batches != math.prod(
            part.size for part in found if part is not None and part.axis == _BATCH
        ):
            raise NoMatch("a result does not have all rows")
    return Group(tuple(members), results, batches, rows, columns, block)


def match_mask(group: Group) -> Masked:
    """The mask of a group, outside of which nothing has to be computed. Raises `NoMatch`."""
    terms = Terms({v: member for member in group.members for v in member.results}, (group.rows, group.columns))
    for condition in conditions(group, terms):
        limits = limits_of(condition, group.columns)
        if not has_limits(limits) or not all(map(can_build, terms_of(limits))):
            continue
        for holds in (True, False):
            try:
                return checked(group, terms, condition, limits if holds else Not(limits), holds)
            except NoMatch:
                continue
    raise NoMatch("nothing is masked by a comparison of indices")


def conditions(group: Group, terms: Terms) -> list[Term]:
    """The conditions by which elements of a group are selected, in order."""
    found: dict[Term, None] = {}
    seen: set[Term] = set()

    def visit(term: Term) -> None:
        if term in seen:
            return
        seen.add(term)
        for arg in term.args:
            visit(arg)
        if term.name == "arith.select" and not is_truth(term) and term.args[0].depends_on(group.columns):
            found[term.args[0]] = None

    for member in group.members:
        if member.op.name == "linalg.generic":
            for value in block_ops(member.op.regions[0].blocks[0])[-1].operands:
                visit(terms.value(member, value))
        elif member.maps:
            for value, parts in zip(list(member.op.operands)[: member.inputs], member.parts):
                if any(parts):
                    visit(terms.of(value, parts))
    return [condition for condition in found if condition.is_known]


def checked(group: Group, terms: Terms, condition: Term, limits: Limits, holds: bool) -> Masked:
    """A mask by which blocks can be left out; raises `NoMatch` for others."""
    at = Skipping(terms, condition, holds, most_elements(group))
    fills: dict[mlir.Value, float] = {}
    for member in group.members:
        for value, parts in member.results.items():
            if has_columns(member) and group.columns not in parts:
                check_reduction(at, group, member, (value, parts))
            elif group.columns in parts and value in group.results:
                fill = at.number(terms.of(value, parts))
                if fill is None:
                    raise NoMatch("a result is not constant where it is masked")
                fills[value] = fill
    needs = []
    for part in at.needs:
        other = group.rows if part == group.columns else group.columns
        found = limits_of(condition, part)
        if not all(map(can_build, terms_of(found))):
            raise NoMatch("limits of rows that are not known before")
        needs.append((part, other, found if holds else Not(found)))
    facts = {}
    for member in group.members:
        for value in truths(member):
            if terms.value(member, value) is condition:
                facts[value] = holds
    return Masked(group, condition, limits, tuple(at.guards), tuple(needs), fills, facts)


def most_elements(group: Group) -> int:
    """The size of a tensor whose largest element is computed in far less time than the group."""
    matrix, out = group.batches * group.rows.size * group.columns.size, group.last.results[0].type
    wide = out.shape[-1] if group.last.name in CONTRACTIONS and len(out.shape) > 1 else 1
    return max(matrix // 2, matrix * wide // 64)


def check_reduction(at: Skipping, group: Group, member: Member, element: tuple[mlir.Value, Parts]) -> None:
    """Check that masked columns do not change a reduction."""
    if member.op.name in CONTRACTIONS:
        factors = list(zip(list(member.op.operands)[:2], member.parts))
        for (a, a_parts), (b, b_parts) in (factors, factors[::-1]):
            if any(a_parts) and at.number(at.terms.of(a, a_parts)) == 0.0:
                if at.largest(b) is None and at.of(at.terms.of(b, b_parts), True) is None:
                    continue
                return
        raise NoMatch("no factor is zero where it is masked")
    found = at.combined(element)
    if found is None or at.reduced(element) != group.columns:
        raise NoMatch("another reduction")
    check(at, found[1], found[0], group.columns)


def truths(member: Member) -> list[mlir.Value]:
    """The truth values in the body of a member."""
    if member.op.name != "linalg.generic":
        return []
    body = member.op.regions[0].blocks[0]
    inner = [result for op in block_ops(body) for result in op.results]
    return [
        value
        for value in [*list(body.arguments)[: member.inputs], *inner]
        if isinstance(value.type, mlir.IntegerType) and value.type.width == 1
    ]


def build_masked(found: Masked, largest: dict[mlir.Value, mlir.Value], renamed: dict[mlir.Value, mlir.Value]) -> list[mlir.Value]:
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


def tile_width(columns: int) -> int:
    """The number of columns of a tile."""
    return max(_NARROWEST, min(_WIDEST, columns // 8 // 64 * 64))


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
        count, width = self.group.columns.size, tile_width(self.group.columns.size)
        whole = count // width
        for first, last, holds in self.ranges(whole, width, masks):

            def body(t: mlir.Value, inner: list[mlir.Value], holds: bool = holds) -> list[mlir.Value]:
                return step(emit.same_type("arith.muli", t, emit.index(width)), width, holds, inner)

            carried = emit.for_loop(first, last, emit.index(1), body, carried)
        if count % width:
            start = emit.index(whole * width)
            some = emit.compare("sgt", self.columns.may_high, start)
            times = emit.same_type("arith.select", some, emit.index(1), emit.index(0))

            def rest(_: mlir.Value, inner: list[mlir.Value]) -> list[mlir.Value]:
                return step(emit.index(whole * width), count % width, False, inner)

            carried = emit.for_loop(emit.index(0), times, emit.index(1), rest, carried)
        return carried

    def ranges(self, whole: int, width: int, masks: bool) -> list[tuple[mlir.Value, mlir.Value, bool]]:
        """The first and the last tiles of each loop, and whether the mask holds in all of them."""
        may_low, may_high = self.computed(whole, width)
        if not masks:
            return [(may_low, may_high, False)]
        low = _clamped(_tiles_up(self.columns.low, width), may_low, may_high)
        high = _clamped(_tiles_down(self.columns.high, width), low, may_high)
        return [(may_low, low, False), (low, high, True), (high, may_high, False)]

    def computed(self, whole: int, width: int) -> tuple[mlir.Value, mlir.Value]:
        """The first tile that is computed, and the one after the last."""
        high = emit.same_type("arith.minsi", _tiles_up(self.columns.may_high, width), emit.index(whole))
        return emit.same_type("arith.minsi", _tiles_down(self.columns.may_low, width), high), high

    def replaced(self, holds: bool) -> dict[mlir.Value, Callable[..., mlir.Value]]:
        """What builds the truth values of the mask on a tile: constants, or comparisons without a mask in memory."""
        if holds:
            return {v: lambda _, fact=fact: emit.constant(mlir.BoolAttr.get(fact)) for v, fact in self.found.facts.items()}
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
                    offsets = [tile.starts[_COLUMNS] if part == group.columns else 0 for part in parts]
                    tile.values[value, parts] = emit.extract_slice(self.buffers[value], offsets, sizes)

    def fill(self, value: mlir.Value, parts: Parts) -> mlir.Value:
        """A result of a block with its tiles that are not computed filled."""
        count, width = self.group.columns.size, tile_width(self.group.columns.size)
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
                emit.index(0), times, emit.index(1), lambda _, inner: filled(emit.index(whole * width), count % width, inner[0]), current
            )
        return current[0]


def has_columns(member: Member) -> bool:
    """True if an operation has the dimension of columns, whether it keeps or reduces it."""
    return any(part is not None and part.axis == _COLUMNS for parts in member.parts for part in parts)


def segments_of(members: Sequence[Member]) -> list[list[Member]]:
    """Members in order, split where one needs a whole row that the segment reduces."""
    segments: list[list[Member]] = []
    reduced: set[mlir.Value] = set()
    wide = False
    for member in members:
        own = has_columns(member)
        if not segments or wide != own or any(value in reduced for value in member.op.operands):
            segments.append([])
            reduced = set()
        wide = own
        segments[-1].append(member)
        reduced |= {
            value for value, parts in member.results.items() if all(p is None or p.axis != _COLUMNS for p in parts)
        }
    return segments


def part_index(part: Part, group: Group, batch: mlir.Value, row: mlir.Value) -> mlir.Value:
    """The index of a part of the batches, or of the rows."""
    if part.axis == _ROWS:
        return row
    start = batch
    if part.step > 1:
        start = emit.same_type("arith.divui", start, emit.index(part.step))
    if part.step * part.size < group.batches:
        start = emit.same_type("arith.remui", start, emit.index(part.size))
    return start


def build_guards(found: Masked, largest: dict[mlir.Value, mlir.Value], renamed: dict[mlir.Value, mlir.Value]) -> mlir.Value:
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


def build_bound(bound: Bound, largest: dict[mlir.Value, mlir.Value], renamed: dict[mlir.Value, mlir.Value]) -> mlir.Value:
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


def described(found: Masked) -> str:
    """What is left out, as a remark for the user."""
    group = found.group
    shape = f"{group.rows.size}x{group.columns.size}"
    batches = f"{group.batches} matrices of " if group.batches > 1 else "a matrix of "
    width = tile_width(group.columns.size)
    return (
        f"{batches}{shape} is computed by blocks of {group.block}x{width}; those that the mask excludes are left out, "
        f"and those that it does not touch are computed without it"
    )

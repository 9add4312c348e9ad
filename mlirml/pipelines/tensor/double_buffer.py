"""Double buffer: an array that each iteration recomputes from its old contents is computed in a second buffer.

Before:
    %r = scf.for ... iter_args(%u = %x) -> (tensor<8xf32>) {
      %west = tensor.extract_slice %u[0] [6] [1]
      %east = tensor.extract_slice %u[2] [6] [1]
      %e = tensor.empty() : tensor<6xf32>
      %f = linalg.generic {...} ins(%west, %east) outs(%e) {...}
      %new = tensor.insert_slice %f into %u[1] [6] [1]
      scf.yield %new
    }
After:
    %r:2 = scf.for ... iter_args(%u = %x, %other = %x) -> (tensor<8xf32>, tensor<8xf32>) {
      %west = tensor.extract_slice %u[0] [6] [1]
      %east = tensor.extract_slice %u[2] [6] [1]
      %e = tensor.empty() : tensor<6xf32>
      %f = linalg.generic {...} ins(%west, %east) outs(%e) {...}
      %new = tensor.insert_slice %f into %other[1] [6] [1]
      scf.yield %new, %u
    }

The old contents are read while the new ones are computed, so that these would be computed in a temporary and copied.
Outside of the slice the two buffers are equal. A second array into which the same values are stored, and that no
iteration reads, is updated after the loop. `mlirml-rotate-buffers` removes the copies of the swap.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mlirml.analysis.structured import is_parallel
from mlirml.analysis.traits import CASTED_VIEWS, TENSOR_STORES
from mlirml.analysis.trip_counts import trip_count
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import matched
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import PROGRAM_LOOP

_PLACE = ("static_offsets", "static_sizes", "static_strides")


@register(when=PROGRAM_LOOP)
class DoubleBufferPass(Pass):
    """Allocate second buffers for arrays in loops of at least `fewest` iterations."""

    fewest: int = 4

    def run(self, module: mlir.Operation) -> None:
        for loop in [op for op in named_operations(module, ("scf.for",)) if op.results][::-1]:
            count = trip_count(loop)
            if count is None or count >= self.fewest:
                updates = list(find_updates(loop))
                if updates:
                    rebuild(loop, updates)


@dataclass(frozen=True)
class Update:
    """The update of carried tensor `number`: `computed` is stored by `insert`, or replaces it if that is None.

    A replacement is computed by one operation, or composed of slices and by loops.

    `copies` are other carried tensors that `computed` is stored into.
    """

    number: int
    computed: mlir.Value
    insert: mlir.Operation | None
    copies: tuple[int, ...]


def find_updates(loop: mlir.Operation) -> list[Update]:
    """The carried tensors that gain from a second buffer; of those that become one tensor, the first one."""
    found: list[Update] = []
    taken: set[int] = set()
    finals: set[mlir.Value] = set()
    for number, update in matched(partial(match_update, loop), range(len(loop.results))):
        final = block_ops(loop.regions[0].blocks[0])[-1].operands[number]
        if number not in taken and final not in finals:
            found.append(update)
            taken.update(update.copies)
            finals.add(final)
    return [update for update in found if update.number not in taken]


def match_update(loop: mlir.Operation, number: int) -> Update:
    """Match the update of one carried tensor; raises NoMatch if it may as well stay in its buffer."""
    block = loop.regions[0].blocks[0]
    old, new = block.arguments[1 + number], block_ops(block)[-1].operands[number]
    if not isinstance(old.type, mlir.RankedTensorType) or new == old:
        raise NoMatch("no new tensor")
    if begins_empty(new, block) is not None:
        if not only_read(old, None):
            raise NoMatch("something is stored into the old tensor")
        return Update(number, new, None, ())
    computed, insert = stored_into(new, old)
    maker = defining_op(computed)
    if maker is None or maker.block != block or maker.name != "linalg.generic":
        raise NoMatch("not computed by one operation of the loop")
    out = maker.operands[len(maker.operands) - len(maker.results) + list(maker.results).index(computed)]
    start = defining_op(out)
    if start is None or start.name != "tensor.empty":
        raise NoMatch("it is in its buffer already")
    if not is_parallel(maker):
        raise NoMatch("a reduction")
    if not reads_elsewhere(maker, computed, old, insert):
        raise NoMatch("computed in place")
    if not only_read(old, insert):
        raise NoMatch("something else is stored into the old tensor")
    return Update(number, computed, insert, tuple(copies_of(loop, number, computed)))


def begins_empty(new: mlir.Value, block: mlir.Block) -> tuple[mlir.Operation, int] | None:
    """The operation and operand with the empty tensor from which a block composes `new` by static slices and loops."""
    op = defining_op(new)
    while op is not None and op.block == block:
        position = init_position(op, new)
        if position is None:
            return None
        new = op.operands[position]
        into = defining_op(new)
        if into is not None and into.name == "tensor.empty":
            return op, position
        if count_uses(new) > 1:
            return None
        op = into
    return None


def init_position(op: mlir.Operation, result: mlir.Value) -> int | None:
    """The operand from which `result` is composed, by a store of a static slice or a loop; None for others."""
    if op.name == "tensor.insert_slice":
        return 1 if len(op.operands) == 2 else None
    return 3 + list(op.results).index(result) if op.name == "scf.for" else None


def stored_into(new: mlir.Value, old: mlir.Value) -> tuple[mlir.Value, mlir.Operation | None]:
    """The source of a store into a static slice of `old` that gives `new`, and the store; `new`, None without one."""
    op = defining_op(new)
    if op is not None and op.name == "tensor.insert_slice" and op.operands[1] == old:
        if len(op.operands) > 2:
            raise NoMatch("the slice moves")
        return op.operands[0], op
    return new, None


def reads_elsewhere(
    maker: mlir.Operation, computed: mlir.Value, old: mlir.Value, insert: mlir.Operation | None
) -> bool:
    """True if the producer of an element reads other elements of `old` than that one."""
    maps = list(maker.attributes["indexing_maps"])
    first_out = len(maker.operands) - len(maker.results)
    own = maps[first_out + list(maker.results).index(computed)]
    for position, value in enumerate(list(maker.operands)[:first_out]):
        if comes_from(value, old) and not (maps[position] == own and is_stored_slice(value, old, insert)):
            return True
    return False


def comes_from(value: mlir.Value, old: mlir.Value) -> bool:
    """True if a value is a tensor or a view of it."""
    while value != old:
        op = defining_op(value)
        if op is None or op.name not in CASTED_VIEWS:
            return False
        value = op.operands[0]
    return True


def is_stored_slice(value: mlir.Value, old: mlir.Value, insert: mlir.Operation | None) -> bool:
    """True if a value is the slice of `old` that is overwritten."""
    if insert is None:
        return bool(value == old)
    op = defining_op(value)
    if op is None or op.name != "tensor.extract_slice" or op.operands[0] != old or len(op.operands) > 1:
        return False
    return bool(value.type == insert.operands[0].type) and all(
        op.attributes[name] == insert.attributes[name] for name in _PLACE
    )


def only_read(value: mlir.Value, insert: mlir.Operation | None) -> bool:
    """True if a tensor and views of it are only read, except by `insert`."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in CASTED_VIEWS:
            if not only_read(user.results[0], None):
                return False
        elif user.name.startswith("linalg."):
            if use.operand_number >= len(user.operands) - len(user.results):
                return False
        elif user.name in TENSOR_STORES:
            if use.operand_number != 0 and (insert is None or user != insert):
                return False
        elif user.name != "tensor.extract":
            return False
    return True


def copies_of(loop: mlir.Operation, number: int, computed: mlir.Value) -> list[int]:
    """Other carried tensors whose only use is that the same values are stored into a slice of them."""
    block = loop.regions[0].blocks[0]
    final = block_ops(block)[-1]
    found = []
    for other, new in enumerate(final.operands):
        old, op = block.arguments[1 + other], defining_op(new)
        if other == number or op is None or op.name != "tensor.insert_slice" or len(op.operands) > 2:
            continue
        if op.operands[0] == computed and op.operands[1] == old and count_uses(old) == count_uses(new) == 1:
            found.append(other)
    return found


def count_uses(value: mlir.Value) -> int:
    return sum(1 for _ in value.uses)


def rebuild(loop: mlir.Operation, updates: Sequence[Update]) -> None:
    """Replace a loop by one that carries second buffers, and does not copy."""
    block = loop.regions[0].blocks[0]
    final = block_ops(block)[-1]
    dropped = {copy: update for update in updates for copy in update.copies}
    kept = [number for number in range(len(loop.results)) if number not in dropped]
    inits = list(loop.operands)[3:]
    yields = [final.operands[number] for number in kept]
    with loop.location, mlir.InsertionPoint(loop):
        starts = [inits[number] for number in kept]
        for update in updates:
            whole = update.insert is None
            starts.append(emit.empty(inits[update.number].type) if whole else inits[update.number])
        attributes = {name: loop.attributes[name] for name in loop.attributes}
        bounds = list(loop.operands)[:3]
        new = emit.create("scf.for", [*bounds, *starts], [v.type for v in starts], attributes, regions=1)
    stored = {number: defining_op(final.operands[number]) for number in dropped}
    new_position = {number: position for position, number in enumerate(kept)}
    after_loop = dict(zip(kept, new.results))
    with loop.location, mlir.InsertionPoint(loop):
        for number, update in dropped.items():
            if count_uses(loop.results[number]):
                insert = stored[number]
                assert insert is not None
                after_loop[number] = store_last(loop, after_loop[update.number], update, insert, inits[number])
    block.append_to(new.regions[0])
    for update in updates:
        other = block.add_argument(inits[update.number].type, loop.location)
        yields.append(block.arguments[1 + update.number])
        if update.insert is not None:
            update.insert.operands[1] = other
        elif (first := begins_empty(update.computed, block)) is not None:
            op, position = first
            op.operands[position] = other
        else:
            maker = update.computed.owner.operation
            first_out = len(maker.operands) - len(maker.results)
            maker.operands[first_out + list(maker.results).index(update.computed)] = other
    with final.location, mlir.InsertionPoint(final):
        emit.create("scf.yield", yields)
    final.erase()
    for op in stored.values():
        assert op is not None
        op.erase()
    for number in sorted(dropped, reverse=True):
        block.erase_argument(1 + number)
    assert len(new_position) + len(updates) == len(block.arguments) - 1
    for number, value in after_loop.items():
        loop.results[number].replace_all_uses_with(value)
    loop.erase()


def store_last(
    loop: mlir.Operation, result: mlir.Value, update: Update, insert: mlir.Operation, start: mlir.Value
) -> mlir.Value:
    """Live-out of an array overwritten in every iteration: the last iteration's value, if the trip count is > 0."""

    def store(target: mlir.Value) -> mlir.Value:
        value = result
        if update.insert is not None:
            attributes = {name: update.insert.attributes[name] for name in _PLACE}
            type_ = update.computed.type
            value = emit.value(
                "tensor.extract_slice", [result], type_, operandSegmentSizes=emit.segments(1, 0, 0, 0), **attributes
            )
        attributes = {name: insert.attributes[name] for name in (*_PLACE, "operandSegmentSizes")}
        return emit.value("tensor.insert_slice", [value, target], target.type, **attributes)

    if trip_count(loop) is not None:
        return store(start)
    lower, upper, step = list(loop.operands)[:3]
    # One iteration if the loop has any.
    end = emit.same_type("arith.minsi", upper, emit.same_type("arith.addi", lower, step))
    return emit.for_loop(lower, end, step, lambda _, carried: [store(carried[0])], [start])[0]

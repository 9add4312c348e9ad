"""Where operations on tensors may write: which buffers their outs begin in, before upstream's analysis runs.

Outs that would share one empty tensor get one each, slices are inserted where they were taken from, and an elementwise
operation takes over an input that dies with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.distances import Distances, box_of
from mlirml.analysis.values import place_in, used_values
from mlirml.dialects.mlirml import KERNEL
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations, seen_through
from mlirml.pipelines.bufferize.destinations import (
    ALLOC,
    LOOPS,
    carried_values,
    is_loop_body,
    is_moved_within,
    is_read_before,
    writes_outs,
)

_STORES = ("tensor.insert", "tensor.insert_slice")
_READS = ("tensor.extract", "tensor.extract_slice")
TENSOR_VIEWS = ("tensor.extract_slice", "tensor.expand_shape", "tensor.collapse_shape")
"""Operations whose result is part of their first operand, or its elements in another shape."""


def tensor_blocks(function: mlir.Operation) -> list[mlir.Block]:
    """The blocks that hold operations on tensors: the function's and those of its scf regions."""
    found, todo = [], [block for region in function.regions for block in region.blocks]
    while todo:
        block = todo.pop(0)
        found.append(block)
        for op in block_ops(block):
            if not op.name.startswith("linalg."):
                todo += [inner for region in op.regions for inner in region.blocks]
    return found


def order_stores(function: mlir.Operation) -> None:
    """Let stores and reads be of the last tensor that has the elements, so that none before it is used any more.

    Canonicalization lets a store over all that an earlier one has stored begin from the tensor before that one, which
    would be copied whole if the earlier one is read. What is read of other elements than a store's is read after it.
    """
    distances = Distances()
    for op in named_operations(function, _STORES):
        while op.name == "tensor.insert_slice":
            earlier = [other for use in op.operands[1].uses if is_overwritten(other := use.owner.operation, op)]
            if not earlier:
                break
            op.operands[1] = earlier[0].results[0]
        advance_reads(op, distances)


def advance_reads(store: mlir.Operation, distances: Distances) -> None:
    """Read the tensor after a store instead of the one before, where a later read is of other elements."""
    uses = [use.owner.operation for use in store.operands[1].uses if use.owner.name in _READS]
    late = [op for op in uses if (place := place_in(op, store.block)) is not None and store.is_before_in_block(place)]
    box = box_of(store, distances) if late else None
    for op in late:
        other = box_of(op, distances)
        if box is not None and other is not None and distances.are_disjoint(box, other):
            op.operands[0] = store.results[0]


def is_overwritten(earlier: mlir.Operation, op: mlir.Operation) -> bool:
    """True if an operation is a store into the tensor that `op` stores into, before it and at the same offsets."""
    if earlier == op or earlier.name != "tensor.insert_slice" or earlier.operands[1] != op.operands[1]:
        return False
    if not is_same_slice(earlier, op):
        return False
    around = place_in(op, earlier.block)
    return around is not None and earlier.is_before_in_block(around)


def is_same_slice(op: mlir.Operation, store: mlir.Operation) -> bool:
    """True if a slice that is read or stored is at the offsets of another store."""
    names = ("static_offsets", "static_sizes", "static_strides")
    first = 1 if op.name == "tensor.extract_slice" else 2
    same = all(op.attributes[name] == store.attributes[name] for name in names)
    return same and list(op.operands)[first:] == list(store.operands)[2:]


def insert_in_place(function: mlir.Operation, stores: Sequence[mlir.Operation] = ()) -> None:
    """Prepare stores into slices, so that bufferization adds no copies of its own.

    What cannot be written (an argument, unless it is one of its own `stores`, or a constant) is copied into an empty
    tensor first, which may become an out-parameter; a source that only gained unit dimensions is stored without them.
    A slice of the tensor that it is stored into is copied, instead of that whole tensor.
    """
    for block in tensor_blocks(function):
        ops = block_ops(block)
        for op in ops:
            if _is_free(op) and op != ops[0]:
                op.move_before(ops[0])  # in front of what may be computed into a slice of it
            if op.name == "tensor.insert_slice":
                source = defining_op(op.operands[0])
                if source is not None and source.name == "tensor.expand_shape" and only_gains_units(op.operands[0]):
                    op.operands[0] = source.operands[0]
                target = op.operands[1]
                if target.owner != block and is_slice_of(op.operands[0], target) and not is_moved_within(target, op):
                    with op.location, mlir.InsertionPoint(op):
                        op.operands[0] = copied(op.operands[0])
                if is_read_only(op.operands[1]) and op not in stores:
                    with op.location, mlir.InsertionPoint(op):
                        op.operands[1] = copied(op.operands[1])


def is_read_only(value: mlir.Value) -> bool:
    """True if a tensor is an argument of @main (and not of a loop's body) or a constant, which cannot be written."""
    owner = defining_op(value)
    if owner is None:
        return bool(value.owner.owner.operation.name == "func.func")
    return str(owner.name) == "arith.constant"


def only_gains_units(value: mlir.Value) -> bool:
    """True if an expanded tensor, read once, is its source with more dimensions of size 1."""
    owner = defining_op(value)
    return (
        owner is not None
        and has_one_use(value)
        and without_units(value.type.shape) == without_units(owner.operands[0].type.shape)
    )


def without_units(shape: Sequence[int]) -> list[int]:
    return [size for size in shape if size != 1]


def has_one_use(value: mlir.Value) -> bool:
    return sum(1 for _ in value.uses) == 1


def out_positions(op: mlir.Operation) -> range:
    """Which operands of a linalg operation are its outs."""
    return range(len(op.operands) - len(op.results), len(op.operands))


def init_positions(op: mlir.Operation) -> range:
    """Which operands of an operation it writes over."""
    if op.name in _STORES:
        return range(1, 2)
    if op.name in LOOPS:
        return range(len(op.operands) - len(op.results), len(op.operands))
    return out_positions(op) if writes_outs(op) else range(0)


def private_inits(function: mlir.Operation, stores: Sequence[mlir.Operation] = ()) -> None:
    """Give every init its own `tensor.empty`, or fill of one; loops among the `stores` start from their argument.

    CSE merges equal fills, and a fill that two operations accumulate into would be copied. A splat constant as init
    becomes a fill, since constants cannot be written.
    """
    for block in tensor_blocks(function):
        ops = block_ops(block)
        for op in ops:
            if op.name in (*_STORES, *LOOPS):
                for position in init_positions(op):
                    copy_late_slices(op, position)
            for position in init_positions(op):
                if op.name in LOOPS and op in stores and is_read_only(op.operands[position]):
                    continue
                init = fresh_init(op, position)
                if init is None:
                    continue
                op.operands[position] = init
                owner = defining_op(init)
                if op.name == "tensor.insert_slice" and owner is not None and _is_free(owner):
                    owner.move_before(ops[0])


def copy_late_slices(store: mlir.Operation, position: int) -> None:
    """Copy slices of the tensor before a store, or a loop, that are read in it or after it.

    The whole tensor would be copied else.
    """
    value = store.operands[position]
    if not isinstance(value.type, mlir.RankedTensorType) or not value.type.has_static_shape:
        return
    if is_read_before(value, store, position) or is_read_only(value):
        return
    if is_moved_within(value, store):
        return
    most = math.prod(value.type.shape) // 2
    for view in [use.owner.operation for use in value.uses if use.owner.name == "tensor.extract_slice"]:
        kind = view.results[0].type
        if view.block != store.block or not kind.has_static_shape or math.prod(kind.shape) > most:
            continue
        late = [use for use in view.results[0].uses if not is_before(use.owner.operation, store)]
        if not late:
            continue
        if not view.is_before_in_block(store):
            if not all(is_known_before(operand, store) for operand in view.operands):
                continue
            view.move_before(store)
        with view.location, mlir.InsertionPoint.after(view):
            copy = copied(view.results[0])
        for use in late:
            use.owner.operation.operands[use.operand_number] = copy


def is_before(op: mlir.Operation, store: mlir.Operation) -> bool:
    """True if an operation runs before another one, in whose block it is or is nested."""
    around = place_in(op, store.block)
    return around is not None and around != store and around.is_before_in_block(store)


def is_known_before(value: mlir.Value, op: mlir.Operation) -> bool:
    """True if a value that is used in the block of an operation is there before the operation."""
    owner = defining_op(value)
    return owner is None or owner.block != op.block or owner.is_before_in_block(op)


def _is_free(op: mlir.Operation) -> bool:
    """True if an operation is an empty tensor that may stand anywhere: its sizes are not computed."""
    return op.name == "tensor.empty" and not len(op.operands)


def emptied(value: mlir.Value) -> mlir.Value | None:
    """An empty tensor of the type of a value; None where its sizes are not at hand."""
    owner = defining_op(value)
    if value.type.has_static_shape:
        return emit.empty(value.type)
    return owner.clone().operation.results[0] if owner is not None and owner.name == "tensor.empty" else None


def fresh_init(op: mlir.Operation, position: int) -> mlir.Value | None:
    """What operand `position` of `op`, which writes over it, should be, built before `op`; None where it may stay.

    Empty tensors and fills are made again, and what is still read in `op` or behind it is copied.
    """
    value = op.operands[position]
    owner = defining_op(value)
    if owner is None:
        # An argument of @main cannot be written by a loop that starts from it.
        if op.name not in LOOPS or not is_read_only(value) or not isinstance(value.type, mlir.RankedTensorType):
            return None
        with op.location, mlir.InsertionPoint(op):
            return copied(value)
    if not isinstance(value.type, mlir.RankedTensorType):
        return None
    shared = sum(1 for _ in value.uses) > 1
    with op.location, mlir.InsertionPoint(op):
        if owner.name == "tensor.empty" and shared:
            return owner.clone().operation.results[0]
        # One in front of a loop that stores into it would have to be copied in each round.
        if owner.name == "linalg.fill" and (shared or owner.block != op.block):
            empty = emptied(owner.operands[1])
            if empty is None:
                return None
            fill = owner.clone().operation
            fill.operands[1] = empty
            return fill.results[0]
        if owner.name == "arith.constant":
            attribute = owner.attributes["value"]
            if isinstance(attribute, mlir.DenseElementsAttr) and mlir.DenseElementsAttr(attribute).is_splat:
                return splat_fill(value, mlir.DenseElementsAttr(attribute))
            return copied(value)
        # Upstream's elimination computes a value in the out-parameter of what is stored over it, and does not see that
        # the value is read once more after that has been written.
        if shared and not is_read_before(value, op, position) and not is_moved_within(value, op):
            return copied(value)
    return None


def splat_fill(value: mlir.Value, attribute: mlir.DenseElementsAttr) -> mlir.Value:
    """A `linalg.fill` that makes the same tensor as a splat constant."""
    scalar = emit.constant(attribute.get_splat_value())
    return emit.fill(scalar, emit.empty(value.type)).results[0]


def is_slice_of(value: mlir.Value, tensor: mlir.Value) -> bool:
    """True if a value is, or is a reshape of, a slice of a tensor."""
    return is_slice(value) and seen_through(value, TENSOR_VIEWS) == tensor


def is_slice(value: mlir.Value) -> bool:
    """True if a tensor is, or is a reshape of, a slice of another one."""
    owner = defining_op(value)
    while owner is not None and owner.name in ("tensor.expand_shape", "tensor.collapse_shape"):
        owner = defining_op(owner.operands[0])
    return owner is not None and owner.name == "tensor.extract_slice"


def copied(value: mlir.Value) -> mlir.Value:
    """A tensor copied into an empty one, which empty-tensor elimination may place in an out-parameter."""
    identity = mlir.AffineMap.get_identity(mlir.ShapedType(value.type).rank)
    iterators = ["parallel"] * identity.n_dims
    return emit.generic([value], [emit.empty(value.type)], [identity] * 2, iterators, lambda b: b[:1]).results[0]


def compute_apart(function: mlir.Operation) -> None:
    """Compute what is stored over an earlier store in a buffer of its own, if it reads other slices of that tensor.

    Upstream's empty-tensor elimination would compute it in the slice. Its analysis then finds the slice written while
    the tensor is read, and copies the whole tensor for the earlier store.
    """
    distances = Distances()
    for block in tensor_blocks(function):
        for op in block_ops(block):
            if writes_outs(op):
                for position in out_positions(op):
                    if reads_target(op, op.results[position - len(op.operands)], distances):
                        make_buffer(op, position)


def make_buffer(op: mlir.Operation, position: int) -> None:
    """Let an init that is an empty tensor of static sizes be a buffer that no elimination replaces."""
    owner, kind = defining_op(op.operands[position]), op.operands[position].type
    if owner is not None and owner.name == "tensor.empty" and kind.has_static_shape:
        with op.location, mlir.InsertionPoint(op):
            op.operands[position] = emit.value(ALLOC, (), kind, operandSegmentSizes=emit.segments(0, 0, 0))


def reads_target(op: mlir.Operation, result: mlir.Value, distances: Distances) -> bool:
    """True if an operation may read elements of the tensor its result is stored into, which is a stored one, too."""
    stores = [use.owner.operation for use in result.uses]
    if len(stores) != 1 or stores[0].name != "tensor.insert_slice" or stores[0].operands[0] != result:
        return False
    store = stores[0]
    states, box = [store.operands[1]], box_of(store, distances)
    while (owner := defining_op(states[-1])) is not None and owner.name in ("tensor.insert_slice", "tensor.insert"):
        states.append(owner.operands[1])
    if len(states) == 1:
        return False
    for operand in used_values(op):
        view = defining_op(operand)
        while view is not None and view.name in ("tensor.expand_shape", "tensor.collapse_shape"):
            view = defining_op(view.operands[0])
        if view is None or view.name != "tensor.extract_slice":
            if operand in states:
                return True
            continue
        if view.operands[0] in states and not is_same_slice(view, store):
            other = box_of(view, distances)
            if box is None or other is None or not distances.are_disjoint(box, other):
                return True
    return False


def reuse_dying_inputs(function: mlir.Operation, written: dict[int, int]) -> None:
    """Let an elementwise operation write over an input that nobody reads afterwards."""
    body = function.regions[0].blocks[0]
    results = block_ops(body)[-1].operands
    new = {body.arguments[argument]: results[number] for number, argument in written.items()}
    for block in tensor_blocks(function):
        for op in block_ops(block):
            if op.name == "linalg.generic" and op.results and KERNEL not in op.attributes:
                reuse_dying_input(op, block, new)


def reuse_dying_input(op: mlir.Operation, block: mlir.Block, new: dict[mlir.Value, mlir.Value]) -> None:
    """`new` are the values that go into the memory of arguments."""
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    if any("parallel" not in str(kind) for kind in op.attributes["iterator_types"]):
        return
    inputs = list(op.operands)[: len(op.operands) - len(op.results)]
    once = [i for i, v in enumerate(inputs) if inputs.count(v) == 1]
    free = [i for i in once if dies_at(inputs[i], op, block) or is_updated_slice(inputs[i], op)]
    free += [i for i in once if inputs[i] in new and i not in free and is_read_last(inputs[i], op)]
    for position in out_positions(op):
        out, owner = op.operands[position], defining_op(op.operands[position])
        if owner is None or owner.name != "tensor.empty":
            continue
        for i in free:
            if inputs[i] in new and new[inputs[i]] != op.results[position - len(inputs)]:
                continue
            if takes_over_from_source(inputs[i], op.results[position - len(inputs)]):
                continue
            if inputs[i].type == out.type and maps[i] == maps[position] and maps[i].is_permutation:
                op.operands[position] = inputs[i]
                free.remove(i)
                break


def dies_at(value: mlir.Value, op: mlir.Operation, block: mlir.Block) -> bool:
    """True for a value of this block that is used only by linalg operations up to `op`.

    It must be the result of a linalg operation, or be carried by a loop that goes on with the result of `op` instead.
    """
    owner = defining_op(value)
    if owner is None and not (value.owner == block and is_loop_body(block) and replaces_carried(value, op, block)):
        return False
    if owner is not None and not (owner.name.startswith("linalg.") and owner.block == block):
        return False
    for use in value.uses:
        user = use.owner.operation
        if not user.name.startswith("linalg.") or user.block != block:
            return False
        if user != op and not user.is_before_in_block(op):
            return False
    return True


def takes_over_from_source(value: mlir.Value, result: mlir.Value) -> bool:
    """True if `result` is stored into a slice of a tensor that `value`, whose memory it would have, is computed from.

    `value` would be computed into the slice then, and all that is read of the tensor meanwhile would be copied first.
    """
    inserts = [use.owner.operation for use in result.uses]
    if len(inserts) != 1 or inserts[0].name != "tensor.insert_slice" or inserts[0].operands[0] != result:
        return False
    target = seen_through(inserts[0].operands[1], TENSOR_VIEWS)
    owner = defining_op(value)
    while owner is not None and writes_outs(owner):
        if any(seen_through(operand, TENSOR_VIEWS) == target for operand in owner.operands):
            return True
        owner = defining_op(owner.operands[out_positions(owner)[0]])
    return False


def is_read_last(value: mlir.Value, op: mlir.Operation) -> bool:
    """True if a value and views of it are read by operations of this block up to `op` only."""
    for use in value.uses:
        user = use.owner.operation
        if user == op:
            continue
        if user.block != op.block or not user.is_before_in_block(op):
            return False
        if user.name in TENSOR_VIEWS and not all(is_read_last(result, op) for result in user.results):
            return False
        if not user.name.startswith("linalg.") and user.name not in TENSOR_VIEWS:
            return False
    return True


def replaces_carried(argument: mlir.Value, op: mlir.Operation, block: mlir.Block) -> bool:
    """True if a result of `op` is what a loop carries on in place of `argument`."""
    return any(target == argument and value in list(op.results) for _, target, value in carried_values(block))


def is_updated_slice(value: mlir.Value, op: mlir.Operation) -> bool:
    """True for a slice that `op` reads, and whose place its result takes: `x[2:4] += 1`."""
    extract = defining_op(value)
    if extract is None or extract.name != "tensor.extract_slice" or not has_one_use(value) or len(op.results) != 1:
        return False
    if not has_one_use(op.results[0]):
        return False
    insert = next(iter(op.results[0].uses)).owner.operation
    if insert.name != "tensor.insert_slice" or insert.operands[0] != op.results[0]:
        return False
    if not is_read_before(extract.operands[0], op, but=(extract, insert)):
        return False
    return extract.operands[0] == insert.operands[1] and is_same_slice(extract, insert)

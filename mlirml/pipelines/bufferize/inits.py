"""Inits of operations on tensors: the buffers that they may write to, prepared for upstream's analysis.

Inits that would share one empty tensor get one each, slices are inserted where they were extracted, and an elementwise
operation reuses the buffer of an input whose last use it is.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence

from mlirml.analysis.distances import Distances, box_of
from mlirml.analysis.structured import is_parallel
from mlirml.analysis.traits import RESHAPES, SEQUENTIAL_LOOPS, TENSOR_READS, TENSOR_STORES, TENSOR_VIEWS
from mlirml.analysis.values import ancestor_in, has_one_use, is_before, is_defined_before, used_values
from mlirml.dialects.mlirml import KERNEL
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations, seen_through
from mlirml.pipelines.bufferize.destinations import (
    ALLOC,
    carried_values,
    is_loop_body,
    is_moved_within,
    is_read_before,
    writes_outs,
)


def tensor_blocks(function: mlir.Operation) -> list[mlir.Block]:
    """The blocks that may contain operations on tensors: those of the function and of its scf regions."""
    found, todo = [], [block for region in function.regions for block in region.blocks]
    while todo:
        block = todo.pop(0)
        found.append(block)
        for op in block_ops(block):
            if not op.name.startswith("linalg."):
                todo += [inner for region in op.regions for inner in region.blocks]
    return found


def order_stores(function: mlir.Operation) -> None:
    """Make stores and reads use the last tensor that has the elements, so that no earlier one is live after a store.

    Canonicalization makes a store that overwrites an earlier one start from the tensor before the earlier one, which
    would be copied as a whole if the earlier one is read. Reads of elements that a store leaves unchanged are moved to
    the tensor after it. An empty tensor has nothing to copy: each store into one gets a buffer of its own.
    """
    distances = Distances()
    stores = [op for op in named_operations(function, TENSOR_STORES) if not _is_empty(op.operands[1])]
    alike: dict[Hashable, list[mlir.Operation]] = {}  # stores of the same slice of the same tensor
    ends: dict[Hashable, mlir.Operation] = {}  # the last of those that are in a chain already
    for op in stores:
        if op.name == "tensor.insert_slice":
            alike.setdefault(_slice_of(op), []).append(op)
    for op in stores:
        if op.name == "tensor.insert_slice":
            first = _slice_of(op)
            earlier = _earlier(op, [ends[first]] if first in ends else []) or _earlier(op, alike[first])
            while earlier is not None:
                op.operands[1] = earlier.results[0]
                earlier = _earlier(op, alike.get(_slice_of(op), ()))
            if _slice_of(op) != first:
                alike.setdefault(_slice_of(op), []).append(op)
            ends[first] = op
        advance_reads(op, distances)


def _is_empty(value: mlir.Value) -> bool:
    owner = defining_op(value)
    return owner is not None and owner.name == "tensor.empty"


def _slice_of(store: mlir.Operation) -> Hashable:
    """The tensor and the slice of it that a store writes."""
    return *(store.attributes[name] for name in _SLICE), *list(store.operands)[1:]


_SLICE = ("static_offsets", "static_sizes", "static_strides")


def advance_reads(store: mlir.Operation, distances: Distances) -> None:
    """Make later reads of elements that a store leaves alone read the tensor after the store."""
    uses = [use.owner.operation for use in store.operands[1].uses if use.owner.name in TENSOR_READS]
    late = [
        op for op in uses if (place := ancestor_in(op, store.block)) is not None and store.is_before_in_block(place)
    ]
    box = box_of(store, distances) if late else None
    for op in late:
        other = box_of(op, distances)
        if box is not None and other is not None and distances.are_disjoint(box, other):
            op.operands[0] = store.results[0]


def _earlier(op: mlir.Operation, others: Iterable[mlir.Operation]) -> mlir.Operation | None:
    """The first of some operations that is before `op`; None if there is none."""
    for other in others:
        around = ancestor_in(op, other.block) if other != op else None
        if around is not None and other.is_before_in_block(around):
            return other
    return None


def is_same_slice(op: mlir.Operation, store: mlir.Operation) -> bool:
    """True if an extracted or inserted slice has the offsets, sizes and strides of another store."""
    first = 1 if op.name == "tensor.extract_slice" else 2
    same = all(op.attributes[name] == store.attributes[name] for name in _SLICE)
    return same and list(op.operands)[first:] == list(store.operands)[2:]


def insert_in_place(function: mlir.Operation, stores: Sequence[mlir.Operation] = ()) -> None:
    """Prepare insert_slice operations, so that bufferization adds no copies.

    A tensor that cannot be written (a constant, or an argument of which no store is in `stores`) is copied into an
    empty tensor first, which may become an out-parameter; a source with added unit dimensions is stored without them. A
    slice that is stored into the tensor it comes from is copied, instead of that whole tensor.
    """
    for block in tensor_blocks(function):
        ops = block_ops(block)
        for op in ops:
            if _is_free(op) and op != ops[0]:
                op.move_before(ops[0])  # before operations that may be computed into a slice of it
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
    """True if a tensor is an argument of @main (not of a loop body) or a constant, which cannot be written."""
    owner = defining_op(value)
    if owner is None:
        return bool(value.owner.owner.operation.name == "func.func")
    return str(owner.name) == "arith.constant"


def only_gains_units(value: mlir.Value) -> bool:
    """True if an expanded tensor, which has one use, is its source with added dimensions of size 1."""
    owner = defining_op(value)
    return (
        owner is not None
        and has_one_use(value)
        and without_units(value.type.shape) == without_units(owner.operands[0].type.shape)
    )


def without_units(shape: Sequence[int]) -> list[int]:
    return [size for size in shape if size != 1]


def out_positions(op: mlir.Operation) -> range:
    """The operand positions of the inits of a linalg operation."""
    return range(len(op.operands) - len(op.results), len(op.operands))


def init_positions(op: mlir.Operation) -> range:
    """The positions of the operands that an operation overwrites."""
    if op.name in TENSOR_STORES:
        return range(1, 2)
    if op.name in SEQUENTIAL_LOOPS:
        return range(len(op.operands) - len(op.results), len(op.operands))
    return out_positions(op) if writes_outs(op) else range(0)


def private_inits(function: mlir.Operation, stores: Sequence[mlir.Operation] = ()) -> None:
    """Give every init its own `tensor.empty`, fill or broadcast; loops among the `stores` start from their argument.

    CSE merges equal fills, and a fill that two operations accumulate into would be copied. A splat constant as init is
    replaced by a fill, since constants cannot be written.
    """
    for block in tensor_blocks(function):
        ops = block_ops(block)
        for op in ops:
            if op.name in (*TENSOR_STORES, *SEQUENTIAL_LOOPS):
                for position in init_positions(op):
                    copy_late_slices(op, position)
                    copy_late_reads(op, position)
            for position in init_positions(op):
                if op.name in SEQUENTIAL_LOOPS and op in stores and is_read_only(op.operands[position]):
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

    Otherwise the whole tensor would be copied.
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
            if not all(is_defined_before(operand, store) for operand in view.operands):
                continue
            view.move_before(store)
        with view.location, mlir.InsertionPoint.after(view):
            copy = copied(view.results[0])
        for use in late:
            use.owner.operation.operands[use.operand_number] = copy


def copy_late_reads(loop: mlir.Operation, position: int) -> None:
    """Copy a carried tensor that a loop starts from, and reads as it was before: `old = a.copy()` before the loop.

    Upstream's analysis would copy it for the loop, which no longer updates the carried tensor then, or refuse to.
    """
    value = loop.operands[position]
    is_carried = defining_op(value) is None and is_loop_body(value.owner)
    if loop.name not in SEQUENTIAL_LOOPS or not is_carried or not isinstance(value.type, mlir.RankedTensorType):
        return
    late = []
    for use in value.uses:
        user = use.owner.operation
        around = ancestor_in(user, loop.block)
        if around is None or around.is_before_in_block(loop) or (user == loop and use.operand_number == position):
            continue
        if user == block_ops(loop.block)[-1]:
            return
        late.append((use.owner.operation, use.operand_number, around))
    if not any(around == loop and user != loop for user, _, around in late):
        return
    with loop.location, mlir.InsertionPoint(loop):
        copy = copied(value)
    for user, number, _ in late:
        user.operands[number] = copy


def _is_free(op: mlir.Operation) -> bool:
    """True if an operation is an empty tensor without dynamic sizes, which can be moved anywhere."""
    return op.name == "tensor.empty" and not len(op.operands)


def emptied(value: mlir.Value) -> mlir.Value | None:
    """An empty tensor of the type of a value; None if its dynamic sizes are not known."""
    owner = defining_op(value)
    if value.type.has_static_shape:
        return emit.empty_like(value)
    return owner.clone().operation.results[0] if owner is not None and owner.name == "tensor.empty" else None


def fresh_init(op: mlir.Operation, position: int) -> mlir.Value | None:
    """The init that should replace operand `position` of `op`, built before `op`; None if the operand can stay.

    Empty tensors, fills and broadcasts are cloned, and a tensor that is still read in `op` or after it is copied.
    """
    value = op.operands[position]
    owner = defining_op(value)
    if owner is None:
        # An argument of @main cannot be written by a loop that starts from it.
        if (
            op.name not in SEQUENTIAL_LOOPS
            or not is_read_only(value)
            or not isinstance(value.type, mlir.RankedTensorType)
        ):
            return None
        with op.location, mlir.InsertionPoint(op):
            return copied(value)
    if not isinstance(value.type, mlir.RankedTensorType):
        return None
    shared = sum(1 for _ in value.uses) > 1
    with op.location, mlir.InsertionPoint(op):
        if owner.name == "tensor.empty" and shared:
            return owner.clone().operation.results[0]
        # A fill before a loop that stores into it would have to be copied in each iteration.
        is_apart = owner.name == "linalg.fill" and owner.block != op.block
        if is_apart or (shared and (owner.name == "linalg.fill" or is_broadcast(owner))):
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
        # Upstream's elimination computes a value in the out-parameter of a later store, and misses that the value is
        # read after the store has overwritten it.
        if shared and not is_read_before(value, op, position) and not is_moved_within(value, op):
            return copied(value)
    return None


def is_broadcast(op: mlir.Operation) -> bool:
    """True if an operation repeats the elements of its one input, as a bias: that takes no longer than a copy of it."""
    if op.name != "linalg.generic" or len(op.operands) != 2 or len(op.results) != 1:
        return False
    body = op.regions[0].blocks[0]
    (last, *more) = reversed(block_ops(body))
    # The input may be a scalar.
    ranks = [mlir.ShapedType(x.type).rank if isinstance(x.type, mlir.ShapedType) else 0 for x in op.operands]
    return not more and last.operands[0] == body.arguments[0] and ranks[0] < ranks[1]


def splat_fill(value: mlir.Value, attribute: mlir.DenseElementsAttr) -> mlir.Value:
    """A `linalg.fill` equal to a splat constant."""
    scalar = emit.constant(attribute.get_splat_value())
    return emit.fill(scalar, emit.empty_like(value)).results[0]


def is_slice_of(value: mlir.Value, tensor: mlir.Value) -> bool:
    """True if a value is, or is a reshape of, a slice of a tensor."""
    return is_slice(value) and seen_through(value, TENSOR_VIEWS) == tensor


def is_slice(value: mlir.Value) -> bool:
    """True if a tensor is, or is a reshape of, a slice of another one."""
    owner = defining_op(value)
    while owner is not None and owner.name in RESHAPES:
        owner = defining_op(owner.operands[0])
    return owner is not None and owner.name == "tensor.extract_slice"


def copied(value: mlir.Value) -> mlir.Value:
    """A copy of a tensor in an empty one, which empty-tensor elimination may replace by an out-parameter."""
    identity = mlir.AffineMap.get_identity(mlir.ShapedType(value.type).rank)
    iterators = ["parallel"] * identity.n_dims
    return emit.generic([value], [emit.empty_like(value)], [identity] * 2, iterators, lambda b: b[:1]).results[0]


def compute_apart(function: mlir.Operation) -> None:
    """Compute the source of a store in a separate buffer, if it reads the tensor that it is stored into.

    Upstream's empty-tensor elimination would compute it in the slice. Its analysis then finds that the slice is written
    while the tensor is read: it copies each slice that is read, where one copy of the result is enough, and the whole
    tensor for an earlier store into it.
    """
    distances = Distances()
    for block in tensor_blocks(function):
        for op in block_ops(block):
            if writes_outs(op):
                for position in out_positions(op):
                    if is_better_apart(op, op.results[position - len(op.operands)], distances):
                        make_buffer(op, position)


def make_buffer(op: mlir.Operation, position: int) -> None:
    """Replace an empty tensor of static sizes as init by an allocation that no elimination replaces."""
    owner, kind = defining_op(op.operands[position]), op.operands[position].type
    if owner is not None and owner.name == "tensor.empty" and kind.has_static_shape:
        with op.location, mlir.InsertionPoint(op):
            op.operands[position] = emit.value(ALLOC, (), kind, operandSegmentSizes=emit.segments(0, 0, 0))


def is_better_apart(op: mlir.Operation, result: mlir.Value, distances: Distances) -> bool:
    """True if `op` reads the tensor that its result is stored into, and that takes more than a copy of the result.

    That is the result of a store, too, or slices of it are read that overlap the one that is stored, and have more
    elements together.
    """
    stores = [use.owner.operation for use in result.uses]
    if len(stores) != 1 or stores[0].name != "tensor.insert_slice" or stores[0].operands[0] != result:
        return False
    store = stores[0]
    states = [store.operands[1]]
    while (owner := defining_op(states[-1])) is not None and owner.name in TENSOR_STORES:
        states.append(owner.operands[1])
    found = overwritten_inputs(op, store, states, distances)
    if len(states) > 1:
        return bool(found)
    size = math.prod(result.type.shape)
    # One of dynamic size may be as large as the result.
    read = sum(math.prod(x.type.shape) if x.type.has_static_shape else abs(size) for x in found)
    return bool(read > abs(size))


def overwritten_inputs(
    op: mlir.Operation, store: mlir.Operation, states: Sequence[mlir.Value], distances: Distances
) -> set[mlir.Value]:
    """The values that `op` reads of a tensor, `states` from store to store, which a store to it may overwrite."""
    box, found = box_of(store, distances), set()
    for operand in used_values(op):
        view = defining_op(operand)
        while view is not None and view.name in RESHAPES:
            view = defining_op(view.operands[0])
        if view is None or view.name != "tensor.extract_slice":
            if operand in states:
                found.add(operand)
            continue
        if view.operands[0] in states and not is_same_slice(view, store):
            other = box_of(view, distances)
            if box is None or other is None or not distances.are_disjoint(box, other):
                found.add(operand)
    return found


def reuse_dying_inputs(function: mlir.Operation, written: dict[int, int]) -> None:
    """Make an elementwise operation overwrite an input of which it is the last use."""
    body = function.regions[0].blocks[0]
    results = block_ops(body)[-1].operands
    new = {body.arguments[argument]: results[number] for number, argument in written.items()}
    for block in tensor_blocks(function):
        for op in block_ops(block):
            if op.name == "linalg.generic" and op.results and KERNEL not in op.attributes:
                reuse_dying_input(op, block, new)


def reuse_dying_input(op: mlir.Operation, block: mlir.Block, new: dict[mlir.Value, mlir.Value]) -> None:
    """Reuse an input of one operation; `new` are the values that are written to the memory of arguments."""
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    if not is_parallel(op):
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
    """True for a value defined in this block whose last user is `op`, and whose users are all linalg operations.

    It must be the result of a linalg operation, or be loop-carried with a result of `op` as its next value.
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
    """True if `result` is stored into a slice of a tensor from which `value`, whose memory it would take, is computed.

    `value` would then be computed in the slice, and reads of the tensor in between would need a copy of it.
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
    """True if the last use of a value and of its views is `op`, and all are in this block."""
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
    """True if a result of `op` is the next value of the loop-carried `argument`."""
    return any(target == argument and value in list(op.results) for _, target, value in carried_values(block))


def is_updated_slice(value: mlir.Value, op: mlir.Operation) -> bool:
    """True for a slice that `op` reads and overwrites with its result: `x[2:4] += 1`."""
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

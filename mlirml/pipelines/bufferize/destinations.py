"""State the destinations of loop and branch results before bufferization: the loop-carried buffer, if it can be used.

Before:
    %r = scf.for ... iter_args(%x = %init) -> (tensor<8xf32>) {
      %b = scf.if %p -> (tensor<8xf32>) { ... scf.yield %y } else { scf.yield %x }
      scf.yield %b
    }
After:
    %r = scf.for ... iter_args(%x = %init) -> (tensor<8xf32>) {
      %b = scf.if %p -> (tensor<8xf32>) {
        ...
        %z = bufferization.materialize_in_destination %y in %x
        scf.yield %z
      } else { scf.yield %x }
      scf.yield %b
    }

Bufferization rejects a loop that yields a buffer other than the one it was given, and gives the branches of one
operation buffers of different layouts. A value that is already in its destination is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mlirml.analysis.distances import Distances, box_of
from mlirml.analysis.traits import BRANCHES, CASTED_VIEWS, SEQUENTIAL_LOOPS
from mlirml.analysis.values import ancestor_in, walk
from mlirml.dialects.mlirml import SORTS
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, replace_op
from mlirml.ir.compactions import COMPACTIONS
from mlirml.ir.library_calls import LIBRARY_CALLS
from mlirml.pipelines.bufferize.branch_sizes import dynamic_sizes

ALLOC = "bufferization.alloc_tensor"
_MATERIALIZE = "bufferization.materialize_in_destination"
Copy = Callable[[mlir.Value], mlir.Value]


def is_loop_body(block: mlir.Block) -> bool:
    return block.owner.operation.name in SEQUENTIAL_LOOPS


def carried_values(block: mlir.Block) -> Iterator[tuple[int, mlir.Value, mlir.Value]]:
    """The yields of a loop body: operand number of the yield, the block argument that it replaces, the value."""
    final = block_ops(block)[-1]
    # scf.for has its loop variable before the carried values, scf.condition its condition. The arrays of scf.while are
    # aligned (`mlirml-align-while`); scalars are not.
    shift = {"scf.for": 1, "scf.while": 0}[block.owner.operation.name] - (final.name == "scf.condition")
    for position, value in enumerate(list(final.operands)):
        if 0 <= position + shift < len(block.arguments) and block.arguments[position + shift].type == value.type:
            yield position, block.arguments[position + shift], value


def materialize_results(block: mlir.Block, copied: Copy) -> None:
    """Materialize the values that a block yields, if it is a loop body, and those of the branches in it.

    Call it for outer blocks before inner ones. `copied` builds a copy of a tensor.
    """
    if is_loop_body(block):
        carry_in_place(block, copied)
    for op in block_ops(block):
        if op.name in BRANCHES:
            materialize_branch_results(op, copied)


def carry_in_place(block: mlir.Block, copied: Copy) -> None:
    """Store yielded tensors into the buffers of the arguments they replace, copying those in another's buffer first."""
    final = block_ops(block)[-1]
    changed = []
    with final.location, mlir.InsertionPoint(final):
        for position, target, value in carried_values(block):
            if not isinstance(value.type, mlir.RankedTensorType) or is_grown_from(value, target):
                continue
            if not lives_in(value, target, block, copied):
                apart = is_in_other_buffer(value, target) or is_read_in_loop(target, value)
                changed.append((position, target, copied(value) if apart else value))
        for position, target, value in changed:
            final.operands[position] = emit.value(_MATERIALIZE, [value, target], value.type)


def is_grown_from(value: mlir.Value, target: mlir.Value) -> bool:
    """True if `value` is `target` after stores into it, also in loops and branches: it is in the same buffer."""
    while value != target:
        owner = defining_op(value)
        grown = stored_over(owner, value) if owner is not None else None
        if owner is None or grown is None:
            return False
        if grown.owner != owner.block and getattr(defining_op(grown), "block", None) != owner.block:
            return False
        value = grown
    return True


def stored_over(op: mlir.Operation, value: mlir.Value) -> mlir.Value | None:
    """The tensor that `op` has stored into to give `value`, if it is not read later; None for any other operation."""
    if op.name in BRANCHES:
        return branch_root(op, list(op.results).index(value))
    if op.name not in ("tensor.insert", "tensor.insert_slice", *SEQUENTIAL_LOOPS):
        return None
    position = 1
    if op.name in SEQUENTIAL_LOOPS:
        position = (3 if op.name == "scf.for" else 0) + list(op.results).index(value)
        if op.name == "scf.while" and not is_passed_in_place(op, position):
            return None
    value = op.operands[position]
    return value if is_read_before(value, op, position) or is_moved_within(value, op) else None


def is_passed_in_place(op: mlir.Operation, position: int) -> bool:
    """True if an aligned scf.while passes a loop-carried array from its condition region in the buffer it came in."""
    before = op.regions[0].blocks[0]
    passed = block_ops(before)[-1].operands[1 + position]
    return position < len(before.arguments) and is_grown_from(passed, before.arguments[position])


def is_moved_within(value: mlir.Value, store: mlir.Operation) -> bool:
    """True if a slice of a tensor is stored into a disjoint slice of it, and all other reads are before.

    Such a slice is copied to its new offsets directly.
    """
    view = defining_op(store.operands[0]) if store.name == "tensor.insert_slice" else None
    if view is None or view.name != "tensor.extract_slice" or view.operands[0] != value:
        return False
    distances = Distances()
    source, target = box_of(view, distances), box_of(store, distances)
    if source is None or target is None or not distances.are_disjoint(source, target):
        return False
    return is_read_before(value, store, 1, but=(view,)) and is_read_before(view.results[0], store, 0)


def branch_root(op: mlir.Operation, number: int) -> mlir.Value | None:
    """The tensor that result `number` of a branch is after stores into it, in all regions; None if there is none."""
    roots = {grown_root(block_ops(region.blocks[0])[-1].operands[number], region.blocks[0]) for region in op.regions}
    root = roots.pop()
    if root is None or roots or not is_near(root, op) or not is_read_before(root, op, nested=True):
        return None
    return root


def is_near(value: mlir.Value, op: mlir.Operation) -> bool:
    """True if a value is defined in the same iteration of all loops as `op`: in its block, or around its branches."""
    owner = defining_op(value)
    home = value.owner if owner is None else owner.block
    block = op.block
    while block != home:
        around = block.owner.operation
        if around.name not in BRANCHES:
            return False
        block = around.block
    return True


def grown_root(value: mlir.Value, block: mlir.Block) -> mlir.Value | None:
    """The tensor from outside of a block that `value` is after stores into it; None for other values."""
    owner = defining_op(value)
    while owner is not None and owner.block == block:
        grown = stored_over(owner, value)
        if grown is None:
            return None
        value = grown
        owner = defining_op(value)
    return value if owner is not None or value.owner != block else None


def is_read_before(
    value: mlir.Value,
    op: mlir.Operation,
    position: int = -1,
    *,
    nested: bool = False,
    but: Sequence[mlir.Operation] = (),
) -> bool:
    """True if every use of a value and of its views is before `op`, or is its operand `position`.

    Uses in the regions of `op` are allowed too if `nested`, and so are those by the operations `but`. Uses in other
    branches of an operation around `op` do not count, as they do not run in the same execution.
    """
    for use in value.uses:
        user = use.owner.operation
        if user in but or (user == op and use.operand_number == position):
            continue
        place = ancestor_in(user, op.block)
        if place is None and may_follow(user, op):
            return False
        if place is not None and not (place.is_before_in_block(op) if place != op else nested):
            return False
        if user.name in CASTED_VIEWS and not is_read_before(user.results[0], op, nested=nested):
            return False
    return True


def may_follow(user: mlir.Operation, op: mlir.Operation) -> bool:
    """True if `user`, which is in no region of the block of `op`, may run after `op`."""
    while op.name != "func.func":
        around = op.parent.operation
        place = ancestor_in(user, around.block) if around.name != "func.func" else None
        if around.name not in BRANCHES:
            return True
        if place is not None:  # in another region of the branch, or before it
            return place != around and not place.is_before_in_block(around)
        op = around
    return True


def lives_in(value: mlir.Value, target: mlir.Value, block: mlir.Block, copied: Copy) -> bool:
    """True if a loop in the block computes `value` in the buffer of its init `target`.

    If the init of that loop is used afterwards, the loop starts from a copy. A loop that starts from an undefined
    tensor starts from `target` instead, which must not be read any more.
    """
    op = defining_op(value)
    if op is None or op.name not in SEQUENTIAL_LOOPS or op.block != block:
        return False
    number = list(op.results).index(value)
    position = number + (3 if op.name == "scf.for" else 0)
    if position >= len(op.operands) or op.operands[position].type != value.type:
        return False
    start = op.operands[position]
    empty = defining_op(start)
    if empty is not None and empty.name == "tensor.empty" and is_read_before(target, op) and start.type == target.type:
        op.operands[position] = target
        return True
    if start != target and not lives_in(start, target, block, copied):
        return False
    if is_read_before(start, op, position):
        return True
    with op.location, mlir.InsertionPoint(op):
        op.operands[position] = copied(start)
    return False


def writes_outs(op: mlir.Operation) -> bool:
    """True if an operation overwrites its last operands, the inits."""
    return (op.name.startswith("linalg.") or op.name in (*SORTS, *LIBRARY_CALLS, *COMPACTIONS)) and bool(op.results)


def grows_from(op: mlir.Operation, result: mlir.Value) -> mlir.Value | None:
    """The operand whose buffer a result takes over; None if there is none."""
    if op.name in ("tensor.insert_slice", "tensor.insert", _MATERIALIZE):
        return op.operands[1]
    if writes_outs(op):
        return op.operands[len(op.operands) - len(op.results) + list(op.results).index(result)]
    return region_start(op, result)


def is_in_other_buffer(value: mlir.Value, target: mlir.Value) -> bool:
    """True if a value may be in the buffer of another block argument than `target`, or in a slice of some buffer.

    Folding may show later that such a slice is one of an argument.
    """
    op = defining_op(value)
    while op is not None:
        if op.name in CASTED_VIEWS:
            return True
        grown = branch_root(op, list(op.results).index(value)) if op.name in BRANCHES else None
        grown = grown or grows_from(op, value)
        if grown is None:
            return False
        value, op = grown, defining_op(grown)
    return bool(value != target)


def is_read_in_loop(target: mlir.Value, value: mlir.Value) -> bool:
    """True if a loop that computes `value` reads `target` as well, so that it cannot be computed in its buffer.

    Upstream's elimination of empty tensors does not look into loops.
    """
    op = defining_op(value)
    while op is not None:
        if op.name in SEQUENTIAL_LOOPS and any(ancestor_in(use.owner.operation, op.block) == op for use in target.uses):
            return True
        grown = grows_from(op, value)
        if grown is None:
            return False
        value, op = grown, defining_op(grown)
    return False


def memories_of(value: mlir.Value) -> set[mlir.Value]:
    """The tensors in whose buffer a value may be: those that stores have turned into it."""

    def before(one: mlir.Value) -> list[mlir.Value]:
        op = defining_op(one)
        if op is None:
            return []
        if op.name in BRANCHES:
            number = list(op.results).index(one)
            return [block_ops(r.blocks[0])[-1].operands[number] for r in op.regions]
        grown = op.operands[0] if op.name in CASTED_VIEWS else grows_from(op, one)
        return [] if grown is None else [grown]

    return {one for one in walk(value, before) if not before(one)}


def region_start(op: mlir.Operation, result: mlir.Value) -> mlir.Value | None:
    """The init, from outside, whose buffer contains the result of a loop or a branch; None for other operations."""
    number = list(op.results).index(result)
    if op.name in SEQUENTIAL_LOOPS:
        return op.operands[number + (3 if op.name == "scf.for" else 0)]
    if op.name not in BRANCHES:
        return None
    for region in op.regions:
        placed = defining_op(block_ops(region.blocks[0])[-1].operands[number])
        if placed is not None and placed.name == _MATERIALIZE:
            return placed.operands[1]
    return None


def materialize_branch_results(op: mlir.Operation, copied: Copy) -> None:
    """Make all branches of an operation write each of their results to the same buffer."""
    targets: dict[int, mlir.Value] = {}
    for number, result in enumerate(op.results):
        if not isinstance(result.type, mlir.RankedTensorType) or branch_root(op, number) is not None:
            continue
        target, user = destination(op, result)
        if target is None:
            with op.location, mlir.InsertionPoint(op):
                # No `tensor.empty`: upstream's elimination would replace it in one of the branches.
                sizes = [] if result.type.has_static_shape else dynamic_sizes(op, number)
                segments = emit.segments(len(sizes), 0, 0)
                target = emit.value(ALLOC, sizes, result.type, operandSegmentSizes=segments)
        if user is not None:
            replace_op(user, result)
        targets[number] = target
    for region in op.regions if targets else ():  # a branch without results may have no block
        materialize_branch(region.blocks[0], targets, copied)


def materialize_branch(block: mlir.Block, targets: dict[int, mlir.Value], copied: Copy) -> None:
    """Write the results of a branch to these buffers. Values from outside are copied before any buffer is written."""
    final = block_ops(block)[-1]
    changed = []
    with final.location, mlir.InsertionPoint(final):
        for number, target in targets.items():
            value = final.operands[number]
            if value == target or lives_in(value, target, block, copied):
                continue
            owner = defining_op(value)
            moved = owner is None or owner.block != block or is_in_other_buffer(value, target)
            changed.append((number, target, copied(value) if moved else value))
        for number, target, value in changed:
            final.operands[number] = emit.value(_MATERIALIZE, [value, target], value.type)


def destination(op: mlir.Operation, result: mlir.Value) -> tuple[mlir.Value | None, mlir.Operation | None]:
    """The tensor that a result is stored into, if it is defined before `op` and not read later; and the store."""
    for use in result.uses:
        user = use.owner.operation
        if user.name != _MATERIALIZE or use.operand_number or user.block != op.block or not user.results:
            continue
        target = user.operands[1]
        owner = defining_op(target)
        if owner is not None and not (owner.block == op.block and owner.is_before_in_block(op)):
            continue
        others = [ancestor_in(other.owner.operation, op.block) for other in target.uses]
        if all(o is None or o in (op, user) or o.is_before_in_block(op) for o in others):
            return target, user  # uses in other branches do not run in the same execution
    return None, None

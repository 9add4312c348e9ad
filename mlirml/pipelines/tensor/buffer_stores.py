"""Buffer stores: a long chain of stores into one tensor is lowered to stores into a buffer.

Before:
    %t1 = tensor.insert %a into %t0[%c0] : tensor<8xf32>
    %b = tensor.extract %t1[%c0] : tensor<8xf32>
    %t2 = tensor.insert_slice %s into %t1[4] [2] [1] : tensor<2xf32> into tensor<8xf32>
    ...
After:
    %m = memref.alloc() : memref<8xf32>
    bufferization.materialize_in_destination %t0 in restrict writable %m : (tensor<8xf32>, memref<8xf32>) -> ()
    memref.store %a, %m[%c0] : memref<8xf32>
    %b = memref.load %m[%c0] : memref<8xf32>
    %r = bufferization.to_buffer %s read_only : tensor<2xf32> to memref<2xf32>
    %v = memref.subview %m[4] [2] [1] : memref<8xf32> to memref<2xf32, strided<[1], offset: 4>>
    memref.copy %r, %v : ...
    ...
    %tn = bufferization.to_tensor %m restrict writable : memref<8xf32> to tensor<8xf32>

A loop that carries a tensor through a long chain uses the buffer from its start to its end:
    %r = scf.for ... iter_args(%t = %t0) { stores and reads of %t }
becomes
    bufferization.materialize_in_destination %t0 in restrict writable %m : ...
    scf.for ... { memref.store ... memref.load ... }
    %r = bufferization.to_tensor %m restrict writable : ...

Stores in the branches of an `scf.if` belong to a chain as well, if both branches yield a version of its tensor.

A structured operation whose only use is such a store computes its result in the buffer, if the stores fill an empty
tensor with disjoint slices: `np.stack` and `np.concatenate` of many values.

Upstream's analysis of such a chain takes cubic time. The chain ends at a tensor with users other than element and slice
extracts before the next store; an extracted slice is copied, since the next store may overwrite it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mlirml.analysis.traits import ELEMENTS, RESHAPES, TENSOR_READS
from mlirml.analysis.values import ancestor_in, has_one_use
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, main_function, mlir, replace_op
from mlirml.passes import Pass, register, run_upstream

_STORES = {"tensor.insert": 1, "tensor.insert_slice": 1}
"""The operand that is the destination of a store."""


@register(when=("tensor.insert",), optional=True)
class BufferStoresPass(Pass):
    """Lower chains of at least `shortest` stores to stores into a buffer; in loops of `shortest_in_loop`."""

    shortest: int = 16
    shortest_in_loop: int = 48

    def run(self, module: mlir.Operation) -> None:
        body = main_function(module).regions[0].blocks[0]
        carried = [
            found
            for loop in block_ops(body)
            if loop.name == "scf.for"
            for position in range(len(loop.results))
            if (found := match_loop(loop, position)) is not None and len(found.stores) >= self.shortest_in_loop
        ]
        for found in carried:
            buffer_loop(found)
        if carried:
            run_upstream(module, "canonicalize")
            body = main_function(module).regions[0].blocks[0]
        order = {op: number for number, op in enumerate(block_ops(body))}
        done: set[mlir.Operation] = set()
        chains = []
        for op in [op for op in order if op.name in _STORES]:
            if op not in done:
                steps = chain(op, order)
                done.update(op for step in steps for op in step.stores)
                chains.append(steps)
        long = [steps for steps in chains if sum(len(step.stores) for step in steps) >= self.shortest]
        branches = any(has_branches(step) for steps in long for step in steps)
        for steps in long:
            buffer_stores(steps, order)
        if branches:
            run_upstream(module, "canonicalize")


@dataclass(frozen=True, eq=False)
class Carried:
    """A tensor that a loop carries: the results that it becomes, of inner loops too, its stores, and its reads."""

    loop: mlir.Operation
    position: int
    results: tuple[mlir.Value, ...]
    stores: tuple[mlir.Operation, ...]
    reads: tuple[mlir.Operation, ...]


@dataclass(frozen=True, eq=False)
class Step:
    """From one version of a tensor to the next, `after`; None at the end of a block, which yields it as `operand`.

    `results` are those of the loop that it goes through, and of others in it.
    """

    after: mlir.Value | None
    operand: int
    results: tuple[mlir.Value, ...] = ()
    stores: tuple[mlir.Operation, ...] = ()
    reads: tuple[mlir.Operation, ...] = ()


def match_loop(loop: mlir.Operation, position: int) -> Carried | None:
    """A loop-carried tensor of which only one version is live at any time; None if several may be."""
    if not isinstance(loop.results[position].type, mlir.RankedTensorType):
        return None
    if not loop.results[position].type.has_static_shape:
        return None
    found = through_loop(loop, position)
    return None if found is None else Carried(loop, position, found.results, found.stores, found.reads)


def follow(current: mlir.Value, body: mlir.Block) -> Step | None:
    """The steps of a tensor through a block to its end, as one; None if it has other uses than such steps."""
    order = {op: number for number, op in enumerate(block_ops(body))}
    steps: list[Step] = []
    while (step := next_step(current, body, order)) is not None:
        steps.append(step)
        if step.after is None:
            return joined(steps)
        current = step.after
    return None


def joined(steps: Sequence[Step]) -> Step:
    """Consecutive steps as one."""
    results, stores, reads = (
        tuple(each for step in steps for each in getattr(step, name)) for name in ("results", "stores", "reads")
    )
    return Step(steps[-1].after, steps[-1].operand, results, stores, reads)


def next_step(current: mlir.Value, body: mlir.Block, order: dict[mlir.Operation, int]) -> Step | None:
    """The step that ends the life of a version of a tensor in a block; None if others may be live with it."""
    consumer: mlir.Operation | None = None
    operand = -1
    readers: list[tuple[mlir.Operation, mlir.Operation]] = []
    for use in current.uses:
        user = use.owner.operation
        around = ancestor_in(user, body)
        if around is None:  # in another branch than this one
            continue
        if user.name in TENSOR_READS and use.operand_number == 0 and is_static(user):
            readers.append((around, user))
        elif consumer is None:
            consumer, operand = around, use.operand_number if around == user else -1
        elif consumer != around or operand >= 0 or around == user:
            return None
    if consumer is None or any(order[around] > order[consumer] for around, _ in readers):
        return None
    within = any(around == consumer for around, _ in readers)
    reads = tuple(reader for around, reader in readers if around != consumer)
    if operand < 0:
        return through_branches(consumer, current, reads) if consumer.name == "scf.if" else None
    if consumer.name == "scf.yield":
        return Step(None, operand, reads=reads)
    if consumer.name in _STORES and operand == _STORES[consumer.name] and is_static(consumer):
        return Step(consumer.results[0], operand, stores=(consumer,), reads=reads)
    if consumer.name != "scf.for" or operand < 3 or within:
        return None
    inner = through_loop(consumer, operand - 3)
    return None if inner is None else joined([Step(None, operand, reads=reads), inner])


def through_loop(loop: mlir.Operation, position: int) -> Step | None:
    """The step through a loop that carries a tensor."""
    body = loop.regions[0].blocks[0]
    found = follow(body.arguments[1 + position], body)
    if found is None or found.operand != position:
        return None
    result = loop.results[position]
    return Step(result, position, (result, *found.results), found.stores, found.reads)


def through_branches(op: mlir.Operation, current: mlir.Value, reads: tuple[mlir.Operation, ...]) -> Step | None:
    """The step through an `scf.if` of which both branches yield a version of a tensor as the same result."""
    steps = [Step(None, -1, reads=reads)]
    for region in op.regions:
        found = follow(current, region.blocks[0]) if len(region.blocks) else None
        if found is None:
            return None
        steps.append(found)
    if steps[1].operand != steps[2].operand:
        return None
    all_of_them = joined(steps)
    after = op.results[all_of_them.operand]
    return Step(after, all_of_them.operand, all_of_them.results, all_of_them.stores, all_of_them.reads)


def buffer_loop(found: Carried) -> None:
    """Lower the stores into a loop-carried tensor to a buffer; the loops then carry the initial tensor, unused."""
    start = found.loop.operands[3 + found.position]
    with found.loop.location, mlir.InsertionPoint(found.loop):
        buffer = new_buffer(start)
    for op in found.reads:
        read(op, buffer)
    for op in found.stores:
        store(op, buffer)
    with found.loop.location, mlir.InsertionPoint.after(found.loop):
        final = as_tensor(buffer, start.type)
    found.results[0].replace_all_uses_with(final)
    carry_unchanged(found.results)
    remove(found.stores)


def carry_unchanged(results: Sequence[mlir.Value]) -> None:
    """Make loops yield the tensors that they carry as these results."""
    for result in results:
        loop = result.owner
        position = mlir.OpResult(result).result_number
        body = loop.regions[0].blocks[0]
        block_ops(body)[-1].operands[position] = body.arguments[1 + position]


def remove(stores: Sequence[mlir.Operation]) -> None:
    """Replace the results of stores by the tensors before them: `scf.if` then yields the same one in both branches."""
    for op in reversed(stores):
        replace_op(op, op.operands[_STORES[op.name]])


def chain(start: mlir.Operation, order: dict[mlir.Operation, int]) -> list[Step]:
    """The steps of the chain that begins with a store, which is the first of them; loops end it."""
    if not is_static(start):
        return []
    steps = [Step(start.results[0], -1, stores=(start,))]
    body = start.block
    while (after := steps[-1].after) is not None:
        step = next_step(after, body, order)
        if step is None or step.results or not step.stores or any(is_inner_slice(op, body) for op in step.reads):
            break
        steps.append(step)
    return steps


def is_inner_slice(read: mlir.Operation, body: mlir.Block) -> bool:
    """True if a read of a slice, which is copied, may be executed more than once."""
    return bool(read.name == "tensor.extract_slice" and read.block != body)


def is_static(op: mlir.Operation) -> bool:
    """True if the position of a store or read is static, or need not be."""
    if op.name in ELEMENTS:
        return True
    source = 1 if op.name == "tensor.extract_slice" else 2
    return len(op.operands) == source


def has_branches(step: Step) -> bool:
    """True if a step goes through an `scf.if`."""
    return step.after is not None and step.after.owner not in step.stores


def buffer_stores(steps: Sequence[Step], order: dict[mlir.Operation, int]) -> None:
    """Lower one chain of stores to stores into a buffer."""
    stores, final = joined(steps).stores, steps[-1].after
    assert final is not None
    start = stores[0].operands[1]
    is_plain = not any(map(has_branches, steps))
    sources = [computed(op) for op in stores] if is_plain and are_apart(stores) else [None] * len(stores)
    begin = min((op for op in sources if op is not None), key=lambda op: order[op], default=stores[0])
    with stores[0].location, mlir.InsertionPoint(begin):
        buffer = new_buffer(start)
    for op in joined(steps).reads:
        read(op, buffer)
    for op, source in zip(stores, sources, strict=True):
        if source is None:
            store(op, buffer)
        else:
            compute_in_place(op, source, buffer)
    with final.owner.location, mlir.InsertionPoint.after(final.owner):
        tensor = as_tensor(buffer, start.type)
    final.replace_all_uses_with(tensor)
    values = [op.operands[0] for op in stores]
    remove(stores)
    for value, source in zip(reversed(values), reversed(sources), strict=True):
        while source is not None and value != source.results[0]:
            reshape = value.owner
            value = reshape.operands[0]
            reshape.erase()


def are_apart(stores: Sequence[mlir.Operation]) -> bool:
    """True if stores fill an empty tensor with disjoint slices in sequence along a dimension, and nothing reads the
    tensor before all of them: they may be executed in any order."""
    start = defining_op(stores[0].operands[1])
    if start is None or start.name != "tensor.empty" or any(op.name != "tensor.insert_slice" for op in stores):
        return False
    if any(len(list(op.results[0].uses)) > 1 for op in stores[:-1]):
        return False
    boxes = [box_of(op) for op in stores]
    for spans in zip(*boxes, strict=True):
        ordered = sorted(spans)
        if all(end <= begin for (_, end), (begin, _) in pairwise(ordered)):
            return True
    return False


def box_of(op: mlir.Operation) -> list[tuple[int, int]]:
    """For each dimension the first index that an insert_slice covers, and the one after the last."""
    offsets, sizes, steps = (list(op.attributes[name]) for name in ("static_offsets", "static_sizes", "static_strides"))
    return [(o, o + (n - 1) * s + 1) for o, n, s in zip(offsets, sizes, steps, strict=True)]


def computed(op: mlir.Operation) -> mlir.Operation | None:
    """The structured operation whose only result is the stored slice, of which it writes each element.

    Dimensions of size 1 may have been added to its result.
    """
    value = op.operands[0]
    while (owner := defining_op(value)) is not None and owner.block == op.block and has_one_use(value):
        if owner.name == "linalg.generic":
            init = defining_op(owner.operands[len(owner.operands) - 1])
            is_whole = len(owner.results) == 1 and init is not None and init.name == "tensor.empty"
            return owner if is_whole and is_part(owner.results[0].type.shape, op.attributes["static_sizes"]) else None
        if owner.name not in RESHAPES:
            return None
        value = owner.operands[0]
    return None


def is_part(shape: Sequence[int], sizes: Sequence[int]) -> bool:
    """True if a shape is that of a slice, some dimensions of size 1 dropped."""
    left = list(shape)
    for size in reversed(list(sizes)):
        if left and left[-1] == size:
            left.pop()
        elif size != 1:
            return False
    return not left


def compute_in_place(op: mlir.Operation, source: mlir.Operation, buffer: mlir.Value) -> None:
    """Make an operation compute its result directly in its slice of the buffer."""
    result = source.results[0]
    with op.location, mlir.InsertionPoint(source):
        part = subview(op, buffer, result.type.shape)
        source.operands[len(source.operands) - 1] = as_tensor(part, result.type)
    with op.location, mlir.InsertionPoint.after(source):
        flags = {"restrict": mlir.UnitAttr.get(), "writable": mlir.UnitAttr.get()}
        emit.create("bufferization.materialize_in_destination", [result, part], (), flags)


def new_buffer(start: mlir.Value) -> mlir.Value:
    """A buffer initialized with a tensor."""
    kind = mlir.MemRefType.get(start.type.shape, start.type.element_type)
    attributes = {"alignment": emit.i64(64), "operandSegmentSizes": emit.segments(0, 0)}
    buffer = emit.create("memref.alloc", (), [kind], attributes).results[0]
    owner = defining_op(start)
    if owner is None or owner.name != "tensor.empty":
        flags = {"restrict": mlir.UnitAttr.get(), "writable": mlir.UnitAttr.get()}
        emit.create("bufferization.materialize_in_destination", [start, buffer], (), flags)
    return buffer


def as_tensor(buffer: mlir.Value, tensor_type: mlir.Type) -> mlir.Value:
    """The contents of a buffer, to which nothing is stored any more, as a tensor."""
    flags = {"restrict": mlir.UnitAttr.get(), "writable": mlir.UnitAttr.get()}
    return emit.create("bufferization.to_tensor", [buffer], [tensor_type], flags).results[0]


def store(op: mlir.Operation, buffer: mlir.Value) -> None:
    """Lower a store of an element or a slice to the buffer."""
    with op.location, mlir.InsertionPoint(op):
        if op.name == "tensor.insert":
            emit.create("memref.store", [op.operands[0], buffer, *list(op.operands)[2:]])
            return
        source = op.operands[0]
        flat = mlir.MemRefType.get(source.type.shape, source.type.element_type)
        memory = emit.value("bufferization.to_buffer", [source], flat, read_only=mlir.UnitAttr.get())
        emit.create("memref.copy", [memory, subview(op, buffer, source.type.shape)])


def read(op: mlir.Operation, buffer: mlir.Value) -> None:
    """Lower a read of an element or a slice to the buffer."""
    result = op.results[0]
    with op.location, mlir.InsertionPoint(op):
        if op.name == "tensor.extract":
            new = emit.value("memref.load", [buffer, *list(op.operands)[1:]], result.type)
        else:
            attributes = {"alignment": emit.i64(64), "operandSegmentSizes": emit.segments(0, 0)}
            kind = mlir.MemRefType.get(result.type.shape, result.type.element_type)
            own = emit.create("memref.alloc", (), [kind], attributes).results[0]
            emit.create("memref.copy", [subview(op, buffer, result.type.shape), own])
            new = as_tensor(own, result.type)
    result.replace_all_uses_with(new)
    op.erase()


def subview(op: mlir.Operation, buffer: mlir.Value, shape: Sequence[int]) -> mlir.Value:
    """The subview of the buffer for a slice operation, without the dimensions of size 1 that `shape` lacks."""
    offsets, sizes, steps = (list(op.attributes[name]) for name in ("static_offsets", "static_sizes", "static_strides"))
    strides, _ = buffer.type.get_strides_and_offset()
    offset = sum(a * b for a, b in zip(offsets, strides, strict=True))
    kept, left = [], list(shape)
    for size, step, stride in reversed(list(zip(sizes, steps, strides, strict=True))):
        if left and left[-1] == size:
            left.pop()
            kept.append(step * stride)
    layout = mlir.StridedLayoutAttr.get(offset, kept[::-1])
    kind = mlir.MemRefType.get(list(shape), buffer.type.element_type, layout)
    return emit.slice_op("memref.subview", [buffer], kind, offsets, sizes, steps)

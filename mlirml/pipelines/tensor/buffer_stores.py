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
from mlirml.ir.bindings import block_ops, defining_op, main_function, mlir
from mlirml.passes import Pass, register, run_upstream

_STORES = {"tensor.insert": 1, "tensor.insert_slice": 1}
"""The operand that is the destination of a store."""


@register(when=("tensor.insert",), optional=True)
@dataclass(frozen=True)
class BufferStoresPass(Pass):
    """Lower chains of at least `shortest` stores to stores into a buffer; in loops of `shortest_in_loop`."""

    name = "mlirml-buffer-stores"
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
        ops = block_ops(body)
        position = {result: number for number, op in enumerate(ops) for result in op.results}
        done: set[int] = set()
        chains = []
        for number in [n for n, op in enumerate(ops) if op.name in _STORES]:
            if number not in done:
                numbers = chain(ops, number, position)
                done.update(numbers)
                chains.append([ops[n] for n in numbers])
        for stores in chains:
            if len(stores) >= self.shortest:
                buffer_stores(stores, position)


@dataclass(frozen=True, eq=False)
class Carried:
    """A tensor that loops carry from `start` on: the loop results that it becomes, its stores, and its reads."""

    loop: mlir.Operation
    start: mlir.Value
    results: tuple[mlir.Value, ...]
    stores: tuple[mlir.Operation, ...]
    reads: tuple[mlir.Operation, ...]


def match_loop(loop: mlir.Operation, position: int) -> Carried | None:
    """A loop-carried tensor of which only one version is live at any time; None if several may be."""
    results: list[mlir.Value] = []
    stores: list[mlir.Operation] = []
    reads: list[mlir.Operation] = []
    if not isinstance(loop.results[position].type, mlir.RankedTensorType):
        return None
    if not loop.results[position].type.has_static_shape or not follow(loop, position, results, stores, reads):
        return None
    return Carried(loop, loop.operands[3 + position], tuple(results), tuple(stores), tuple(reads))


def follow(
    loop: mlir.Operation,
    position: int,
    results: list[mlir.Value],
    stores: list[mlir.Operation],
    reads: list[mlir.Operation],
) -> bool:
    """Collect the stores and reads of a loop-carried tensor; False if it has other uses."""
    body = loop.regions[0].blocks[0]
    order = {op: number for number, op in enumerate(block_ops(body))}
    current = body.arguments[1 + position]
    results.append(loop.results[position])
    while True:
        consumer: mlir.Operation | None = None
        readers = []
        for use in current.uses:
            user = use.owner.operation
            if user.name in TENSOR_READS and use.operand_number == 0 and is_static(user):
                readers.append(user)
            elif consumer is None and user.block == body:
                consumer, operand = user, use.operand_number
            else:
                return False
        if consumer is None:
            return False
        placed = [ancestor_in(reader, body) for reader in readers]
        if any(place is None or order[place] > order[consumer] for place in placed):
            return False
        reads += readers
        if consumer.name == "scf.yield":
            return bool(operand == position)
        if consumer.name in _STORES and operand == _STORES[consumer.name] and is_static(consumer):
            stores.append(consumer)
            current = consumer.results[0]
        elif consumer.name == "scf.for" and operand >= 3:
            if any(place == consumer for place in placed) or not follow(consumer, operand - 3, results, stores, reads):
                return False
            current = consumer.results[operand - 3]
        else:
            return False


def buffer_loop(found: Carried) -> None:
    """Lower the stores into a loop-carried tensor to a buffer; the loops then carry the initial tensor, unused."""
    with found.loop.location, mlir.InsertionPoint(found.loop):
        buffer = new_buffer(found.start)
    for op in found.reads:
        read(op, buffer)
    for op in found.stores:
        store(op, buffer)
    with found.loop.location, mlir.InsertionPoint.after(found.loop):
        final = as_tensor(buffer, found.start.type)
    found.results[0].replace_all_uses_with(final)
    for result in found.results:
        loop = result.owner
        position = mlir.OpResult(result).result_number
        body = loop.regions[0].blocks[0]
        block_ops(body)[-1].operands[position] = body.arguments[1 + position]
    for op in reversed(found.stores):
        op.results[0].replace_all_uses_with(op.operands[_STORES[op.name]])
        op.erase()


def chain(ops: Sequence[mlir.Operation], start: int, position: dict[mlir.Value, int]) -> list[int]:
    """The indices of the stores of the chain from `start` on."""
    stores: list[int] = []
    number: int | None = start
    while number is not None and is_static(ops[number]):
        stores.append(number)
        number = next_store(ops, ops[number], position)
    return stores


def is_static(op: mlir.Operation) -> bool:
    """True if the position of a store or read is static, or need not be."""
    if op.name in ELEMENTS:
        return True
    source = 1 if op.name == "tensor.extract_slice" else 2
    return len(op.operands) == source


def next_store(ops: Sequence[mlir.Operation], op: mlir.Operation, position: dict[mlir.Value, int]) -> int | None:
    """The one store into the result of `op`, if all its other users are reads before it; else None."""
    following: int | None = None
    reads = []
    for use in op.results[0].uses:
        user = use.owner.operation
        if user.block != op.block or user.name not in (*_STORES, *TENSOR_READS):
            return None
        number = position[user.results[0]]
        if user.name in _STORES and use.operand_number == _STORES[user.name]:
            if following is not None:
                return None
            following = number
        elif user.name in TENSOR_READS and use.operand_number == 0 and is_static(user):
            reads.append(number)
        else:
            return None
    if following is None or any(number > following for number in reads):
        return None
    return following


def buffer_stores(stores: Sequence[mlir.Operation], position: dict[mlir.Value, int]) -> None:
    """Lower one chain of stores to stores into a buffer."""
    first, last = stores[0], stores[-1]
    start = first.operands[1]
    sources = [computed(op) for op in stores] if are_apart(stores) else [None] * len(stores)
    begin = min((op for op in sources if op is not None), key=lambda op: position[op.results[0]], default=first)
    with first.location, mlir.InsertionPoint(begin):
        buffer = new_buffer(start)
    for op in stores:
        if op != last:
            for use in list(op.results[0].uses):
                user = use.owner.operation
                if user.name in TENSOR_READS and user not in stores:
                    read(user, buffer)
    for op, source in zip(stores, sources, strict=True):
        if source is None:
            store(op, buffer)
        else:
            compute_in_place(op, source, buffer)
    with last.location, mlir.InsertionPoint.after(last):
        final = as_tensor(buffer, start.type)
    last.results[0].replace_all_uses_with(final)
    for op, source in zip(reversed(stores), reversed(sources), strict=True):
        value = op.operands[0]
        op.erase()
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

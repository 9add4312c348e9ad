"""Buffer stores: a long chain of stores into one tensor becomes stores into a buffer.

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

A loop that carries a tensor through a long chain has the buffer from its start to its end:
    %r = scf.for ... iter_args(%t = %t0) { stores and reads of %t }
becomes
    bufferization.materialize_in_destination %t0 in restrict writable %m : ...
    scf.for ... { memref.store ... memref.load ... }
    %r = bufferization.to_tensor %m restrict writable : ...

What computes a slice for the sake of such a store alone computes it in the buffer, where the stores fill an empty
tensor in slices that do not overlap: `np.stack` and `np.concatenate` of many values.

Upstream's analysis of such a chain takes cubic time. A tensor of the chain that is read by anything but extracts of
elements and slices before the next store ends the chain; a slice that is read is copied, since what is stored next
may lie where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mlirml.analysis.values import place_in
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, main_function, mlir
from mlirml.passes import Pass, register, run_upstream
from mlirml.pipelines.bufferize.inits import has_one_use

_STORES = {"tensor.insert": 1, "tensor.insert_slice": 1}
"""Which operand a store stores into."""
_READS = ("tensor.extract", "tensor.extract_slice")


@register
@dataclass(frozen=True)
class BufferStoresPass(Pass):
    """Do chains of at least `shortest` stores in a buffer; in loops of `shortest_in_loop`."""

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
    """A tensor that loops carry from `start` on: their results that it is, what stores into it, and what reads it."""

    loop: mlir.Operation
    start: mlir.Value
    results: tuple[mlir.Value, ...]
    stores: tuple[mlir.Operation, ...]
    reads: tuple[mlir.Operation, ...]


def match_loop(loop: mlir.Operation, position: int) -> Carried | None:
    """A tensor that a loop carries, if there is one of it at each place; None where there may be two."""
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
    """Collect what becomes of a tensor in a loop; False where it is used in another way."""
    body = loop.regions[0].blocks[0]
    order = {op: number for number, op in enumerate(block_ops(body))}
    current = body.arguments[1 + position]
    results.append(loop.results[position])
    while True:
        consumer: mlir.Operation | None = None
        readers = []
        for use in current.uses:
            user = use.owner.operation
            if user.name in _READS and use.operand_number == 0 and is_static(user):
                readers.append(user)
            elif consumer is None and user.block == body:
                consumer, operand = user, use.operand_number
            else:
                return False
        if consumer is None:
            return False
        placed = [place_in(reader, body) for reader in readers]
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
    """Do what loops store into a tensor that they carry in a buffer; they carry the first tensor on, for nothing."""
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
    """The numbers of the stores that follow each other from `start` on."""
    stores: list[int] = []
    number: int | None = start
    while number is not None and is_static(ops[number]):
        stores.append(number)
        number = next_store(ops, ops[number], position)
    return stores


def is_static(op: mlir.Operation) -> bool:
    """True if the place of a store or read is known, as far as it has to be."""
    if op.name in ("tensor.insert", "tensor.extract"):
        return True
    source = 1 if op.name == "tensor.extract_slice" else 2
    return len(op.operands) == source


def next_store(ops: Sequence[mlir.Operation], op: mlir.Operation, position: dict[mlir.Value, int]) -> int | None:
    """The one store that goes on from the result of `op`, if everything else reads in front of it; else None."""
    following: int | None = None
    reads = []
    for use in op.results[0].uses:
        user = use.owner.operation
        if user.block != op.block or user.name not in (*_STORES, *_READS):
            return None
        number = position[user.results[0]]
        if user.name in _STORES and use.operand_number == _STORES[user.name]:
            if following is not None:
                return None
            following = number
        elif user.name in _READS and use.operand_number == 0 and is_static(user):
            reads.append(number)
        else:
            return None
    if following is None or any(number > following for number in reads):
        return None
    return following


def buffer_stores(stores: Sequence[mlir.Operation], position: dict[mlir.Value, int]) -> None:
    """Do one chain of stores in a buffer."""
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
                if user.name in _READS and user not in stores:
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
    """True if stores fill an empty tensor with slices that have no element in common, one after the other along a
    dimension, and nothing reads the tensor before all of them: they may be made in any order."""
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
    """For each dimension the first index that a store of a slice covers, and the one after the last."""
    offsets, sizes, steps = (list(op.attributes[name]) for name in ("static_offsets", "static_sizes", "static_strides"))
    return [(o, o + (n - 1) * s + 1) for o, n, s in zip(offsets, sizes, steps, strict=True)]


def computed(op: mlir.Operation) -> mlir.Operation | None:
    """The structured operation that computes nothing but the slice that is stored, of which it writes each element.

    Dimensions of size 1 may have been added to its result.
    """
    value = op.operands[0]
    while (owner := defining_op(value)) is not None and owner.block == op.block and has_one_use(value):
        if owner.name == "linalg.generic":
            init = defining_op(owner.operands[len(owner.operands) - 1])
            is_whole = len(owner.results) == 1 and init is not None and init.name == "tensor.empty"
            return owner if is_whole and is_part(owner.results[0].type.shape, op.attributes["static_sizes"]) else None
        if owner.name not in ("tensor.expand_shape", "tensor.collapse_shape"):
            return None
        value = owner.operands[0]
    return None


def is_part(shape: Sequence[int], sizes: Sequence[int]) -> bool:
    """True if a shape is one of a slice without dimensions of size 1."""
    left = list(shape)
    for size in reversed(list(sizes)):
        if left and left[-1] == size:
            left.pop()
        elif size != 1:
            return False
    return not left


def compute_in_place(op: mlir.Operation, source: mlir.Operation, buffer: mlir.Value) -> None:
    """Let an operation compute a slice in the buffer that it would be stored into."""
    result = source.results[0]
    with op.location, mlir.InsertionPoint(source):
        part = subview(op, buffer, result.type.shape)
        source.operands[len(source.operands) - 1] = as_tensor(part, result.type)
    with op.location, mlir.InsertionPoint.after(source):
        flags = {"restrict": mlir.UnitAttr.get(), "writable": mlir.UnitAttr.get()}
        emit.create("bufferization.materialize_in_destination", [result, part], (), flags)


def new_buffer(start: mlir.Value) -> mlir.Value:
    """A buffer that holds a tensor."""
    kind = mlir.MemRefType.get(start.type.shape, start.type.element_type)
    attributes = {"alignment": emit.i64(64), "operandSegmentSizes": emit.segments(0, 0)}
    buffer = emit.create("memref.alloc", (), [kind], attributes).results[0]
    owner = defining_op(start)
    if owner is None or owner.name != "tensor.empty":
        flags = {"restrict": mlir.UnitAttr.get(), "writable": mlir.UnitAttr.get()}
        emit.create("bufferization.materialize_in_destination", [start, buffer], (), flags)
    return buffer


def as_tensor(buffer: mlir.Value, kind: mlir.Type) -> mlir.Value:
    """What a buffer holds, which nothing stores into any more."""
    flags = {"restrict": mlir.UnitAttr.get(), "writable": mlir.UnitAttr.get()}
    return emit.create("bufferization.to_tensor", [buffer], [kind], flags).results[0]


def store(op: mlir.Operation, buffer: mlir.Value) -> None:
    """Store an element or a slice."""
    with op.location, mlir.InsertionPoint(op):
        if op.name == "tensor.insert":
            emit.create("memref.store", [op.operands[0], buffer, *list(op.operands)[2:]])
            return
        source = op.operands[0]
        flat = mlir.MemRefType.get(source.type.shape, source.type.element_type)
        memory = emit.value("bufferization.to_buffer", [source], flat, read_only=mlir.UnitAttr.get())
        emit.create("memref.copy", [memory, subview(op, buffer, source.type.shape)])


def read(op: mlir.Operation, buffer: mlir.Value) -> None:
    """Read an element or a slice."""
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
    """The part of the buffer that a slice operation names, without the dimensions of size 1 that `shape` lacks."""
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
    attributes = {
        "static_offsets": mlir.DenseI64ArrayAttr.get(offsets),
        "static_sizes": mlir.DenseI64ArrayAttr.get(sizes),
        "static_strides": mlir.DenseI64ArrayAttr.get(steps),
        "operandSegmentSizes": emit.segments(1, 0, 0, 0),
    }
    return emit.create("memref.subview", [buffer], [kind], attributes).results[0]

"""The results of @main become out-parameters: each result is computed in its out-parameter, or copied there at the end.

The out-parameter of a result that replaces an argument contains that argument when the program starts; the argument is
read from there.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.traits import BRANCHES, RESHAPES, TENSOR_VIEWS
from mlirml.analysis.values import has_one_use
from mlirml.dialects.mlirml import HOST_INPUTS
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations, set_function_type
from mlirml.pipelines.bufferize.destinations import ALLOC, branch_root, grows_from, is_grown_from, memories_of
from mlirml.pipelines.bufferize.inits import copied, init_positions

_UNSPLIT = 256
"""Programs of more operations may be split into functions, and a failed check returns only from its own function."""


def written_arguments(main: mlir.Operation) -> dict[int, int]:
    """For each result that replaces an argument of @main: the argument, by the index of the result.

    Empty if a check may fail after a store, such as a check in a loop: a call that fails must leave its arguments
    unchanged, except for donated ones. Without arguments that the host reads: their results are in device memory.
    """
    if "mlirml.writebacks" not in main.attributes:
        return {}
    numbers = list(main.attributes["mlirml.writebacks"])
    del main.attributes["mlirml.writebacks"]
    on_host = list(main.attributes[HOST_INPUTS]) if HOST_INPUTS in main.attributes else []
    written = {n: argument for n, argument in zip(numbers[::2], numbers[1::2], strict=True) if argument not in on_host}
    given: Sequence[int] = ()
    if "mlirml.donated" in main.attributes:
        given = list(main.attributes["mlirml.donated"])
        del main.attributes["mlirml.donated"]
    donated = {number: argument for number, argument in written.items() if argument in given}
    ops = list(operations(main))
    checks = [op for op in ops if op.name == "cf.assert"]
    if checks and (len(ops) > _UNSPLIT or any(op.parent != main for op in checks)):
        return donated
    final = block_ops(main.regions[0].blocks[0])[-1]
    computed = {op for op in move_to_front(main, checks) if computes_tensor(op)}
    if computed and computed & slice_of([final.operands[number] for number in written]):
        return donated  # the checked value may be computed in the argument's memory
    return written


def move_to_front(main: mlir.Operation, checks: Sequence[mlir.Operation]) -> set[mlir.Operation]:
    """Move top-level checks, and the operations they depend on, to the start of @main; returns these operations."""
    needed = slice_of([check.operands[0] for check in checks])
    moved = needed.union(checks)
    ops = block_ops(main.regions[0].blocks[0])
    first = next(op for op in ops if op not in moved)
    for op in ops:
        if op in moved:
            op.move_before(first)
    return needed


def slice_of(values: Sequence[mlir.Value]) -> set[mlir.Operation]:
    """The backward slice: top-level operations of @main that values depend on, also by captures of their regions."""
    found: set[mlir.Operation] = set()
    todo = [op for value in values if (op := defining_op(value)) is not None]
    while todo:
        op = todo.pop()
        if op in found:
            continue
        found.add(op)
        for inner in (op, *operations(op)) if op.regions else (op,):
            todo += [
                made for value in inner.operands if (made := defining_op(value)) is not None and not is_in(made, op)
            ]
    return found


def is_in(op: mlir.Operation, outer: mlir.Operation) -> bool:
    """True if `op` is nested in `outer`."""
    parent = op.parent
    while parent is not None and parent.operation != outer:
        parent = parent.operation.parent
    return parent is not None


def computes_tensor(op: mlir.Operation) -> bool:
    """True if an operation writes to memory."""
    tensors = any(isinstance(result.type, mlir.RankedTensorType) for result in op.results)
    return tensors and op.name not in (*TENSOR_VIEWS, "tensor.empty", "arith.constant")


def stores_of(main: mlir.Operation, written: dict[int, int]) -> list[mlir.Operation]:
    """The insert_slice operations between a written argument and its new value."""
    body = main.regions[0].blocks[0]
    final, stores = block_ops(body)[-1], []
    for number, argument in written.items():
        stores += stores_between(body.arguments[argument], final.operands[number]) or []
    return stores


def stores_between(start: mlir.Value, value: mlir.Value) -> list[mlir.Operation] | None:
    """The stores that lead from `start` to `value`, those in branches too; None if there are other operations."""
    chain: list[mlir.Operation] = []
    while value != start:
        op = defining_op(value)
        stored = stored_tensor(op, value) if op is not None else None
        if op is None or stored is None:
            return None
        chain.append(op)
        if op.name in BRANCHES:
            number = list(op.results).index(value)
            for region in op.regions:
                chain += stores_between(stored, block_ops(region.blocks[0])[-1].operands[number]) or []
        value = stored
    return chain


def stored_tensor(op: mlir.Operation, value: mlir.Value) -> mlir.Value | None:
    """The tensor that `op` has stored into, or reshaped, to give `value`; None for any other operation."""
    if op.name == "scf.for":
        number, body = list(op.results).index(value), op.regions[0].blocks[0]
        stored = is_grown_from(block_ops(body)[-1].operands[number], body.arguments[1 + number])
        return op.operands[3 + number] if stored else None
    if op.name in BRANCHES:
        return branch_root(op, list(op.results).index(value))
    place = {
        "tensor.insert": 1, "tensor.insert_slice": 1, "tensor.expand_shape": 0, "tensor.collapse_shape": 0,
    }.get(op.name)  # fmt: skip
    return None if place is None else op.operands[place]


def add_out_parameters(main: mlir.Operation, written: dict[int, int]) -> None:
    """Turn the inputs into read-only memrefs, and the results into memrefs that the function writes."""
    body = main.regions[0].blocks[0]
    inputs, final = [a.type for a in body.arguments], block_ops(body)[-1]
    outputs = [v.type for v in final.operands]
    place = {argument: number for number, argument in written.items()}
    with main.location, mlir.InsertionPoint.at_block_begin(body):
        destinations = [body.add_argument(memref_type(kind), final.location) for kind in outputs]
        tensors = []
        for number, (argument, kind) in enumerate(zip(list(body.arguments), inputs)):
            argument.set_type(memref_type(kind))
            flags = {"restrict": mlir.UnitAttr.get()}
            if number in place:
                flags["writable"] = mlir.UnitAttr.get()
            memory = destinations[place[number]] if number in place else argument
            tensor = emit.value("bufferization.to_tensor", [memory], kind, **flags)
            argument.replace_all_uses_except(tensor, tensor.owner.operation)
            tensors.append(tensor)
    results = list(final.operands)
    with final.location:
        for number, (result, destination) in enumerate(zip(results, destinations, strict=True)):
            if number not in written:
                # A returned argument is copied first, because its memory may be overwritten.
                early = last_view(result, tensors)
                with mlir.InsertionPoint.after(early) if early else mlir.InsertionPoint(final):
                    store_result(result, destination, body)
        with mlir.InsertionPoint(final):
            stored = [(n, store_into_argument(results[n], tensors[i], tensors)) for n, i in written.items()]
            for number, value in stored:
                materialize(value, destinations[number])
            emit.create("func.return")
    final.erase()
    set_function_type(main)
    with main.context:
        for name, types in (("mlirml.inputs", inputs), ("mlirml.outputs", outputs)):
            main.attributes[name] = mlir.ArrayAttr.get([mlir.TypeAttr.get(type_) for type_ in types])
        if written:
            main.attributes["mlirml.in_place"] = mlir.DenseI64ArrayAttr.get(sorted(written))


def store_result(result: mlir.Value, destination: mlir.Value, body: mlir.Block) -> None:
    """Materialize a result in its out-parameter."""
    parts = disjoint_parts(result)
    for insert in parts:
        store_part(insert, destination, body)
    if parts:
        return
    result, destination = without_reshapes(result, destination, body)
    materialize(result, destination, alone=not grow_from_destination(result, destination))


def disjoint_parts(result: mlir.Value) -> list[mlir.Operation]:
    """The two stores that combine a complex result from its real and imaginary parts; none for another result."""
    second = defining_op(result)
    first = defining_op(second.operands[1]) if second is not None and second.name == "tensor.insert_slice" else None
    if second is None or first is None or first.name != "tensor.insert_slice" or not has_one_use(first.results[0]):
        return []
    base = defining_op(first.operands[1])
    if base is None or base.name != "tensor.empty" or not result.type.shape or result.type.shape[-1] != 2:
        return []
    rank = len(result.type.shape)
    for number, op in enumerate((first, second)):
        offsets, sizes, strides = (list(op.attributes[f"static_{name}"]) for name in ("offsets", "sizes", "strides"))
        whole = [*result.type.shape[:-1], 1]
        if (offsets, sizes, strides) != ([0] * (rank - 1) + [number], whole, [1] * rank):
            return []
    return [first, second]


def store_part(insert: mlir.Operation, destination: mlir.Value, body: mlir.Block) -> None:
    """Materialize one part of a complex result in its slice, so that one loop can compute both there."""
    source = insert.operands[0]
    shape = list(source.type.shape)
    strides, _ = destination.type.get_strides_and_offset()
    kept: list[int] = []  # the source may lack dimensions of size 1
    for stride, size in zip(strides, insert.attributes["static_sizes"]):
        if len(kept) < len(shape) and size == shape[len(kept)]:
            kept.append(stride)
    layout = mlir.StridedLayoutAttr.get(insert.attributes["static_offsets"][len(strides) - 1], kept)
    kind = mlir.MemRefType.get(shape, source.type.element_type, layout)
    attributes = {name: insert.attributes[name] for name in ("static_offsets", "static_sizes", "static_strides")}
    attributes["operandSegmentSizes"] = emit.segments(1, 0, 0, 0)
    with mlir.InsertionPoint.at_block_begin(body):
        part = emit.create("memref.subview", [destination], [kind], attributes).results[0]
    materialize(source, part, alone=not grow_from_destination(source, part))


def last_view(result: mlir.Value, tensors: Sequence[mlir.Value]) -> mlir.Operation | None:
    """The operation that defines a result that is an argument or a view of one; None for other results."""
    op = made = defining_op(result)
    while op is not None and op.name in TENSOR_VIEWS:
        op = defining_op(op.operands[0])
    if op is None or op.results[0] not in tensors:
        return None
    return made if made != op else defining_op(tensors[-1])


def store_into_argument(result: mlir.Value, argument: mlir.Value, tensors: Sequence[mlir.Value]) -> mlir.Value:
    """The tensor that is computed in the argument's memory, unless the old contents are still read.

    Results in the memory of another argument are copied as soon as they are defined, before they may be overwritten.
    """
    if result == argument or 0 in result.type.shape:
        return result
    early = last_view(result, tensors)
    if early is None and (is_written(result) or memories_of(result) & {t for t in tensors if t != argument}):
        early = defining_op(result)
    if early is not None:
        with mlir.InsertionPoint.after(early):
            result = copied(result)
    return emit.insert_slice(result, argument, [0] * result.type.rank)


def is_written(value: mlir.Value) -> bool:
    """True if an operation overwrites a value or a view of it."""
    for use in value.uses:
        user = use.owner.operation
        if use.operand_number in init_positions(user) or (user.regions and not user.name.startswith("linalg.")):
            return True
        if user.name in TENSOR_VIEWS and is_written(user.results[0]):
            return True
    return False


def materialize(value: mlir.Value, memory: mlir.Value, *, alone: bool = False) -> None:
    """Materialize a tensor in a buffer; `alone` states that no other tensor is in the buffer."""
    flags = {"writable": mlir.UnitAttr.get()}
    if alone:
        flags["restrict"] = mlir.UnitAttr.get()
    emit.create("bufferization.materialize_in_destination", [value, memory], (), flags)


def grow_from_destination(result: mlir.Value, destination: mlir.Value) -> bool:
    """Replace the empty tensor that a result grows from by the destination; False if there is none.

    Upstream's elimination does the same, but keeps slices that were extracted from the empty tensor before. The buffer
    of `mlirml-buffer-stores` is replaced by the destination too.
    """
    op = defining_op(result)
    if op is not None and op.name == "bufferization.to_tensor":
        buffer = op.operands[0]
        made = defining_op(buffer)
        if made is None or made.name != "memref.alloc" or buffer.type != destination.type:
            return False
        buffer.replace_all_uses_with(destination)
        made.erase()
        return True
    while op is not None and op.name not in ("tensor.empty", ALLOC):
        grown = grows_from(op, result)
        # A later result may be this value: the destination would be overwritten before the value is copied.
        if grown is None or is_returned(grown):
            return False
        result = grown
        op = defining_op(result)
    made = defining_op(destination)
    body = destination.owner if made is None else made.block
    if op is None or op.block != body:
        return False
    flags = {"restrict": mlir.UnitAttr.get(), "writable": mlir.UnitAttr.get()}
    with op.location, mlir.InsertionPoint.at_block_begin(body):
        to_tensor = emit.create("bufferization.to_tensor", [destination], [result.type], flags)
    if made is not None:
        to_tensor.move_after(made)
    result.replace_all_uses_with(to_tensor.results[0])
    return True


def is_returned(value: mlir.Value, *, is_whole: bool = False) -> bool:
    """True if a value, a view of it, or a tensor that contains it, is a result of @main.

    Complex results are combined from their parts. With `is_whole` only stores into the value itself count.
    """
    for use in value.uses:
        user = use.owner.operation
        if user.name in ("func.return", "bufferization.materialize_in_destination"):
            return True
        if user.name in TENSOR_VIEWS and is_returned(user.results[0], is_whole=is_whole):
            return True
        leads_on = user.name == "tensor.insert_slice" and (is_whole or use.operand_number == 0)
        if leads_on and is_returned(user.results[0], is_whole=True):
            return True
    return False


def without_reshapes(result: mlir.Value, destination: mlir.Value, body: mlir.Block) -> tuple[mlir.Value, mlir.Value]:
    """Reshape the destination instead of the result, so that the result's producer can write to it."""
    op = defining_op(result)
    while op is not None and op.name in RESHAPES and has_one_use(result):
        source = op.operands[0]
        kind = memref_type(source.type)
        if op.name == "tensor.collapse_shape" and not source.type.has_static_shape:
            break  # the sizes of the destination are not known at the start of the function
        attributes = {"reassociation": op.attributes["reassociation"]}
        name = "memref.collapse_shape"
        if op.name == "tensor.collapse_shape":
            name = "memref.expand_shape"
            attributes["static_output_shape"] = mlir.DenseI64ArrayAttr.get(list(source.type.shape))
        with mlir.InsertionPoint.at_block_begin(body):
            reshape = emit.create(name, [destination], [kind], attributes)
        previous = defining_op(destination)
        if previous is not None:
            reshape.move_after(previous)
        result, destination, op = source, reshape.results[0], defining_op(source)
    return result, destination


def memref_type(tensor: mlir.Type) -> mlir.Type:
    """The memref type, with identity layout, of a tensor type."""
    shaped = mlir.ShapedType(tensor)
    return mlir.MemRefType.get(shaped.shape, shaped.element_type)

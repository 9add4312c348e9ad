"""Bufferize: tensors become memrefs, and the results of @main become out-parameters written in place.

Before:
    func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      %r = linalg.generic {...} ins(%a) outs(%e) {...}
      return %r
    }
After:
    func.func @main(%a: memref<4xf32>, %out: memref<4xf32>)
        attributes {mlirml.inputs = [tensor<4xf32>], mlirml.outputs = [tensor<4xf32>]} {
      linalg.generic {...} ins(%a) outs(%out) {...}
      return
    }

The out-parameters are made before upstream's analysis runs, by `bufferization.materialize_in_destination`: empty-tensor
elimination then computes every result where it belongs, and a returned argument, or one value returned twice, is
copied. Inputs are never written: for a result that goes back into the memory of an argument (`mlirml.writebacks`) the
out-parameter holds that argument when the program starts, and what is read of the argument is read there
(`mlirml.in_place`).
"""  # fmt: skip

from __future__ import annotations

from collections.abc import Sequence

from mlirml.dataclass import dataclass
from mlirml.dialects import emit
from mlirml.dialects.mlirml import KERNEL, SORTS
from mlirml.ir import block_ops, defining_op, main_function, mlir, operations, passmanager, set_function_type
from mlirml.location import is_unknown
from mlirml.passes import Pass, register
from mlirml.pipelines.destinations import (
    ALLOC,
    BRANCHES,
    LOOPS,
    branch_root,
    carried_values,
    grows_from,
    is_grown_from,
    is_loop_body,
    is_read_before,
    memories_of,
    place_results,
    writes_outs,
)
from mlirml.pipelines.stand_ins import call_launches, stand_in_for_calls

UPSTREAM = (
    "eliminate-empty-tensors",
    "empty-tensor-to-alloc-tensor",
    "one-shot-bufferize{bufferize-function-boundaries=1 function-boundary-type-conversion=identity-layout-map "
    "buffer-alignment=64}",
)
TIDY = ("cse", "canonicalize")

_VIEWS = ("tensor.extract_slice", "tensor.expand_shape", "tensor.collapse_shape")


_UNSPLIT = 256
"""Programs of more operations may be split into functions, and a check returns from its own one only."""


@register
@dataclass(frozen=True)
class BufferizePass(Pass):
    """One-shot bufferization with results as out-parameters."""

    name = "mlirml-bufferize"

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        stand_in_for_calls(main)
        written = written_arguments(main)
        locate_constants(main)
        drop_barriers(main)
        expand_pads(main)
        stores = stores_of(main, written)
        insert_in_place(main, stores)
        private_inits(main, stores)
        reuse_dying_inputs(main, written)
        copy_views_out_of_branches(main)
        for block in tensor_blocks(main):
            place_results(block, copied)
        add_out_parameters(main, written)
        sort_buffers(main)
        run_upstream(module, UPSTREAM)
        call_launches(main)
        run_upstream(module, TIDY)


def run_upstream(module: mlir.Operation, passes: Sequence[str]) -> None:
    passmanager.PassManager.parse(f"builtin.module({','.join(passes)})", module.context).run(module)


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


def drop_barriers(function: mlir.Operation) -> None:
    """Take away what kept equal operations apart while they could still be merged."""
    for op in [op for op in operations(function) if op.name == "mlirml.barrier"]:
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()


def locate_constants(function: mlir.Operation) -> None:
    """Give dense constants, which the folder shares and leaves without a place, that of a user: globals inherit it."""
    for block in tensor_blocks(function):
        for op in block_ops(block):
            if op.name == "arith.constant" and is_unknown(op.location):
                user = next(iter(op.results[0].uses), None)
                if user is not None:
                    op.location = user.owner.location


def expand_pads(function: mlir.Operation) -> None:
    """A `tensor.pad` by one value becomes a fill and a store into the middle, so that its source may be computed there.

    Upstream bufferizes any other `tensor.pad`.
    """
    for op in [op for block in tensor_blocks(function) for op in block_ops(block) if op.name == "tensor.pad"]:
        expand_pad(op)


def expand_pad(op: mlir.Operation) -> None:
    """Replace one `tensor.pad`, if its region gives one value from outside and its sizes are static."""
    filler = block_ops(op.regions[0].blocks[0])[-1].operands[0]
    outside = defining_op(filler)
    if len(op.operands) > 1 or (outside is not None and outside.block == op.regions[0].blocks[0]):
        return
    if outside is None and filler.owner == op.regions[0].blocks[0]:
        return
    source, kind = op.operands[0], op.results[0].type
    low = list(mlir.DenseI64ArrayAttr(op.attributes["static_low"]))
    with op.location, mlir.InsertionPoint(op):
        filled = emit.fill(filler, emit.empty(kind)).results[0]
        attributes = {
            "operandSegmentSizes": emit.segments(1, 1, 0, 0, 0),
            "static_offsets": mlir.DenseI64ArrayAttr.get(low),
            "static_sizes": mlir.DenseI64ArrayAttr.get(list(source.type.shape)),
            "static_strides": mlir.DenseI64ArrayAttr.get([1] * len(low)),
        }
        stored = emit.value("tensor.insert_slice", [source, filled], kind, **attributes)
    op.results[0].replace_all_uses_with(stored)
    op.erase()


def written_arguments(main: mlir.Operation) -> dict[int, int]:
    """The argument of @main into whose memory a result goes, by the result's number.

    None where a check at run time may fail after which the program goes on: then the arguments must be left alone.
    """
    if "mlirml.writebacks" not in main.attributes:
        return {}
    numbers = list(main.attributes["mlirml.writebacks"])
    del main.attributes["mlirml.writebacks"]
    ops = list(operations(main))
    checks = [op for op in ops if op.name == "cf.assert"]
    if checks and (len(ops) > _UNSPLIT or any(op.parent != main for op in checks)):
        return {}
    return dict(zip(numbers[::2], numbers[1::2], strict=True))


def stores_of(main: mlir.Operation, written: dict[int, int]) -> list[mlir.Operation]:
    """The stores into slices that lead from a written argument to its new value."""
    body = main.regions[0].blocks[0]
    final, stores = block_ops(body)[-1], []
    for number, argument in written.items():
        stores += stores_between(body.arguments[argument], final.operands[number]) or []
    return stores


def stores_between(start: mlir.Value, value: mlir.Value) -> list[mlir.Operation] | None:
    """The stores that make `value` of `start`, those in branches too; None where anything else does."""
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
    """The tensor that a result is after a store into it, or a reshape of it; None for any other operation."""
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


def insert_in_place(function: mlir.Operation, stores: Sequence[mlir.Operation] = ()) -> None:
    """Prepare stores into slices, so that bufferization adds no copies of its own.

    What cannot be written (an argument, unless it is one of its own `stores`, or a constant) is copied into an empty
    tensor first, which may become an out-parameter; a source that only gained unit dimensions is stored without them.
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
                if is_read_only(op.operands[1]) and op not in stores:
                    with op.location, mlir.InsertionPoint(op):
                        op.operands[1] = copied(op.operands[1])


def is_read_only(value: mlir.Value) -> bool:
    """Whether a tensor is an argument of @main (and not of a loop's body) or a constant, which cannot be written."""
    owner = defining_op(value)
    if owner is None:
        return bool(value.owner.owner.operation.name == "func.func")
    return str(owner.name) == "arith.constant"


def only_gains_units(value: mlir.Value) -> bool:
    """Whether an expanded tensor, read once, is its source with more dimensions of size 1."""
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
    if op.name in ("tensor.insert_slice", "tensor.insert"):
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
            for position in init_positions(op):
                if op.name in LOOPS and op in stores and is_read_only(op.operands[position]):
                    continue
                init = fresh_init(op, op.operands[position])
                if init is None:
                    continue
                op.operands[position] = init
                owner = defining_op(init)
                if op.name == "tensor.insert_slice" and owner is not None and _is_free(owner):
                    owner.move_before(ops[0])


def _is_free(op: mlir.Operation) -> bool:
    """Whether an operation is an empty tensor that may stand anywhere: its sizes are not computed."""
    return op.name == "tensor.empty" and not len(op.operands)


def emptied(value: mlir.Value) -> mlir.Value | None:
    """An empty tensor of the type of a value; None where its sizes are not at hand."""
    owner = defining_op(value)
    if value.type.has_static_shape:
        return emit.empty(value.type)
    return owner.clone().operation.results[0] if owner is not None and owner.name == "tensor.empty" else None


def fresh_init(op: mlir.Operation, value: mlir.Value) -> mlir.Value | None:
    """A copy of the empty tensor or fill that defines `value`, built before `op`; None where nothing needs copying."""
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
        if owner.name == "linalg.fill" and shared:
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
        if shared and is_written_after(op, value):
            return copied(value)
    return None


def is_written_after(op: mlir.Operation, value: mlir.Value) -> bool:
    """Whether another operation writes over `value` after `op` does.

    CSE merges the common beginning of two chains of stores. Only one chain may go on in the same memory: results are
    placed in out-parameters, and upstream's analysis does not see that two of them would share one.
    """
    for use in value.uses:
        other = use.owner.operation
        writes = other.block == op.block and use.operand_number in init_positions(other)
        if writes and other != op and op.is_before_in_block(other):
            return True
    return False


def splat_fill(value: mlir.Value, attribute: mlir.DenseElementsAttr) -> mlir.Value:
    """A `linalg.fill` that makes the same tensor as a splat constant."""
    scalar = emit.constant(attribute.get_splat_value())
    return emit.fill(scalar, emit.empty(value.type)).results[0]


def copy_views_out_of_branches(main: mlir.Operation) -> None:
    """Let every branch give whole tensors: views of different strides would meet in a memref of unknown ones.

    Branches that compute nothing have become `arith.select`, which becomes one of elements.
    """
    for block in tensor_blocks(main):
        for op in block_ops(block):
            ends = []
            if op.name == "arith.select" and isinstance(op.results[0].type, mlir.RankedTensorType):
                choose_by_elements(op)
            elif op.name in ("scf.if", "scf.index_switch"):
                ends = [block_ops(inner)[-1] for region in op.regions for inner in region.blocks]
            for end in ends:
                for number, value in enumerate(end.operands):
                    if is_slice(value):
                        with end.location, mlir.InsertionPoint(end):
                            end.operands[number] = copied(value)


def choose_by_elements(op: mlir.Operation) -> None:
    """Replace an `arith.select` of tensors by that of their elements."""
    condition, *sides = op.operands
    kind = op.results[0].type
    identity = mlir.AffineMap.get_identity(len(kind.shape))
    with op.location, mlir.InsertionPoint(op):
        new = emit.generic(
            sides,
            [emit.empty(kind)],
            [identity] * 3,
            ["parallel"] * len(kind.shape),
            lambda xs: [emit.same_type("arith.select", condition, *xs[:2])],
        )
    op.results[0].replace_all_uses_with(new.results[0])
    op.erase()


def is_slice(value: mlir.Value) -> bool:
    """Whether a tensor is, or is a reshape of, a slice of another one."""
    owner = defining_op(value)
    while owner is not None and owner.name in ("tensor.expand_shape", "tensor.collapse_shape"):
        owner = defining_op(owner.operands[0])
    return owner is not None and owner.name == "tensor.extract_slice"


def copied(value: mlir.Value) -> mlir.Value:
    """A tensor copied into an empty one, which empty-tensor elimination may place in an out-parameter."""
    identity = mlir.AffineMap.get_identity(mlir.ShapedType(value.type).rank)
    iterators = ["parallel"] * identity.n_dims
    return emit.generic([value], [emit.empty(value.type)], [identity] * 2, iterators, lambda b: b[:1]).results[0]


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


def is_read_last(value: mlir.Value, op: mlir.Operation) -> bool:
    """Whether a value and views of it are read by operations of this block up to `op` only."""
    for use in value.uses:
        user = use.owner.operation
        if user == op:
            continue
        if user.block != op.block or not user.is_before_in_block(op):
            return False
        if user.name in _VIEWS and not all(is_read_last(result, op) for result in user.results):
            return False
        if not user.name.startswith("linalg.") and user.name not in _VIEWS:
            return False
    return True


def replaces_carried(argument: mlir.Value, op: mlir.Operation, block: mlir.Block) -> bool:
    """Whether a result of `op` is what a loop carries on in place of `argument`."""
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
    places = ("static_offsets", "static_sizes", "static_strides")
    same = all(extract.attributes[name] == insert.attributes[name] for name in places)
    return same and list(extract.operands) == list(insert.operands)[1:]


def add_out_parameters(main: mlir.Operation, written: dict[int, int]) -> None:
    """Make the inputs read-only memrefs, and the results memrefs that the function writes."""
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
                # What is returned as it came is copied first, in case that it is written over.
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
        for name, kinds in (("mlirml.inputs", inputs), ("mlirml.outputs", outputs)):
            main.attributes[name] = mlir.ArrayAttr.get([mlir.TypeAttr.get(kind) for kind in kinds])
        if written:
            main.attributes["mlirml.in_place"] = mlir.DenseI64ArrayAttr.get(sorted(written))


def store_result(result: mlir.Value, destination: mlir.Value, body: mlir.Block) -> None:
    """Put a result into an out-parameter."""
    parts = disjoint_parts(result)
    for insert in parts:
        store_part(insert, destination, body)
    if parts:
        return
    result, destination = without_reshapes(result, destination, body)
    materialize(result, destination, alone=not compute_in(result, destination))


def disjoint_parts(result: mlir.Value) -> list[mlir.Operation]:
    """The two stores that put a complex result together from its real and imaginary parts; none for another result."""
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
    """Put one part of a complex result where it belongs, so that one loop can compute both there."""
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
    materialize(source, part, alone=not compute_in(source, part))


def last_view(result: mlir.Value, tensors: Sequence[mlir.Value]) -> mlir.Operation | None:
    """Where a result is known that is an argument or a view of one."""
    op = made = defining_op(result)
    while op is not None and op.name in _VIEWS:
        op = defining_op(op.operands[0])
    if op is None or op.results[0] not in tensors:
        return None
    return made if made != op else defining_op(tensors[-1])


def store_into_argument(result: mlir.Value, argument: mlir.Value, tensors: Sequence[mlir.Value]) -> mlir.Value:
    """The tensor whose memory is the argument's, unless somebody still reads there what it held before.

    What may lie in the memory of another argument is copied as soon as it is known, in case that it is written over.
    """
    if result == argument or 0 in result.type.shape:
        return result
    early = last_view(result, tensors)
    if early is None and (is_written(result) or memories_of(result) & {t for t in tensors if t != argument}):
        early = defining_op(result)
    if early is not None:
        with mlir.InsertionPoint.after(early):
            result = copied(result)
    shape = list(result.type.shape)
    attributes = {
        "static_offsets": mlir.DenseI64ArrayAttr.get([0] * len(shape)),
        "static_sizes": mlir.DenseI64ArrayAttr.get(shape),
        "static_strides": mlir.DenseI64ArrayAttr.get([1] * len(shape)),
        "operandSegmentSizes": emit.segments(1, 1, 0, 0, 0),
    }
    return emit.create("tensor.insert_slice", [result, argument], [argument.type], attributes).results[0]


def is_written(value: mlir.Value) -> bool:
    """Whether an operation writes over a value or a view of it."""
    for use in value.uses:
        user = use.owner.operation
        if use.operand_number in init_positions(user) or (user.regions and not user.name.startswith("linalg.")):
            return True
        if user.name in _VIEWS and is_written(user.results[0]):
            return True
    return False


def materialize(value: mlir.Value, memory: mlir.Value, *, alone: bool = False) -> None:
    """Make sure that a tensor is in a buffer; `alone` says that no other tensor stands for the buffer."""
    flags = {"writable": mlir.UnitAttr.get()}
    if alone:
        flags["restrict"] = mlir.UnitAttr.get()
    emit.create("bufferization.materialize_in_destination", [value, memory], (), flags)


def sort_buffers(main: mlir.Operation) -> None:
    """Let sorts work on memrefs: upstream's analysis does not know them. Each fills a buffer of its own."""
    for op in [op for block in tensor_blocks(main) for op in block_ops(block) if op.name in SORTS]:
        source, out = op.operands
        given = defining_op(out)
        with op.location, mlir.InsertionPoint(op):
            rows = emit.value(
                "bufferization.to_buffer", [source], memref_type(source.type), read_only=mlir.UnitAttr.get()
            )
            if given is not None and given.name == "bufferization.to_tensor" and has_one_use(out):
                buffer = given.operands[0]
            else:
                attributes = {"operandSegmentSizes": emit.segments(0, 0), "alignment": emit.i64(64)}
                buffer = emit.create("memref.alloc", (), [memref_type(out.type)], attributes).results[0]
            attributes = {name: op.attributes[name] for name in op.attributes}
            emit.create(op.name, [rows, buffer], (), attributes)
            flags = {"restrict": mlir.UnitAttr.get(), "writable": mlir.UnitAttr.get()}
            stored = emit.create("bufferization.to_tensor", [buffer], [out.type], flags)
        op.results[0].replace_all_uses_with(stored.results[0])
        op.erase()
        if given is not None and not any(True for _ in given.results[0].uses):
            given.erase()


def compute_in(result: mlir.Value, destination: mlir.Value) -> bool:
    """Let the empty tensor that a result grows from be the destination; False where there is none.

    Upstream's elimination does the same, but leaves behind slices that it took of the empty tensor before. A buffer
    that stores were collected in (`mlirml-buffer-stores`) becomes the destination too.
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
        # A result that comes later may be that very value: the destination would be written over before it is copied.
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
    """Whether a value, a view of it, or what it is a part of, is a result of @main.

    Complex results are put together from their parts. `is_whole`: stores into the value itself lead there, too.
    """
    for use in value.uses:
        user = use.owner.operation
        if user.name in ("func.return", "bufferization.materialize_in_destination"):
            return True
        if user.name in _VIEWS and is_returned(user.results[0], is_whole=is_whole):
            return True
        leads_on = user.name == "tensor.insert_slice" and (is_whole or use.operand_number == 0)
        if leads_on and is_returned(user.results[0], is_whole=True):
            return True
    return False


def without_reshapes(result: mlir.Value, destination: mlir.Value, body: mlir.Block) -> tuple[mlir.Value, mlir.Value]:
    """Reshape the destination instead of the result, so that what computes the result can write into it."""
    op = defining_op(result)
    while op is not None and op.name in ("tensor.expand_shape", "tensor.collapse_shape") and has_one_use(result):
        source = op.operands[0]
        kind = memref_type(source.type)
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
    """The identity-layout memref of a tensor type."""
    shaped = mlir.ShapedType(tensor)
    return mlir.MemRefType.get(shaped.shape, shaped.element_type)

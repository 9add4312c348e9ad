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
The out-parameters are created before upstream's analysis runs, by `bufferization.materialize_in_destination`:
empty-tensor elimination then computes every result in its out-parameter, and a returned argument, or one value returned
twice, is copied. Inputs are never written: the out-parameter of a result that replaces an argument
(`mlirml.writebacks`) contains that argument when the program starts, and the program reads the argument from there
(`mlirml.in_place`).
(`mlirml.in_place`).
"""  # fmt: skip

from __future__ import annotations

import re

from mlirml.analysis.traits import BRANCHES, SEQUENTIAL_LOOPS
from mlirml.analysis.values import has_one_use
from mlirml.dialects.mlirml import HOST_CALLS, SORTS, WHY
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, main_function, mlir, named_operations, replace_op
from mlirml.ir.compactions import COMPACTIONS
from mlirml.ir.library_calls import LIBRARY_CALLS
from mlirml.ir.location import is_unknown
from mlirml.passes import Pass, register, run_upstream
from mlirml.pipelines.bufferize.destinations import materialize_results
from mlirml.pipelines.bufferize.inits import (
    compute_apart,
    copied,
    insert_in_place,
    is_slice,
    order_stores,
    private_inits,
    reuse_dying_inputs,
    tensor_blocks,
)
from mlirml.pipelines.bufferize.kernel_proxies import replace_calls_by_proxies, replace_proxies_by_launches
from mlirml.pipelines.bufferize.known_types import drop_calls, state_types
from mlirml.pipelines.bufferize.out_parameters import add_out_parameters, memref_type, stores_of, written_arguments
from mlirml.pipelines.memref.prove_parallel import INDEPENDENT
from mlirml.pipelines.tensor.buffer_stores import subview

EMPTY = "eliminate-empty-tensors,empty-tensor-to-alloc-tensor"
UPSTREAM = (
    "one-shot-bufferize{bufferize-function-boundaries=1 function-boundary-type-conversion=identity-layout-map "
    "buffer-alignment=64}"
)
TIDY = "cse,canonicalize"


@register
class BufferizePass(Pass):
    """One-shot bufferization with results as out-parameters."""

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        replace_calls_by_proxies(main)
        written = written_arguments(main)
        locate_constants(main)
        drop_barriers(main)
        expand_pads(main)
        stores = stores_of(main, written)
        order_stores(main)
        insert_in_place(main, stores)
        private_inits(main, stores)
        compute_apart(main)
        reuse_dying_inputs(main, written)
        copy_views_out_of_branches(main)
        separate_yields(main)
        for block in tensor_blocks(main):
            materialize_results(block, copied)
        add_out_parameters(main, written)
        bufferize_library_calls(main)
        pass_buffers(main)
        view_arguments(main)
        eliminate_empty(module)
        order_stores(main)  # the patterns of the second pass fold them
        state_types(main)
        reasons = reasons_of_loops(main)
        hide_block_offsets(main)
        bufferize_tensors(module)
        locate_globals(module)
        drop_calls(module)
        replace_proxies_by_launches(main)
        run_upstream(module, TIDY, verify=False)
        restore_reasons(main, reasons)


_NOT_IN_PLACE = re.compile(r"Yield operand #(\d+) is not equivalent")
_YIELD = re.compile(r'"scf.yield"\([^)]*\)(?: <\{\}>)? : \((.*)\) -> \(\)')


_CONFLICT = re.compile(r"'(scf\.\w+)' op not bufferizable under the given constraints: cannot avoid RaW conflict")


def eliminate_empty(module: mlir.Operation) -> None:
    """Compute values in the tensors that they are stored into.

    Upstream's analysis refuses a loop that stores into a tensor which something else reads as it was before: the loop
    then starts from a copy.
    """
    tried: set[str] = set()
    while True:
        try:
            run_upstream(module, EMPTY)
            return
        except mlir.MLIRError as error:
            found = _CONFLICT.search(str(error))
            loops = [] if found is None else named_operations(main_function(module), (found[1],))
            loops = [op for op in loops if str(op.location).removeprefix("loc(")[:-1] in str(error)]
            if not loops or str(loops[0].location) in tried:
                raise
            tried.add(str(loops[0].location))
            for op in loops:
                for position in range(max(len(op.operands) - len(op.results), 0), len(op.operands)):
                    if isinstance(op.operands[position].type, mlir.RankedTensorType):
                        with op.location, mlir.InsertionPoint(op):
                            op.operands[position] = copied(op.operands[position])


def bufferize_tensors(module: mlir.Operation) -> None:
    """Run upstream's pass. A loop-carried tensor that it finds not to be updated in place is copied back.

    Stores may follow each other in ways in which one of them has to copy the whole tensor, as another one is read after
    it. Upstream refuses a loop that yields such a copy.
    """
    while True:
        try:
            run_upstream(module, UPSTREAM)
            return
        except mlir.MLIRError as error:
            found = _NOT_IN_PLACE.search(str(error)), _YIELD.search(str(error))
            if None in found or not copy_back(main_function(module), int(found[0][1]), found[1][1]):  # type: ignore[index]
                raise


def copy_back(main: mlir.Operation, number: int, types: str) -> bool:
    """Copy operand `number` of the yields of loops, of these types, into the carried tensor; True if there is one."""
    changed = False
    for loop in named_operations(main, ("scf.for",)):
        body = loop.regions[0].blocks[0]
        end = block_ops(body)[-1]
        if ", ".join(str(value.type) for value in end.operands) != types:
            continue
        value, carried = end.operands[number], body.arguments[number + 1]
        owner = defining_op(value)
        if value == carried or (owner is not None and owner.name == "linalg.generic" and owner.operands[1] == carried):
            continue
        identity = mlir.AffineMap.get_identity(mlir.ShapedType(value.type).rank)
        iterators = ["parallel"] * identity.n_dims
        with end.location, mlir.InsertionPoint(end):
            copy = emit.generic([value], [carried], [identity] * 2, iterators, lambda b: b[:1])
        end.operands[number] = copy.results[0]
        drop_parallel(loop)
        changed = True
    return changed


def drop_parallel(loop: mlir.Operation) -> None:
    """Forget that iterations of a loop, and of those around it, are independent: it stores whole tensors."""
    around = loop
    while around.name != "func.func":
        if INDEPENDENT in around.attributes:
            del around.attributes[INDEPENDENT]
        around = around.parent.operation


def reasons_of_loops(main: mlir.Operation) -> dict[str, str]:
    """Why `scf.while` loops stay on the host, by their locations: upstream clones them without attributes."""
    loops = [op for op in named_operations(main, ("scf.while",)) if WHY in op.attributes]
    return {str(op.location): mlir.StringAttr(op.attributes[WHY]).value for op in loops}


def restore_reasons(main: mlir.Operation, reasons: dict[str, str]) -> None:
    """Mark the loops again that stay on the host."""
    for op in named_operations(main, ("scf.while",)) if reasons else ():
        if reason := reasons.get(str(op.location)):
            with main.context:
                op.attributes[WHY] = mlir.StringAttr.get(reason)


_MANY_SLICES = 64


def view_arguments(function: mlir.Operation) -> None:
    """If a read-only argument has many slices, replace them by tensors of separate views of the memory.

    The time of upstream's analysis is quadratic in the number of tensors that may alias.
    """
    for op in named_operations(function, ("bufferization.to_tensor",)):
        slices = [use.owner.operation for use in op.results[0].uses]
        slices = [user for user in slices if user.name == "tensor.extract_slice" and len(user.operands) == 1]
        if "writable" in op.attributes or len(slices) < _MANY_SLICES:
            continue
        for user in slices:
            kind = user.results[0].type
            with user.location, mlir.InsertionPoint(user):
                view = subview(user, op.operands[0], kind.shape)
                flags = {"restrict": mlir.UnitAttr.get()}
                part = emit.create("bufferization.to_tensor", [view], [kind], flags).results[0]
            replace_op(user, part)


_UNBOUNDED = (
    "arith.divui", "arith.divsi", "arith.ceildivui", "arith.ceildivsi", "arith.floordivsi", "arith.remui",
    "arith.select",
)  # fmt: skip
_THROUGH = ("arith.addi", "arith.subi", "arith.muli", "arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui")
_SLICES = ("tensor.extract_slice", "tensor.insert_slice", "tensor.parallel_insert_slice")


def hide_block_offsets(function: mlir.Operation) -> None:
    """Make offsets of slices opaque that depend on divisions or selections: those of blocks, as of a mask.

    Upstream's analysis asks for each pair of slices whether they overlap, and solves the inequalities of all that their
    offsets depend on, the bounds of loops included. Of divisions and selections it knows little, so that hardly a thing
    follows for these; slices of the same offset are the same ones still. Later passes fold the casts.
    """
    hidden: dict[mlir.Value, mlir.Value] = {}
    unbounded: dict[mlir.Value, bool] = {}
    for slice_ in named_operations(function, _SLICES):
        for number, offset in enumerate(slice_.operands):
            if not isinstance(offset.type, mlir.IndexType) or not is_unbounded(offset, unbounded):
                continue
            if offset not in hidden:
                owner = offset.owner
                point = (
                    mlir.InsertionPoint.at_block_begin(owner)
                    if isinstance(owner, mlir.Block)
                    else mlir.InsertionPoint.after(owner.operation)
                )
                with slice_.location, point:
                    cast = emit.create("builtin.unrealized_conversion_cast", [offset], [offset.type])
                hidden[offset] = cast.results[0]
            slice_.operands[number] = hidden[offset]


def is_unbounded(index: mlir.Value, known: dict[mlir.Value, bool]) -> bool:
    """True if an index depends on a division or selection, also by a bound of its loop; `known` are earlier answers."""
    found = known.get(index)
    if found is None:
        known[index] = False
        owner = index.owner
        if isinstance(owner, mlir.Block):
            loop = owner.owner.operation
            is_variable = loop.name == "scf.for" and index == owner.arguments[0]
            found = is_variable and any(is_unbounded(bound, known) for bound in loop.operands[:2])
        else:
            op = owner.operation
            through = op.name in _THROUGH and any(is_unbounded(value, known) for value in op.operands)
            found = op.name in _UNBOUNDED or through
        known[index] = found
    return found


def drop_barriers(function: mlir.Operation) -> None:
    """Remove the barriers that kept equal operations from being merged by CSE."""
    for op in named_operations(function, ("mlirml.barrier",)):
        replace_op(op, op.operands[0])


def locate_constants(function: mlir.Operation) -> None:
    """Set the location of dense constants, which the folder drops, to that of a user: globals inherit it."""
    for block in tensor_blocks(function):
        for op in block_ops(block):
            if op.name == "arith.constant" and is_unknown(op.location):
                user = next(iter(op.results[0].uses), None)
                if user is not None:
                    op.location = user.owner.location


def locate_globals(module: mlir.Operation) -> None:
    """Set the location of constants in memory that folders have moved to that of a user."""
    globals_ = [op for op in block_ops(module.regions[0].blocks[0]) if op.name == "memref.global"]
    if not any(is_unknown(op.location) for op in globals_):
        return
    main = main_function(module)
    readers = {}
    for op in named_operations(main, ("memref.get_global",)):
        readers[mlir.FlatSymbolRefAttr(op.attributes["name"]).value] = op
        if is_unknown(op.location):
            users = (use.owner.operation for use in op.results[0].uses)
            op.location = next((user.location for user in users if not is_unknown(user.location)), main.location)
    for op in globals_:
        reader = readers.get(mlir.StringAttr(op.attributes["sym_name"]).value)
        if reader is not None and is_unknown(op.location):
            op.location = reader.location


def expand_pads(function: mlir.Operation) -> None:
    """Replace a `tensor.pad` by a constant with a fill and an `insert_slice`, so that its source is computed in place.

    Upstream bufferizes any other `tensor.pad`.
    """
    for op in named_operations(function, ("tensor.pad",)):
        expand_pad(op)


def expand_pad(op: mlir.Operation) -> None:
    """Expand a `tensor.pad` that pads by one value defined outside of its region and has static sizes."""
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
        stored = emit.insert_slice(source, filled, low)
    replace_op(op, stored)


def copy_views_out_of_branches(main: mlir.Operation) -> None:
    """Make every branch yield whole tensors: views of different strides would be joined in a memref of dynamic strides.

    Branches without side computations have become `arith.select`, which is replaced by a select of the elements.
    """
    for op in named_operations(main, ("arith.select",)):
        if isinstance(op.results[0].type, mlir.RankedTensorType):
            choose_by_elements(op)
    for op in named_operations(main, BRANCHES):
        for end in [block_ops(inner)[-1] for region in op.regions for inner in region.blocks]:
            for number, value in enumerate(end.operands):
                if is_slice(value):
                    with end.location, mlir.InsertionPoint(end):
                        end.operands[number] = copied(value)


def separate_yields(main: mlir.Operation) -> None:
    """Copy a tensor that a loop or branch yields twice: upstream takes both for different values."""
    bodies = [
        block
        for op in named_operations(main, (*SEQUENTIAL_LOOPS, *BRANCHES))
        for region in op.regions
        for block in region.blocks
    ]
    for end in [block_ops(block)[-1] for block in bodies]:
        seen: set[mlir.Value] = set()
        for number, value in enumerate(end.operands):
            if value in seen:
                with end.location, mlir.InsertionPoint(end):
                    end.operands[number] = copied(value)
            elif isinstance(value.type, mlir.RankedTensorType):
                seen.add(value)


def choose_by_elements(op: mlir.Operation) -> None:
    """Replace an `arith.select` of tensors by a select of their elements."""
    condition, *sides = op.operands
    kind = op.results[0].type
    identity = mlir.AffineMap.get_identity(len(kind.shape))
    with op.location, mlir.InsertionPoint(op):
        new = emit.generic(
            sides,
            [emit.empty_like(sides[0])],
            [identity] * 3,
            ["parallel"] * len(kind.shape),
            lambda xs: [emit.same_type("arith.select", condition, *xs[:2])],
        )
    replace_op(op, new.results[0])


def bufferize_library_calls(main: mlir.Operation) -> None:
    """Bufferize sorts, factorizations and compactions, which upstream's analysis does not know.

    Each writes to a new buffer.
    """
    for op in named_operations(main, (*SORTS, *LIBRARY_CALLS, *COMPACTIONS)):
        *sources, out = op.operands
        given = defining_op(out)
        with op.location, mlir.InsertionPoint(op):
            flag = mlir.UnitAttr.get()
            inputs = [emit.value("bufferization.to_buffer", [x], memref_type(x.type), read_only=flag) for x in sources]
            if given is not None and given.name == "bufferization.to_tensor" and has_one_use(out):
                buffer = given.operands[0]
            else:
                sizes = [n for n in emit.dims_of(out) if not isinstance(n, int)]
                attributes = {"operandSegmentSizes": emit.segments(len(sizes), 0), "alignment": emit.i64(64)}
                buffer = emit.create("memref.alloc", sizes, [memref_type(out.type)], attributes).results[0]
            attributes = {name: op.attributes[name] for name in op.attributes}
            emit.create(op.name, [*inputs, buffer], (), attributes)
            flags = {"restrict": mlir.UnitAttr.get(), "writable": mlir.UnitAttr.get()}
            stored = emit.create("bufferization.to_tensor", [buffer], [out.type], flags)
        replace_op(op, stored.results[0])
        if given is not None and not any(True for _ in given.results[0].uses):
            given.erase()


def pass_buffers(main: mlir.Operation) -> None:
    """Bufferize the operands and results of calls of Python functions."""
    for op in named_operations(main, HOST_CALLS):
        if not len(op.operands) or not isinstance(op.operands[0].type, mlir.RankedTensorType):
            continue
        attributes = {name: op.attributes[name] for name in op.attributes}
        value = op.operands[0]
        kind = memref_type(value.type)
        with op.location, mlir.InsertionPoint(op):
            if not len(op.results):
                # A copy is contiguous: the operand may be a view, or a view of a view.
                buffer = emit.value("bufferization.to_buffer", [copied(value)], kind, read_only=mlir.UnitAttr.get())
                emit.create(op.name, [buffer], (), attributes)
            else:
                sizes = {"operandSegmentSizes": emit.segments(0, 0), "alignment": emit.i64(64)}
                buffer = emit.create("memref.alloc", (), [kind], sizes).results[0]
                emit.create(op.name, [buffer], (), attributes)
                flags = {"restrict": mlir.UnitAttr.get(), "writable": mlir.UnitAttr.get()}
                stored = emit.create("bufferization.to_tensor", [buffer], [value.type], flags).results[0]
                op.results[0].replace_all_uses_with(stored)
        op.erase()

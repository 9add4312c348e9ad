"""Plan transfers: @main works on device memory, and arrays that the host computes are copied to and from the device.

Before:
    gpu.launch_func @kernels::@k0 ... args(%x, %t)
    %n = memref.load %t[] : memref<i32>
After:
    gpu.launch_func @kernels::@k0 ... args(%x, %t)
    %h = memref.alloc() {mlirml.host} : memref<i32>
    gpu.memcpy %h, %t : memref<i32>, memref<i32>
    %n = memref.load %h[] : memref<i32>

The arguments of @main are device buffers, but for those listed in `mlirml.host_inputs`. Nothing is copied between
kernels. A buffer is copied as a whole, or only the contiguous slice that an operation of the host accesses.

Constant arrays that kernels read are packed into one more argument, after the results, which is the same in every call:

Before:
    %c = memref.get_global @table : memref<10xi64>
    gpu.launch_func @kernels::@k0 ... args(%c, %t)
After:
    func.func @main(..., %constants: memref<256xi8>) attributes {mlirml.constants = dense<"0x..."> : tensor<256xi8>} {
      %c = memref.view %constants[%c0][] : memref<256xi8> to memref<10xi64>
      gpu.launch_func @kernels::@k0 ... args(%c, %t)
"""

from __future__ import annotations

import math

import numpy as np

from mlirml.analysis.memory import VIEWS, body_effects, buffer_of, effects
from mlirml.analysis.traits import SEQUENTIAL_LOOPS
from mlirml.analysis.values import captured_values, outer_values
from mlirml.dialects.mlirml import CONSTANTS, HOST, HOST_CALLS, HOST_INPUTS, HOST_WORK, SORTS, WHY
from mlirml.ir import emit
from mlirml.ir.bindings import (
    block_ops,
    clone_with,
    defining_op,
    has_op,
    main_function,
    mlir,
    operations,
    replace_op,
    set_function_type,
)
from mlirml.ir.compactions import COMPACTIONS
from mlirml.ir.library_calls import LIBRARY_CALLS
from mlirml.ir.location import source_location
from mlirml.passes import Pass, register

_ON_DEVICE = (
    "gpu.launch_func",
    "gpu.memcpy",
    "memref.dealloc",
    "memref.dim",
    "scf.for",
    "scf.while",
    "scf.if",
    "scf.yield",
    "scf.condition",
    "scf.index_switch",
    "func.return",
    "arith.select",
)

_REASONS = {
    "memref.store": "a loop that stays stores it",
    **dict.fromkeys(HOST_CALLS, "a Python function is called"),
    "": "there is no kernel for it",
}


@register
class PlanTransfersPass(Pass):
    """Insert the copies between device and host that operations of the host need."""

    def run(self, module: mlir.Operation) -> None:
        main = main_function(module)
        hosts = host_values(main)
        place_constants(module, main)
        for op in top_operations(main):
            if op.name == "memref.copy":
                copy(op)
            elif op.name == "linalg.generic":
                copy_of_generic(op)
        for op in top_operations(main):
            if op.name == "memref.alloc" and used_by_host(op.results[0]):
                op.attributes[HOST] = mlir.UnitAttr.get()
        descriptions = []
        for op in top_operations(main):
            if op.name == "gpu.launch_func":
                upload_constants(op, hosts)
            elif is_host_loop(op):
                descriptions.append(describe_loop(op, hosts))
                move_loop_to_host(op, hosts)
            elif op.name not in _ON_DEVICE and op.name not in VIEWS:
                descriptions.append(describe(op, hosts))
                move_to_host(op, hosts)
        lines = [mlir.StringAttr.get(line) for line in dict.fromkeys(descriptions) if line]
        if lines:
            main.attributes[HOST_WORK] = mlir.ArrayAttr.get(lines)


def describe(op: mlir.Operation, hosts: set[mlir.Value]) -> str:
    """`explain()` line for a host op: location, reason for placement, bytes transferred; empty for other ops."""
    touched = [n for n, v in enumerate(op.operands) if isinstance(v.type, mlir.MemRefType) and not is_host(v, hosts)]
    captured = [v for v in captured_values(op) if isinstance(v.type, mlir.MemRefType) and not is_host(v, hosts)]
    if not touched and not captured:
        return ""
    if op.name == "memref.load":
        moved = [size_in_bytes(mlir.MemRefType.get([], op.results[0].type))]
        what, why = "a number is read", "loops, branches and checks of the host depend on it"
    else:
        fresh = [n for n in touched if overwrites(op, n)]
        read = dict.fromkeys([*(op.operands[n] for n in touched if n not in fresh), *captured])
        moved = [size_in_bytes(value.type) for value in read]
        what = f"`{op.name.rpartition('.')[2]}` is computed"
        why = mlir.StringAttr(op.attributes[WHY]).value if WHY in op.attributes else _REASONS.get(op.name, _REASONS[""])
    written = [n for n in touched if op.name != "memref.load" and writes(op, op.operands[n])]
    back = [size_in_bytes(op.operands[n].type) for n in written]
    return described(op, what, why, sum(moved), sum(back))


def described(op: mlir.Operation, what: str, why: str, moved: int, back: int) -> str:
    """The line of `explain()` for something of the host, with the location of `op`."""
    place = source_location(op.location)
    line = "what the compiler added" if place is None else f"{place.file}:{place.line}"
    moves = f"{moved} bytes move to the host and {back} back"
    return f"{what} on the host, for {line}: {why}; {moves}{', in each iteration of a loop' if in_loop(op) else ''}"


def describe_loop(loop: mlir.Operation, hosts: set[mlir.Value]) -> str:
    """The line of `explain()` for a loop that stays on the host."""
    roots = roots_of(loop, hosts)
    back = [root for root in roots if may_change(loop, root)]
    why = mlir.StringAttr(loop.attributes[WHY]).value
    return described(loop, "a loop is computed", why, sum(map(size_of, roots)), sum(map(size_of, back)))


def size_of(buffer: mlir.Value) -> int:
    return size_in_bytes(buffer.type)


def size_in_bytes(memref_type: mlir.Type) -> int:
    """The size of a memref in bytes; a dynamic dimension counts as 1."""
    width = 64 if isinstance(memref_type.element_type, mlir.IndexType) else memref_type.element_type.width
    elements: int = math.prod(max(1, size) for size in memref_type.shape)
    return elements * max(1, int(width) // 8)


def in_loop(op: mlir.Operation) -> bool:
    parent = op.parent
    while parent is not None and parent.name not in SEQUENTIAL_LOOPS:
        parent = parent.operation.parent
    return parent is not None


_ALIGNMENT = 256
"""The alignment in bytes of each constant array in the argument, as devices require for a buffer."""


def place_constants(module: mlir.Operation, main: mlir.Operation) -> None:
    """Pack the constant arrays that launches read into one argument of @main."""
    launches = [op for op in operations(main) if op.name == "gpu.launch_func"]
    names = dict.fromkeys(name for op in launches for operand in op.operands if (name := global_of(operand)))
    arrays = {name: elements(module, name) for name in names}
    offsets: dict[str, int] = {}
    content = b""
    for name, array in arrays.items():
        if array is not None:
            offsets[name] = len(content)
            content += array + b"\0" * (-len(array) % _ALIGNMENT)
    if not offsets:
        return
    start = main.regions[0].blocks[0]
    whole = np.frombuffer(content, np.int8)
    main.attributes[CONSTANTS] = mlir.DenseElementsAttr.get(whole, type=mlir.IntegerType.get_signless(8))
    argument = start.add_argument(mlir.MemRefType.get([len(whole)], mlir.IntegerType.get_signless(8)), main.location)
    set_function_type(main)
    for op in launches:
        with op.location, mlir.InsertionPoint(op):
            for position, operand in enumerate(op.operands):
                name = global_of(operand)
                if name in offsets:
                    op.operands[position] = view_of_constants(argument, operand, offsets[name])
    for op in [op for op in operations(main) if op.name == "memref.get_global"]:
        if not any(True for _ in op.results[0].uses):
            op.erase()


def global_of(value: mlir.Value) -> str:
    """The name of the constant array that a buffer is a view of; empty for other buffers."""
    owner = defining_op(value)
    while owner is not None and owner.name in VIEWS:
        owner = defining_op(owner.operands[0])
    if owner is None or owner.name != "memref.get_global":
        return ""
    return str(mlir.FlatSymbolRefAttr(owner.attributes["name"]).value)


def elements(module: mlir.Operation, name: str) -> bytes | None:
    """The bytes of a constant array in memory; None for types that NumPy lacks."""
    for op in block_ops(module.regions[0].blocks[0]):
        if op.name == "memref.global" and mlir.StringAttr(op.attributes["sym_name"]).value == name:
            try:
                array = np.array(mlir.DenseElementsAttr(op.attributes["initial_value"]))
            except (TypeError, ValueError):
                return None
            element_type = mlir.MemRefType(mlir.TypeAttr(op.attributes["type"]).value).element_type
            fits = array.dtype.itemsize == max(1, element_type.width // 8)
            return array.tobytes() if fits else None
    return None


def view_of_constants(constants: mlir.Value, operand: mlir.Value, offset: int) -> mlir.Value:
    """The view of the argument `constants` that replaces `operand`, whose constant array is at byte `offset` of it."""
    owner = defining_op(operand)
    assert owner is not None, "a constant is made by an operation"
    if owner.name in VIEWS:
        source = owner.operands[0]
        return clone_with(owner, {source: view_of_constants(constants, source, offset)}).results[0]
    return emit.value("memref.view", [constants, emit.index(offset)], operand.type)


def used_by_host(buffer: mlir.Value) -> bool:
    """True if all users of a buffer are operations of the host."""
    for use in buffer.uses:
        user = use.owner.operation
        if user.name in VIEWS:
            if not used_by_host(user.results[0]):
                return False
        elif user.name != "memref.dealloc" and user.name in _ON_DEVICE:
            return False
    return True


def top_operations(main: mlir.Operation) -> list[mlir.Operation]:
    """The operations of @main and of its loops and branches.

    Those of structured operations are left out, and those of loops that are computed on the host as a whole.
    """
    found: list[mlir.Operation] = []
    todo = [block for region in main.regions for block in region.blocks]
    while todo:
        for op in block_ops(todo.pop(0)):
            found.append(op)
            if not op.name.startswith("linalg.") and not is_host_loop(op):
                todo += [inner for region in op.regions for inner in region.blocks]
    return found


def is_host_loop(op: mlir.Operation) -> bool:
    """True for a loop that `mlirml-keep-loops` marked, if it has no kernels and all iterations use the same buffers."""
    if op.name not in SEQUENTIAL_LOOPS or WHY not in op.attributes or has_op(op, ("gpu.launch_func",)):
        return False
    return not any(isinstance(value.type, mlir.MemRefType) for value in (*op.operands, *op.results))


def roots_of(loop: mlir.Operation, hosts: set[mlir.Value]) -> list[mlir.Value]:
    """The device buffers that a loop accesses, directly or through views."""
    buffers = dict.fromkeys(buffer_of(v) for v in outer_values(loop) if isinstance(v.type, mlir.MemRefType))
    return [buffer for buffer in buffers if not is_host(buffer, hosts)]


def may_change(loop: mlir.Operation, buffer: mlir.Value) -> bool:
    """True if a loop may write to a buffer."""
    found = body_effects(loop)
    return found.unknown or buffer in found.writes


def move_loop_to_host(loop: mlir.Operation, hosts: set[mlir.Value]) -> None:
    """Let a loop work on copies of whole device buffers, and copy those back that it may change."""
    changed = [root for root in roots_of(loop, hosts) if may_change(loop, root)]
    mirrors: dict[mlir.Value, mlir.Value] = {}
    outside = outer_values(loop)
    with loop.location, mlir.InsertionPoint(loop):
        for root in roots_of(loop, hosts):
            mirrors[root] = allocated(root, True)
            memcpy(mirrors[root], root)
    for inner in operations(loop):
        if inner.name == "memref.alloc":
            inner.attributes[HOST] = mlir.UnitAttr.get()
        for position, operand in enumerate(inner.operands):
            if operand in outside and isinstance(operand.type, mlir.MemRefType) and not is_host(operand, hosts):
                with loop.location, mlir.InsertionPoint(loop):
                    inner.operands[position] = view_of_mirror(operand, mirrors)
    with loop.location, mlir.InsertionPoint.after(loop):
        for root in changed:
            memcpy(root, mirrors[root])


def view_of_mirror(value: mlir.Value, mirrors: dict[mlir.Value, mlir.Value]) -> mlir.Value:
    """The view of a host copy that replaces a view of a device buffer."""
    if value not in mirrors:
        owner = defining_op(value)
        assert owner is not None and owner.name in VIEWS, "the buffer has a copy"
        mirrors[value] = clone_with(owner, {owner.operands[0]: view_of_mirror(owner.operands[0], mirrors)}).results[0]
    return mirrors[value]


def host_values(main: mlir.Operation) -> set[mlir.Value]:
    """The arguments of @main that are in host memory."""
    arguments = list(main.regions[0].blocks[0].arguments)
    numbers = list(main.attributes[HOST_INPUTS]) if HOST_INPUTS in main.attributes else []
    return {arguments[n] for n in numbers}


def is_host(value: mlir.Value, hosts: set[mlir.Value]) -> bool:
    owner = defining_op(value)
    while owner is not None and owner.name in VIEWS:
        value = owner.operands[0]
        owner = defining_op(value)
    if owner is None:
        return value in hosts
    return owner.name in ("memref.get_global", "memref.alloca") or HOST in owner.attributes


def is_contiguous(memref_type: mlir.Type) -> bool:
    """True if the elements of a memref are contiguous; its offset is arbitrary."""
    type_ = mlir.MemRefType(memref_type)
    if 0 in type_.shape or type_ == mlir.MemRefType.get(type_.shape, type_.element_type):
        return True
    strides, _ = type_.get_strides_and_offset()
    expected = 1
    for d, (size, stride) in reversed(list(enumerate(zip(type_.shape, strides)))):
        if size != 1 and stride != expected:
            return False
        if type_.is_dynamic_dim(d):
            return all(n == 1 for n in type_.shape[:d])
        expected *= size
    return True


def copy(op: mlir.Operation) -> None:
    """Replace a `memref.copy` of contiguous memrefs by a copy on the device."""
    source, target = op.operands
    if is_contiguous(source.type) and is_contiguous(target.type):
        with op.location, mlir.InsertionPoint(op):
            memcpy(target, source)
        op.erase()


def copy_of_generic(op: mlir.Operation) -> None:
    """Replace a `linalg.generic` that only copies its operand by a copy on the device."""
    body = op.regions[0].blocks[0]
    if len(op.operands) != 2:
        return
    first, last = [m.value for m in op.attributes["indexing_maps"]]
    yields = block_ops(body)[0]
    if yields.name != "linalg.yield" or yields.operands[0] != body.arguments[0]:
        return
    source, target = op.operands
    if first != last or source.type.shape != target.type.shape or not isinstance(source.type, mlir.MemRefType):
        return
    if is_contiguous(source.type) and is_contiguous(target.type):
        with op.location, mlir.InsertionPoint(op):
            memcpy(target, source)
        op.erase()


def memcpy(target: mlir.Value, source: mlir.Value) -> None:
    emit.create("gpu.memcpy", [target, source])


def allocated(like: mlir.Value, host: bool) -> mlir.Value:
    """A new contiguous buffer in device or host memory, of the shape of a memref."""
    type_ = mlir.MemRefType.get(like.type.shape, like.type.element_type)
    return new_buffer(type_, [emit.memref_dim(like, d) for d in range(type_.rank) if type_.is_dynamic_dim(d)], host)


def new_buffer(type_: mlir.Type, sizes: list[mlir.Value], host: bool) -> mlir.Value:
    """A new buffer of a type, with values for its dynamic sizes."""
    attributes = {"operandSegmentSizes": emit.segments(len(sizes), 0), "alignment": emit.i64(64)}
    if host:
        attributes[HOST] = mlir.UnitAttr.get()
    return emit.create("memref.alloc", sizes, [type_], attributes).results[0]


def upload_constants(launch: mlir.Operation, hosts: set[mlir.Value]) -> None:
    """Replace the operands of a launch that are in host memory by uploaded copies."""
    for position, operand in enumerate(launch.operands):
        if isinstance(operand.type, mlir.MemRefType) and is_host(operand, hosts):
            with launch.location, mlir.InsertionPoint(launch):
                there = allocated(operand, False)
                memcpy(there, operand)
            launch.operands[position] = there


def move_to_host(op: mlir.Operation, hosts: set[mlir.Value]) -> None:
    """Replace the device buffers that an operation of the host accesses by copies in host memory."""
    if op.name == "memref.load" and not is_host(op.operands[0], hosts):
        load_element(op)
        return
    mirrors: dict[mlir.Value, mlir.Value] = {}
    outside = outer_values(op)
    for inner in operations(op):  # values captured by the body are not operands of `op`
        for position, operand in enumerate(inner.operands):
            if operand not in outside or not isinstance(operand.type, mlir.MemRefType) or is_host(operand, hosts):
                continue
            with op.location, mlir.InsertionPoint(op):
                inner.operands[position] = mirrored(operand, mirrors, inner == op and overwrites(op, position))
    after = op
    for there, here in mirrors.items():
        if not writes(op, here):
            continue
        with op.location, mlir.InsertionPoint.after(after):
            memcpy(there, here)


def overwrites(op: mlir.Operation, position: int) -> bool:
    """True if an operation overwrites an operand without reading it."""
    if op.name == "mlirml.host_result":
        return True
    if op.name in LIBRARY_CALLS:
        return position == LIBRARY_CALLS[op.name].inputs
    if op.name in COMPACTIONS:
        return False  # what the program does not define keeps its old contents
    return position == 1 and op.name in ("linalg.fill", "memref.copy", *SORTS)


def mirrored(value: mlir.Value, mirrors: dict[mlir.Value, mlir.Value], fresh: bool = False) -> mlir.Value:
    """The host copy of a device buffer, with the same views; `fresh` if the operation does not read it."""
    if is_contiguous(value.type):
        if value not in mirrors:
            mirrors[value] = allocated(value, True)
            if not fresh:
                memcpy(mirrors[value], value)
        return mirrors[value]
    owner = defining_op(value)
    assert owner is not None and owner.name in VIEWS, "only views have elements that lie apart"
    source = owner.operands[0]
    return clone_with(owner, {source: with_layout_of(source, mirrored(source, mirrors))}).results[0]


def with_layout_of(view: mlir.Value, memref: mlir.Value) -> mlir.Value:
    """A memref in the type of another one, whose layout tells less."""
    return memref if memref.type == view.type else emit.value("memref.cast", [memref], view.type)


def writes(op: mlir.Operation, here: mlir.Value) -> bool:
    """True if an operation may write to a buffer or to a view of it."""
    if op.name in HOST_CALLS:
        return op.name == "mlirml.host_result" and here in map(buffer_of, op.operands)
    found = effects(op)
    return found.unknown or buffer_of(here) in found.writes


def load_element(op: mlir.Operation) -> None:
    """Replace a load from device memory by a copy of the element to the host and a load of the copy."""
    source, *indices = op.operands
    kind = source.type
    dynamic = mlir.ShapedType.get_dynamic_stride_or_offset()
    with op.location, mlir.InsertionPoint(op):
        here = new_buffer(mlir.MemRefType.get([], kind.element_type), [], True)
        part = source
        if indices:
            result = mlir.MemRefType.get([], kind.element_type, mlir.StridedLayoutAttr.get(dynamic, []))
            part = emit.slice_op("memref.subview", [source], result, indices, [1] * len(indices))
        memcpy(here, part)
    op.operands[0] = here
    new = None
    with op.location, mlir.InsertionPoint(op):
        new = emit.value("memref.load", [here], kind.element_type)
    replace_op(op, new)

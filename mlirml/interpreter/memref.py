"""Rules of the reference interpreter for `memref`, and for `bufferization` between tensors and memrefs."""

from __future__ import annotations

import itertools

import numpy as np

from mlirml.analysis.structured import groups_of
from mlirml.dialects.atomics import OPERATION_OF, kind_of
from mlirml.interpreter.program import Environment, Function, Kernel, Step, controls, evaluates, unsupported
from mlirml.interpreter.scalar import binary_kernel
from mlirml.interpreter.tensor import SLICE_NAMES, kept_axes
from mlirml.interpreter.values import (
    DYNAMIC,
    Array,
    Buffer,
    Trap,
    Value,
    check_slice,
    checked,
    dtype_of,
    integers,
    mixed,
    mixed_groups,
    poison,
    row_major,
    segments,
    shape_of,
)
from mlirml.ir.bindings import mlir


@evaluates("memref.alloc", "memref.alloca")
def alloc_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Uninitialized memory: poison."""
    memref_type = op.results[0].type
    read, dtype = mixed(shape_of(memref_type)), dtype_of(memref_type)
    sizes = segments(op)[0]
    strides, offset = memref_type.get_strides_and_offset()
    if DYNAMIC in (offset, *strides) and not _is_identity(memref_type):
        raise unsupported(op, "a layout with dynamic strides")

    def kernel(*operands: Value) -> Buffer:
        shape = read(operands[sizes])
        if _is_identity(memref_type):
            return Buffer.allocate(shape, dtype)
        extent = 0 if 0 in shape else 1 + offset + sum((n - 1) * step for n, step in zip(shape, strides))
        return Buffer.allocate([extent], dtype).view(offset, shape, strides)

    return kernel


def _is_identity(memref_type: mlir.Type) -> bool:
    return bool(memref_type.affine_map == mlir.AffineMap.get_identity(len(memref_type.shape), memref_type.context))


@evaluates("memref.dealloc")
def dealloc_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Poison the memory, so that a later use is visible."""

    def kernel(buffer: Buffer) -> None:
        buffer.array[...] = poison([], buffer.array.dtype)

    return kernel


@evaluates("memref.prefetch")
def prefetch_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Nothing: a hint."""
    return lambda *operands: None


@evaluates("memref.load")
def load_rule(op: mlir.Operation, _: Function) -> Kernel:
    """One element, or one for each element of the index arrays."""
    return lambda buffer, *indices: buffer.array[checked(indices, buffer.array.shape)]


@evaluates("memref.store")
def store_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Write one element."""

    def kernel(value: Value, buffer: Buffer, *indices: Value) -> None:
        buffer.array[checked(indices, buffer.array.shape)] = value

    return kernel


@evaluates("memref.copy", "linalg.copy")
def copy_rule(op: mlir.Operation, _: Function) -> Kernel:
    """All elements, as if read before the first is written."""
    if op.results:
        return lambda source, target: source

    def kernel(source: Buffer, target: Buffer) -> None:
        if source.array.shape != target.array.shape:
            raise Trap(f"copy of sizes {list(source.array.shape)} to {list(target.array.shape)}")
        target.array[...] = source.array.copy()

    return kernel


@evaluates("memref.get_global")
def get_global_rule(op: mlir.Operation, function: Function) -> Kernel:
    """The memory of a global."""
    program, name = function.program, mlir.FlatSymbolRefAttr(op.attributes["name"]).value
    return lambda: program.global_buffer(name)


@evaluates("memref.cast")
def cast_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The same buffer; sizes, strides and offset must agree with the new type."""
    result_type = op.results[0].type
    if not isinstance(result_type, mlir.MemRefType):
        raise unsupported(op, "unranked memrefs")
    shape = shape_of(result_type)
    strides, offset = result_type.get_strides_and_offset()

    def kernel(buffer: Buffer) -> Buffer:
        actual = [*buffer.array.shape, *buffer.strides, buffer.offset]
        if buffer.array.size and any(n not in (DYNAMIC, m) for n, m in zip([*shape, *strides, offset], actual)):
            raise Trap(f"sizes, strides and offset {actual} are no {result_type}")
        return buffer

    return kernel


@evaluates("memref.memory_space_cast", "memref.assume_alignment")
def same_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The same buffer."""
    return lambda buffer: buffer


@evaluates("memref.distinct_objects")
def distinct_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The same buffers, which must not overlap."""

    def kernel(*buffers: Buffer) -> Value:
        for position, buffer in enumerate(buffers):
            if any(np.may_share_memory(buffer.array, other.array) for other in buffers[:position]):
                raise Trap("the buffers overlap")
        return buffers if len(buffers) > 1 else buffers[0]

    return kernel


@evaluates("memref.subview")
def subview_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A strided subview."""
    read, kept = mixed_groups(op, *SLICE_NAMES), kept_axes(op)

    def kernel(*operands: Value) -> Buffer:
        buffer: Buffer = operands[0]
        offsets, sizes, strides = read(operands)
        check_slice(offsets, sizes, strides, buffer.array.shape)
        outer = buffer.strides
        start = buffer.offset + sum(first * step for first, step in zip(offsets, outer))
        return buffer.view(start, [sizes[a] for a in kept], [strides[a] * outer[a] for a in kept])

    return kernel


@evaluates("memref.view")
def view_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Bytes as elements of another type."""
    result_type = op.results[0].type
    read, dtype = mixed(shape_of(result_type)), dtype_of(result_type)
    return lambda buffer, offset, *sizes: buffer.reinterpret(int(offset), read(sizes), dtype)


@evaluates("memref.reinterpret_cast")
def reinterpret_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Other sizes and strides; the offset counts from the aligned pointer."""
    read = mixed_groups(op, *SLICE_NAMES)

    def kernel(*operands: Value) -> Buffer:
        (offset,), sizes, strides = read(operands)
        return operands[0].view(offset, sizes, strides)

    return kernel


@evaluates("memref.extract_strided_metadata")
def metadata_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A buffer of rank zero, the offset, the sizes and the strides."""

    def kernel(buffer: Buffer) -> list[Value]:
        numbers = [buffer.offset, *buffer.array.shape, *buffer.strides]
        return [buffer.view(0, [], []), *[np.int64(number) for number in numbers]]

    return kernel


@evaluates("memref.collapse_shape")
def collapse_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Collapse groups of contiguous dimensions."""
    groups = groups_of(op)

    def kernel(buffer: Buffer) -> Buffer:
        sizes, strides = [], []
        for group in groups:
            pairs = [(buffer.array.shape[a], buffer.strides[a]) for a in group if buffer.array.shape[a] != 1]
            if any(outer != size * inner for (_, outer), (size, inner) in itertools.pairwise(pairs)):
                raise Trap(f"dimensions {group} with strides {buffer.strides} are not contiguous")
            sizes.append(int(np.prod([size for size, _ in pairs], dtype=np.int64)))
            strides.append(pairs[-1][1] if pairs else 1)
        return buffer.view(buffer.offset, sizes, strides)

    return kernel


@evaluates("memref.expand_shape")
def expand_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Expand dimensions into several."""
    groups, read = groups_of(op), mixed(integers(op, "static_output_shape"))

    def kernel(buffer: Buffer, *dynamic: Value) -> Buffer:
        sizes, strides = read(dynamic), []
        for group, size, stride in zip(groups, buffer.array.shape, buffer.strides):
            inner = [sizes[axis] for axis in group]
            if int(np.prod(inner, dtype=np.int64)) != size:
                raise Trap(f"a dimension of size {size} does not split into {inner}")
            strides += [step * stride for step in row_major(inner)]
        strides += [1] * (len(sizes) - len(strides))  # rank zero, which has no groups, becomes ones
        return buffer.view(buffer.offset, sizes, strides)

    return kernel


@evaluates("memref.reshape")
def reshape_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Reshape to the sizes in the second operand."""

    def kernel(buffer: Buffer, sizes: Buffer) -> Buffer:
        shape = [int(size) for size in sizes.array]
        return buffer.view(buffer.offset, shape, row_major(shape))

    return kernel


@evaluates("memref.transpose")
def transpose_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Permuted dimensions."""
    order = [result.position for result in op.attributes["permutation"].value.results]
    return lambda buffer: Buffer(buffer.array.transpose(order), buffer.memory)


def _second(old: Value, new: Value) -> Value:
    return new


@evaluates("memref.atomic_rmw")
def atomic_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Update one element and return its old value."""
    name = OPERATION_OF.get(kind_of(op))
    combine = _second if name is None else binary_kernel(name, dtype_of(op.operands[0].type))

    def kernel(value: Value, buffer: Buffer, *indices: Value) -> Value:
        index = checked(indices, buffer.array.shape)
        old = buffer.array[index]
        buffer.array[index] = combine(old, value)
        return old

    return kernel


@controls("memref.generic_atomic_rmw")
def generic_atomic_rule(op: mlir.Operation, function: Function) -> Step:
    """Replace one element by the value that the region computes from it."""
    buffer_slot, *indices = [function.slot(value) for value in op.operands]
    body, result = function.block(op.regions[0].blocks[0]), function.slot(op.results[0])

    def run(environment: Environment) -> None:
        buffer = environment[buffer_slot]
        index = checked([environment[slot] for slot in indices], buffer.array.shape)
        environment[result] = buffer.array[index]
        buffer.array[index] = body.run(environment, [buffer.array[index]])[0]

    return run


@evaluates("bufferization.to_tensor")
def to_tensor_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A copy of the buffer's elements."""
    return lambda buffer: buffer.array.copy()


@evaluates("bufferization.to_buffer")
def to_buffer_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A new buffer with the elements of the tensor."""
    return lambda value: Buffer.around(np.array(value, order="C"))


@evaluates("bufferization.clone")
def clone_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A new buffer with the same elements."""
    return lambda buffer: Buffer.around(np.array(buffer.array, order="C"))


@evaluates("bufferization.dealloc_tensor")
def dealloc_tensor_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Nothing: tensors are values."""
    return lambda value: None


@evaluates("bufferization.materialize_in_destination")
def materialize_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Write a tensor to a buffer; with a tensor as destination, the source."""

    def kernel(source: Array, target: Value) -> Value:
        if isinstance(target, Buffer):
            target.array[...] = source
            return ()
        return source

    return kernel

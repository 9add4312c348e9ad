"""In-place stores of slices into a tensor: only the elements of the slice are computed and written.

Before (a kernel function on tensors):
    %s = linalg.generic {...} ins(%x : tensor<?xf32>) outs(...) {...} -> tensor<?xf32>
    %r = tensor.insert_slice %s into %out[%i] [%n] [1] : tensor<?xf32> into tensor<64xf32>
    return %r
After: a kernel with a thread for each element of the slice, in a grid that the host computes:
    gpu.func @k_slice(%n: index, %x: memref<64xf32>, %i: index, %out: memref<64xf32>) kernel {...}

Other threads may still read elements that one of them overwrites. So a slice that is computed from elements of the
tensor at other indices than those of the store is computed in separate memory first.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from mlirml.analysis.bounds import dims_of_slice, is_dynamic, size_operand
from mlirml.analysis.structured import indexing_maps
from mlirml.analysis.values import is_tensor
from mlirml.codegen.gpu.elements import Elements, apply, dims_at, is_structured, slice_parts, uses_dim
from mlirml.codegen.gpu.index import Base, Digit, Form, form
from mlirml.codegen.gpu.kernel import Host, Kernel
from mlirml.codegen.gpu.outs import carried_outs
from mlirml.codegen.gpu.reduce import reduce_each
from mlirml.codegen.gpu.sizes import Size, each_element, extents, flat_index, number_on_host, temporary, times
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir, operations


@dataclass(frozen=True)
class Chain:
    """Slices that are stored into a tensor in order, the last of which results in `value`."""

    value: mlir.Value
    out: mlir.Value
    inserts: tuple[mlir.Operation, ...]

    @property
    def versions(self) -> list[mlir.Value]:
        """The tensor before each of the stores."""
        return [op.operands[1] for op in self.inserts]


def chain_of(value: mlir.Value, out: mlir.Value) -> Chain | None:
    """A returned tensor as slices stored into the previous contents of its memory; None for other tensors."""
    inserts: list[mlir.Operation] = []
    tensor = value
    while tensor != out:
        op = defining_op(tensor)
        if op is None or op.name != "tensor.insert_slice":
            return None
        inserts.insert(0, op)
        tensor = op.operands[1]
    return Chain(value, out, tuple(inserts)) if inserts and not covers(inserts) else None


def covers(inserts: Sequence[mlir.Operation]) -> bool:
    """True if disjoint slices cover a tensor: a concatenation, which reads none of its old elements."""
    boxes = []
    for op in inserts:
        sizes = list(op.attributes["static_sizes"])
        starts = list(op.attributes["static_offsets"])
        if any(stride != 1 for stride in op.attributes["static_strides"]) or min([0, *sizes, *starts]) < 0:
            return False
        boxes.append(list(zip(starts, sizes, strict=True)))
    for number, box in enumerate(boxes):
        for other in boxes[:number]:
            if all(a < b + n and b < a + m for (a, m), (b, n) in zip(box, other, strict=True)):
                return False
    total = math.prod(inserts[0].results[0].type.shape)
    return bool(sum(math.prod(size for _, size in box) for box in boxes) == total)


def lower_chains(host: Host, chains: Sequence[Chain]) -> None:
    """Launches for tensors that slices are stored into; all other results are in memory already."""
    copies = []
    for chain in chains:
        others = [v for other in chains if other is not chain for v in other.versions]
        if reads_late(host, chain) or any(versions_read(op.operands[0], others, host) for op in chain.inserts):
            with chain.inserts[-1].location:
                copies.append((chain, whole_copy(host, chain.value)))
    for chain in chains:
        if all(chain is not copied for copied, _ in copies):
            lower_chain(host, chain)
    for chain, memory in copies:
        with chain.inserts[-1].location, mlir.InsertionPoint(host.end):
            emit.create("memref.copy", [memory, host.flat(chain.out)])
        host.buffers[chain.value] = host.buffers[chain.out]


def reads_late(host: Host, chain: Chain) -> bool:
    """True if a slice is computed from another version of the tensor than the one before its store."""
    sources = [versions_read(op.operands[0], chain.versions, host) for op in chain.inserts]
    return any(set(found) - {chain.versions[n]} for n, found in enumerate(sources))


def lower_chain(host: Host, chain: Chain) -> None:
    """Store the slices in order."""
    memory = host.buffers[chain.out]
    for op in chain.inserts:
        with op.location:
            host.buffers[op.operands[1]] = memory
            small = op.operands[0]
            if small not in host.buffers and reads_elsewhere(host, op):
                temporary(host, small)
                fill_tensor(host, small)
            store_slice(host, op)
            host.buffers[op.results[0]] = memory


def whole_copy(host: Host, value: mlir.Value) -> mlir.Value:
    """Compute a whole tensor into separate memory; returns the memory."""
    if is_dynamic(value):
        temporary(host, value)
        memory = host.buffers.pop(value)
    else:
        memory = host.array(value.type.shape, value.type.element_type)

    def store(kernel: Kernel, indices: list[Form]) -> None:
        found = Elements(kernel).get(value, tuple(indices))
        kernel.store(memory, [(flat_index(kernel, value, indices), found)])

    each_element(host, "elementwise", extents(host, value), store)
    return memory


def versions_read(tensor: mlir.Value, versions: Collection[mlir.Value], host: Host) -> list[mlir.Value]:
    """The versions of tensors that a value is computed from, not looking through tensors in separate memory."""
    todo, seen, found = [tensor], set[mlir.Value](), []
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in versions:
            found.append(value)
        elif value not in host.buffers and (op := defining_op(value)) is not None:
            todo += [operand for inner in operations(op) for operand in inner.operands]
    return found


def reads_elsewhere(host: Host, op: mlir.Operation) -> bool:
    """True if the small tensor of a store reads the large one at other indices than those of the store."""
    small, big = list(op.operands)[:2]
    if not versions_read(small, [big], host) or all(size == 1 for size in op.attributes["static_sizes"]):
        return False  # one thread reads everything before it stores
    own = tuple(form(Digit(Base(("own", dim)))) for dim in range(small.type.rank))
    return strays(host, small, own, big, symbolic_indices(op, own), set())


def symbolic_indices(op: mlir.Operation, indices: Sequence[Form]) -> tuple[Form, ...]:
    """The indices in the large tensor of an element of the small one, in values of the kernel function."""
    dynamic = iter(list(op.operands)[1 if op.name == "tensor.extract_slice" else 2 :])
    unknown = mlir.ShapedType.get_dynamic_stride_or_offset()
    inner = dict(zip(dims_of_slice(op), indices, strict=True))
    parts = []
    strides = list(op.attributes["static_strides"])
    last = iter(list(op.operands)[len(op.operands) - sum(stride == unknown for stride in strides) :])
    for dim, (offset, stride) in enumerate(zip(op.attributes["static_offsets"], strides, strict=True)):
        start = form(Digit(Base(next(dynamic)))) if offset == unknown else form(offset)
        index = inner.get(dim, form(0))
        parts.append(start + (form(Digit(Base((index, next(last))))) if stride == unknown else index * stride))
    return tuple(parts)


def strays(
    host: Host,
    tensor: mlir.Value,
    indices: tuple[Form, ...],
    big: mlir.Value,
    allowed: tuple[Form, ...],
    seen: set[tuple[mlir.Value, tuple[Form, ...]]],
) -> bool:
    """True if an element of a tensor may be computed from another element of `big` than the allowed one.

    False for the elements in `seen`, which gets those of this search.
    """
    if (tensor, indices) in seen:
        return False
    seen.add((tensor, indices))
    if tensor == big:
        return indices != allowed
    op = defining_op(tensor)
    if op is None or not versions_read(tensor, [big], host):
        return False
    if op.name == "tensor.extract_slice":
        return strays(host, op.operands[0], symbolic_indices(op, indices), big, allowed, seen)
    if not is_structured(op):
        return True
    point = dims_at(op, list(op.results).index(tensor), indices)
    body = {operand for inner in operations(op) if inner != op for operand in inner.operands}
    if any(versions_read(value, [big], host) for value in body):
        return True
    for operand, map_ in zip(op.operands, indexing_maps(op), strict=True):
        if is_tensor(operand) and versions_read(operand, [big], host):
            known = [dim or form(0) for dim in point]
            reduced = any(dim is None and uses_dim(map_, d) for d, dim in enumerate(point))
            if reduced or strays(host, operand, tuple(apply(map_, known)), big, allowed, seen):
                return True
    return False


def store_slice(host: Host, op: mlir.Operation) -> None:
    """A kernel that computes a slice and stores it."""
    small, big = list(op.operands)[:2]

    def store(kernel: Kernel, elements: Elements, indices: Sequence[Form], value: mlir.Value) -> None:
        offsets, strides = slice_parts(elements, op, 2)
        inner = dict(zip(dims_of_slice(op), indices, strict=True))
        parts = [
            o + times(kernel, inner.get(d, form(0)), s) for d, (o, s) in enumerate(zip(offsets, strides, strict=True))
        ]
        kernel.store(big, [(flat_index(kernel, big, parts), value)])

    made = defining_op(small)
    if made is not None and small not in host.buffers and carried_outs(made):
        reduce_each(host, made, [list(made.results).index(small)], [store])
        return

    def body(kernel: Kernel, indices: list[Form]) -> None:
        elements = Elements(kernel)
        store(kernel, elements, indices, elements.get(small, tuple(indices)))

    each_element(host, "slice", sizes_of_small(host, op), body)


def sizes_of_small(host: Host, op: mlir.Operation) -> list[Size]:
    """The sizes of the small tensor of a store, by the operands of the store."""
    sizes = [size_operand(op, dim, 2) for dim in dims_of_slice(op)]
    return [size if isinstance(size, int) else number_on_host(host, size) for size in sizes]


def fill_tensor(host: Host, tensor: mlir.Value) -> None:
    """Compute a tensor into its memory."""
    memory = host.buffers.pop(tensor)

    def store(kernel: Kernel, elements: Elements, indices: Sequence[Form], value: mlir.Value) -> None:
        kernel.store(memory, [(flat_index(kernel, tensor, indices), value)])

    def body(kernel: Kernel, indices: list[Form]) -> None:
        elements = Elements(kernel)
        store(kernel, elements, indices, elements.get(tensor, tuple(indices)))

    made = defining_op(tensor)
    if made is not None and carried_outs(made):
        reduce_each(host, made, [list(made.results).index(tensor)], [store])
    else:
        each_element(host, "elementwise", extents(host, tensor), body)
    host.buffers[tensor] = memory

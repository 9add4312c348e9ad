"""Rules of the reference interpreter for `vector`; vectors are small ndarrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from mlirml.interpreter.linalg import Access
from mlirml.interpreter.program import Environment, Function, Kernel, Step, controls, evaluates, unsupported
from mlirml.interpreter.reduction import Reduction, kind_of
from mlirml.interpreter.scalar import fma_kernel
from mlirml.interpreter.values import (
    Array,
    Buffer,
    Trap,
    Value,
    checked,
    dtype_of,
    integer,
    integers,
    is_shaped,
    mixed,
    poison,
    segments,
    shape_of,
    window,
)
from mlirml.ir.bindings import block_ops, mlir


def _memory(base: Value) -> Array:
    """The array of a memref or a tensor."""
    return base.array if isinstance(base, Buffer) else base


@evaluates("vector.load")
def load_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A contiguous vector along the last dimensions, entirely in bounds."""
    shape = shape_of(op.results[0].type)
    return lambda base, *indices: _memory(base)[window(indices, shape, base.array.shape)].reshape(shape).copy()


@evaluates("vector.store")
def store_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Write a contiguous vector along the last dimensions."""

    def kernel(value: Array, base: Buffer, *indices: Value) -> None:
        part = base.array[window(indices, value.shape, base.array.shape)]
        part[...] = value.reshape(part.shape)

    return kernel


def _lanes(indices: Sequence[Value], mask: Array, shape: Sequence[int]) -> tuple[Value, ...]:
    """The indices of the lanes whose mask is on, contiguous along the last dimensions."""
    starts = [np.int64(index) for index in indices]
    lead = len(shape) - mask.ndim
    on = np.nonzero(mask)
    moved = [start + index for start, index in zip(starts[lead:], on)]
    return checked([*[np.full(len(on[0]), start) for start in starts[:lead]], *moved], shape)


def _packed(indices: Sequence[Value], mask: Array, shape: Sequence[int]) -> tuple[Value, ...]:
    """Contiguous indices, as many as the mask has ones."""
    return _lanes(indices, np.ones(int(mask.sum()), np.bool_), shape)


LaneIndices = Callable[[Sequence[Value], Array, Sequence[int]], tuple[Value, ...]]


def _masked_load(lane_indices: LaneIndices) -> Kernel:
    """Load the lanes whose mask is on, from `lane_indices`; the other lanes are those of the last operand."""

    def kernel(base: Value, *operands: Value) -> Array:
        *indices, mask, otherwise = operands
        result: Array = otherwise.copy()
        result[mask] = _memory(base)[lane_indices(indices, mask, _memory(base).shape)]
        return result

    return kernel


def _masked_store(lane_indices: LaneIndices) -> Kernel:
    """Write the lanes whose mask is on to `lane_indices`."""

    def kernel(base: Buffer, *operands: Value) -> None:
        *indices, mask, value = operands
        base.array[lane_indices(indices, mask, base.array.shape)] = value[mask]

    return kernel


@evaluates("vector.maskedload")
def maskedload_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Masked load of a contiguous vector."""
    return _masked_load(_lanes)


@evaluates("vector.maskedstore")
def maskedstore_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Masked store of a contiguous vector."""
    return _masked_store(_lanes)


@evaluates("vector.expandload")
def expandload_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Load contiguous elements into the lanes whose mask is on."""
    return _masked_load(_packed)


@evaluates("vector.compressstore")
def compressstore_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Store the lanes whose mask is on contiguously."""
    return _masked_store(_packed)


def _at_offsets(indices: Sequence[Value], offsets: Array, mask: Array, shape: Sequence[int]) -> tuple[Value, ...]:
    """The indices of the lanes whose mask is on, at given offsets along the last dimension."""
    last = np.int64(indices[-1]) + offsets[mask].astype(np.int64)
    return checked([*[np.full(last.shape, index) for index in indices[:-1]], last], shape)


@evaluates("vector.gather")
def gather_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Elements at given offsets where the mask is on; the other lanes are those of the last operand."""

    def kernel(base: Value, *operands: Value) -> Array:
        *indices, offsets, mask, otherwise = operands
        result: Array = otherwise.copy()
        result[mask] = _memory(base)[_at_offsets(indices, offsets, mask, _memory(base).shape)]
        return result

    return kernel


@evaluates("vector.scatter")
def scatter_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Write elements at given offsets where the mask is on."""

    def kernel(base: Value, *operands: Value) -> Value:
        *indices, offsets, mask, value = operands
        target = base.array if isinstance(base, Buffer) else base.copy()
        target[_at_offsets(indices, offsets, mask, target.shape)] = value[mask]
        return () if isinstance(base, Buffer) else target

    return kernel


class Transfer:
    """The elements that a `transfer_read` or `transfer_write` accesses."""

    def __init__(self, op: mlir.Operation, vector: mlir.Type) -> None:
        results = op.attributes["permutation_map"].value.results
        self.axes = [getattr(expr, "position", None) for expr in results]
        """For each dimension of the vector the dimension of the source, None for a broadcast."""
        self.in_bounds = [item.value for item in op.attributes["in_bounds"]] if "in_bounds" in op.attributes else []
        self.in_bounds += [False] * (len(self.axes) - len(self.in_bounds))
        self.shape = shape_of(vector)

    def lanes(
        self, indices: Sequence[Value], mask: Array | None, shape: Sequence[int]
    ) -> tuple[Array, tuple[Array, ...]]:
        """The mask of the lanes that access memory, and the indices of these."""
        on = np.ones(self.shape, np.bool_) if mask is None else self._spread(mask)
        element_indices = [np.full(self.shape, int(start), np.int64) for start in indices]
        positions = np.indices(self.shape, np.int64)
        for dim, axis in enumerate(self.axes):
            if axis is not None:
                element_indices[axis] = element_indices[axis] + positions[dim]
        for dim, axis in enumerate(self.axes):
            if axis is not None:
                in_bounds = (element_indices[axis] >= 0) & (element_indices[axis] < shape[axis])
                if self.in_bounds[dim] and not in_bounds[on].all():
                    raise Trap(f"dimension {axis} of size {shape[axis]} is not in bounds from {int(indices[axis])} on")
                on = on & in_bounds
        return on, checked([index[on] for index in element_indices], shape)

    def _spread(self, mask: Array) -> Array:
        """A mask over the dimensions of the source as one over those of the vector."""
        used = sorted(axis for axis in self.axes if axis is not None)
        order = [used.index(axis) for axis in self.axes if axis is not None]
        turned = mask.transpose(order)
        sizes = iter(turned.shape)
        return np.broadcast_to(turned.reshape([1 if axis is None else next(sizes) for axis in self.axes]), self.shape)


def _read_kernel(op: mlir.Operation) -> Callable[[list[Value], Array | None], Array]:
    transfer = Transfer(op, op.results[0].type)
    _, index_group, padding_group, mask_group = segments(op)

    def read(operands: list[Value], outer: Array | None) -> Array:
        mask = operands[mask_group][0] if operands[mask_group] else outer
        base = _memory(operands[0])
        on, indices = transfer.lanes(operands[index_group], mask, base.shape)
        result = np.full(transfer.shape, operands[padding_group][0], base.dtype)
        result[on] = base[indices]
        return result

    return read


def _write_kernel(op: mlir.Operation) -> Callable[[list[Value], Array | None], Value]:
    transfer = Transfer(op, op.operands[0].type)
    _, _, index_group, mask_group = segments(op)

    def write(operands: list[Value], outer: Array | None) -> Value:
        mask = operands[mask_group][0] if operands[mask_group] else outer
        value, base = operands[0], operands[1]
        target = base.array if isinstance(base, Buffer) else base.copy()
        on, indices = transfer.lanes(operands[index_group], mask, target.shape)
        target[indices] = value[on]
        return () if isinstance(base, Buffer) else target

    return write


@evaluates("vector.transfer_read")
def transfer_read_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A slice of a tensor or memref, padded where it is out of bounds."""
    read = _read_kernel(op)
    return lambda *operands: read(list(operands), None)


@evaluates("vector.transfer_write")
def transfer_write_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Write a slice of a tensor or memref, except where it is out of bounds."""
    write = _write_kernel(op)
    return lambda *operands: write(list(operands), None)


def _reduce_kernel(op: mlir.Operation) -> Callable[[list[Value], Array | None], Value]:
    dtype = dtype_of(op.operands[0].type)
    reduction = Reduction(kind_of(op, dtype), dtype)

    def reduce(operands: list[Value], mask: Array | None) -> Value:
        lanes = operands[0] if mask is None else operands[0][mask]
        lanes = np.concatenate([np.asarray(value).reshape(-1) for value in (*operands[1:], lanes)])
        if not lanes.size:
            raise unsupported(op, "no lane and no start value")
        return np.asarray(reduction.fold(lanes[:1], lanes[1:], [0])).reshape(-1)[0]

    return reduce


@evaluates("vector.reduction")
def reduction_rule(op: mlir.Operation, _: Function) -> Kernel:
    """All lanes, and the accumulator if there is one, combined."""
    reduce = _reduce_kernel(op)
    return lambda *operands: reduce(list(operands), None)


_MASKABLE: dict[str, Callable[[mlir.Operation], Callable[[list[Value], Array | None], Value]]] = {
    "vector.reduction": _reduce_kernel,
    "vector.transfer_read": _read_kernel,
    "vector.transfer_write": _write_kernel,
}


@controls("vector.mask")
def mask_rule(op: mlir.Operation, function: Function) -> Step:
    """The nested operation, on the lanes whose mask is on."""
    inner, *_ = block_ops(op.regions[0].blocks[0])
    if inner.name not in _MASKABLE or len(op.operands) > 1:
        raise unsupported(op, f"around {inner.name}")
    kernel = _MASKABLE[inner.name](inner)
    mask, slots = function.slot(op.operands[0]), [function.slot(value) for value in inner.operands]
    results = [function.slot(value) for value in op.results]

    def run(environment: Environment) -> None:
        value = kernel([environment[slot] for slot in slots], environment[mask])
        for slot in results:
            environment[slot] = value

    return run


@evaluates("vector.multi_reduction")
def multi_reduction_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Some dimensions combined, with the accumulator."""
    dtype, axes = dtype_of(op.operands[0].type), integers(op, "reduction_dims")
    reduction = Reduction(kind_of(op, dtype), dtype)

    def kernel(value: Array, initial: Value) -> Value:
        kept = [1 if axis in axes else size for axis, size in enumerate(value.shape)]
        total = reduction.fold(np.asarray(initial).reshape(kept), value, axes)
        return total.reshape(np.shape(initial))[()]

    return kernel


@evaluates("vector.contract")
def contract_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Products of two vectors, combined with the accumulator."""
    dtype = dtype_of(op.operands[2].type)
    reduction = Reduction(kind_of(op, dtype), dtype)
    accesses = [Access(attribute.value) for attribute in op.attributes["indexing_maps"]]
    rank = accesses[0].rank
    axes = [dim for dim in range(rank) if dim not in accesses[2].covered]

    def kernel(lhs: Array, rhs: Array, initial: Value) -> Value:
        arrays = [np.asarray(value).astype(dtype) for value in (lhs, rhs, initial)]
        sizes = [0] * rank
        for array, access in zip(arrays, accesses):
            for size, dim in zip(array.shape, access.dimensions):
                if dim is not None:
                    sizes[dim] = size
        space = tuple(range(size) for size in sizes)
        views = [access.over(array, sizes) for access, array in zip(accesses, arrays)]
        product = np.broadcast_to(views[0].get(space) * views[1].get(space), sizes)
        views[2].set(space, reduction.fold(views[2].get(space), product, axes))
        return arrays[2][()]

    return kernel


@evaluates("vector.outerproduct")
def outerproduct_rule(op: mlir.Operation, _: Function) -> Kernel:
    """All products of two vectors, or a vector times a scalar, combined with the accumulator."""
    dtype = dtype_of(op.results[0].type)
    pair = Reduction(kind_of(op, dtype), dtype).pair
    outer = is_shaped(op.operands[1].type)

    def kernel(lhs: Array, rhs: Value, *initial: Array) -> Array:
        product: Array = lhs[:, None] * rhs if outer else lhs * rhs
        return pair(initial[0], product) if initial else product

    return kernel


@evaluates("vector.scan")
def scan_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Prefix combinations along a dimension, and the last one."""
    dtype, axis = dtype_of(op.operands[0].type), integer(op, "reduction_dim")
    pair, inclusive = Reduction(kind_of(op, dtype), dtype).pair, op.attributes["inclusive"].value

    def kernel(value: Array, initial: Array) -> list[Array]:
        slices = np.moveaxis(value, axis, 0)
        running = [pair(initial, slices[0]) if inclusive else initial]
        for previous, current in itertools.pairwise(slices):
            running.append(pair(running[-1], current if inclusive else previous))
        return [np.stack(running, axis), running[-1]]

    return kernel


@evaluates("vector.fma")
def fma_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Fused multiply-add: one rounding."""
    return fma_kernel(dtype_of(op.results[0].type))


@evaluates("vector.broadcast")
def broadcast_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A scalar or vector, broadcast."""
    shape = shape_of(op.results[0].type)
    return lambda value: np.broadcast_to(value, shape)


@evaluates("vector.shape_cast")
def shape_cast_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The same elements in another shape."""
    shape = shape_of(op.results[0].type)
    return lambda value: value.reshape(shape)


@evaluates("vector.bitcast")
def bitcast_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The same bits as elements of another width; i1 counts from the lowest bit."""
    kind = op.results[0].type
    shape, dtype = shape_of(kind), dtype_of(kind)

    def kernel(value: Array) -> Array:
        raw = np.packbits(value, -1, "little") if value.dtype.kind == "b" else np.ascontiguousarray(value)
        if dtype.kind == "b":
            return np.unpackbits(raw.view(np.uint8), -1, bitorder="little").astype(np.bool_).reshape(shape)
        return raw.view(dtype).reshape(shape)

    return kernel


@evaluates("vector.transpose")
def transpose_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Permuted dimensions."""
    order = integers(op, "permutation")
    return lambda value: value.transpose(order)


@evaluates("vector.extract")
def extract_rule(op: mlir.Operation, _: Function) -> Kernel:
    """An element or a slice; poison at position -1."""
    static, kind = integers(op, "static_position"), op.results[0].type
    read = mixed(static)
    if -1 in static:
        nothing = poison(shape_of(kind), dtype_of(kind))[()]
        return lambda value, *dynamic: nothing

    def kernel(value: Array, *dynamic: Value) -> Value:
        place = read(dynamic)
        return value[checked(place, value.shape[: len(place)])]

    return kernel


@evaluates("vector.insert")
def insert_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A copy with an element or a slice replaced; unchanged at position -1."""
    static = integers(op, "static_position")
    read = mixed(static)

    def kernel(value: Value, target: Array, *dynamic: Value) -> Array:
        result: Array = target.copy()
        place = read(dynamic)
        if -1 not in static:
            result[checked(place, target.shape[: len(place)])] = value
        return result

    return kernel


def _part(starts: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(start, start + size) for start, size in zip(starts, sizes))


@evaluates("vector.extract_strided_slice")
def extract_slice_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A slice along the first dimensions."""
    part = _part(integers(op, "offsets"), integers(op, "sizes"))
    return lambda value: value[part]


@evaluates("vector.insert_strided_slice")
def insert_slice_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A copy with a slice along the last dimensions replaced."""
    offsets = integers(op, "offsets")

    def kernel(value: Array, target: Array) -> Array:
        result: Array = target.copy()
        sizes = [1] * (target.ndim - value.ndim) + list(value.shape)
        result[_part(offsets, sizes)] = value.reshape(sizes)
        return result

    return kernel


def _mask_of(shape: Sequence[int], sizes: Sequence[int]) -> Array:
    """A mask that is on where every index is below its size."""
    result = np.zeros(shape, np.bool_)
    result[tuple(slice(0, max(0, size)) for size in sizes)] = True
    return result


@evaluates("vector.create_mask")
def create_mask_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A mask that is on below the operands."""
    shape = shape_of(op.results[0].type)
    return lambda *sizes: _mask_of(shape, [int(size) for size in sizes])


@evaluates("vector.constant_mask")
def constant_mask_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A mask that is on below constant sizes."""
    value = _mask_of(shape_of(op.results[0].type), integers(op, "mask_dim_sizes"))
    return lambda: value


@evaluates("vector.step")
def step_rule(op: mlir.Operation, _: Function) -> Kernel:
    """0, 1, 2, ..."""
    value = np.arange(shape_of(op.results[0].type)[0], dtype=np.int64)
    return lambda: value


@evaluates("vector.shuffle")
def shuffle_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The chosen leading slices of two vectors; -1 is poison."""
    chosen = np.array(integers(op, "mask"))

    def kernel(a: Array, b: Array) -> Array:
        result: Array = np.concatenate([np.atleast_1d(a), np.atleast_1d(b)])[chosen]
        result[chosen < 0] = poison([], result.dtype)
        return result

    return kernel


@evaluates("vector.interleave")
def interleave_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The lanes of two vectors, interleaved."""
    shape = shape_of(op.results[0].type)
    return lambda a, b: np.stack([a, b], -1).reshape(shape)


@evaluates("vector.deinterleave")
def deinterleave_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The even lanes and the odd lanes."""
    return lambda value: (value[..., ::2], value[..., 1::2])


@evaluates("vector.to_elements")
def to_elements_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The lanes in row-major order."""
    if len(op.results) == 1:
        return lambda value: value.reshape(-1)[0]
    return lambda value: list(value.reshape(-1))

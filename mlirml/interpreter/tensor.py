"""Rules of the reference interpreter for `tensor`; tensors are ndarrays that are never modified."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mlirml.analysis.structured import groups_of
from mlirml.interpreter.program import (
    ELEMENTWISE,
    Code,
    Environment,
    Function,
    Kernel,
    Step,
    controls,
    evaluates,
    unsupported,
)
from mlirml.interpreter.values import (
    DYNAMIC,
    Array,
    Trap,
    Value,
    check_slice,
    checked,
    dtype_of,
    integer,
    integers,
    is_shaped,
    mixed,
    mixed_groups,
    poison,
    segments,
    shape_of,
)
from mlirml.ir.bindings import block_ops, mlir

LANE_SAFE = {"tensor.extract", "memref.load", "tensor.dim", "memref.dim", "linalg.index"}
"""Operations, besides the elementwise ones, whose kernels accept arrays of indices instead of scalars."""


def is_lane_safe(op: mlir.Operation) -> bool:
    """True if an operation in the body of a structured operation can be evaluated for many points at once."""
    return (op.name in ELEMENTWISE or op.name in LANE_SAFE) and not any(is_shaped(v.type) for v in op.results)


def every_point(code: Code, block: mlir.Block, environment: Environment, shape: Sequence[int]) -> Array:
    """The values that a block of index arguments yields over all points of a box."""
    *body, terminator = block_ops(block)
    if all(is_lane_safe(op) for op in body):
        (lanes,) = code.run(environment, np.indices(shape, np.int64, sparse=True))
        return np.broadcast_to(lanes, shape)
    result = np.empty(shape, dtype_of(terminator.operands[0].type))
    for point in np.ndindex(*shape):
        (result[point],) = code.run(environment, [np.int64(index) for index in point])
    return result


@evaluates("tensor.empty", "bufferization.alloc_tensor")
def empty_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A poison tensor, or a copy of the operand `copy`."""
    tensor_type = op.results[0].type
    read, dtype = mixed(shape_of(tensor_type)), dtype_of(tensor_type)
    if op.name == "bufferization.alloc_tensor":
        sizes, copied = segments(op)[:2]
        return lambda *operands: operands[copied][0] if operands[copied] else poison(read(operands[sizes]), dtype)
    return lambda *sizes: poison(read(sizes), dtype)


@evaluates("tensor.extract")
def extract_rule(op: mlir.Operation, _: Function) -> Kernel:
    """One element, or one for each element of the index arrays."""
    return lambda array, *indices: array[checked(indices, array.shape)]


def stores_in_place(op: mlir.Operation) -> bool:
    """True if a store writes to a loop-carried value of an `scf.for`, which is read before it only and is yielded.

    The loop then starts from a copy of the init, and no iteration needs another copy.
    """
    target, result = op.operands[1], op.results[0]
    block = op.block
    if target.owner != block or block.owner.operation.name != "scf.for":
        return False
    for use in target.uses:
        user = use.owner.operation
        if user != op and not (user.name == "tensor.extract" and user.block == block and user.is_before_in_block(op)):
            return False
    final = block_ops(block)[-1]
    passed_on = final.operands[mlir.BlockArgument(target).arg_number - 1] == result
    return passed_on and sum(1 for _ in result.uses) == 1


@evaluates("tensor.insert")
def insert_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A copy with one element replaced."""
    in_place = stores_in_place(op)

    def kernel(value: Value, array: Array, *indices: Value) -> Array:
        result: Array = array if in_place else array.copy()
        result[checked(indices, array.shape)] = value
        return result

    return kernel


@evaluates("tensor.dim", "memref.dim")
def dim_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The size of a dimension."""

    def kernel(value: Value, axis: Value) -> Value:
        shape = value.shape if isinstance(value, np.ndarray) else value.array.shape
        (position,) = checked([int(axis)], [len(shape)])
        return np.int64(shape[position])

    return kernel


@evaluates("tensor.rank", "memref.rank")
def rank_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The number of dimensions."""
    rank = np.int64(len(shape_of(op.operands[0].type)))
    return lambda value: rank


@evaluates("tensor.cast")
def cast_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The same tensor; its sizes must agree with the new type."""
    shape = shape_of(op.results[0].type)

    def kernel(value: Array) -> Array:
        if any(size not in (DYNAMIC, actual) for size, actual in zip(shape, value.shape)):
            raise Trap(f"a tensor of sizes {list(value.shape)} is no {op.results[0].type}")
        return value

    return kernel


@evaluates("tensor.bitcast")
def bitcast_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The same bits as another element type of the same width."""
    dtype = dtype_of(op.results[0].type)
    return lambda value: value.view(dtype)


@evaluates("tensor.splat")
def splat_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A tensor of one value."""
    read = mixed(shape_of(op.results[0].type))
    return lambda value, *sizes: np.full(read(sizes), value)


@evaluates("tensor.from_elements", "vector.from_elements")
def from_elements_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The operands, in row-major order."""
    tensor_type = op.results[0].type
    shape, dtype = shape_of(tensor_type), dtype_of(tensor_type)
    return lambda *elements: np.array(elements, dtype).reshape(shape)


@evaluates("tensor.concat")
def concat_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Concatenation along a dimension."""
    axis = integer(op, "dim")
    return lambda *operands: np.concatenate(operands, axis)


@evaluates("tensor.collapse_shape")
def collapse_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Collapse groups of dimensions."""
    groups = groups_of(op)

    def kernel(value: Array) -> Array:
        return value.reshape([int(np.prod([value.shape[axis] for axis in group], dtype=np.int64)) for group in groups])

    return kernel


@evaluates("tensor.expand_shape")
def expand_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Expand dimensions into several."""
    read = mixed(integers(op, "static_output_shape"))
    return lambda value, *sizes: value.reshape(read(sizes))


@evaluates("tensor.reshape")
def reshape_rule(op: mlir.Operation, _: Function) -> Kernel:
    """Reshape to the sizes in the second operand."""
    return lambda value, sizes: value.reshape([int(size) for size in sizes])


def slices(offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]) -> tuple[slice, ...]:
    """The index of a strided slice whose stride is positive."""
    return tuple(slice(first, first + size * step, step) for first, size, step in zip(offsets, sizes, strides))


def kept_axes(op: mlir.Operation) -> list[int]:
    """The dimensions of a slice that its result type keeps: it may drop some of size one."""
    sizes, shape = integers(op, "static_sizes"), shape_of(op.results[0].type)
    axes: list[int] = []
    for axis, size in enumerate(sizes):
        if len(axes) < len(shape) and size == shape[len(axes)]:
            axes.append(axis)
        elif size != 1:
            raise unsupported(op, f"sizes {sizes} for {op.results[0].type}")
    return axes


SLICE_NAMES = ("static_offsets", "static_sizes", "static_strides")


@evaluates("tensor.extract_slice")
def extract_slice_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A strided slice."""
    read, kept = mixed_groups(op, *SLICE_NAMES), kept_axes(op)

    def kernel(*operands: Value) -> Array:
        source: Array = operands[0]
        offsets, sizes, strides = read(operands)
        check_slice(offsets, sizes, strides, source.shape)
        return source[slices(offsets, sizes, strides)].reshape([sizes[axis] for axis in kept])

    return kernel


def insert_into(op: mlir.Operation) -> Callable[..., None]:
    """A function that writes the source of an `insert_slice` into an array: called with the array and the operands."""
    read = mixed_groups(op, *SLICE_NAMES)

    def insert(result: Array, *operands: Value) -> None:
        offsets, sizes, strides = read(operands)
        check_slice(offsets, sizes, strides, result.shape)
        result[slices(offsets, sizes, strides)] = operands[0].reshape(sizes)

    return insert


@evaluates("tensor.insert_slice")
def insert_slice_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A copy of the destination with a strided slice replaced."""
    insert, in_place = insert_into(op), stores_in_place(op)

    def kernel(*operands: Value) -> Array:
        result: Array = operands[1] if in_place else operands[1].copy()
        insert(result, *operands)
        return result

    return kernel


@controls("tensor.generate")
def generate_rule(op: mlir.Operation, function: Function) -> Step:
    """The value that the region yields, for each index."""
    sizes, result = [function.slot(value) for value in op.operands], function.slot(op.results[0])
    read = mixed(shape_of(op.results[0].type))
    block = op.regions[0].blocks[0]
    body = function.block(block)

    def run(environment: Environment) -> None:
        shape = read([environment[slot] for slot in sizes])
        environment[result] = every_point(body, block, environment, shape)

    return run


@controls("tensor.pad")
def pad_rule(op: mlir.Operation, function: Function) -> Step:
    """The source, surrounded by the values that the region yields at the padding's indices."""
    slots, result = [function.slot(value) for value in op.operands], function.slot(op.results[0])
    _, low_group, high_group = segments(op)
    low, high = mixed(integers(op, "static_low")), mixed(integers(op, "static_high"))
    block = op.regions[0].blocks[0]
    body = function.block(block)

    def run(environment: Environment) -> None:
        operands = [environment[slot] for slot in slots]
        source: Array = operands[0]
        before, after = low(operands[low_group]), high(operands[high_group])
        if min(before + after, default=0) < 0:
            raise Trap(f"negative padding, low {before}, high {after}")
        shape = [a + size + b for a, size, b in zip(before, source.shape, after)]
        padded = every_point(body, block, environment, shape).astype(source.dtype)
        padded[slices(before, source.shape, [1] * source.ndim)] = source
        environment[result] = padded

    return run


def _gathered(op: mlir.Operation, name: str) -> tuple[list[int], Callable[[Array, Array], tuple[Value, ...]]]:
    """The gathered dimensions of a `gather` or `scatter`, and a function that indexes its slices in the big tensor."""
    dims = integers(op, name)

    def index(big: Array, coordinates: Array) -> tuple[Value, ...]:
        columns = [coordinates[..., n] for n in range(len(dims))]
        checked(columns, [big.shape[axis] for axis in dims])
        full: list[Value] = []
        extra = big.ndim - len(dims)
        rest = 0
        for axis, size in enumerate(big.shape):
            if axis in dims:
                values = columns[dims.index(axis)]
                full.append(values.reshape(values.shape + (1,) * extra))
            else:
                full.append(np.arange(size).reshape((size,) + (1,) * (extra - rest - 1)))
                rest += 1
        return tuple(full)

    return dims, index


@evaluates("tensor.gather")
def gather_rule(op: mlir.Operation, _: Function) -> Kernel:
    """The slices at the given coordinates."""
    dims, index = _gathered(op, "gather_dims")
    result_type = op.results[0].type

    def kernel(source: Array, coordinates: Array) -> Array:
        taken: Array = source[index(source, coordinates)]
        return taken.reshape(_gather_shape(result_type, coordinates, source, dims))

    return kernel


def _gather_shape(result_type: mlir.Type, coordinates: Array, source: Array, dims: list[int]) -> list[int]:
    lead = list(coordinates.shape[:-1])
    if len(shape_of(result_type)) == len(lead) + source.ndim:
        return lead + [1 if axis in dims else size for axis, size in enumerate(source.shape)]
    return lead + [size for axis, size in enumerate(source.shape) if axis not in dims]


@evaluates("tensor.scatter")
def scatter_rule(op: mlir.Operation, _: Function) -> Kernel:
    """A copy of the destination with the slices at the given coordinates replaced."""
    dims, index = _gathered(op, "scatter_dims")
    if "unique" not in op.attributes:
        raise unsupported(op, "only with `unique`")

    def kernel(source: Array, target: Array, coordinates: Array) -> Array:
        result: Array = target.copy()
        kept = [size for axis, size in enumerate(target.shape) if axis not in dims]
        result[index(target, coordinates)] = source.reshape([*coordinates.shape[:-1], *kept])
        return result

    return kernel

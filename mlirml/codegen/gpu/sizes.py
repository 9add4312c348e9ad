"""Dynamic sizes: the host computes them, and kernels have them as arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from mlirml.analysis.bounds import DYNAMIC, dims_of_slice, is_dynamic, most_elements, size_operand
from mlirml.analysis.constants import constant_of
from mlirml.analysis.structured import indexing_maps
from mlirml.analysis.traits import TENSOR_STORES
from mlirml.analysis.values import is_tensor
from mlirml.codegen.gpu.index import Base, Digit, Form, cut_up, flat, form
from mlirml.codegen.gpu.kernel import THREADS, Host, Kernel
from mlirml.errors import LoweringError
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.ir.location import source_location
from mlirml.passes import NoMatch

Size: TypeAlias = "int | mlir.Value"
"""A size as a number, or as a value of the function that launches kernels."""


def no_rule(op: mlir.Operation) -> LoweringError:
    error = LoweringError(f"no kernel for `{op.name}`", location=source_location(op.location))
    error.op = op.name
    return error


def has_dynamic_sizes(function: mlir.Operation) -> bool:
    """True if a kernel function has a tensor of dynamic shape."""
    block = function.regions[0].blocks[0]
    values = [*block.arguments, *(v for op in block_ops(block) for v in (*op.operands, *op.results))]
    return any(map(is_dynamic, values))


def extent(host: Host, tensor: mlir.Value, dim: int) -> Size:
    """The size of a tensor of the kernel function along a dimension."""
    if tensor.type.shape[dim] != DYNAMIC:
        return int(tensor.type.shape[dim])
    op = defining_op(tensor)
    if op is None:
        loop = tensor.owner.owner.operation
        if loop.name == "scf.for":
            return extent(host, loop.operands[2 + list(tensor.owner.arguments).index(tensor)], dim)
        return on_host(host, ("dim", tensor, dim), lambda: emit.memref_dim(host.buffers[tensor], dim))
    if op.name == "scf.for":
        return extent(host, op.operands[3 + list(op.results).index(tensor)], dim)
    if op.name in TENSOR_STORES:
        return extent(host, op.operands[1], dim)
    if op.name == "tensor.extract_slice":
        size = size_operand(op, dims_of_slice(op)[dim], 1)
        return size if isinstance(size, int) else number_on_host(host, size)
    if op.name == "tensor.empty":
        return number_on_host(host, op.operands[sum(size == DYNAMIC for size in tensor.type.shape[:dim])])
    if op.name.startswith("linalg."):
        out = len(op.operands) - len(op.results) + list(op.results).index(tensor)
        return extent(host, op.operands[out], dim)
    if op.name == "tensor.cast":
        return extent(host, op.operands[0], dim)
    if op.name == "tensor.collapse_shape":
        group = [int(d.value) for d in op.attributes["reassociation"][dim]]
        return product(host, [extent(host, op.operands[0], d) for d in group])
    if op.name == "tensor.expand_shape":
        return number_on_host(host, op.operands[1 + sum(size == DYNAMIC for size in tensor.type.shape[:dim])])
    if op.name == "arith.select":
        return extent(host, op.operands[1], dim)
    raise no_rule(op)


def on_host(host: Host, key: object, build: Callable[[], mlir.Value]) -> mlir.Value:
    """A value before the launches, built once."""
    if key not in host.extents:
        with mlir.InsertionPoint(host.end):
            host.extents[key] = build()
    return host.extents[key]


def number_on_host(host: Host, value: mlir.Value) -> mlir.Value:
    """A scalar of the kernel function as one of the function that launches it."""
    op = defining_op(value)
    if op is None:
        return host.scalars[value]
    if op.name == "tensor.dim":
        dim = constant_of(op.operands[1])
        if dim is None:
            raise no_rule(op)
        size = extent(host, op.operands[0], dim)
        return on_host(host, ("number", size), lambda: emit.index(size)) if isinstance(size, int) else size
    if not op.name.startswith("arith.") or op.regions:
        raise no_rule(op)

    def build() -> mlir.Value:
        environment = {operand: number_on_host(host, operand) for operand in op.operands}
        with op.location:
            emit.body_op(op, environment)
        return environment[value]

    return on_host(host, ("scalar", value), build)


def extents(host: Host, tensor: mlir.Value) -> list[Size]:
    """The sizes of a tensor."""
    return [extent(host, tensor, dim) for dim in range(tensor.type.rank)]


def loop_extents(host: Host, op: mlir.Operation) -> list[Size]:
    """The sizes of the loops of a structured operation, from its inputs first, as these are more often static."""
    maps = indexing_maps(op)
    sizes: list[Size] = [1] * maps[0].n_dims
    for operand, map_ in reversed(list(zip(op.operands, maps, strict=True))):
        if is_tensor(operand):
            for dim, expression in enumerate(map_.results):
                if isinstance(expression, mlir.AffineDimExpr):
                    sizes[expression.position] = extent(host, operand, dim)
    return sizes


def product(host: Host, sizes: Sequence[Size]) -> Size:
    """The number of points in a box."""
    known = math.prod(size for size in sizes if isinstance(size, int))
    unknown = [size for size in sizes if not isinstance(size, int)]
    if not unknown or not known:
        return known

    def build() -> mlir.Value:
        result = unknown[0]
        for size in unknown[1:]:
            result = emit.same_type("arith.muli", result, size)
        return result if known == 1 else emit.same_type("arith.muli", result, emit.index(known))

    return on_host(host, ("product", known, *unknown), build)


def length(kernel: Kernel, size: Size) -> Form:
    """A size as a form in a kernel."""
    return form(size) if isinstance(size, int) else form(Digit(Base(kernel.argument(size))))


def bounds_of(host: Host, op: mlir.Operation) -> tuple[Size, Size, int]:
    """The bounds and the step of a loop: numbers, or sizes."""
    low, high, step = (constant_of(operand) for operand in list(op.operands)[:3])
    if step is None:
        raise NoMatch("the step of a loop is not known")
    given = [number_on_host(host, v) if n is None else n for n, v in zip((low, high), list(op.operands)[:2])]
    return given[0], given[1], step


def in_kernel(kernel: Kernel, size: Size) -> Form | int:
    """A bound of a loop in a kernel."""
    return size if isinstance(size, int) else length(kernel, size)


def cut(kernel: Kernel, number: Form, sizes: Sequence[Size]) -> list[Form]:
    """The coordinates of the point with a row-major index in a box."""
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) == len(sizes):
        return cut_up(number, known)
    found: list[Form] = []
    for position, size in reversed(list(enumerate(sizes))):
        if size == 1 or position == 0:
            found.append(form(0) if size == 1 else number)
            continue
        operands = [kernel.at(number), kernel.at(length(kernel, size))]
        found.append(form(Digit(Base(emit.value("arith.remui", operands, kernel.index)))))
        number = form(Digit(Base(emit.value("arith.divui", operands, kernel.index))))
    return found[::-1]


def flat_index(kernel: Kernel, tensor: mlir.Value, indices: Sequence[Form]) -> Form:
    """The row-major index of an element."""
    return (
        flat(indices, tensor.type.shape)
        if not is_dynamic(tensor)
        else joined(kernel, indices, extents(kernel.host, tensor))
    )


def joined(kernel: Kernel, indices: Sequence[Form], sizes: Sequence[Size]) -> Form:
    """The row-major index of a point in a box."""
    number = form(0)
    for index, size in zip(indices, sizes, strict=True):
        number = times(kernel, number, size) + index
    return number


def times(kernel: Kernel, number: Form, size: Size) -> Form:
    """The product of a number and a size."""
    if isinstance(size, int):
        return number * size
    if not number.terms and number.constant in (0, 1):
        return length(kernel, size) if number.constant else number
    factors = [kernel.at(number), kernel.at(length(kernel, size))]
    return form(Digit(Base(emit.value("arith.muli", factors, kernel.index))))


def temporary(host: Host, tensor: mlir.Value) -> None:
    """Memory between two launches for a tensor, of the upper bound of its size."""
    if not is_dynamic(tensor):
        host.temporary(tensor)
        return
    most = most_elements(tensor)
    type_ = tensor.type.element_type
    if most is not None:
        host.buffers[tensor] = host.array([most], type_)
        return
    total = product(host, extents(host, tensor))
    assert not isinstance(total, int)
    with mlir.InsertionPoint(host.end):
        attributes = {"alignment": emit.i64(64), "operandSegmentSizes": emit.segments(1, 0)}
        memory = emit.create("memref.alloc", [total], [mlir.MemRefType.get([DYNAMIC], type_)], attributes)
    host.buffers[tensor] = memory.results[0]


def cover(kernel: Kernel, count: Size) -> Form:
    """Set a grid of at least `count` blocks, at least one; returns the number of the block."""
    if isinstance(count, int):
        return kernel.cover(max(1, count))
    one = emit.index

    def width() -> mlir.Value:
        least = emit.same_type("arith.minui", count, one(kernel.host.device.blocks))
        return emit.same_type("arith.maxui", least, one(1))

    def height() -> mlir.Value:
        over = emit.same_type("arith.subi", emit.same_type("arith.addi", count, across), one(1))
        return emit.same_type("arith.maxui", emit.same_type("arith.divui", over, across), one(1))

    across = on_host(kernel.host, ("width", count), width)
    kernel.grid = (across, on_host(kernel.host, ("height", count), height), 1)
    positions = [
        emit.value(name, (), kernel.index, dimension=mlir.Attribute.parse(f"#gpu<dim {dim}>"))
        for name, dim in (("gpu.block_id", "y"), ("gpu.grid_dim", "x"), ("gpu.block_id", "x"))
    ]
    row = emit.value("arith.muli", positions[:2], kernel.index)
    return form(Digit(Base(emit.value("arith.addi", [row, positions[2]], kernel.index))))


def blocks_of(host: Host, count: Size, per_block: int) -> Size:
    """The number of blocks for `count` threads or rows."""
    if isinstance(count, int):
        return -(-count // per_block)
    total = count

    def build() -> mlir.Value:
        over = emit.same_type("arith.addi", total, emit.index(per_block - 1))
        return emit.same_type("arith.divui", over, emit.index(per_block))

    return on_host(host, ("blocks", count, per_block), build)


def below(kernel: Kernel, index: Form, size: Size) -> mlir.Value | None:
    """True (i1) if an index is below a size; None if it always is."""
    if isinstance(size, int):
        return kernel.below(index, size)
    return emit.compare("slt", kernel.at(index), kernel.at(length(kernel, size)))


def each_element(host: Host, hint: str, sizes: Sequence[Size], body: Callable[[Kernel, list[Form]], None]) -> None:
    """A kernel with a thread for each point of a box."""
    total = product(host, sizes)
    if total == 0:
        return
    threads = THREADS if not isinstance(total, int) else min(THREADS, total)
    blocks = blocks_of(host, total, threads)
    with host.kernel(hint, (threads,)) as kernel:
        number = cover(kernel, blocks) * threads + kernel.thread()
        if isinstance(total, int):
            number = form(Digit(Base(number, total))) if number.terms else number
        kernel.guarded([below(kernel, number, total)], lambda: body(kernel, cut(kernel, number, sizes)))

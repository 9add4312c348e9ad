"""Builders of tensors at the insertion point: zeros, sums, generics with no unused inputs, loops over elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlirml.analysis.ordered_loops import SCATTER
from mlirml.analysis.values import element_type
from mlirml.autodiff.arithmetic import add
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir

_PURE = ("arith.", "math.", "linalg.index", "tensor.extract", "affine.apply")


def empty(type_: mlir.Type, like: mlir.Value) -> mlir.Value:
    """An uninitialised tensor; its dynamic sizes are those of the last dimensions of `like`."""
    shape, missing = list(type_.shape), len(type_.shape) - len(like.type.shape)
    dynamic = mlir.ShapedType.get_dynamic_size()
    sizes = [
        emit.value("tensor.dim", [like, emit.index(d - missing)], mlir.IndexType.get())
        for d, size in enumerate(shape)
        if size == dynamic
    ]
    return emit.value("tensor.empty", sizes, type_)


def zeros_like(value: mlir.Value) -> mlir.Value:
    """Zero of the type of a scalar or tensor."""
    scalar = emit.number(element_type(value.type), 0)
    if not isinstance(value.type, mlir.RankedTensorType):
        return scalar
    return emit.fill(scalar, empty(value.type, value)).results[0]


def zeros(type_: mlir.Type) -> mlir.Value:
    """Zero of a scalar or static tensor type."""
    scalar = emit.number(element_type(type_), 0)
    return emit.fill(scalar, emit.empty(type_)).results[0] if isinstance(type_, mlir.RankedTensorType) else scalar


def is_zeros(value: mlir.Value) -> bool:
    """True if a value is the constant zero, or a tensor filled with it."""
    op = defining_op(value)
    if op is not None and op.name in ("linalg.fill", "tensor.from_elements"):
        return is_zeros(op.operands[0]) and (op.name == "linalg.fill" or len(op.operands) == 1)
    if op is None or op.name != "arith.constant":
        return False
    attribute = op.attributes["value"]
    return isinstance(attribute, mlir.FloatAttr) and attribute.value == 0


def sum_of(a: mlir.Value, b: mlir.Value) -> mlir.Value:
    """a + b of scalars or of tensors."""
    if not isinstance(a.type, mlir.RankedTensorType):
        return add(a, b)
    return elementwise([a, b], a.type, lambda xs: add(xs[0], xs[1]))


def elementwise(
    inputs: Sequence[mlir.Value], type_: mlir.Type, body: Callable[[list[mlir.Value]], mlir.Value]
) -> mlir.Value:
    """A generic over tensors of one shape."""
    rank = len(type_.shape)
    maps = [mlir.AffineMap.get_identity(rank)] * (len(inputs) + 1)
    op = emit.generic(inputs, [empty(type_, inputs[0])], maps, ["parallel"] * rank, lambda xs: [body(xs[:-1])])
    return op.results[0]


def type_like(tensor: mlir.Type, shape: Sequence[int]) -> mlir.Type:
    """A tensor type of another shape."""
    return mlir.RankedTensorType.get(list(shape), element_type(tensor))


def constant_like(type_: mlir.Type, value: float) -> mlir.Value:
    """A tensor with one value everywhere."""
    return emit.fill(emit.number(element_type(type_), value), emit.empty(type_)).results[0]


def generic(
    inputs: Sequence[mlir.Value],
    input_maps: Sequence[mlir.AffineMap],
    type_: mlir.Type,
    out_map: mlir.AffineMap,
    body: Callable[[list[mlir.Value]], mlir.Value],
    init: mlir.Value | None = None,
) -> mlir.Value:
    """A generic that sums `body(inputs)` over the dimensions that `out_map` lacks; inputs not read are left out."""
    dims = {e.position for e in out_map.results}
    iterators = ["parallel" if d in dims else "reduction" for d in range(out_map.n_dims)]
    sums = "reduction" in iterators or init is not None
    out = init if init is not None else zeros(type_) if sums else emit.empty(type_)

    def write(xs: list[mlir.Value]) -> list[mlir.Value]:
        value = body(xs[:-1])
        return [add(xs[-1], value) if sums else value]

    op = emit.generic(inputs, [out], [*input_maps, out_map], iterators, write)
    return pruned(op).results[0]


def pruned(op: mlir.Operation) -> mlir.Operation:
    """A generic without dead operations and without the inputs that its body does not read."""
    block = op.regions[0].blocks[0]
    for inner in reversed(block_ops(block)[:-1]):
        if inner.name.startswith(_PURE) and all(not list(r.uses) for r in inner.results):
            inner.erase()
    count = len(op.operands) - len(op.results)
    unused = [i for i in range(count) if not list(block.arguments[i].uses)]
    maps = list(op.attributes["indexing_maps"])
    if not unused or not _covers([m.value for i, m in enumerate(maps) if i not in unused]):
        return op
    kept = [i for i in range(len(op.operands)) if i not in unused]
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["indexing_maps"] = mlir.ArrayAttr.get([maps[i] for i in kept])
    attributes["operandSegmentSizes"] = emit.segments(count - len(unused), len(op.results))
    new = emit.create(
        "linalg.generic", [op.operands[i] for i in kept], [r.type for r in op.results], attributes, regions=1
    )
    for i in reversed(unused):
        block.erase_argument(i)
    block.append_to(new.regions[0])
    op.erase()
    return new


def _covers(maps: Sequence[mlir.AffineMap]) -> bool:
    """True if the operands still determine the size of every loop."""
    seen = {e.position for m in maps for e in m.results if isinstance(e, mlir.AffineDimExpr)}
    return len(seen) == int(maps[0].n_dims)


def nest(
    sizes: Sequence[int],
    carried: mlir.Value,
    body: Callable[[list[mlir.Value], mlir.Value], mlir.Value],
) -> mlir.Value:
    """Nested loops over all indices, in order, that carry one tensor: `carried = body(indices, carried)`.

    They are marked as a scatter, which devices run as one kernel if it stores into the tensor.
    """

    def level(number: int, indices: list[mlir.Value], value: mlir.Value) -> mlir.Value:
        if number == len(sizes):
            return body(indices, value)
        first, last, step = emit.index(0), emit.index(sizes[number]), emit.index(1)
        return emit.for_loop(first, last, step, lambda i, xs: [level(number + 1, [*indices, i], xs[0])], [value])[0]

    result = level(0, [], carried)
    if sizes:
        result.owner.attributes[SCATTER] = mlir.StringAttr.get("add")
    return result


def slice_attributes(offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]) -> dict[str, mlir.Attribute]:
    """The attributes of a static slice."""
    return {
        "static_offsets": mlir.DenseI64ArrayAttr.get(list(offsets)),
        "static_sizes": mlir.DenseI64ArrayAttr.get(list(sizes)),
        "static_strides": mlir.DenseI64ArrayAttr.get(list(strides)),
    }


def extract(
    source: mlir.Value, type_: mlir.Type, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
) -> mlir.Value:
    """A static slice of a tensor as a value of type `type_`, which may lack unit dimensions."""
    return emit.slice_op("tensor.extract_slice", [source], type_, offsets, sizes, strides)


def insert(
    source: mlir.Value, into: mlir.Value, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
) -> mlir.Value:
    """`into` with a static slice overwritten."""
    return emit.insert_slice(source, into, offsets, sizes, strides)

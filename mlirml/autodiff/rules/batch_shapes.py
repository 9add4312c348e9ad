"""Batched forms of operations that move elements."""

from __future__ import annotations

from mlirml.autodiff import tensors
from mlirml.autodiff.batching import Batch, batching, chosen, gather
from mlirml.autodiff.rules.batch_linalg import _joined, _parted
from mlirml.ir import emit
from mlirml.ir.bindings import mlir

_SLICE = ("static_offsets", "static_sizes", "static_strides")


def _slice(op: mlir.Operation) -> tuple[list[int], list[int], list[int], list[int]]:
    """Offsets, sizes, strides, and the number of dynamic ones of each."""
    offsets, sizes, strides = (list(mlir.DenseI64ArrayAttr(op.attributes[name])) for name in _SLICE)
    return offsets, sizes, strides, list(mlir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[-3:]


def _wider(op: mlir.Operation, batch: Batch) -> dict[str, mlir.Attribute]:
    """The attributes of the slice of all lanes."""
    offsets, sizes, strides, _ = _slice(op)
    return tensors.slice_attributes([0, *offsets], [batch.size, *sizes], [1, *strides])


@batching("tensor.extract_slice")
def extract_slice(batch: Batch, op: mlir.Operation) -> None:
    """One slice of all lanes, or a gather where the offsets depend on the lane."""
    source, *dynamic_offsets = op.operands
    type_ = batch.batched_type(op.results[0].type)
    if not any(x in batch for x in dynamic_offsets):
        attributes = _wider(op, batch) | {"operandSegmentSizes": emit.segments(1, *_slice(op)[3])}
        value = emit.value("tensor.extract_slice", [batch.full(source), *dynamic_offsets], type_, **attributes)
    else:
        many = batch.full(source)
        kept = _kept_dims(op, source.type, op.results[0].type)

        def element(indices: list[mlir.Value], numbers: list[mlir.Value]) -> mlir.Value:
            where = _source_index(op, batch, dynamic_offsets, kept, indices[1:], numbers)
            return emit.value("tensor.extract", [many, indices[0], *where], type_.element_type)

        value = gather(type_, [batch.values[x] for x in dynamic_offsets if x in batch], element)
    batch.values[op.results[0]] = value


def _kept_dims(op: mlir.Operation, source: mlir.Type, part: mlir.Type) -> list[int]:
    """The dimensions of the source that the slice has."""
    _, sizes, _, _ = _slice(op)
    wanted, kept = list(part.shape), list[int]()
    missing = len(sizes) - len(wanted)
    for d, size in enumerate(sizes):
        if missing and size == 1 and _matches(sizes[d + 1 :], wanted[len(kept) :]):
            missing -= 1
            continue
        kept.append(d)
    return kept


def _matches(sizes: list[int], wanted: list[int]) -> bool:
    """True if `wanted` is `sizes` without some unit sizes."""
    if not wanted:
        return all(n == 1 for n in sizes)
    if not sizes:
        return False
    if sizes[0] == wanted[0] and _matches(sizes[1:], wanted[1:]):
        return True
    return sizes[0] == 1 and _matches(sizes[1:], wanted)


def _offsets(
    op: mlir.Operation, batch: Batch, dynamic_offsets: list[mlir.Value], numbers: list[mlir.Value]
) -> list[mlir.Value]:
    """The offset along each dimension, for one lane."""
    offsets, _, _, _ = _slice(op)
    given, own = iter(dynamic_offsets), iter(numbers)
    dynamic = mlir.ShapedType.get_dynamic_stride_or_offset()
    found = []
    for offset in offsets:
        if offset != dynamic:
            found.append(emit.index(offset))
            continue
        index = next(given)
        found.append(next(own) if index in batch else index)
    return found


def _source_index(
    op: mlir.Operation,
    batch: Batch,
    dynamic_offsets: list[mlir.Value],
    kept: list[int],
    indices: list[mlir.Value],
    numbers: list[mlir.Value],
) -> list[mlir.Value]:
    _, _, strides, _ = _slice(op)
    where = _offsets(op, batch, dynamic_offsets, numbers)
    for d, i in zip(kept, indices):
        step = i if strides[d] == 1 else emit.same_type("arith.muli", i, emit.index(strides[d]))
        where[d] = emit.same_type("arith.addi", where[d], step)
    return where


@batching("tensor.insert_slice")
def insert_slice(batch: Batch, op: mlir.Operation) -> None:
    """Insert into a slice of all lanes, or with a loop over lanes where the offsets depend on the lane."""
    source, into, *dynamic_offsets = op.operands
    target, part = batch.full(into), batch.full(source)
    if not any(x in batch for x in dynamic_offsets):
        attributes = _wider(op, batch) | {"operandSegmentSizes": emit.segments(1, 1, *_slice(op)[3])}
        batch.values[op.results[0]] = emit.value(
            "tensor.insert_slice", [part, target, *dynamic_offsets], target.type, **attributes
        )
        return
    kept = _kept_dims(op, into.type, source.type)
    own = [batch.values[x] for x in dynamic_offsets if x in batch]

    def store(indices: list[mlir.Value], total: mlir.Value) -> mlir.Value:
        b, *inner = indices
        numbers = [emit.value("tensor.extract", [x, b], x.type.element_type) for x in own]
        where = _source_index(op, batch, dynamic_offsets, kept, inner, numbers)
        element = emit.value("tensor.extract", [part, *indices], part.type.element_type)
        return emit.value("tensor.insert", [element, total, b, *where], total.type)

    batch.values[op.results[0]] = tensors.nest(list(part.type.shape), target, store)


@batching("tensor.extract")
def extract(batch: Batch, op: mlir.Operation) -> None:
    """One element of each lane."""
    source, *index = op.operands
    type_ = batch.batched_type(op.results[0].type)

    def element(indices: list[mlir.Value], numbers: list[mlir.Value]) -> mlir.Value:
        own = iter(numbers)
        where = [next(own) if x in batch else x for x in index]
        if source in batch:
            where = [indices[0], *where]
        return emit.value("tensor.extract", [batch.values.get(source, source), *where], type_.element_type)

    if not index and source in batch:
        batch.values[op.results[0]] = batch.values[source]
        return
    batch.values[op.results[0]] = gather(type_, [batch.values[x] for x in index if x in batch], element)


@batching("tensor.insert")
def insert(batch: Batch, op: mlir.Operation) -> None:
    """Insert one element into each lane, with a loop over lanes."""
    scalar, into, *index = op.operands
    many, target = batch.full(scalar), batch.full(into)
    if not index:
        batch.values[op.results[0]] = many
        return

    def store(indices: list[mlir.Value], total: mlir.Value) -> mlir.Value:
        (b,) = indices
        where = [emit.value("tensor.extract", [batch.values[x], b], x.type) if x in batch else x for x in index]
        element = emit.value("tensor.extract", [many, b], scalar.type)
        return emit.value("tensor.insert", [element, total, b, *where], total.type)

    batch.values[op.results[0]] = tensors.nest([batch.size], target, store)


@batching("tensor.from_elements")
def from_elements(batch: Batch, op: mlir.Operation) -> None:
    """The elements of each lane, as rows."""
    type_ = batch.batched_type(op.results[0].type)
    shape = list(op.results[0].type.shape)
    if not shape:
        batch.values[op.results[0]] = batch.full(op.operands[0])
        return
    total = emit.empty(type_)
    for number, scalar in enumerate(op.operands):
        index: list[int] = []
        for size in reversed(shape):
            number, digit = divmod(number, size)
            index.insert(0, digit)
        ones = [1] * len(shape)
        total = tensors.insert(batch.full(scalar), total, [0, *index], [batch.size, *ones], [1, *ones])
    batch.values[op.results[0]] = total


def _moved(op: mlir.Operation) -> mlir.ArrayAttr:
    """Reassociation groups, after the batch dimension."""
    i64 = mlir.IntegerType.get_signless(64)
    groups = [[int(mlir.IntegerAttr(d).value) + 1 for d in mlir.ArrayAttr(g)] for g in op.attributes["reassociation"]]
    if groups:
        groups.insert(0, [0])
    else:  # to or from no dimensions: all dimensions are unit
        rank = max(len(op.operands[0].type.shape), len(op.results[0].type.shape))
        groups = [list(range(rank + 1))]
    return mlir.ArrayAttr.get([mlir.ArrayAttr.get([mlir.IntegerAttr.get(i64, d) for d in g]) for g in groups])


@batching("tensor.expand_shape", "tensor.collapse_shape")
def reshape(batch: Batch, op: mlir.Operation) -> None:
    """The reshape of every lane."""
    type_ = batch.batched_type(op.results[0].type)
    attributes: dict[str, mlir.Attribute] = {"reassociation": _moved(op)}
    if op.name == "tensor.expand_shape":
        attributes["static_output_shape"] = mlir.DenseI64ArrayAttr.get(list(type_.shape))
    batch.values[op.results[0]] = emit.value(op.name, [batch.values[op.operands[0]]], type_, **attributes)


@batching(
    "tensor.cast", "mlirml.independent", "mlirml.stop_gradient", "mlirml.custom_input", "mlirml.custom_output",
    "mlirml.custom_cotangent", "mlirml.custom_primal", "mlirml.custom_tangent",
    "mlirml.again_input", "mlirml.again_output", "mlirml.barrier",
)  # fmt: skip
def same(batch: Batch, op: mlir.Operation) -> None:
    """The same operation on all lanes."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    many = batch.values[op.operands[0]]
    batch.values[op.results[0]] = emit.create(op.name, [many], [many.type], attributes).results[0]


@batching("mlirml.custom_result", "mlirml.dual")
def custom_result(batch: Batch, op: mlir.Operation) -> None:
    """The values of all lanes, and their tangents."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    operands = [batch.full(x) for x in op.operands]
    batch.values[op.results[0]] = emit.create(op.name, operands, [operands[0].type], attributes).results[0]


@batching("mlirml.custom_gradient")
def custom_gradient(batch: Batch, op: mlir.Operation) -> None:
    """Cotangents of all lanes, or their sum for an argument that the lanes share.

    Those of inactive lanes are zeros: a user's rule may give NaN for values that it is never called with.
    """
    attributes = {name: op.attributes[name] for name in op.attributes}
    value, cotangent = op.operands
    many = batch.full(cotangent)
    if batch.alive is not None:
        many = chosen(batch.values[batch.alive], many, tensors.zeros_like(many))
    if value in batch:
        emit.create(op.name, [batch.full(value), many], (), attributes)
    else:
        emit.create(op.name, [value, _sum_of_lanes(many, value.type)], (), attributes)


def _sum_of_lanes(many: mlir.Value, type_: mlir.Type) -> mlir.Value:
    rank = len(type_.shape)
    of_lane = mlir.AffineMap.get(rank + 1, 0, [mlir.AffineDimExpr.get(d) for d in range(1, rank + 1)])
    out = emit.fill(emit.number(type_.element_type, 0), tensors.empty(type_, many)).results[0]
    return emit.generic(
        [many], [out], [mlir.AffineMap.get_identity(rank + 1), of_lane], ["reduction", *["parallel"] * rank],
        lambda xs: [emit.same_type("arith.addf", *xs)],
    ).results[0]  # fmt: skip


@batching("tensor.pad")
def pad(batch: Batch, op: mlir.Operation) -> None:
    """The padding of every lane; the padding value is equal for all."""
    source = op.operands[0]
    low = list(mlir.DenseI64ArrayAttr(op.attributes["static_low"]))
    type_, shape = batch.batched_type(op.results[0].type), list(source.type.shape)
    value = list(op.regions[0].blocks[0].operations)[-1].operation.operands[0]
    if value in batch:
        padding = batch.full(value)
        rank = len(type_.shape)
        maps = [mlir.AffineMap.get(rank, 0, [mlir.AffineDimExpr.get(0)]), mlir.AffineMap.get_identity(rank)]
        around = emit.generic([padding], [emit.empty(type_)], maps, ["parallel"] * rank, lambda xs: xs[:1]).results[0]
    else:
        around = emit.fill(value, emit.empty(type_)).results[0]
    ones = [1] * (len(shape) + 1)
    batch.values[op.results[0]] = tensors.insert(batch.full(source), around, [0, *low], [batch.size, *shape], ones)


@batching("mlirml.sort", "mlirml.argsort")
def sort(batch: Batch, op: mlir.Operation) -> None:
    """The rows of all lanes are the rows of one matrix."""
    type_ = batch.batched_type(op.results[0].type)
    attributes = {name: op.attributes[name] for name in op.attributes}
    rows = _joined(batch.values[op.operands[0]])
    flat = mlir.RankedTensorType.get([type_.shape[0] * type_.shape[1], *list(type_.shape)[2:]], type_.element_type)
    ordered = emit.create(op.name, [rows, emit.empty(flat)], [flat], attributes).results[0]
    batch.values[op.results[0]] = _parted(ordered, type_)

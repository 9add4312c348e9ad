"""Transposes of operations that move elements: slices, reshapes, pads, single elements, sorts."""

from __future__ import annotations

from mlirml.autodiff import tensors
from mlirml.autodiff.arithmetic import add
from mlirml.autodiff.reverse import Sweep, transpose
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir


def _attributes(op: mlir.Operation, *names: str) -> dict[str, mlir.Attribute]:
    return {name: op.attributes[name] for name in names}


_SLICE = ("static_offsets", "static_sizes", "static_strides")


def _sliced(
    op: mlir.Operation, source: mlir.Value, type_: mlir.Type, offsets: list[mlir.Value], groups: list[int]
) -> mlir.Value:
    """`tensor.extract_slice` with the offsets, sizes and strides of `op`."""
    attributes = _attributes(op, *_SLICE) | {"operandSegmentSizes": emit.segments(1, *groups)}
    return emit.value("tensor.extract_slice", [source, *offsets], type_, **attributes)


def _put(
    op: mlir.Operation, source: mlir.Value, into: mlir.Value, offsets: list[mlir.Value], groups: list[int]
) -> mlir.Value:
    """`tensor.insert_slice` with the offsets, sizes and strides of `op`."""
    attributes = _attributes(op, *_SLICE) | {"operandSegmentSizes": emit.segments(1, 1, *groups)}
    return emit.value("tensor.insert_slice", [source, into, *offsets], into.type, **attributes)


def _groups(op: mlir.Operation) -> list[int]:
    """The number of dynamic offsets, sizes and strides of a slice."""
    return list(mlir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[-3:]


@transpose("tensor.extract_slice")
def extract_slice(sweep: Sweep, op: mlir.Operation) -> None:
    """The cotangent is added to the slice that was read."""
    source, *offsets = op.operands
    if not sweep.is_active(source):
        return
    cotangent = sweep.cotangents[op.results[0]]
    known = sweep.cotangents.get(source)
    if source in sweep.unwritten:
        sweep.unwritten.remove(source)
    elif known is not None and not _is_zero(known, op):
        cotangent = tensors.sum_of(_sliced(op, known, cotangent.type, offsets, _groups(op)), cotangent)
    into = tensors.zeros_like(source) if known is None else known
    sweep.cotangents[source] = _put(op, cotangent, into, offsets, _groups(op))
    if op.results[0] in sweep.masked:
        sweep.masked.add(source)


@transpose("tensor.insert_slice")
def insert_slice(sweep: Sweep, op: mlir.Operation) -> None:
    """The slice of the cotangent goes to the source, the rest to the destination."""
    source, into, *offsets = op.operands
    cotangent, masked = sweep.cotangents[op.results[0]], op.results[0] in sweep.masked
    if sweep.is_active(source):
        sweep.add(source, _sliced(op, cotangent, source.type, offsets, _groups(op)), masked)
    # Adjacent slices, as in a concatenation, are slices of one cotangent.
    parts = [op]
    while (part := _beside(into, parts)) is not None:
        parts.append(part)
        source, into, *offsets = part.operands
        if sweep.is_active(source):
            sweep.add(source, _sliced(part, cotangent, source.type, offsets, _groups(part)), masked)
    if sweep.is_active(into):
        for part in parts:
            source, _, *offsets = part.operands
            cotangent = _put(part, tensors.zeros_like(source), cotangent, offsets, _groups(part))
        sweep.add(into, cotangent, masked)


def _beside(value: mlir.Value, parts: list[mlir.Operation]) -> mlir.Operation | None:
    """The operation that inserts a slice into the tensor that `parts` overwrite, disjoint from them."""
    op = defining_op(value)
    if op is None or op.name != "tensor.insert_slice" or op.block != parts[0].block:
        return None
    return op if all(_apart(op, part) for part in parts) else None


def _is_zero(value: mlir.Value, part: mlir.Operation) -> bool:
    """True if a tensor was filled with zeros and nothing was inserted into the slice of `part`."""
    op = defining_op(value)
    while op is not None and op.name == "tensor.insert_slice" and _apart(op, part):
        op = defining_op(op.operands[1])
    if op is None or op.name != "linalg.fill":
        return False
    number = defining_op(op.operands[0])
    return (
        number is not None and number.name == "arith.constant" and not mlir.FloatAttr(number.attributes["value"]).value
    )


def _apart(a: mlir.Operation, b: mlir.Operation) -> bool:
    """True if two slices of one tensor have no common element, going by their static offsets and sizes."""
    return any(
        ours is not None and theirs is not None and (ours[1] < theirs[0] or theirs[1] < ours[0])
        for ours, theirs in zip(_ranges(a), _ranges(b))
    )


def _ranges(op: mlir.Operation) -> list[tuple[int, int] | None]:
    """The first and last index of a slice in each dimension; None where it is dynamic."""
    dynamic = (mlir.ShapedType.get_dynamic_size(), mlir.ShapedType.get_dynamic_stride_or_offset())
    numbers = zip(*(list(mlir.DenseI64ArrayAttr(op.attributes[name])) for name in _SLICE))
    return [
        None if any(n in dynamic for n in (start, size, step)) else (start, start + (size - 1) * step)
        for start, size, step in numbers
    ]


@transpose("tensor.extract")
def extract(sweep: Sweep, op: mlir.Operation) -> None:
    """The cotangent is added to the element that was read."""
    source, *index = op.operands
    if not sweep.is_active(source):
        return
    cotangent, known = sweep.cotangents[op.results[0]], sweep.cotangents.get(source)
    if known is not None:
        cotangent = add(emit.value("tensor.extract", [known, *index], cotangent.type), cotangent)
    into = tensors.zeros_like(source) if known is None else known
    sweep.cotangents[source] = emit.value("tensor.insert", [cotangent, into, *index], source.type)
    if op.results[0] in sweep.masked:
        sweep.masked.add(source)


@transpose("tensor.insert")
def insert(sweep: Sweep, op: mlir.Operation) -> None:
    """The element of the cotangent goes to the scalar, the rest to the destination."""
    scalar, into, *index = op.operands
    cotangent, masked = sweep.cotangents[op.results[0]], op.results[0] in sweep.masked
    if sweep.is_active(scalar):
        sweep.add(scalar, emit.value("tensor.extract", [cotangent, *index], scalar.type), masked)
    if sweep.is_active(into):
        zero = emit.number(scalar.type, 0)
        sweep.add(into, emit.value("tensor.insert", [zero, cotangent, *index], into.type), masked)


@transpose("tensor.from_elements")
def from_elements(sweep: Sweep, op: mlir.Operation) -> None:
    """Each element goes to its scalar."""
    cotangent, result = sweep.cotangents[op.results[0]], op.results[0]
    shape = list(result.type.shape)
    for number, scalar in enumerate(op.operands):
        if sweep.is_active(scalar):
            index: list[mlir.Value] = []
            for size in reversed(shape):
                number, digit = divmod(number, size)
                index.insert(0, emit.index(digit))
            sweep.add(scalar, emit.value("tensor.extract", [cotangent, *index], scalar.type), result in sweep.masked)


@transpose("tensor.expand_shape")
def expand_shape(sweep: Sweep, op: mlir.Operation) -> None:
    """The inverse reshape."""
    source = op.operands[0]
    if sweep.is_active(source):
        groups = op.attributes["reassociation"]
        cotangent = sweep.cotangents[op.results[0]]
        back = emit.value("tensor.collapse_shape", [cotangent], source.type, reassociation=groups)
        sweep.add(source, back, op.results[0] in sweep.masked)


@transpose("tensor.collapse_shape")
def collapse_shape(sweep: Sweep, op: mlir.Operation) -> None:
    """The inverse reshape."""
    source = op.operands[0]
    if sweep.is_active(source):
        attributes = {
            "reassociation": op.attributes["reassociation"],
            "static_output_shape": mlir.DenseI64ArrayAttr.get(list(source.type.shape)),
        }
        back = emit.value("tensor.expand_shape", [sweep.cotangents[op.results[0]]], source.type, **attributes)
        sweep.add(source, back, op.results[0] in sweep.masked)


@transpose("tensor.cast")
def cast(sweep: Sweep, op: mlir.Operation) -> None:
    """The inverse cast."""
    source = op.operands[0]
    if sweep.is_active(source):
        back = emit.value("tensor.cast", [sweep.cotangents[op.results[0]]], source.type)
        sweep.add(source, back, op.results[0] in sweep.masked)


@transpose("tensor.pad")
def pad(sweep: Sweep, op: mlir.Operation) -> None:
    """The slice without the padding, which is constant."""
    source = op.operands[0]
    if sweep.is_active(source):
        low = list(mlir.DenseI64ArrayAttr(op.attributes["static_low"]))
        shape = list(source.type.shape)
        part = tensors.extract(sweep.cotangents[op.results[0]], source.type, low, shape, [1] * len(shape))
        sweep.add(source, part, op.results[0] in sweep.masked)


def whole_order(op: mlir.Operation) -> dict[str, mlir.Attribute]:
    """The attributes of a sort and of its permutation, both without `kth`: two partitions may differ in the rest."""
    if "kth" in op.attributes:
        del op.attributes["kth"]
    return _attributes(op, *op.attributes)


@transpose("mlirml.sort")
def sort(sweep: Sweep, op: mlir.Operation) -> None:
    """Each element goes back to its position before the sort."""
    source = op.operands[0]
    if not sweep.is_active(source):
        return
    shape = list(source.type.shape)
    integers = mlir.RankedTensorType.get(shape, mlir.IntegerType.get_signless(64))
    order = emit.value("mlirml.argsort", [source, emit.empty(integers)], integers, **whole_order(op))
    cotangent = sweep.cotangents[op.results[0]]

    def store(indices: list[mlir.Value], total: mlir.Value) -> mlir.Value:
        index = emit.value("tensor.extract", [order, *indices], integers.element_type)
        last = emit.value("arith.index_cast", [index], mlir.IndexType.get())
        element = emit.value("tensor.extract", [cotangent, *indices], source.type.element_type)
        return emit.value("tensor.insert", [element, total, *indices[:-1], last], total.type)

    sweep.add(source, tensors.nest(shape, tensors.zeros_like(source), store), op.results[0] in sweep.masked)

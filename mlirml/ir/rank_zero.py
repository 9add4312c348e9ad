"""Rank-0 tensors as scalars: their elements, and structured operations on them as scalar arithmetic."""

from __future__ import annotations

from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, replace_op

_DYNAMIC = (mlir.ShapedType.get_dynamic_size(), -(2**63))


def is_scalar(op: mlir.Operation) -> bool:
    """True for a structured operation on rank-0 tensors whose body has no regions."""
    if op.name != "linalg.generic" or len(op.attributes["iterator_types"]) or not op.results:
        return False
    tensors = [v.type for v in op.operands if isinstance(v.type, mlir.RankedTensorType)]
    return all(not type_.shape for type_ in tensors) and not any(
        inner.regions for inner in block_ops(op.regions[0].blocks[0])
    )


def is_number(value: mlir.Value) -> bool:
    """True if a value is a tensor of rank 0."""
    return isinstance(value.type, mlir.RankedTensorType) and not value.type.shape


def slice_offsets(op: mlir.Operation) -> list[int | mlir.Value]:
    """The offsets of a `tensor.extract_slice` or `tensor.insert_slice`, integers where they are static."""
    sizes = list(mlir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    first = sum(sizes[: len(sizes) - 3])
    given = iter([op.operands[first + n] for n in range(sizes[-3])])
    return [next(given) if offset in _DYNAMIC else offset for offset in op.attributes["static_offsets"]]


def element_place(op: mlir.Operation, slice_type: mlir.Type) -> list[int | mlir.Value] | None:
    """The indices of the single element that a slice of type `slice_type` covers; None for any other slice."""
    if slice_type.shape or any(size != 1 for size in op.attributes["static_sizes"]):
        return None
    return slice_offsets(op)


class Scalars:
    """The scalars of one function, by the tensors of rank 0 that hold them."""

    def __init__(self, entry: mlir.Block) -> None:
        """`entry` is the block at whose start constants are created."""
        self.known: dict[mlir.Value, mlir.Value] = {}
        self._indices: dict[int, mlir.Value] = {}
        self._entry = entry

    def index(self, number: int | mlir.Value) -> mlir.Value:
        """A constant index, or the index itself."""
        if isinstance(number, mlir.Value):
            return number
        if number not in self._indices:
            with mlir.InsertionPoint.at_block_begin(self._entry):
                self._indices[number] = emit.index(number)
        return self._indices[number]

    def scalar(self, value: mlir.Value) -> mlir.Value:
        """The element of a rank-0 tensor, extracted right after the tensor's definition, or the scalar itself."""
        if not isinstance(value.type, mlir.RankedTensorType):
            return value
        if value not in self.known:
            owner = defining_op(value)
            if owner is not None and owner.name in ("tensor.from_elements", "linalg.fill"):
                return owner.operands[0]
            with insertion_point_after(value):
                self.known[value] = self._extract(value, [])
        return self.known[value]

    def _extract(self, tensor: mlir.Value, indices: list[int | mlir.Value]) -> mlir.Value:
        return emit.value("tensor.extract", [tensor, *map(self.index, indices)], tensor.type.element_type)

    def inline(self, op: mlir.Operation) -> None:
        """Replace a structured operation on single elements by a clone of its body."""
        block = op.regions[0].blocks[0]
        environment = {
            argument: self.scalar(operand)
            for argument, operand in zip(block.arguments, op.operands, strict=True)
            if any(True for _ in argument.uses)
        }
        *inner, final = block_ops(block)
        for scalar in inner:
            emit.body_op(scalar, environment)
        for result, value in zip(op.results, final.operands, strict=True):
            self.known[result] = environment.get(value, value)

    def read(self, op: mlir.Operation) -> bool:
        """Replace a `tensor.extract_slice` of one element by `tensor.extract`; False for any other slice."""
        indices = element_place(op, op.results[0].type)
        if indices is None:
            return False
        self.known[op.results[0]] = self._extract(op.operands[0], indices)
        return True

    def store(self, op: mlir.Operation) -> bool:
        """Replace a `tensor.insert_slice` of one element by `tensor.insert`; False for any other slice."""
        source, target = op.operands[0], op.operands[1]
        indices = element_place(op, source.type)
        if indices is None:
            return False
        stored = emit.value("tensor.insert", [self.scalar(source), target, *map(self.index, indices)], target.type)
        replace_op(op, stored)
        return True

    def replace(self, op: mlir.Operation) -> None:
        """Erase an operation; uses of its results as tensors read `tensor.from_elements` of the scalars."""
        for result in op.results:
            if any(True for _ in result.uses):
                with op.location, insertion_point_after(self.known[result]):
                    result.replace_all_uses_with(emit.value("tensor.from_elements", [self.known[result]], result.type))
        op.erase()


def insertion_point_after(value: mlir.Value) -> mlir.InsertionPoint:
    """The insertion point right after the definition of a value."""
    owner = defining_op(value)
    return mlir.InsertionPoint.at_block_begin(value.owner) if owner is None else mlir.InsertionPoint.after(owner)

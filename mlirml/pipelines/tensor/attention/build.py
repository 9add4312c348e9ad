"""Build the loop over blocks of rows around the operations between two products."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.structured import indexing_maps
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.pipelines.tensor.attention.match import Attention, Batch, Rows, Tag, Tags, dims_of, loop_tags

_DYNAMIC = mlir.ShapedType.get_dynamic_stride_or_offset()


def build(plan: Attention) -> list[mlir.Value]:
    """Build the loop at the insertion point; returns the replacements of `plan.results`."""
    blocks = math.ceil(plan.rows / plan.block)
    inits = [emit.empty(result.type) for result in plan.results]
    zero, one = emit.index(0), emit.index(1)

    def body(t: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
        return Block(plan, *block_start(plan, blocks, t)).build(carried)

    return emit.for_loop(zero, emit.index(plan.batches * blocks), one, body, inits)


def block_start(plan: Attention, blocks: int, t: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
    """The batch index and the first row of block `t`."""
    batch = emit.same_type("arith.divui", t, emit.index(blocks)) if blocks > 1 else t
    number = emit.same_type("arith.remui", t, emit.index(blocks)) if blocks > 1 else emit.index(0)
    row = emit.same_type("arith.muli", number, emit.index(plan.block))
    if plan.rows % plan.block:
        row = emit.same_type("arith.minsi", row, emit.index(plan.rows - plan.block))
    return batch, row


@dataclass(frozen=True)
class Block:
    """Builds the operations for one block of rows of one batch."""

    plan: Attention
    batch: mlir.Value
    row: mlir.Value

    def build(self, inits: Sequence[mlir.Value]) -> list[mlir.Value]:
        """Build the block, and store its results into `inits`; returns the updated tensors."""
        known: dict[mlir.Value, mlir.Value] = {}
        for op in self.plan.ops:
            with op.location:
                if op.name == "tensor.extract_slice":
                    self.slice(op, known)
                elif op.name.startswith("tensor."):
                    self.reshape(op, known)
                else:
                    self.structured(op, known)
        stored = []
        for result, out in zip(self.plan.results, inits, strict=True):
            attributes, offsets = self.slice_attributes(result.type, self.plan.tags[result], 2)
            operands = [known[result], out, *offsets]
            stored.append(emit.create("tensor.insert_slice", operands, [out.type], attributes).results[0])
        return stored

    def offset(self, tag: Tag) -> mlir.Value | None:
        """The offset of the block in a dim; None for 0."""
        if isinstance(tag, Rows):
            return self.row if self.plan.block < self.plan.rows else None
        if not isinstance(tag, Batch):
            return None
        number = self.batch
        if tag.step > 1:
            number = emit.same_type("arith.divui", number, emit.index(tag.step))
        if tag.step * tag.size < self.plan.batches:
            number = emit.same_type("arith.remui", number, emit.index(tag.size))
        return number

    def size(self, tag: Tag, whole: int) -> int:
        """The size of the block in a dim."""
        return self.plan.block if isinstance(tag, Rows) else 1 if isinstance(tag, Batch) else whole

    def type(self, tensor_type: mlir.Type, tags: Tags) -> mlir.Type:
        """The type of a block of a tensor."""
        shape = [self.size(tag, whole) for tag, whole in zip(tags, tensor_type.shape, strict=True)]
        return mlir.RankedTensorType.get(shape, tensor_type.element_type)

    def slice_attributes(
        self, tensor_type: mlir.Type, tags: Tags, tensors: int
    ) -> tuple[dict[str, mlir.Attribute], list[mlir.Value]]:
        """The attributes of a slice operation with `tensors` operands, and the offsets to follow them."""
        starts = [self.offset(tag) for tag in tags]
        offsets = [start for start in starts if start is not None]
        sizes = list(self.type(tensor_type, tags).shape)
        segments = [1] * tensors + [len(offsets), 0, 0]
        return {
            "operandSegmentSizes": emit.segments(*segments),
            "static_offsets": mlir.DenseI64ArrayAttr.get([0 if p is None else _DYNAMIC for p in starts]),
            "static_sizes": mlir.DenseI64ArrayAttr.get(sizes),
            "static_strides": mlir.DenseI64ArrayAttr.get([1] * len(sizes)),
        }, offsets

    def sliced(self, value: mlir.Value, tags: Tags) -> mlir.Value:
        """The block of a tensor from outside of the loop."""
        if not any(tags):
            return value
        block_type = self.type(value.type, tags)
        owner = defining_op(value)
        if owner is not None and owner.name == "tensor.empty":
            return emit.empty(block_type)
        if owner is not None and owner.name == "linalg.fill":
            return emit.fill(owner.operands[0], emit.empty(block_type)).results[0]
        attributes, offsets = self.slice_attributes(value.type, tags, 1)
        return emit.create("tensor.extract_slice", [value, *offsets], [block_type], attributes).results[0]

    def slice(self, op: mlir.Operation, known: dict[mlir.Value, mlir.Value]) -> None:
        """Build a slice of a block, with all of its rows."""
        source, result = op.operands[0], op.results[0]
        attributes = {name: op.attributes[name] for name in op.attributes}
        wanted = mlir.DenseI64ArrayAttr(op.attributes["static_sizes"])
        sizes = [self.size(tag, size) for tag, size in zip(self.plan.tags[source], wanted, strict=True)]
        attributes["static_sizes"] = mlir.DenseI64ArrayAttr.get(sizes)
        block_type = self.type(result.type, self.plan.tags[result])
        known[result] = emit.create(op.name, [known[source]], [block_type], attributes).results[0]

    def reshape(self, op: mlir.Operation, known: dict[mlir.Value, mlir.Value]) -> None:
        """Build a reshape of a block."""
        result = op.results[0]
        block_type = self.type(result.type, self.plan.tags[result])
        attributes = {"reassociation": op.attributes["reassociation"]}
        if op.name == "tensor.expand_shape":
            attributes["static_output_shape"] = mlir.DenseI64ArrayAttr.get(list(block_type.shape))
        known[result] = emit.create(op.name, [known[op.operands[0]]], [block_type], attributes).results[0]

    def structured(self, op: mlir.Operation, known: dict[mlir.Value, mlir.Value]) -> None:
        """Build a structured operation on blocks."""
        loops = self.loops(op)
        operands = []
        for operand, affine_map in zip(op.operands, indexing_maps(op), strict=True):
            new = known.get(operand)
            if new is None and isinstance(operand.type, mlir.RankedTensorType):
                new = self.sliced(operand, tuple(loops.get(d) for d in dims_of(affine_map)))
            operands.append(operand if new is None else new)
        starts = self.starts(op, loops)
        attributes = {name: op.attributes[name] for name in op.attributes}
        types = [self.type(result.type, self.plan.tags[result]) for result in op.results]
        copy = emit.create(op.name, operands, types, attributes, regions=1)
        self.body(op, copy, starts)
        for old, new in zip(op.results, copy.results, strict=True):
            known[old] = new

    def loops(self, op: mlir.Operation) -> dict[int, Tag]:
        """The tag of each loop of an operation."""
        if op != self.plan.ops[0]:
            return loop_tags(op, self.plan.tags)
        out = indexing_maps(op)[-1]
        return dict(zip(dims_of(out), self.plan.tags[op.results[0]], strict=True))

    def body(self, op: mlir.Operation, copy: mlir.Operation, starts: dict[int, mlir.Value]) -> None:
        """Build the body of a structured operation; its loop indices are offset by `starts`."""
        source = op.regions[0].blocks[0]
        inner = emit.block(copy, [argument.type for argument in source.arguments])
        environment: dict[mlir.Value, mlir.Value] = dict(zip(source.arguments, inner.arguments, strict=True))
        with mlir.InsertionPoint(inner):
            for scalar in source.operations:
                emit.body_op(scalar.operation, environment)
                if scalar.operation.name == "linalg.index":
                    d = scalar.operation.attributes["dim"].value
                    if d in starts:
                        result = scalar.operation.results[0]
                        with scalar.operation.location:
                            environment[result] = emit.same_type("arith.addi", environment[result], starts[d])

    def starts(self, op: mlir.Operation, loops: dict[int, Tag]) -> dict[int, mlir.Value]:
        """The start index of each loop whose index the body reads."""
        read: Sequence[int] = [
            scalar.operation.attributes["dim"].value
            for scalar in op.regions[0].blocks[0].operations
            if scalar.operation.name == "linalg.index"
        ]
        starts = {d: self.offset(loops.get(d)) for d in dict.fromkeys(read)}
        return {d: start for d, start in starts.items() if start is not None}

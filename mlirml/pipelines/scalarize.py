"""Scalarize: long programs on single elements, as unrolled loops over elements make them, become scalar arithmetic.

Before:
    %s = tensor.extract_slice %x[1, 2] [1, 1] [1, 1] : tensor<4x4xf32> to tensor<f32>
    %r = linalg.generic {maps = [() -> (), () -> ()], []} ins(%s : tensor<f32>) outs(%e : tensor<f32>) {
    ^bb0(%a: f32, %out: f32):
      %0 = math.sqrt %a : f32
      linalg.yield %0 : f32
    } -> tensor<f32>
    %y = tensor.insert_slice %r into %x[3, 3] [1, 1] [1, 1] : tensor<f32> into tensor<4x4xf32>
After:
    %a = tensor.extract %x[%c1, %c2] : tensor<4x4xf32>
    %0 = math.sqrt %a : f32
    %y = tensor.insert %0 into %x[%c3, %c3] : tensor<4x4xf32>

A buffer and a kernel for each number would cost a thousand times the arithmetic. A few numbers next to big arrays stay
as they are: they are computed where the results are stored.
"""

from __future__ import annotations

from mlirml.dataclass import dataclass
from mlirml.dialects import emit
from mlirml.ir import block_ops, defining_op, mlir
from mlirml.passes import Pass, register


@register
@dataclass(frozen=True)
class ScalarizePass(Pass):
    """Turn operations on tensors of rank 0 into scalar ones, in functions with at least `fewest` of them."""

    name = "mlirml-scalarize"
    fewest: int = 16

    def run(self, module: mlir.Operation) -> None:
        for function in block_ops(module.regions[0].blocks[0]):
            if function.name == "func.func" and len(function.regions[0].blocks) == 1:
                body = function.regions[0].blocks[0]
                ops = block_ops(body)
                if sum(map(is_scalar, ops)) >= self.fewest:
                    Scalars(body).run(ops)


def is_scalar(op: mlir.Operation) -> bool:
    """Whether it is a structured operation on single elements, without regions in its body."""
    if op.name != "linalg.generic" or len(op.attributes["iterator_types"]) or not op.results:
        return False
    tensors = [v.type for v in op.operands if isinstance(v.type, mlir.RankedTensorType)]
    return all(not kind.shape for kind in tensors) and not any(
        inner.regions for inner in block_ops(op.regions[0].blocks[0])
    )


def element_place(op: mlir.Operation, kind: mlir.Type) -> list[int] | None:
    """The place of the one element that a slice is; None for any other slice."""
    sizes = list(op.attributes["static_sizes"])
    offsets = list(op.attributes["static_offsets"])
    dynamic = mlir.ShapedType.get_dynamic_size()
    if any(size != 1 for size in sizes) or any(offset in (dynamic, -(2**63)) for offset in offsets) or kind.shape:
        return None
    return offsets


class Scalars:
    """The scalars of one block, by the tensors of rank 0 that hold them."""

    def __init__(self, body: mlir.Block) -> None:
        self.body = body
        self.known: dict[mlir.Value, mlir.Value] = {}
        self.indices: dict[int, mlir.Value] = {}
        self.front = block_ops(body)[0]

    def run(self, ops: list[mlir.Operation]) -> None:
        """Rewrite the operations of the block."""
        done: list[mlir.Operation] = []
        for op in ops:
            with op.location, mlir.InsertionPoint(op):
                if is_scalar(op):
                    self.inline(op)
                    done.append(op)
                elif op.name == "tensor.extract_slice":
                    place = element_place(op, op.results[0].type)
                    if place is not None:
                        self.known[op.results[0]] = self.extract(op.operands[0], place)
                        done.append(op)
                elif op.name == "tensor.insert_slice":
                    self.insert(op)
        for op in reversed(done):
            self.replace(op)

    def index(self, number: int) -> mlir.Value:
        if number not in self.indices:
            with mlir.InsertionPoint(self.front):
                self.indices[number] = emit.index(number)
        return self.indices[number]

    def extract(self, tensor: mlir.Value, place: list[int]) -> mlir.Value:
        kind = tensor.type.element_type
        return emit.value("tensor.extract", [tensor, *map(self.index, place)], kind)

    def scalar(self, value: mlir.Value) -> mlir.Value:
        """The element of a tensor of rank 0, or the scalar itself."""
        if not isinstance(value.type, mlir.RankedTensorType):
            return value
        if value not in self.known:
            self.known[value] = self.extract(value, [])
        return self.known[value]

    def inline(self, op: mlir.Operation) -> None:
        """Build the body of a structured operation in its place."""
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

    def insert(self, op: mlir.Operation) -> None:
        """Store a known scalar as an element."""
        source, target = op.operands[0], op.operands[1]
        place = element_place(op, source.type)
        if place is None or source not in self.known:
            return
        operands = [self.known[source], target, *map(self.index, place)]
        op.results[0].replace_all_uses_with(emit.value("tensor.insert", operands, target.type))
        op.erase()

    def replace(self, op: mlir.Operation) -> None:
        """Erase an operation; where its results are read as tensors, they are made of the scalars."""
        for result in op.results:
            if any(True for _ in result.uses):
                owner = defining_op(self.known[result])
                point = mlir.InsertionPoint.after(owner) if owner is not None else mlir.InsertionPoint(self.front)
                with op.location, point:
                    result.replace_all_uses_with(emit.value("tensor.from_elements", [self.known[result]], result.type))
        op.erase()

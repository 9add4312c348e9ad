"""Fully unrolled products of a few elements: no loops, no packing, no call."""

from __future__ import annotations

import itertools
import math

from mlirml.codegen.cpu.contract.plan import SMALL
from mlirml.codegen.cpu.contract.problem import Contraction
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

_ELEMENTS = ("f32", "f64")

Indices = tuple[int, ...]


def check_small(contraction: Contraction) -> None:
    """Raises `NoMatch` for a contraction of many elements, or with conversions."""
    if not 0 < math.prod(contraction.sizes) <= SMALL:
        raise NoMatch("it multiplies many numbers")
    if contraction.compute not in _ELEMENTS or any(o.element != contraction.compute for o in contraction.operands):
        raise NoMatch("it converts numbers, or multiplies integers")


def build_small(op: mlir.Operation, contraction: Contraction, fill: mlir.Operation | None) -> None:
    """Replace a contraction on memrefs by loads, products, sums and stores, of whole rows where they are contiguous.

    `fill` is the operation right before it that zeroes its output, or None if it accumulates. All loads are before all
    stores.
    """
    with op.location, mlir.InsertionPoint(op):
        Small(op, contraction).build(is_new=fill is not None)
    for other in (op, *([fill] if fill is not None else [])):
        other.erase()


class Small:
    """Builds the operations for one contraction; each element is loaded once."""

    def __init__(self, op: mlir.Operation, contraction: Contraction) -> None:
        self.memory = list(op.operands)
        self.sizes, self.maps = contraction.sizes, contraction.maps
        self.element = self.memory[2].type.element_type
        self.indices = [emit.index(number) for number in range(max(self.sizes))]
        self.contract = mlir.Attribute.parse("#arith.fastmath<contract>")
        self.known: dict[tuple[int, Indices], mlir.Value] = {}
        self.row = self.maps[2][-1] if self.has_rows() else None
        """The loop whose elements are in one vector."""

    def has_rows(self) -> bool:
        """True if the output, and the inputs of a row of it, are contiguous along the last dim of the output."""
        if not self.maps[2] or self.sizes[self.maps[2][-1]] == 1:
            return False
        row = self.maps[2][-1]
        for dims, memory in zip(self.maps, self.memory, strict=True):
            strides, _ = memory.type.get_strides_and_offset()
            if row in dims and (dims[-1] != row or strides[-1] != 1):
                return False
        return True

    def build(self, *, is_new: bool) -> None:
        type_ = self.element if self.row is None else mlir.VectorType.get([self.sizes[self.row]], self.element)
        sums: dict[Indices, mlir.Value] = {}
        for point in itertools.product(*(range(1 if d == self.row else size) for d, size in enumerate(self.sizes))):
            indices = self.indices_of(2, point)
            old = sums.get(indices)
            if old is None:
                old = self.zero(type_) if is_new else self.load(2, point, type_)
            sums[indices] = self.multiply_add(self.load(0, point, type_), self.load(1, point, type_), old)
        store = "memref.store" if self.row is None else "vector.store"
        for indices, total in sums.items():
            emit.create(store, [total, self.memory[2], *(self.indices[i] for i in indices)])

    def multiply_add(self, a: mlir.Value, b: mlir.Value, c: mlir.Value) -> mlir.Value:
        if self.row is not None:
            return emit.same_type("vector.fma", a, b, c)
        product = emit.same_type("arith.mulf", a, b, fastmath=self.contract)
        return emit.same_type("arith.addf", c, product, fastmath=self.contract)

    def indices_of(self, number: int, point: Indices) -> Indices:
        """The indices of an operand."""
        return tuple(point[d] for d in self.maps[number])

    def load(self, number: int, point: Indices, type_: mlir.Type) -> mlir.Value:
        """An element of an operand, or a row of it; an element for a whole row is broadcast to a vector."""
        indices = self.indices_of(number, point)
        if (number, indices) not in self.known:
            memory = [self.memory[number], *(self.indices[i] for i in indices)]
            if self.row in self.maps[number]:
                value = emit.value("vector.load", memory, type_)
            else:
                value = emit.value("memref.load", memory, self.element)
                value = value if self.row is None else emit.value("vector.broadcast", [value], type_)
            self.known[number, indices] = value
        return self.known[number, indices]

    def zero(self, type_: mlir.Type) -> mlir.Value:
        zero = emit.zero(self.element)
        return zero if self.row is None else emit.value("vector.broadcast", [zero], type_)

"""Products of a few numbers, written out: no loops, no packing, no call."""

from __future__ import annotations

import itertools
import math

from mlirml.codegen.cpu.contract.plan import SMALL
from mlirml.codegen.cpu.contract.problem import Contraction
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch

_ELEMENTS = ("f32", "f64")

Place = tuple[int, ...]


def check_small(contraction: Contraction) -> None:
    """NoMatch for a contraction of many numbers, or of such that are converted first."""
    if not 0 < math.prod(contraction.sizes) <= SMALL:
        raise NoMatch("it multiplies many numbers")
    if contraction.compute not in _ELEMENTS or any(o.element != contraction.compute for o in contraction.operands):
        raise NoMatch("it converts numbers, or multiplies integers")


def build_small(op: mlir.Operation, contraction: Contraction, fill: mlir.Operation | None) -> None:
    """Replace a contraction on memrefs by loads, products, sums and stores, of whole rows where they are contiguous.

    `fill` sets its out to zero, right before it, or is None where the sums are added to what is there. All is loaded
    before anything is stored.
    """
    with op.location, mlir.InsertionPoint(op):
        Small(op, contraction).build(is_new=fill is not None)
    for other in (op, *([fill] if fill is not None else [])):
        other.erase()


class Small:
    """The operations for one contraction; what is loaded is loaded once."""

    def __init__(self, op: mlir.Operation, contraction: Contraction) -> None:
        self.memory = list(op.operands)
        self.sizes, self.maps = contraction.sizes, contraction.maps
        self.element = self.memory[2].type.element_type
        self.indices = [emit.index(number) for number in range(max(self.sizes))]
        self.contract = mlir.Attribute.parse("#arith.fastmath<contract>")
        self.known: dict[tuple[int, Place], mlir.Value] = {}
        self.row = self.maps[2][-1] if self.has_rows() else None
        """The loop whose elements are in one vector."""

    def has_rows(self) -> bool:
        """True if out, and what is read for a row of it, is contiguous along the last dim of out."""
        if not self.maps[2] or self.sizes[self.maps[2][-1]] == 1:
            return False
        row = self.maps[2][-1]
        for dims, memory in zip(self.maps, self.memory, strict=True):
            strides, _ = memory.type.get_strides_and_offset()
            if row in dims and (dims[-1] != row or strides[-1] != 1):
                return False
        return True

    def build(self, *, is_new: bool) -> None:
        kind = self.element if self.row is None else mlir.VectorType.get([self.sizes[self.row]], self.element)
        sums: dict[Place, mlir.Value] = {}
        for point in itertools.product(*(range(1 if d == self.row else size) for d, size in enumerate(self.sizes))):
            place = self.place(2, point)
            old = sums.get(place)
            if old is None:
                old = self.zero(kind) if is_new else self.load(2, point, kind)
            sums[place] = self.multiply_add(self.load(0, point, kind), self.load(1, point, kind), old)
        store = "memref.store" if self.row is None else "vector.store"
        for place, total in sums.items():
            emit.create(store, [total, self.memory[2], *(self.indices[i] for i in place)])

    def multiply_add(self, a: mlir.Value, b: mlir.Value, c: mlir.Value) -> mlir.Value:
        if self.row is not None:
            return emit.same_type("vector.fma", a, b, c)
        product = emit.same_type("arith.mulf", a, b, fastmath=self.contract)
        return emit.same_type("arith.addf", c, product, fastmath=self.contract)

    def place(self, number: int, point: Place) -> Place:
        """The indices of an operand."""
        return tuple(point[d] for d in self.maps[number])

    def load(self, number: int, point: Place, kind: mlir.Type) -> mlir.Value:
        """An element of an operand, or a row of it; an element for a whole row is in each lane of a vector."""
        place = self.place(number, point)
        if (number, place) not in self.known:
            memory = [self.memory[number], *(self.indices[i] for i in place)]
            if self.row in self.maps[number]:
                value = emit.value("vector.load", memory, kind)
            else:
                value = emit.value("memref.load", memory, self.element)
                value = value if self.row is None else emit.value("vector.broadcast", [value], kind)
            self.known[number, place] = value
        return self.known[number, place]

    def zero(self, kind: mlir.Type) -> mlir.Value:
        zero = emit.zero(self.element)
        return zero if self.row is None else emit.value("vector.broadcast", [zero], kind)

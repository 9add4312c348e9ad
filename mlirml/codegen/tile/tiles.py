"""Tile kernels: a block is one thread whose values are whole tiles, vectors of the `vector` dialect.

An axis is a loop of the dispatch that the kernel walks in tiles. A tensor's element at symbolic indices, forms over
axes, is the vector of all elements of the tile: loads are `vector.transfer_read` of a strided view of its memory,
bodies of structured operations become operations on vectors. What registers and shared memory hold, and which
instructions compute it, is the assembler's business (`tileiras`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mlirml.analysis.traits import FLOAT_CASTS, RESHAPES
from mlirml.codegen.gpu.elements import Elements, Indices, is_structured
from mlirml.codegen.gpu.index import Base, Digit, Form, form
from mlirml.codegen.gpu.kernel import Host, Kernel
from mlirml.codegen.gpu.outs import carried_outs
from mlirml.codegen.tile.cutile import is_elementwise
from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import TILE
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch

SMALL_FLOATS = (mlir.F16Type, mlir.BF16Type)
_VIEWS = ("linalg.fill", "tensor.splat", "tensor.empty", "tensor.cast", "tensor.extract_slice")


@dataclass(frozen=True)
class Axis:
    """A loop of `size` iterations, of which the kernel has those of the tile `number`, `tile` of them."""

    name: str
    size: int
    tile: int
    number: mlir.Value

    @property
    def is_whole(self) -> bool:
        """True if no tile is beyond the end."""
        return self.size % self.tile == 0


class TileKernel(Kernel):
    """A `gpu.func` of one thread a block, whose values are tiles. `order` has the axes of each vector."""

    def __init__(self, host: Host, name: str, threads: Sequence[int]) -> None:
        super().__init__(host, name, threads)
        self.axes: dict[Base, Axis] = {}
        self.order: dict[mlir.Value, tuple[Axis, ...]] = {}
        self.op.attributes[TILE] = mlir.DictAttr.get({})

    def axis(self, name: str, size: int, tile: int, number: mlir.Value) -> Form:
        """The index along a new axis, as a form."""
        base = Base(name, size)
        self.axes[base] = Axis(name, size, tile, number)
        return form(Digit(base))

    def load(self, tensor: mlir.Value, index: Form) -> mlir.Value:
        """The tile of a tensor at a row-major index; zeros beyond its end."""
        key = ("load", tensor, index)
        return self.once(key, lambda: self._load(tensor, index))

    def _load(self, tensor: mlir.Value, index: Form) -> mlir.Value:
        memory, position, axes = self._view(tensor, index)
        element = memory.type.element_type
        padding = self.constant(0, element)
        if not axes:
            return emit.value("memref.load", [memory, *position], element)
        attributes = {
            "permutation_map": minor_identity(len(position), len(axes)),
            "in_bounds": mlir.ArrayAttr.get([mlir.BoolAttr.get(axis.is_whole) for axis in axes]),
            "operandSegmentSizes": emit.segments(1, len(position), 1, 0),
        }
        tile = emit.value("vector.transfer_read", [memory, *position, padding], vector_of(axes, element), **attributes)
        return self._made(tile, axes)

    def store(self, tensor: mlir.Value, elements: Sequence[tuple[Form, mlir.Value]]) -> None:
        """Store tiles at row-major indices, except what is beyond the end."""
        for index, value in elements:
            memory, position, axes = self._view(tensor, index)
            if any(axis.size > 1 and axis not in axes for axis in self.order.get(value, ())):
                raise NoMatch("a result does not have all axes")
            (stored,) = self.aligned([self.as_type(value, memory.type.element_type)], axes)
            attributes = {
                "permutation_map": minor_identity(len(position), len(axes)),
                "in_bounds": mlir.ArrayAttr.get([mlir.BoolAttr.get(axis.is_whole) for axis in axes]),
                "operandSegmentSizes": emit.segments(1, 1, len(position), 0),
            }
            emit.create("vector.transfer_write", [stored, memory, *position], (), attributes)

    def _view(self, tensor: mlir.Value, index: Form) -> tuple[mlir.Value, list[mlir.Value], tuple[Axis, ...]]:
        """A view of a tensor's memory with a dimension for each digit of an index: the view, where the tile starts in
        it, and the axes of its last dimensions, with the smallest stride last.
        """
        outer: list[tuple[int, int, mlir.Value]] = []
        inner: list[tuple[int, Axis]] = []
        for digit, stride in index.terms:
            axis = self.axes.get(digit.base)
            if stride <= 0 or digit.bound is None or (axis is not None and digit != Digit(digit.base)):
                raise NoMatch("an access has no stride along an axis")
            if axis is None:
                outer.append((digit.bound, stride, self.at(form(digit))))
            else:
                inner.append((stride, axis))
        inner.sort(key=lambda part: -part[0])
        if len({stride for stride, _ in inner}) != len(inner):
            raise NoMatch("two axes have one stride")
        sizes = [*(size for size, _, _ in outer), *(axis.size for _, axis in inner)]
        strides = [*(stride for _, stride, _ in outer), *(stride for stride, _ in inner)]
        if not sizes:
            sizes, strides = [1], [1]
            outer = [(1, 1, self.constant(0))]
        memory = self.argument(self.host.view(tensor, index.constant, sizes, strides))
        starts = [self.start(axis) for _, axis in inner]
        return memory, [*(at for _, _, at in outer), *starts], tuple(axis for _, axis in inner)

    def start(self, axis: Axis) -> mlir.Value:
        """The first index of the tile along an axis."""
        key = ("start", axis.number, axis.tile)
        return self.once(key, lambda: emit.same_type("arith.muli", axis.number, self.constant(axis.tile)))

    def indices(self, index: Form) -> mlir.Value:
        """The values of an index in the tile, as i32 of index type."""
        total = self.at(Form(tuple((d, f) for d, f in index.terms if d.base not in self.axes), index.constant))
        for digit, factor in index.terms:
            axis = self.axes.get(digit.base)
            if axis is None:
                continue
            if digit != Digit(digit.base):
                raise NoMatch("an index is part of an axis")
            lanes = self._made(emit.value("vector.step", (), vector_of((axis,), self.index)), (axis,))
            total = self.binary("arith.addi", total, self.binary("arith.addi", self.start(axis), lanes), factor)
        return total

    def binary(self, name: str, left: mlir.Value, right: mlir.Value, factor: int = 1) -> mlir.Value:
        """The result of an operation on two indices, the second of them times a factor."""
        if factor != 1:
            right = self.binary("arith.muli", self.constant(factor), right)
        return self.same_type(name, left, right)

    def together(self, values: Sequence[mlir.Value]) -> tuple[list[mlir.Value], tuple[Axis, ...]]:
        """Values with all axes that one of them has: in the order of those that have all, else as they were made."""
        orders = [self.order.get(value, ()) for value in values]
        found = {axis for order in orders for axis in order}
        whole = {order for order in orders if len(order) == len(found)}
        made = [axis for axis in self.axes.values() if axis in found]
        axes = whole.pop() if len(whole) == 1 else tuple(made)
        return self.aligned(values, axes), axes

    def aligned(self, values: Sequence[mlir.Value], axes: tuple[Axis, ...]) -> list[mlir.Value]:
        """Values as vectors with these axes, in this order; scalars stay scalars where there are none."""
        return [self.once(("aligned", value, axes), partial(self._align, value, axes)) for value in values]

    def _align(self, value: mlir.Value, axes: tuple[Axis, ...]) -> mlir.Value:
        own = self.order.get(value, ())
        if own == axes:
            return value
        element = value.type.element_type if own else value.type
        kept = [axis for axis in axes if axis in own]
        if len(kept) != len(own):
            raise NoMatch("a value has more axes than what it is combined with")
        if kept != list(own):
            permutation = mlir.DenseI64ArrayAttr.get([own.index(axis) for axis in kept])
            value = emit.value("vector.transpose", [value], vector_of(kept, element), permutation=permutation)
        if len(kept) != len(axes):
            if own:
                shape = [axis.tile if axis in own else 1 for axis in axes]
                value = emit.value("vector.shape_cast", [value], mlir.VectorType.get(shape, element))
            value = emit.value("vector.broadcast", [value], vector_of(axes, element))
        return self._made(value, axes)

    def as_type(self, value: mlir.Value, element: mlir.Type) -> mlir.Value:
        """A tile of floats, or a scalar, with another type of floats."""
        axes = self.order.get(value, ())
        own = value.type.element_type if axes else value.type
        if own == element:
            return value
        name = "arith.extf" if own.width < element.width else "arith.truncf"
        key = ("cast", value, element)
        return self.once(key, lambda: self._made(emit.value(name, [value], type_of(axes, element)), axes))

    def apply(self, op: mlir.Operation, operands: Sequence[mlir.Value], element: mlir.Type | None = None) -> mlir.Value:
        """The result of an elementwise operation on tiles, of another element type if one is given."""
        values, axes = self.together(operands)
        element = element or op.results[0].type
        attributes = {name: op.attributes[name] for name in op.attributes}
        return self._made(emit.value(op.name, values, type_of(axes, element), **attributes), axes)

    def reduce(self, combiner: str, tile: mlir.Value, axis: Axis, before: mlir.Value) -> mlir.Value:
        """A tile combined along an axis, with a tile of the others."""
        axes = self.order[tile]
        attributes = {
            "kind": mlir.Attribute.parse(f"#vector.kind<{combiner}>"),
            "reduction_dims": mlir.DenseI64ArrayAttr.get([axes.index(axis)]),
        }
        kept = [each for each in axes if each != axis]
        return self._made(emit.value("vector.multi_reduction", [tile, before], before.type, **attributes), kept)

    def compare(self, predicate: str, left: mlir.Value, right: mlir.Value) -> mlir.Value:
        """The comparison of two tiles."""
        values, axes = self.together([left, right])
        floats = predicate in emit.FLOAT_PREDICATES
        number = (emit.FLOAT_PREDICATES if floats else emit.INTEGER_PREDICATES)[predicate]
        name = "arith.cmpf" if floats else "arith.cmpi"
        type_ = vector_of(axes, mlir.IntegerType.get_signless(1))
        return self._made(emit.value(name, values, type_, predicate=emit.i64(number)), axes)

    def valid(self, axis: Axis) -> mlir.Value | None:
        """The mask of the tile's indices along an axis that exist; None if all do."""
        if axis.is_whole:
            return None
        base = next(base for base, each in self.axes.items() if each == axis)

        def build() -> mlir.Value:
            return self.compare("ult", self.indices(form(Digit(base))), self.constant(axis.size))

        return self.once(("valid", axis), build)

    def masked(self, valid: mlir.Value | None, tile: mlir.Value, otherwise: float) -> mlir.Value:
        """A tile with a number instead of what is not valid."""
        if valid is None:
            return tile
        return self.same_type("arith.select", valid, tile, self.filled(self.order[tile], element_type(tile), otherwise))

    def filled(self, axes: Sequence[Axis], element: mlir.Type, number: float) -> mlir.Value:
        """A tile whose elements are a number."""
        value = mlir.DenseElementsAttr.get_splat(vector_of(axes, element), emit.number_attribute(element, number))
        return self._made(emit.constant(value), axes)

    def same_type(self, name: str, *operands: mlir.Value) -> mlir.Value:
        """The result of an operation on tiles that has the type of its last operand."""
        values, axes = self.together(operands)
        return self._made(emit.same_type(name, *values), axes)

    def _made(self, value: mlir.Value, axes: Sequence[Axis]) -> mlir.Value:
        self.order[value] = tuple(axes)
        return value


class Tiles(Elements):
    """The tiles of tensors in a tile kernel: what `Elements` computes, for all points of a tile at once."""

    kernel: TileKernel

    def get(self, tensor: mlir.Value, indices: Indices) -> mlir.Value:
        """The tile of a tensor at symbolic indices; raises NoMatch if it is not elementwise on views of memory."""
        op = defining_op(tensor)
        known = ("element", tensor, indices) in self.kernel.known or tensor in self.kernel.host.buffers
        if not known and op is not None:
            if op.name == "arith.constant" and not op.attributes["value"].is_splat:
                raise NoMatch("an array of constants")
            if is_structured(op):
                if list(op.results).index(tensor) in carried_outs(op):
                    raise NoMatch("a reduction")
            elif op.name not in (*_VIEWS, *RESHAPES, "arith.constant"):
                raise NoMatch(f"{op.name} on tiles")
        return super().get(tensor, indices)

    def body_op(self, op: mlir.Operation, dims: Sequence[Form], environment: dict[mlir.Value, mlir.Value]) -> None:
        """Build one operation of a body on tiles."""
        if op.name == "linalg.index":
            environment[op.results[0]] = self.kernel.indices(dims[op.attributes["dim"].value])
            return
        if not is_elementwise(op):
            raise NoMatch(f"{op.name} on tiles")
        operands = [self.value_of(value, environment) for value in op.operands]
        environment[op.results[0]] = self.apply(op, operands)

    def apply(self, op: mlir.Operation, operands: Sequence[mlir.Value]) -> mlir.Value:
        """The result of an elementwise operation on tiles."""
        return self.kernel.apply(op, operands)


class WideTiles(Tiles):
    """Tiles whose small floats are computed as f32, without a rounding after each operation."""

    def apply(self, op: mlir.Operation, operands: Sequence[mlir.Value]) -> mlir.Value:
        """The result of an elementwise operation on tiles."""
        wide = [self.wide(value) for value in operands]
        if op.name in FLOAT_CASTS:
            return wide[0]
        element = op.results[0].type
        return self.kernel.apply(op, wide, mlir.F32Type.get() if isinstance(element, SMALL_FLOATS) else element)

    def wide(self, value: mlir.Value) -> mlir.Value:
        """A tile, or a scalar, of small floats as f32; others unchanged."""
        element = value.type.element_type if isinstance(value.type, mlir.VectorType) else value.type
        return self.kernel.as_type(value, mlir.F32Type.get()) if isinstance(element, SMALL_FLOATS) else value


def element_type(tile: mlir.Value) -> mlir.Type:
    """The type of the elements of a tile, or that of a scalar."""
    return tile.type.element_type if isinstance(tile.type, mlir.VectorType) else tile.type


def type_of(axes: Sequence[Axis], element: mlir.Type) -> mlir.Type:
    """The type of a tile with these axes; that of a scalar without any."""
    return vector_of(axes, element) if axes else element


def vector_of(axes: Sequence[Axis], element: mlir.Type) -> mlir.Type:
    """The type of a tile."""
    return mlir.VectorType.get([axis.tile for axis in axes], element)


def minor_identity(dimensions: int, last: int) -> mlir.Attribute:
    """The map of a transfer between the last dimensions of a memory and a vector."""
    return mlir.AffineMapAttr.get(mlir.AffineMap.get_minor_identity(dimensions, last))

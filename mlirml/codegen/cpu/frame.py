"""Build the inner part of a loop nest: constants, flat views, element offsets, and the scalar body."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirml.analysis.bounds import DYNAMIC
from mlirml.codegen.cpu.nest import Access, Body, Nest
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir

_DYNAMIC = mlir.ShapedType.get_dynamic_stride_or_offset()


class Frame:
    """The values that the loops of one operation, or of several with the same outer loop, share, built before them.

    `in_parallel`: the operation is in a parallel loop already.
    """

    def __init__(self, op: mlir.Operation, around: Frame | None = None, *, in_parallel: bool = False) -> None:
        self.op = op
        self.in_parallel = in_parallel
        self._constants: dict[int, mlir.Value] = around._constants if around else {}
        self._flat: dict[mlir.Value, mlir.Value] = around._flat if around else {}
        self.front: mlir.InsertionPoint = around.front if around else self._make_front()
        self.nsw = mlir.Attribute.parse("#arith.overflow<nsw>")

    def _make_front(self) -> mlir.InsertionPoint:
        with mlir.InsertionPoint(self.op):
            zero = self._constants[0] = emit.index(0)
        return mlir.InsertionPoint(zero.owner.operation)

    def index(self, number: int) -> mlir.Value:
        """A constant of index type."""
        value = self._constants.get(number)
        if value is None:
            with self.front:
                value = self._constants[number] = emit.index(number)
        return value

    def flat(self, operand: mlir.Value) -> mlir.Value:
        """The memref as one dimension with stride 1, starting at its first element."""
        view = self._flat.get(operand)
        if view is None:
            with self.front:
                view = self._flat[operand] = flatten(operand)
        return view

    def add(self, a: mlir.Value, b: mlir.Value) -> mlir.Value:
        return emit.value("arith.addi", [a, b], a.type, overflowFlags=self.nsw)

    def multiply(self, a: mlir.Value, factor: int) -> mlir.Value:
        return a if factor == 1 else emit.value("arith.muli", [a, self.index(factor)], a.type, overflowFlags=self.nsw)


def flatten(operand: mlir.Value) -> mlir.Value:
    """A one-dimensional view of a memref."""
    type_ = operand.type
    shape = type_.shape
    strides, offset = type_.get_strides_and_offset()
    identity = isinstance(type_.layout, mlir.AffineMapAttr)
    if len(shape) == 1 and (identity or (strides == [1] and offset != _DYNAMIC)):
        return operand
    if identity:
        size = math.prod(shape) if type_.has_static_shape else DYNAMIC
        flat = mlir.MemRefType.get([size], type_.element_type, memory_space=type_.memory_space)
        if shape:
            groups = mlir.ArrayAttr.get([mlir.ArrayAttr.get([emit.i64(d) for d in range(len(shape))])])
            return emit.value("memref.collapse_shape", [operand], flat, reassociation=groups)
        static = mlir.DenseI64ArrayAttr.get([1])
        return emit.value(
            "memref.expand_shape", [operand], flat, reassociation=mlir.ArrayAttr.get([]), static_output_shape=static
        )
    size = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    flat = mlir.MemRefType.get([size], type_.element_type, mlir.StridedLayoutAttr.get(offset, [1]), type_.memory_space)
    offsets = []
    if offset == _DYNAMIC:
        operand, start = split_offset(operand)
        offsets = [start]
    return emit.create(
        "memref.reinterpret_cast",
        [operand, *offsets],
        [flat],
        {
            "operandSegmentSizes": emit.segments(1, len(offsets), 0, 0),
            "static_offsets": mlir.DenseI64ArrayAttr.get([offset]),
            "static_sizes": mlir.DenseI64ArrayAttr.get([size]),
            "static_strides": mlir.DenseI64ArrayAttr.get([1]),
        },
    ).results[0]


def split_offset(operand: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
    """The base buffer of a memref and its dynamic offset."""
    type_, index = operand.type, mlir.IndexType.get()
    base = mlir.MemRefType.get([], type_.element_type, memory_space=type_.memory_space)
    results = [base, index, *[index] * (2 * type_.rank)]
    parts = emit.create("memref.extract_strided_metadata", [operand], results).results
    return parts[0], parts[1]


Key = tuple[tuple[mlir.Value, ...], int, tuple[int, ...]]


def key_of(access: Access) -> Key:
    """The key of an access; accesses with equal keys have the same offset at every point."""
    return access.base, access.offset, access.strides


def first_offset(frame: Frame, base: tuple[mlir.Value, ...], offset: int) -> mlir.Value | None:
    """The offset of an access before all loops; None for 0."""
    if not base:
        return frame.index(offset) if offset else None
    return frame.add(base[0], frame.index(offset)) if offset else base[0]


@dataclass(frozen=True)
class Cursor:
    """A point of the iteration space: the variables of the loops entered so far, and the offset of each access."""

    frame: Frame
    nest: Nest
    keys: tuple[Key, ...]
    offsets: tuple[mlir.Value | None, ...]
    variables: tuple[tuple[int, mlir.Value], ...] = ()

    @staticmethod
    def start(frame: Frame, nest: Nest) -> Cursor:
        """The cursor before all loops."""
        keys = tuple(dict.fromkeys(map(key_of, nest.memory)))
        offsets = tuple(first_offset(frame, base, offset) for base, offset, _ in keys)
        return Cursor(frame, nest, keys, offsets, nest.entered)

    def enter(self, d: int, variable: mlir.Value) -> Cursor:
        """The cursor in the body of loop `d`."""
        products: dict[int, mlir.Value] = {}
        sums: dict[tuple[mlir.Value | None, int], mlir.Value] = {}
        offsets = []
        for (_, _, strides), before in zip(self.keys, self.offsets, strict=True):
            stride = strides[d]
            if not stride:
                offsets.append(before)
                continue
            if (before, stride) not in sums:
                if stride not in products:
                    products[stride] = self.frame.multiply(variable, stride)
                term = products[stride]
                sums[before, stride] = term if before is None else self.frame.add(before, term)
            offsets.append(sums[before, stride])
        variables = (*self.variables, (self.nest.origin[d], variable))
        return Cursor(self.frame, self.nest, self.keys, tuple(offsets), variables)

    def shifted(self, d: int, steps: int) -> Cursor:
        """The cursor `steps` iterations of loop `d`, which is entered already, further on."""
        offsets = list(self.offsets)
        for position, (_, _, strides) in enumerate(self.keys):
            if steps * strides[d]:
                step, before = self.frame.index(steps * strides[d]), offsets[position]
                offsets[position] = step if before is None else self.frame.add(before, step)
        origin, variables = self.nest.origin[d], self.variables
        if origin in self.nest.pinned:
            variables = (*variables, (origin, self.frame.add(self.variable(origin), self.frame.index(steps))))
        return Cursor(self.frame, self.nest, self.keys, tuple(offsets), variables)

    def address(self, access: Access) -> mlir.Value:
        """The flat index of an access."""
        offset = self.offsets[self.keys.index(key_of(access))]
        return self.frame.index(0) if offset is None else offset

    def load(self, access: Access) -> mlir.Value:
        flat = self.frame.flat(access.operand)
        return emit.value("memref.load", [flat, self.address(access)], flat.type.element_type)

    def store(self, value: mlir.Value, access: Access) -> None:
        emit.create("memref.store", [value, self.frame.flat(access.operand), self.address(access)])

    def variable(self, dimension: int) -> mlir.Value:
        """The induction variable of a dimension of the operation; 0 if it has no loop."""
        return dict(self.variables).get(dimension) or self.frame.index(0)

    def arguments(self, body: Body, given: dict[mlir.Value, mlir.Value]) -> dict[mlir.Value, mlir.Value]:
        """Load the values that the body reads, except the arguments that are `given`."""
        environment = dict(given)
        for argument, access, operand in zip(body.arguments, self.nest.accesses, self.frame.op.operands, strict=True):
            if argument in environment or not body.reads(argument):
                continue
            environment[argument] = operand if access is None else self.load(access)
        return environment

    def run(
        self, body: Body, environment: dict[mlir.Value, mlir.Value], skip: Sequence[mlir.Operation] = ()
    ) -> dict[mlir.Value, mlir.Value]:
        """Build the operations of the body; returns the map of its values to the new ones."""
        for op in body.ops:
            if op in skip:
                continue
            if op.name == "linalg.index":
                environment[op.results[0]] = self.variable(op.attributes["dim"].value)
            else:
                emit.body_op(op, environment)
        return environment

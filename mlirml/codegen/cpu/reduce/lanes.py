"""Bodies on vectors: the values of a body at consecutive points of the innermost loop, one in each lane."""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.codegen.cpu.frame import Cursor
from mlirml.codegen.cpu.nest import Access, Body, Nest
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import mlir
from mlirml.passes import NoMatch


@dataclass(frozen=True)
class Lanes:
    """Vectors of so many lanes, and the operations of a body on them."""

    count: int
    body: Body

    def values(self, cursor: Cursor, wanted: Sequence[mlir.Value]) -> list[mlir.Value]:
        """The wanted values of the body from the point of the cursor on; `check_lanes` has accepted them."""
        environment: dict[mlir.Value, mlir.Value] = {}
        sources = zip(cursor.nest.accesses, cursor.frame.op.operands, strict=True)
        accesses = dict(zip(self.body.arguments, sources, strict=True))

        def value_of(value: mlir.Value) -> mlir.Value:
            if value not in environment:
                found = accesses.get(value)
                environment[value] = self.splat(value) if found is None else self.load(cursor, found)
            return environment[value]

        for op in reversed(needed_ops(self.body, wanted)):
            if not op.operands:
                environment[op.results[0]] = self.splat(op.clone().results[0])
                continue
            operands = [value_of(operand) for operand in op.operands]
            results = [self.vector(result.type) for result in op.results]
            copy = emit.create(op.name, operands, results, {name: op.attributes[name] for name in op.attributes})
            environment.update(zip(op.results, copy.results, strict=True))
        return [value_of(value) for value in wanted]

    def load(self, cursor: Cursor, source: tuple[Access | None, mlir.Value]) -> mlir.Value:
        """The values of an operand in all lanes."""
        access, scalar = source
        if access is None or not access.strides[-1]:
            return self.splat(scalar if access is None else cursor.load(access))
        flat = cursor.frame.flat(access.operand)
        return emit.value("vector.load", [flat, cursor.address(access)], self.vector(flat.type.element_type))

    def vector(self, element: mlir.Type) -> mlir.Type:
        return mlir.VectorType.get([self.count], element)

    def splat(self, scalar: mlir.Value) -> mlir.Value:
        return emit.value("vector.broadcast", [scalar], self.vector(scalar.type))


def needed_ops(body: Body, wanted: Sequence[mlir.Value]) -> list[mlir.Operation]:
    """The operations that the wanted values need, the last one first."""
    values, found = set(wanted), []
    for op in reversed(body.ops):
        if any(result in values for result in op.results):
            values.update(op.operands)
            found.append(op)
    return found


def check_lanes(nest: Nest, body: Body, wanted: Sequence[mlir.Value]) -> None:
    """Raises `NoMatch` unless the wanted values are computed by `arith` from contiguous elements."""
    needed = needed_ops(body, wanted)
    values = [*wanted, *(value for op in needed for value in (*op.operands, *op.results))]
    if not all(op.name.startswith("arith.") and not op.regions for op in needed):
        raise NoMatch("a value is not computed by arithmetic alone")
    if not all(is_laned(value.type) for value in values):
        raise NoMatch("a value has a type without vectors")
    read = [access for argument, access in zip(body.arguments, nest.accesses, strict=True) if argument in values]
    if not all(access is None or access.strides[-1] in (0, 1) for access in read):
        raise NoMatch("the elements of a row are not contiguous")


def is_laned(type_: mlir.Type) -> bool:
    """True for the types of which vectors have every operation: no narrow floats, which are converted."""
    if isinstance(type_, mlir.IntegerType):
        return True
    return isinstance(type_, (mlir.F32Type, mlir.F64Type))

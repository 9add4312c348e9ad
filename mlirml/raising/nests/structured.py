"""Build a raised statement: slices of its inputs, one `linalg.generic`, and the insertion of its result.

For `B[1:] = exp(A[:-1])`:
    %a = tensor.extract_slice %A[0] [7] [1] : tensor<8xf32> to tensor<7xf32>
    %e = tensor.empty() : tensor<7xf32>
    %g = linalg.generic {maps = [(t) -> (t), (t) -> (t)]} ins(%a) outs(%e) { math.exp }
    %r = tensor.insert_slice %g into %B[1] [7] [1] : tensor<7xf32> into tensor<8xf32>
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlirml.analysis.affine import Loop, loops_in
from mlirml.analysis.constants import is_constant
from mlirml.analysis.values import operands_first
from mlirml.core.affine import Linear
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir
from mlirml.raising.nests.dilate import Dilated
from mlirml.raising.nests.find_loops import ORDER
from mlirml.raising.nests.generic import Index, Operand, Raised, memory_indices, outer_indices
from mlirml.raising.nests.model import is_pure

if TYPE_CHECKING:
    from mlirml.raising.nests.rebuild import State

_NEGATED = {"arith.addf": "arith.subf", "arith.addi": "arith.subi"}


def build_raised(state: State, raised: Raised) -> None:
    """Build one generic for a statement and all its raised loops."""
    if raised.is_empty:
        return
    with raised.statement.op.location:
        _Builder(state, raised).build()


class _Builder:
    def __init__(self, state: State, raised: Raised) -> None:
        self.state, self.raised, self.statement = state, raised, raised.statement
        self.loops = {dim.loop for dim in raised.dims} | set(raised.replaced_loops)
        self.given: dict[mlir.Value, mlir.Value] = {}
        self._variant: dict[mlir.Value, bool] = {}

    def build(self) -> None:
        raised, state = self.raised, self.state
        array = raised.out.array
        scalar = state.is_scalar(array)
        target = state.value_of(array) if array in state.arrays or not array.local else None
        if scalar and target is not None:
            target = from_elements(target)
        for dilated in raised.dilated:
            state.arrays[dilated.array] = with_zeros(state.value_of(dilated.source), dilated)
        inputs = [(operand, self.slice(operand)) for operand in raised.inputs]
        keeps = raised.combination is not None
        old = None
        if keeps or not self.is_static(raised.out) or (raised.order is not None and target is not None):
            assert target is not None
            out = self.cut(target, raised.out)
        else:
            sizes = [i.size.constant for i in raised.out.indices if i.factors is not None]
            out = emit.empty(mlir.RankedTensorType.get(sizes, array.element_type))
            if raised.mask:
                assert target is not None
                old = self.cut(target, raised.out)
        result = self.generic(inputs, old, out)
        if scalar:
            state.arrays[array] = emit.value("tensor.extract", [result], array.element_type)
        else:
            state.arrays[array] = result if self.is_all(result) else self.put(result, target)

    def is_all(self, result: mlir.Value) -> bool:
        """True if a result is the whole array."""
        return bool(result.type == shape_type(self.state, self.raised)) and not self.raised.out.flat

    def is_static(self, operand: Operand) -> bool:
        return all(index.size.is_constant for index in operand.indices)

    def slice(self, operand: Operand) -> mlir.Value:
        """The input of an operand, as a tensor."""
        value = self.state.value_of(operand.array)
        return from_elements(value) if self.state.is_scalar(operand.array) else self.cut(value, operand)

    def cut(self, value: mlir.Value, operand: Operand) -> mlir.Value:
        """The slice of a tensor that an operand is; the tensor itself if it is the whole one."""
        value = as_row(value) if operand.flat else value
        type_ = mlir.RankedTensorType(value.type)
        if is_whole(operand.indices, type_.shape):
            return value
        dynamic = mlir.ShapedType.get_dynamic_size()
        shape = [
            index.size.constant if index.size.is_constant else dynamic
            for index in operand.indices
            if index.factors is not None
        ]
        result = mlir.RankedTensorType.get(shape, type_.element_type)
        return emit.slice_op("tensor.extract_slice", [value], result, *self.slice_numbers(operand.indices))

    def put(self, value: mlir.Value, target: mlir.Value | None) -> mlir.Value:
        """The array with the result inserted."""
        if target is None:
            target = emit.empty(shape_type(self.state, self.raised))
        whole = target
        if self.raised.out.flat:
            target = as_row(target)
        numbers = self.slice_numbers(self.raised.out.indices)
        result = emit.slice_op("tensor.insert_slice", [value, target], target.type, *numbers)
        return from_row(result, whole.type) if self.raised.out.flat else result

    def slice_numbers(
        self, indices: Sequence[Index]
    ) -> tuple[list[mlir.Value | int], list[mlir.Value | int], list[int]]:
        """The offsets, sizes and strides of a slice."""
        at = [i.offset.constant if i.offset.is_constant else self.state.number(i.offset) for i in indices]
        long = [i.size.constant if i.size.is_constant else self.length(i.size) for i in indices]
        return at, long, [index.stride for index in indices]

    def length(self, size: Linear) -> mlir.Value:
        """A dynamic length; a zero-trip loop has length 0."""
        return emit.same_type("arith.maxsi", self.state.number(size), emit.index(0))

    def generic(self, inputs: list[tuple[Operand, mlir.Value]], old: mlir.Value | None, out: mlir.Value) -> mlir.Value:
        """The generic; invariant scalars are inputs of rank 0."""
        raised = self.raised
        scalars = self.invariants()
        values = [value for _, value in inputs]
        maps = [self.map_of(operand) for operand, _ in inputs]
        if old is not None:
            values.append(old)
            maps.append(self.map_of(raised.out))
        rank = len(raised.dims)
        values += scalars.values()
        maps += [mlir.AffineMap.get(rank, 0, [])] * len(scalars)
        if raised.windows:
            sizes = [raised.dims[number].size.constant for number in raised.windows]
            values.insert(0, emit.empty(mlir.RankedTensorType.get(sizes, raised.out.array.element_type)))
            walked = [mlir.AffineDimExpr.get(number) for number in raised.windows]
            maps.insert(0, mlir.AffineMap.get(rank, 0, walked))

        def body(arguments: list[mlir.Value]) -> list[mlir.Value]:
            arguments = arguments[1 if raised.windows else 0 :]
            for (operand, _), argument in zip(inputs, arguments):
                for value in operand.values:
                    self.given[value] = argument
            self.given.update(zip(scalars, arguments[-1 - len(scalars) : -1]))
            kept = arguments[len(inputs)] if old is not None else arguments[-1]
            return [self.result(arguments[-1], kept)]

        op = emit.generic(values, [out], [*maps, self.map_of(raised.out)], raised.iterators, body)
        if raised.order is not None:
            op.attributes[ORDER] = mlir.DenseI64ArrayAttr.get(raised.order)
        return op.results[0]

    def map_of(self, operand: Operand) -> mlir.AffineMap:
        results = []
        for index in operand.indices:
            if index.factors is not None:
                expression = mlir.AffineConstantExpr.get(0)
                for dim, factor in index.factors.items():
                    expression = expression + mlir.AffineDimExpr.get(dim) * factor
                results.append(expression)
        return mlir.AffineMap.get(len(self.raised.dims), 0, results)

    def invariants(self) -> dict[mlir.Value, mlir.Value]:
        """The invariant values that the body uses, as tensors of rank 0."""
        found: dict[mlir.Value, mlir.Value] = {}
        roots = [self.statement.value]
        if self.raised.combination is not None and self.raised.combination.name != "arith.select":
            roots = [term for term, _ in self.raised.combination.terms]
        known: dict[mlir.Value, mlir.Value] = {}
        todo, visited = list(roots), set[mlir.Value]()
        while todo:
            value = todo.pop()
            if value in visited:
                continue
            visited.add(value)
            if self.varies(value):
                op = defining_op(value)
                if value not in self.statement.reads and op is not None:
                    todo += op.operands
                elif op is not None and self.is_computed_gather(value):
                    todo += list(op.operands)[1:]
            elif not isinstance(value.type, mlir.IndexType) and not is_constant(value) and value not in found:
                scalar = self.state.compute(value, self.state.leaf_of(self.statement), known)
                found[value] = from_elements(scalar)
        return found

    def is_computed_gather(self, value: mlir.Value) -> bool:
        """True if a value is an element that the body extracts at indices that the program computes.

        The indices of other gathers are linear in the loops; such a value may be the result of any operation, such as a
        loop.
        """
        return value in self.raised.gathers and self.statement.reads[value].indices is None

    def varies(self, value: mlir.Value) -> bool:
        """True if a value is not invariant in the generic."""
        if value in self._variant:
            return self._variant[value]
        for each in operands_first(value, self._unknown_operands):
            if each not in self._variant:
                linear = self.state.nest.reader.indices.get(each)
                if each in self.statement.reads:
                    found = True
                elif linear is not None:
                    found = any(loop in self.loops for loop in loops_in(linear))
                else:
                    found = any(self._variant[operand] for operand in self._unknown_operands(each))
                self._variant[each] = found
        return self._variant[value]

    def _unknown_operands(self, value: mlir.Value) -> Sequence[mlir.Value]:
        """The operands that decide whether a value varies, if that is not known."""
        op = defining_op(value)
        if value in self._variant or value in self.statement.reads or value in self.state.nest.reader.indices:
            return ()
        return op.operands if op is not None and is_pure(op) and self.state.is_inside(op) else ()

    def result(self, out: mlir.Value, kept: mlir.Value) -> mlir.Value:
        """The body of the generic."""
        combination = self.raised.combination
        variables = self.variables()
        if combination is not None:
            self.given[combination.old] = out
        known = dict(self.given)

        def leaf(value: mlir.Value) -> mlir.Value | None:
            access = self.statement.reads.get(value)
            if access is not None:
                return self.gather(value, known, leaf, variables)
            linear = self.state.nest.reader.indices.get(value)
            if linear is not None:
                return self.state.number(linear, variables)
            return constant_again(value)

        def computed(value: mlir.Value) -> mlir.Value:
            return self.state.compute(value, leaf, known)

        if combination is None or combination.name == "arith.select":
            result = computed(self.statement.value)
        else:
            total: mlir.Value | None = None
            for term, taken in combination.terms:
                value = computed(term)
                if total is None:
                    total = negated(value) if taken else value
                else:
                    total = emit.same_type(_NEGATED[combination.name] if taken else combination.name, total, value)
            assert total is not None
            result = emit.same_type(combination.name, out, total)
        if not self.raised.mask:
            return result
        return emit.same_type("arith.select", self.is_in_domain(variables), result, kept)

    def variables(self) -> dict[Loop, mlir.Value]:
        """The induction variables of the loops in terms of the dims, built at their first use."""
        return _Variables(self)

    def is_in_domain(self, variables: dict[Loop, mlir.Value]) -> mlir.Value:
        """The i1 value that is true if the point of the box is in the domain of the loops."""
        total: mlir.Value | None = None
        zero = emit.index(0)
        for condition in self.raised.mask:
            holds = emit.compare("sge", self.state.number(condition, variables), zero)
            total = holds if total is None else emit.same_type("arith.andi", total, holds)
        assert total is not None
        return total

    def gather(self, value: mlir.Value, known: dict, leaf, variables: dict[Loop, mlir.Value]) -> mlir.Value:  # type: ignore[no-untyped-def, type-arg]
        """Extract an element in the body."""
        access = self.statement.reads[value]
        linear = memory_indices(self.state.layouts.get(access.array), access, self.statement.loops)
        op = defining_op(value)
        assert op is not None
        if linear is not None:
            indices = [self.state.number(index, variables) for index in linear]
            if self.raised.mask:
                shape = mlir.RankedTensorType(self.state.value_of(access.array).type).shape
                indices = [clamped(index, size) for index, size in zip(indices, shape)]
        else:
            outer = outer_indices(self.state.layouts.get(access.array), access, self.statement.loops)
            indices = [self.state.number(index, variables) for index in outer]
            indices += [self.state.compute(index, leaf, known) for index in list(op.operands)[1:]]
        return emit.value("tensor.extract", [self.state.value_of(access.array), *indices], access.array.element_type)


def with_zeros(value: mlir.Value, dilated: Dilated) -> mlir.Value:
    """A tensor with zeros between its elements."""
    type_ = mlir.RankedTensorType.get(list(dilated.array.shape), dilated.array.element_type)
    zeros = emit.fill(emit.zero(dilated.array.element_type), emit.empty(type_)).results[0]
    return emit.insert_slice(value, zeros, [0] * len(dilated.steps), dilated.source.shape, dilated.steps)


class _Variables(dict[Loop, mlir.Value]):
    """Induction variables of loops, as `linalg.index`."""

    def __init__(self, builder: _Builder) -> None:
        super().__init__()
        self._builder = builder
        self._dims = {dim.loop: number for number, dim in enumerate(builder.raised.dims)}

    def __contains__(self, loop: object) -> bool:
        return loop in self._dims or loop in self._builder.raised.replaced_loops

    def __missing__(self, loop: Loop) -> mlir.Value:
        replaced_loops = self._builder.raised.replaced_loops
        if loop in replaced_loops:
            self[loop] = self._builder.state.number(replaced_loops[loop], self)
            return self[loop]
        number = self._dims[loop]
        dim = self._builder.raised.dims[number]
        type_ = mlir.IndexType.get()
        position = emit.i64(number)
        value = emit.value("linalg.index", (), type_, dim=position)
        if dim.backward:
            value = emit.same_type("arith.subi", self._builder.state.number(dim.last), value)
        elif dim.first != Linear(0):
            value = emit.same_type("arith.addi", value, self._builder.state.number(dim.first))
        self[loop] = value
        return value


def shape_type(state: State, raised: Raised) -> mlir.Type:
    """The type of the array that is stored into."""
    array = raised.out.array
    shape = state.layouts[array].sizes if array in state.layouts else array.shape
    return mlir.RankedTensorType.get(list(shape), array.element_type)


def is_whole(indices: Sequence[Index], shape: Sequence[int]) -> bool:
    """True if a slice is the whole tensor."""
    return all(
        index.offset == Linear(0) and index.size == Linear(size) and index.stride == 1 and index.factors is not None
        for index, size in zip(indices, shape)
    )


def as_row(value: mlir.Value) -> mlir.Value:
    """A tensor collapsed to one dimension."""
    type_ = mlir.RankedTensorType(value.type)
    row = mlir.RankedTensorType.get([math.prod(type_.shape)], type_.element_type)
    return emit.value("tensor.collapse_shape", [value], row, reassociation=all_together(type_.rank))


def from_row(value: mlir.Value, type_: mlir.Type) -> mlir.Value:
    """The inverse of `as_row`."""
    shape = mlir.RankedTensorType(type_).shape
    return emit.value(
        "tensor.expand_shape",
        [value],
        type_,
        reassociation=all_together(len(shape)),
        static_output_shape=mlir.DenseI64ArrayAttr.get(list(shape)),
    )


def all_together(rank: int) -> mlir.Attribute:
    return mlir.ArrayAttr.get([mlir.ArrayAttr.get([emit.i64(n) for n in range(rank)])])


def from_elements(value: mlir.Value) -> mlir.Value:
    """A scalar as a tensor of rank 0."""
    op = defining_op(value)
    if op is not None and op.name == "tensor.extract" and len(op.operands) == 1:
        return op.operands[0]
    return emit.value("tensor.from_elements", [value], mlir.RankedTensorType.get([], value.type))


def constant_again(value: mlir.Value) -> mlir.Value | None:
    """A clone of a constant, also of an outer one, in the body."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    return emit.value("arith.constant", (), value.type, value=op.attributes["value"])


def clamped(index: mlir.Value, size: int) -> mlir.Value:
    """An index clamped to the bounds of a dimension."""
    return emit.same_type("arith.minsi", emit.same_type("arith.maxsi", index, emit.index(0)), emit.index(size - 1))


def negated(value: mlir.Value) -> mlir.Value:
    """The negated value."""
    if isinstance(value.type, mlir.FloatType):
        return emit.same_type("arith.negf", value)
    return emit.same_type("arith.subi", emit.zero(value.type), value)

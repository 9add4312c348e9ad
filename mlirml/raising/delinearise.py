"""Delinearise: arrays of one dimension that loops use as rows of rows get the dimensions that the indices imply.

Before, with %n constant, 0 <= %j < %n and 0 <= %k < %n:
    %r = scf.for %i = ... iter_args(%y = %y0) -> (tensor<12xf32>) {
      %p = arith.muli %i, %n
      %q = arith.addi %p, %j
      %a = tensor.extract %x[%q] : tensor<12xf32>
      ...
      %y1 = tensor.insert %s into %y[%t] : tensor<12xf32>
After:
    %x2 = tensor.expand_shape %x [[0, 1]] : tensor<12xf32> into tensor<3x4xf32>
    %y2 = tensor.expand_shape %y0 [[0, 1]] : tensor<12xf32> into tensor<3x4xf32>
    %r2 = scf.for %i = ... iter_args(%y = %y2) -> (tensor<3x4xf32>) {
      %a = tensor.extract %x2[%i, %j] : tensor<3x4xf32>
      ...
      %y1 = tensor.insert %s into %y[%i, %k] : tensor<3x4xf32>
    }
    %r = tensor.collapse_shape %r2 [[0, 1]] : tensor<3x4xf32> into tensor<12xf32>

An array has one shape in a whole nest, so all indices into it there must fit; an array with one that does not, or with
uses by operations on arrays, is unchanged. A dimension of a multi-dimensional array is split in the same way in nests
that store at such an index, as in `y[n, g * 8 + f, i, j] += ...` of grouped channels.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from mlirml.analysis.affine import Reader
from mlirml.analysis.ranges import Ranges
from mlirml.core.affine import Linear
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.ir.rank_zero import insertion_point_after
from mlirml.passes import NoMatch, Pass, register, run_upstream
from mlirml.passes.presence import ANY_LOOP
from mlirml.raising.nests.conditions import LinearRanges
from mlirml.raising.nests.digits import Flat, digits_of, strides_of
from mlirml.raising.nests.find_loops import loop_functions

_CLEAN = "canonicalize,cse"


@register(when=ANY_LOOP, optional=True)
class DelinearisePass(Pass):
    """Give arrays of one dimension the dimensions that the indices of loops imply."""

    def run(self, module: mlir.Operation) -> None:
        changed = False
        for function in loop_functions(module):
            for block in function.regions[0].blocks:
                for op in block_ops(block):
                    if op.name == "scf.for":
                        changed |= delinearise_nest(op)
        if changed:
            run_upstream(module, _CLEAN)


def delinearise_nest(nest: mlir.Operation) -> bool:
    """Split the dimensions of the arrays of a nest; True if there are some."""
    uses = _Uses(nest)
    seen: set[mlir.Value] = set()
    for value in uses.arrays:
        if value not in seen:
            web = _Web(nest)
            try:
                web.grow(value)
                strides = match_web(web, uses)
            except NoMatch:
                strides = None
            seen |= web.values
            if strides is not None:
                reshape(web, strides, uses)
    for old in uses.replaced:
        old.owner.erase()
    return bool(uses.replaced)


class _Uses:
    """The reads and stores of single elements in a nest, with the ranges known at each of them."""

    def __init__(self, nest: mlir.Operation) -> None:
        self.arrays: list[mlir.Value] = []
        self.joined = False
        """True if the nest stores to a multi-dimensional array at an index that combines two loops."""
        self.replaced: dict[mlir.Value, mlir.Value] = {}
        """The results of replaced accesses, which are erased last, with the new results: indices may depend on them."""
        self._ranges: dict[mlir.Value, Ranges] = {}
        self._reader = Reader(lambda _: True)
        self._linear_ranges: dict[int, LinearRanges] = {}
        self._walk(nest, Ranges())
        self.arrays = [array for array in self.arrays if array.type.rank == 1 or self.joined]

    def _is_joined(self, index: mlir.Value) -> bool:
        found = self._reader.read(index)
        return found is not None and len({abs(factor) for factor in found.factors.values()}) > 1

    def _walk(self, op: mlir.Operation, ranges: Ranges) -> None:
        for number, region in enumerate(op.regions):
            refined = ranges.given(op.operands[0], number == 0) if op.name == "scf.if" else ranges
            for block in region.blocks:
                for inner in block_ops(block):
                    if inner.name in _ACCESSES:
                        array = inner.operands[_ACCESSES[inner.name]]
                        self._ranges[inner.results[0]] = refined
                        if is_static(array):
                            self.arrays.append(array)
                        if inner.name == "tensor.insert" and array.type.rank > 1:
                            self.joined |= any(map(self._is_joined, list(inner.operands)[2:]))
                    else:
                        self._walk(inner, refined)

    def flat(self, access: mlir.Operation, dim: int) -> Flat:
        """The index of an access along a dimension."""
        ranges = self._ranges[access.results[0]]
        index = self._reader.read(access.operands[_ACCESSES[access.name] + 1 + dim])
        if index is None:
            raise NoMatch("an index is not linear")
        if id(ranges) not in self._linear_ranges:
            self._linear_ranges[id(ranges)] = LinearRanges.of(ranges, self._reader)
        return Flat(index, self._linear_ranges[id(ranges)])


_ACCESSES = {"tensor.extract": 0, "tensor.insert": 1}
"""The position of the array operand."""


def is_static(value: mlir.Value) -> bool:
    """True if a value is an array of static shape."""
    return isinstance(value.type, mlir.RankedTensorType) and value.type.rank > 0 and value.type.has_static_shape


class _Web:
    """The values of an array in a nest, from its init to its result, and the accesses to it."""

    def __init__(self, nest: mlir.Operation) -> None:
        self.nest = nest
        self.values: set[mlir.Value] = set()
        self.order: list[mlir.Value] = []
        self.accesses: list[mlir.Operation] = []

    def grow(self, start: mlir.Value) -> None:
        """Find all values that must have the shape of `start`; raises `NoMatch` where a value cannot have it."""
        todo = [start]
        while todo:
            value = todo.pop()
            if value in self.values:
                continue
            self.values.add(value)
            self.order.append(value)
            todo += self._source(value)
            for use in list(value.uses):
                op = use.owner.operation
                if op == self.nest or self._holds(op):
                    todo += self._through(op, use.operand_number)

    def comes_from_outside(self, value: mlir.Value) -> bool:
        """True if a value of the web is defined by an operation outside of it."""
        return not self._source(value)

    def _holds(self, op: mlir.Operation) -> bool:
        around = op.parent
        while around is not None and around.operation != self.nest:
            around = around.operation.parent
        return around is not None

    def _source(self, value: mlir.Value) -> list[mlir.Value]:
        """The values of the web that a value of it is computed from."""
        op = defining_op(value)
        if op is None:
            loop = value.owner.owner.operation
            if loop.name != "scf.for" or not (loop == self.nest or self._holds(loop)):
                if loop.name == "func.func" or not self._holds(loop):
                    return []
                raise NoMatch("a loop carries it that is no `scf.for`")
            number = value.arg_number - 1
            return [loop.operands[3 + number]]
        if not (op == self.nest or self._holds(op)):
            return []
        number = list(op.results).index(value)
        if op.name == "tensor.insert":
            return [op.operands[1]]
        if op.name == "scf.for":
            return [op.operands[3 + number]]
        if op.name == "scf.if":
            return [block_ops(region.blocks[0])[-1].operands[number] for region in op.regions]
        return []

    def _through(self, op: mlir.Operation, number: int) -> list[mlir.Value]:
        """The values of the web that an operation in the nest computes from one of it."""
        if op.name in _ACCESSES and number == _ACCESSES[op.name]:
            self.accesses.append(op)
            return [op.results[0]] if op.name == "tensor.insert" else []
        if op.name == "scf.for" and number >= 3:
            carried = number - 3
            final = block_ops(op.regions[0].blocks[0])[-1]
            return [op.regions[0].blocks[0].arguments[1 + carried], op.results[carried], final.operands[carried]]
        if op.name == "scf.yield" and op.parent.name in ("scf.for", "scf.if"):
            around = op.parent.operation
            if around.name == "scf.if":
                return [around.results[number]]
            return [around.results[number], around.regions[0].blocks[0].arguments[1 + number]]
        raise NoMatch(f"`{op.name}` uses it as a whole")


Strides = tuple[tuple[int, ...], ...]
"""For each dimension of an array the strides of those that it is split into, without the last one."""


def match_web(web: _Web, uses: _Uses) -> Strides | None:
    """The strides that the accesses to an array imply for its dimensions; None if no dimension is split."""
    types = {str(value.type) for value in web.values}
    if len(types) != 1 or not web.accesses:
        return None
    shape = web.order[0].type.shape
    found = tuple(
        strides_of([uses.flat(access, dim) for access in web.accesses], size) or () if may_split(web, dim) else ()
        for dim, size in enumerate(shape)
    )
    return found if any(found) else None


def may_split(web: _Web, dim: int) -> bool:
    """True if an index along a dimension is not a constant."""
    return any(defining_op(access.operands[_ACCESSES[access.name] + 1 + dim]) is not None for access in web.accesses)


def reshape(web: _Web, strides: Strides, uses: _Uses) -> None:
    """Give the values of a web their new shape, and the accesses their indices."""
    flat = web.order[0].type
    sizes = [(size, *inner, 1) for size, inner in zip(flat.shape, strides, strict=True)]
    shape = [a // b for group in sizes for a, b in itertools.pairwise(group)]
    type_ = mlir.RankedTensorType.get(shape, flat.element_type, flat.encoding)
    groups = _reassociation([len(group) - 1 for group in sizes])
    all_indices = [_indices(uses, access, strides) for access in web.accesses]
    for value in web.order:
        if web.comes_from_outside(value):
            _enter(web, value, type_, groups)
    for value in web.order:
        if not web.comes_from_outside(value):
            value.set_type(type_)
    for result in web.nest.results:
        if result in web.values:
            _leave(result, flat, groups)
    for access, indices in zip(web.accesses, all_indices, strict=True):
        _access(access, indices, uses.replaced)


def _indices(uses: _Uses, access: mlir.Operation, strides: Strides) -> list[mlir.Value | Linear]:
    """The indices of an access: unchanged in dimensions that are not split."""
    found: list[mlir.Value | Linear] = []
    for dim, inner in enumerate(strides):
        if not inner:
            found.append(access.operands[_ACCESSES[access.name] + 1 + dim])
            continue
        digits = digits_of(uses.flat(access, dim), inner)
        assert digits is not None
        found += digits
    return found


def _reassociation(counts: Sequence[int]) -> mlir.Attribute:
    i64 = mlir.IntegerType.get_signless(64)
    numbers = iter(range(sum(counts)))
    groups = [[mlir.IntegerAttr.get(i64, next(numbers)) for _ in range(count)] for count in counts]
    return mlir.ArrayAttr.get([mlir.ArrayAttr.get(group) for group in groups])


def _enter(web: _Web, value: mlir.Value, type_: mlir.Type, groups: mlir.Attribute) -> None:
    """Replace an array from outside of the web by its reshape in the nest."""
    uses = [(use.owner.operation, use.operand_number) for use in value.uses]
    uses = [(op, number) for op, number in uses if op == web.nest or web._holds(op)]
    owner = defining_op(value)
    in_web = owner is not None and web._holds(owner)
    with web.nest.location, insertion_point_after(value) if in_web else mlir.InsertionPoint(web.nest):
        attributes = {
            "reassociation": groups,
            "static_output_shape": mlir.DenseI64ArrayAttr.get(type_.shape),
        }
        new = emit.create("tensor.expand_shape", [value], [type_], attributes).results[0]
    for op, number in uses:
        op.operands[number] = new


def _leave(result: mlir.Value, flat: mlir.Type, groups: mlir.Attribute) -> None:
    """Reshape a result of the nest back for its users after the nest."""
    uses = [(use.owner, use.operand_number) for use in result.uses]
    with insertion_point_after(result), result.owner.location:
        old = emit.value("tensor.collapse_shape", [result], flat, reassociation=groups)
    for op, number in uses:
        op.operands[number] = old


def _access(
    access: mlir.Operation, indices: Sequence[mlir.Value | Linear], replaced: dict[mlir.Value, mlir.Value]
) -> None:
    """Read or store the element at these indices."""
    before = list(access.operands)[: _ACCESSES[access.name] + 1]
    with access.location, mlir.InsertionPoint(access):
        built = [build_linear(p, replaced) if isinstance(p, Linear) else replaced.get(p, p) for p in indices]
        operands = [*before, *built]
        new = emit.create(access.name, operands, [r.type for r in access.results]).results[0]
    access.results[0].replace_all_uses_with(new)
    replaced[access.results[0]] = new


def build_linear(expression: Linear, replaced: Mapping[mlir.Value, mlir.Value]) -> mlir.Value:
    """Build a linear expression of indices."""
    total: mlir.Value | None = None
    for variable, factor in expression.factors.items():
        assert isinstance(variable, mlir.Value)
        value = replaced.get(variable, variable)
        if not isinstance(value.type, mlir.IndexType):
            value = emit.value("arith.index_cast", [value], mlir.IndexType.get())
        term = value if factor == 1 else emit.same_type("arith.muli", value, emit.index(factor))
        total = term if total is None else emit.same_type("arith.addi", total, term)
    if total is None:
        return emit.index(expression.constant)
    if expression.constant:
        name = "arith.addi" if expression.constant > 0 else "arith.subi"
        total = emit.same_type(name, total, emit.index(abs(expression.constant)))
    return total

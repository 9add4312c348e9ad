"""Elements of tensors, computed at their uses: views are index arithmetic, elementwise bodies are inlined."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlirml.analysis.bounds import DYNAMIC, is_dynamic, size_operand
from mlirml.analysis.structured import groups_of, indexing_maps, sizes_of
from mlirml.analysis.values import is_tensor
from mlirml.codegen.gpu.index import Base, Digit, Form, UnknownDivisionError, flat, form, split
from mlirml.codegen.gpu.kernel import Kernel
from mlirml.codegen.gpu.sizes import (
    Size,
    cut,
    extents,
    flat_index,
    joined,
    length,
    loop_extents,
    no_rule,
    number_on_host,
    product,
    times,
)
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations, replace_op
from mlirml.passes import NoMatch

Indices = tuple[Form, ...]


class Elements:
    """Computes elements in a kernel; an element is computed once in a region.

    `reduced` are operations that the kernel has reduced itself: their elements are known, and never computed in a loop.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.reduced: set[mlir.Operation] = set()

    def give(self, tensor: mlir.Value, indices: Indices, value: mlir.Value) -> None:
        """Register `value` as this element from here on."""
        self.kernel.known["element", tensor, indices] = value

    def get(self, tensor: mlir.Value, indices: Indices) -> mlir.Value:
        """The element of a tensor at these indices."""
        key = ("element", tensor, indices)
        found = self.kernel.known.get(key)
        if found is not None:
            return found
        if tensor in self.kernel.host.buffers:
            found = self.kernel.load(tensor, flat_index(self.kernel, tensor, indices))
        else:
            op = defining_op(tensor)
            assert op is not None
            rule = _RULES.get(op.name, structured if is_structured(op) else None)
            if rule is None:
                raise no_rule(op)
            with op.location:
                found = rule(self, op, tensor, indices)
        self.kernel.known[key] = found
        return found

    def scalar(self, value: mlir.Value) -> mlir.Value:
        """A scalar of the function, in the kernel."""
        return self.kernel.once(("scalar", value), lambda: self._scalar(value))

    def _scalar(self, value: mlir.Value) -> mlir.Value:
        op = defining_op(value)
        if op is None:
            return self.kernel.argument(self.kernel.host.scalars[value])
        if op.name == "arith.constant":
            with self.kernel.front:
                return emit.constant(op.attributes["value"])
        with op.location:
            if op.name == "tensor.extract":
                return self.get(op.operands[0], tuple(self.form_of(self.scalar(i)) for i in op.operands[1:]))
            if op.name == "tensor.dim":
                return self.kernel.at(length(self.kernel, number_on_host(self.kernel.host, value)))
            if op.regions:
                raise no_rule(op)
            environment = {operand: self.scalar(operand) for operand in op.operands}
            emit.body_op(op, environment)
            return environment[value]

    def form_of(self, value: mlir.Value) -> Form:
        """An index value as the form that it was computed from, if there is one."""
        return self.kernel.forms.get(value) or form_of(value)

    def run(
        self, block: mlir.Block, dims: Sequence[Form], environment: dict[mlir.Value, mlir.Value]
    ) -> list[mlir.Value]:
        """The yielded values of a body at a point; `environment` has its arguments, as far as they are used."""
        *ops, last = block_ops(block)
        for op in ops:
            self.body_op(op, dims, environment)
        return [self.value_of(value, environment) for value in last.operands]

    def value_of(self, value: mlir.Value, environment: dict[mlir.Value, mlir.Value]) -> mlir.Value:
        """A value that a body uses: its own, or a scalar of the function."""
        return environment[value] if value in environment else self.scalar(value)

    def body_op(self, op: mlir.Operation, dims: Sequence[Form], environment: dict[mlir.Value, mlir.Value]) -> None:
        """Build one operation of a body."""
        if op.name == "linalg.index":
            environment[op.results[0]] = self.kernel.at(dims[op.attributes["dim"].value])
            return
        if op.name == "tensor.extract" and op.operands[0] not in environment:
            indices = tuple(self.form_of(self.value_of(i, environment)) for i in op.operands[1:])
            environment[op.results[0]] = self.get(op.operands[0], indices)
            return
        for inner in operations(op):
            for operand in inner.operands:
                if operand not in environment and not is_tensor(operand) and is_outside(operand, op):
                    environment[operand] = self.scalar(operand)
        if not op.regions and len(op.results) == 1:
            # One value for equal operands: adjacent elements of a row of a gather then have one index.
            key = ("body", op.results[0], *(environment.get(operand, operand) for operand in op.operands))
            environment[op.results[0]] = self.kernel.once(key, lambda: built(op, environment))
            return
        emit.body_op(op, environment)
        if op.regions:
            self._resolve(environment[op.results[0]].owner.operation, dims)

    def _resolve(self, op: mlir.Operation, dims: Sequence[Form]) -> None:
        """Replace reads of tensors and of indices in the regions of a cloned operation."""
        for inner in [inner for inner in operations(op) if inner.name in ("tensor.extract", "linalg.index")]:
            with self.kernel.scope(), mlir.InsertionPoint(inner), inner.location:
                if inner.name == "linalg.index":
                    value = self.kernel.at(dims[inner.attributes["dim"].value])
                else:
                    value = self.get(inner.operands[0], tuple(map(self.form_of, list(inner.operands)[1:])))
            replace_op(inner, value)

    def arguments(
        self, op: mlir.Operation, dims: Sequence[Form], given: dict[mlir.Value, mlir.Value]
    ) -> dict[mlir.Value, mlir.Value]:
        """The arguments of a structured operation's body at a point, except for those that are given or not used."""
        environment = dict(given)
        block = op.regions[0].blocks[0]
        for argument, operand, map_ in zip(block.arguments, op.operands, indexing_maps(op), strict=True):
            if argument in environment or not any(True for _ in argument.uses):
                continue
            if is_tensor(operand):
                environment[argument] = self.get(operand, apply(map_, dims))
            else:
                environment[argument] = self.scalar(operand)
        return environment


def built(op: mlir.Operation, environment: dict[mlir.Value, mlir.Value]) -> mlir.Value:
    """The result of a clone of a scalar operation at the insertion point."""
    emit.body_op(op, environment)
    return environment[op.results[0]]


Rule = Callable[[Elements, mlir.Operation, mlir.Value, Indices], mlir.Value]
_RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator of rules that compute an element of the result of these operations."""

    def add(function: Rule) -> Rule:
        for name in names:
            _RULES[name] = function
        return function

    return add


def is_structured(op: mlir.Operation) -> bool:
    return op.name.startswith("linalg.") and len(op.regions) == 1 and op.name != "linalg.yield"


def form_of(value: mlir.Value) -> Form:
    """An index value as a form."""
    op = defining_op(value)
    if op is not None and op.name == "arith.constant":
        return form(op.attributes["value"].value)
    return form(Digit(Base(value)))


def is_outside(value: mlir.Value, op: mlir.Operation) -> bool:
    """True if a value is defined outside of the regions of an operation."""
    owner = value.owner
    parent = owner.owner.operation if isinstance(owner, mlir.Block) else owner.operation.parent.operation
    while parent is not None:
        if parent == op:
            return False
        parent = parent.parent
    return True


def apply(map_: mlir.AffineMap, dims: Sequence[Form]) -> Indices:
    """The results of a map at a point."""
    return tuple(evaluate(expression, dims) for expression in map_.results)


def evaluate(expression: mlir.AffineExpr, dims: Sequence[Form]) -> Form:
    """An affine expression at a point."""
    if isinstance(expression, mlir.AffineDimExpr):
        position: int = expression.position
        return dims[position]
    if isinstance(expression, mlir.AffineConstantExpr):
        return form(expression.value)
    if isinstance(expression, mlir.AffineAddExpr):
        return evaluate(expression.lhs, dims) + evaluate(expression.rhs, dims)
    if isinstance(expression, mlir.AffineMulExpr):
        for one, other in ((expression.lhs, expression.rhs), (expression.rhs, expression.lhs)):
            if isinstance(other, mlir.AffineConstantExpr):
                return evaluate(one, dims) * int(other.value)
    if isinstance(expression, mlir.AffineFloorDivExpr):
        return split(evaluate(expression.lhs, dims), int(expression.rhs.value))[0]
    if isinstance(expression, mlir.AffineModExpr):
        return split(evaluate(expression.lhs, dims), int(expression.rhs.value))[1]
    raise UnknownDivisionError


def out_map(op: mlir.Operation, number: int) -> mlir.AffineMap:
    """The indexing map of an output."""
    maps = indexing_maps(op)
    return maps[len(maps) - len(op.results) + number]


def dims_at(op: mlir.Operation, number: int, indices: Indices) -> list[Form | None]:
    """The loops of a structured operation at the point of this element; None for loops that it does not fix."""
    map_ = out_map(op, number)
    dims: list[Form | None] = [None] * map_.n_dims
    for expression, index in zip(map_.results, indices, strict=True):
        if isinstance(expression, mlir.AffineDimExpr):
            dims[expression.position] = index
        elif not isinstance(expression, mlir.AffineConstantExpr):
            raise no_rule(op)
    return [form(0) if dim is None and size == 1 else dim for dim, size in zip(dims, sizes_of(op), strict=True)]


def structured(e: Elements, op: mlir.Operation, value: mlir.Value, indices: Indices) -> mlir.Value:
    """An element of a structured operation: its body at a point, in loops if it reduces."""
    number = list(op.results).index(value)
    dims = dims_at(op, number, indices)
    if None not in dims:
        point = tuple(dim for dim in dims if dim is not None)

        def all_results() -> list[mlir.Value]:
            return e.run(op.regions[0].blocks[0], point, e.arguments(op, point, {}))

        results: list[mlir.Value] = e.kernel.once(("point", op.results[0], point), all_results)
        return results[number]
    return reduce_in_order(e, op, dims)[number]


def reduce_in_order(e: Elements, op: mlir.Operation, dims: Sequence[Form | None]) -> list[mlir.Value]:
    """The outputs of an operation at a parallel point; the loops that are None are executed sequentially."""
    if op in e.reduced:
        raise NoMatch("an element of a result is read at other indices than it was reduced at")
    sizes = loop_extents(e.kernel.host, op)
    block = op.regions[0].blocks[0]
    num_outputs = len(op.results)
    arguments = list(block.arguments)[len(block.arguments) - num_outputs :]
    loops = [d for d, dim in enumerate(dims) if dim is None]
    carried = [n for n in range(num_outputs) if not any(uses_dim(out_map(op, n), d) for d in loops)]
    operands = list(op.operands)[len(op.operands) - num_outputs :]
    start = [dim or form(0) for dim in dims]
    inits = [e.get(operands[n], apply(out_map(op, n), start)) for n in carried]

    def reduce_loops(point: list[Form | None], todo: list[int], values: list[mlir.Value]) -> list[mlir.Value]:
        if todo:
            first, *rest = todo

            def body(i: Form, inner: list[mlir.Value]) -> list[mlir.Value]:
                return reduce_loops([i if d == first else dim for d, dim in enumerate(point)], rest, inner)

            upper = sizes[first]
            return e.kernel.loop((0, upper if isinstance(upper, int) else length(e.kernel, upper), 1), body, values)
        known = [dim for dim in point if dim is not None]
        given = {arguments[n]: value for n, value in zip(carried, values, strict=True)}
        results = e.run(block, known, e.arguments(op, known, given))
        return [results[n] for n in carried]

    found = reduce_loops(list(dims), loops, inits)
    results = [found[carried.index(n)] if n in carried else None for n in range(num_outputs)]
    return results


def uses_dim(map_: mlir.AffineMap, dim: int) -> bool:
    return any(isinstance(r, mlir.AffineDimExpr) and r.position == dim for r in map_.results)


@rule("linalg.fill")
def fill(e: Elements, op: mlir.Operation, value: mlir.Value, indices: Indices) -> mlir.Value:
    return e.scalar(op.operands[0])


@rule("tensor.splat")
def splat(e: Elements, op: mlir.Operation, value: mlir.Value, indices: Indices) -> mlir.Value:
    return e.scalar(op.operands[0])


@rule("tensor.empty")
def empty(e: Elements, op: mlir.Operation, value: mlir.Value, indices: Indices) -> mlir.Value:
    return e.kernel.constant(0, value.type.element_type)


@rule("tensor.cast")
def cast(e: Elements, op: mlir.Operation, value: mlir.Value, indices: Indices) -> mlir.Value:
    return e.get(op.operands[0], indices)


@rule("arith.select")
def select(e: Elements, op: mlir.Operation, value: mlir.Value, indices: Indices) -> mlir.Value:
    """An element of one of two tensors, by one condition or by one for each element."""
    condition, *tensors = op.operands
    chosen = e.get(condition, indices) if is_tensor(condition) else e.scalar(condition)
    return emit.same_type("arith.select", chosen, *(e.get(tensor, indices) for tensor in tensors))


@rule("arith.constant")
def constant(e: Elements, op: mlir.Operation, value: mlir.Value, indices: Indices) -> mlir.Value:
    attribute = op.attributes["value"]
    if attribute.is_splat:
        with e.kernel.front:
            return emit.constant(attribute.get_splat_value())
    numbers = [attribute[n] for n in range(len(attribute))]
    type_ = value.type.element_type
    own = e.kernel.at(flat(indices, value.type.shape))
    found = e.kernel.constant(numbers[-1], type_)
    for position, number in reversed(list(enumerate(numbers[:-1]))):
        here = emit.compare("eq", own, e.kernel.constant(position))
        found = emit.same_type("arith.select", here, e.kernel.constant(number, type_), found)
    return found


@rule("tensor.from_elements")
def from_elements(e: Elements, op: mlir.Operation, value: mlir.Value, indices: Indices) -> mlir.Value:
    number = flat(indices, value.type.shape)
    values = [e.scalar(operand) for operand in op.operands]
    if not number.terms:
        return values[number.constant]
    found = values[-1]
    for position, other in reversed(list(enumerate(values[:-1]))):
        here = emit.compare("eq", e.kernel.at(number), e.kernel.constant(position))
        found = emit.same_type("arith.select", here, other, found)
    return found


@rule("tensor.extract_slice")
def extract_slice(e: Elements, op: mlir.Operation, value: mlir.Value, indices: Indices) -> mlir.Value:
    return e.get(op.operands[0], sliced(e, op, indices, 1))


def sliced(e: Elements, op: mlir.Operation, indices: Indices, sources: int) -> Indices:
    """The indices in the large tensor of an element of a slice, including rank-reduced dimensions."""
    offsets, strides = slice_parts(e, op, sources)
    full = iter(indices)
    sizes = list(op.attributes["static_sizes"])
    kept = kept_dims(op, sizes)
    result = []
    for dim, (offset, stride) in enumerate(zip(offsets, strides, strict=True)):
        result.append(times(e.kernel, next(full), stride) + offset if kept[dim] else offset)
    return tuple(result)


def kept_dims(op: mlir.Operation, sizes: Sequence[int]) -> list[bool]:
    """For each dimension of a slice, whether the small tensor has it."""
    small = op.results[0] if op.name == "tensor.extract_slice" else op.operands[0]
    shape = list(small.type.shape)
    kept = []
    for size in sizes:
        keep = bool(shape) and shape[0] == size
        kept.append(keep)
        if keep:
            shape.pop(0)
    return kept


def slice_parts(e: Elements, op: mlir.Operation, sources: int) -> tuple[list[Form], list[Size]]:
    """The offsets and strides of a slice."""
    dynamic = iter(list(op.operands)[sources:])
    unknown = mlir.ShapedType.get_dynamic_stride_or_offset()
    offsets = [
        form_of(e.scalar(next(dynamic))) if offset == unknown else form(offset)
        for offset in op.attributes["static_offsets"]
    ]
    given = list(op.attributes["static_strides"])
    last = iter(list(op.operands)[len(op.operands) - sum(stride == DYNAMIC for stride in given) :])
    strides = [number_on_host(e.kernel.host, next(last)) if stride == DYNAMIC else int(stride) for stride in given]
    return offsets, strides


@rule("tensor.insert")
def insert(e: Elements, op: mlir.Operation, value: mlir.Value, indices: Indices) -> mlir.Value:
    """The scalar at its index, else the element of the large tensor."""
    number, big, *position = op.operands
    here = [emit.compare("eq", e.kernel.at(index), e.scalar(own)) for index, own in zip(indices, position, strict=True)]
    if not here:
        return e.scalar(number)
    old = e.get(big, indices)
    return emit.same_type("arith.select", e.kernel.all_of(here), e.scalar(number), old)


@rule("tensor.insert_slice")
def insert_slice(e: Elements, op: mlir.Operation, value: mlir.Value, indices: Indices) -> mlir.Value:
    """From the small tensor within the slice, else from the large one."""
    small, big = list(op.operands)[:2]
    offsets, strides = slice_parts(e, op, 2)
    sizes = list(op.attributes["static_sizes"])
    conditions: list[mlir.Value] = []
    inner: list[Form] = []
    for dim, (index, offset, stride) in enumerate(zip(indices, offsets, strides, strict=True)):
        size = size_operand(op, dim, 2)
        if not isinstance(size, int) or not isinstance(stride, int):
            inner.append(index_in_dynamic_slice(e, op, index - offset, stride, size, conditions))
        elif size == value.type.shape[dim] and stride == 1:
            inner.append(index)
        else:
            inner.append(index_in_slice(e, index - offset, stride, size, conditions))
    kept = kept_dims(op, sizes)
    small_indices = tuple(index for index, keep in zip(inner, kept, strict=True) if keep)
    false = [c for c in conditions if is_false(c)]
    if false:
        return e.get(big, indices)
    if not conditions:
        return e.get(small, small_indices)
    type_ = value.type.element_type
    condition = e.kernel.all_of(conditions)
    return e.kernel.choose(condition, lambda: e.get(small, small_indices), lambda: e.get(big, indices), type_)


def index_in_slice(e: Elements, index: Form, stride: int, size: int, conditions: list[mlir.Value]) -> Form:
    """The index in a slice of an index relative to its start; appends the conditions under which it is in the slice."""
    low, high = index.range
    last = (size - 1) * stride
    if high is None or low < 0 or high > last:
        if not index.terms:
            if not 0 <= index.constant <= last or index.constant % stride:
                conditions.append(e.kernel.constant(0, mlir.IntegerType.get_signless(1)))
            return form(index.constant // stride)
        # Below the start is far above the end as an unsigned index.
        conditions.append(emit.compare("ule", e.kernel.at(index), e.kernel.constant(last)))
    if stride == 1:
        return index
    number = e.kernel.at(index)
    rest = emit.value("arith.remui", [number, e.kernel.constant(stride)], e.kernel.index)
    conditions.append(emit.compare("eq", rest, e.kernel.constant(0)))
    quotient = emit.value("arith.divui", [number, e.kernel.constant(stride)], e.kernel.index)
    return form(Digit(Base(quotient, size)))


def index_in_dynamic_slice(
    e: Elements,
    op: mlir.Operation,
    index: Form,
    stride: Size,
    size: int | mlir.Value,
    conditions: list[mlir.Value],
) -> Form:
    """As `index_in_slice`, for a slice of dynamic size or stride."""
    if isinstance(stride, int) and stride < 1:
        raise no_rule(op)
    count = size if isinstance(size, int) else number_on_host(e.kernel.host, size)
    span = product(e.kernel.host, [count, stride])
    # Below the start is far above the end as an unsigned index.
    conditions.append(emit.compare("ult", e.kernel.at(index), e.kernel.at(length(e.kernel, span))))
    if stride == 1:
        return index
    operands = [e.kernel.at(index), e.kernel.at(length(e.kernel, stride))]
    rest = emit.value("arith.remui", operands, e.kernel.index)
    conditions.append(emit.compare("eq", rest, e.kernel.constant(0)))
    return form(Digit(Base(emit.value("arith.divui", operands, e.kernel.index))))


def is_false(condition: mlir.Value) -> bool:
    op = defining_op(condition)
    return op is not None and op.name == "arith.constant" and not op.attributes["value"].value


@rule("tensor.pad")
def pad(e: Elements, op: mlir.Operation, value: mlir.Value, indices: Indices) -> mlir.Value:
    """The small tensor, surrounded by the yielded value."""
    low = list(op.attributes["static_low"])
    small = op.operands[0]
    if is_dynamic(small) or is_dynamic(value):
        raise no_rule(op)
    conditions: list[mlir.Value] = []
    small_indices = []
    for index, before, size, whole in zip(indices, low, small.type.shape, value.type.shape, strict=True):
        small_indices.append(index if size == whole else index_in_slice(e, index - before, 1, size, conditions))
    if not conditions:
        return e.get(small, tuple(small_indices))
    condition = e.kernel.all_of(conditions)
    return e.kernel.choose(
        condition,
        lambda: e.get(small, tuple(small_indices)),
        lambda: pad_value(e, op, indices),
        value.type.element_type,
    )


def pad_value(e: Elements, op: mlir.Operation, indices: Indices) -> mlir.Value:
    """The padding value."""
    block = op.regions[0].blocks[0]
    given = {argument: e.kernel.at(index) for argument, index in zip(block.arguments, indices, strict=True)}
    return e.run(block, indices, given)[0]


@rule("tensor.collapse_shape")
def collapse_shape(e: Elements, op: mlir.Operation, value: mlir.Value, indices: Indices) -> mlir.Value:
    """The indices of a group are split from one."""
    sizes = extents(e.kernel.host, op.operands[0])
    groups = groups_of(op)
    result: list[Form] = [form(0)] * len(sizes)
    for group, index in zip(groups, indices, strict=True):
        parts = cut(e.kernel, index, [sizes[d] for d in group])
        for d, part in zip(group, parts, strict=True):
            result[d] = part
    return e.get(op.operands[0], tuple(result))


@rule("tensor.expand_shape")
def expand_shape(e: Elements, op: mlir.Operation, value: mlir.Value, indices: Indices) -> mlir.Value:
    """The indices of a group are combined into one."""
    sizes = extents(e.kernel.host, value)
    groups = groups_of(op)
    result = [joined(e.kernel, [indices[d] for d in group], [sizes[d] for d in group]) for group in groups]
    return e.get(op.operands[0], tuple(result))

"""Lower lengths: operations that raising has marked `mlirml.order` become loops over their elements.

Their slices have lengths that differ from iteration to iteration of the enclosing loops, or are small: loops are as
fast, and autodiff and batching then need not support slices of dynamic length.

Before:
    %x = tensor.extract_slice %a[%i, 0] [1, %n] [1, 1] : tensor<8x8xf32> to tensor<?xf32>
    %o = tensor.extract_slice %y[0] [%n] [1] : tensor<8xf32> to tensor<?xf32>
    %g = linalg.generic {maps = [(d) -> (d), (d) -> (d)], iterator_types = ["parallel"]} ins(%x) outs(%o)
        attrs = {mlirml.order = array<i64: 0>} { math.exp }
    %r = tensor.insert_slice %g into %y[0] [%n] [1] : tensor<?xf32> into tensor<8xf32>
After:
    %r = scf.for %d = %c0 to %n step %c1 iter_args(%c = %y) -> (tensor<8xf32>) {
      %e = tensor.extract %a[%i, %d] : tensor<8x8xf32>
      %f = math.exp %e : f32
      %s = tensor.insert %f into %c[%d] : tensor<8xf32>
      scf.yield %s : tensor<8xf32>
    }

Reads of the array that a statement stores into become reads of `%c`: the loops run in the order of those that it was
raised from, or the order does not matter. Then the innermost one is that along which most operands have adjacent
elements. A sum over the innermost loops is a loop-carried scalar.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeAlias

from mlirml.analysis.constants import constant_of
from mlirml.analysis.structured import dims_in, dims_of, indexing_maps
from mlirml.analysis.values import is_tensor
from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import SORTS
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, operations, replace_op
from mlirml.ir.compactions import COMPACTIONS
from mlirml.ir.erase import erase_unused
from mlirml.ir.library_calls import LIBRARY_CALLS
from mlirml.passes import Pass, register, run_upstream
from mlirml.passes.presence import ANY_LOOP
from mlirml.raising.nests.find_loops import ORDER, loop_functions
from mlirml.raising.nests.static_strips import STRIPS, strips_of

_DYNAMIC = mlir.ShapedType.get_dynamic_size()
_MOST_LOOPS = 4
_SHORT = 8
Number: TypeAlias = "int | mlir.Value"
Body: TypeAlias = "Callable[[dict[int, mlir.Value], mlir.Value], mlir.Value]"


@register(when=ANY_LOOP)
class LowerLengthsPass(Pass):
    """Turn operations that are as fast in loops over elements into such loops.

    With `for_requests`, only in modules with derivative or batching requests: devices do not profit from loops over
    elements.
    """

    for_requests: bool = False

    def run(self, module: mlir.Operation) -> None:
        if self.for_requests and not has_requests(module):
            return
        found = [op for f in loop_functions(module) for op in operations(f) if ORDER in op.attributes]
        if not found:
            return
        # Slices are only known to be equal if their offsets are the same values.
        run_upstream(module, "cse")
        for op in [op for f in loop_functions(module) for op in operations(f) if ORDER in op.attributes]:
            with op.location:
                _Lowering(op).build()


def has_requests(module: mlir.Operation) -> bool:
    """True if a module has requests for derivatives or batches."""
    others = (*SORTS, *LIBRARY_CALLS, *COMPACTIONS)
    return any(op.name.startswith("mlirml.") and op.name not in others for op in operations(module))


@dataclass(frozen=True)
class View:
    """The slice of another tensor that a tensor is.

    For each dimension of that: the offset, the stride, and the dimension of this tensor that indexes it. `sizes` are
    those of this tensor.
    """

    tensor: mlir.Value
    offsets: tuple[Number, ...]
    steps: tuple[int, ...]
    dims: tuple[int | None, ...]
    sizes: tuple[Number, ...]

    def is_at(self, other: View) -> bool:
        return (self.tensor, self.offsets, self.steps) == (other.tensor, other.offsets, other.steps)


def view_of(value: mlir.Value) -> View:
    """The view that a tensor is: of the source of its `tensor.extract_slice`, or of itself."""
    op = defining_op(value)
    if op is not None and op.name == "tensor.extract_slice":
        return slice_view(op, op.operands[0], value.type.shape, list(op.operands)[1:])
    return whole_view(value)


def whole_view(value: mlir.Value) -> View:
    """A tensor as a view of itself."""
    shape = value.type.shape
    sizes = tuple(
        emit.value("tensor.dim", [value, emit.index(d)], mlir.IndexType.get()) if size == _DYNAMIC else size
        for d, size in enumerate(shape)
    )
    return View(value, (0,) * len(shape), (1,) * len(shape), tuple(range(len(shape))), sizes)


def slice_view(op: mlir.Operation, whole: mlir.Value, shape: Sequence[int], numbers: Sequence[mlir.Value]) -> View:
    """A slice of type `shape` of a tensor; `op` has its static offsets and sizes, `numbers` are the dynamic ones."""
    given = iter(numbers)
    offsets = tuple(
        next(given) if n == _DYNAMIC else n for n in mlir.DenseI64ArrayAttr(op.attributes["static_offsets"])
    )
    fixed = list(mlir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
    dims: list[int | None] = []
    sizes: list[Number] = []
    for size in fixed:  # a rank-reduced dimension is indexed by its offset alone
        walks = len(sizes) < len(shape) and shape[len(sizes)] == size
        dims.append(len(sizes) if walks else None)
        length = next(given) if size == _DYNAMIC else size
        if walks:
            sizes.append(length)
    steps = tuple(mlir.DenseI64ArrayAttr(op.attributes["static_strides"]))
    return View(whole, offsets, steps, tuple(dims), tuple(sizes))


class _Lowering:
    """An operation that becomes loops. Dims of its iteration space are numbers, as in its maps."""

    def __init__(self, op: mlir.Operation) -> None:
        self.op = op
        self.maps = indexing_maps(op)
        self.order = list(mlir.DenseI64ArrayAttr(op.attributes[ORDER]))
        *self.inputs, self.out = op.operands
        self.body = op.regions[0].blocks[0]
        users = [use.owner.operation for use in op.results[0].uses]
        self.store = users[0] if [user.name for user in users] == ["tensor.insert_slice"] else None
        with mlir.InsertionPoint(op):
            self.views = [view_of(value) if is_tensor(value) else None for value in self.inputs]
            self.target = self._target()
        self.sizes = self._sizes()
        written = dims_of(self.maps[-1])
        self.early: dict[int, mlir.Value] = {}
        self.bounds: dict[int, tuple[Number, Number]] = {}
        """The lower and upper bound of dims that do not go from 0 to their size."""
        self.sums = [d not in written for d in range(len(self.sizes))]

    def _target(self) -> View:
        """The destination of the result; if the operation accumulates, its init is already there."""
        if self.store is None:
            return whole_view(self.out)
        _, whole, *numbers = self.store.operands
        target = slice_view(self.store, whole, self.out.type.shape, numbers)
        assert view_of(self.out).is_at(target), "what is stored into is what is added to"
        return target

    def _sizes(self) -> list[Number]:
        """The trip count of each loop."""
        found: dict[int, Number] = {}
        for map_, view in zip(self.maps, [*self.views, self.target], strict=True):
            for number, expression in enumerate(map_.results if view is not None else ()):
                if isinstance(expression, mlir.AffineDimExpr) and not isinstance(found.get(expression.position), int):
                    assert view is not None
                    found[expression.position] = view.sizes[number]
        return [found[d] for d in range(len(self.order))]

    def build(self) -> None:
        """Build the loops, and replace the operation and the store of its result."""
        last = self.op if self.store is None else self.store
        with mlir.InsertionPoint(last):
            strips = [] if any(self.order) else strips_of(self.op, self.sizes)
            if not strips:
                self.read_early({})
            if strips:
                result = self.cut(strips, {}, self.target.tensor)
            elif self.store is None and not self.target.sizes:
                result = self.number()
            else:
                result = self.nest(self.chosen(), {}, self.target.tensor)
        last.results[0].replace_all_uses_with(result)
        if self.store is not None:
            self.store.erase()
        self.op.erase()
        erase_unused([result, *self.inputs, self.out], lambda op: op.name in _FREE)

    def cut(self, dims: Sequence[int], box: dict[int, tuple[mlir.Value, int]], array: mlir.Value) -> mlir.Value:
        """Split the product along these dims into strips; `box` has the first index and the length of others."""
        if not dims:
            return self.contraction(box, array)
        (dim, *rest), begin = dims, emit.index(0)
        size = as_index(self.sizes[dim])
        for length in STRIPS:
            strip = emit.index(length)
            count = emit.same_type("arith.divui", emit.same_type("arith.subi", size, begin), strip)
            end = emit.same_type("arith.addi", begin, emit.same_type("arith.muli", count, strip))

            def strip_body(first: mlir.Value, carried: list[mlir.Value], length: int = length) -> list[mlir.Value]:
                return [self.cut(rest, {**box, dim: (first, length)}, carried[0])]

            (array,) = emit.for_loop(begin, end, strip, strip_body, [array])
            begin = end
        before = self.early, self.bounds
        self.early = {}
        self.bounds = {d: (first, plus(first, length)) for d, (first, length) in box.items()} | {dim: (begin, size)}
        array = self.nest(self.chosen(), {}, array)
        self.early, self.bounds = before
        return array

    def contraction(self, box: dict[int, tuple[mlir.Value, int]], array: mlir.Value) -> mlir.Value:
        """The product in a box of static lengths, added to the slice of an array."""
        values = []
        for map_, view in zip(self.maps, [*self.views, self.target], strict=True):
            assert view is not None
            tensor = array if view.tensor == self.target.tensor else view.tensor
            values.append(self.part(view, map_, box, tensor))

        def body(arguments: list[mlir.Value]) -> mlir.Value:
            known = dict(zip(self.body.arguments, arguments, strict=True))
            *ops, final = block_ops(self.body)
            for op in ops:
                emit.body_op(op, known)
            return known[final.operands[0]]

        new = emit.contract(values, self.maps, body)
        if new.type == array.type:
            return new
        return emit.insert_slice(new, array, *self.box_of(self.target, self.maps[-1], box))

    def part(
        self, view: View, map_: mlir.AffineMap, box: dict[int, tuple[mlir.Value, int]], tensor: mlir.Value
    ) -> mlir.Value:
        """The slice of an operand that a box accesses."""
        shape = [self.length(e.position, box) for e in map_.results]
        kind = mlir.RankedTensorType.get(shape, tensor.type.element_type)
        if kind == tensor.type:
            return tensor
        return emit.slice_op("tensor.extract_slice", [tensor], kind, *self.box_of(view, map_, box))

    def length(self, dim: int, box: dict[int, tuple[mlir.Value, int]]) -> int:
        size = box[dim][1] if dim in box else self.sizes[dim]
        assert isinstance(size, int)
        return size

    def box_of(
        self, view: View, map_: mlir.AffineMap, box: dict[int, tuple[mlir.Value, int]]
    ) -> tuple[list[Number], list[int], list[int]]:
        """The offsets, sizes and strides of a slice of the source of a view."""
        offsets: list[Number] = []
        sizes: list[int] = []
        for offset, step, position in zip(view.offsets, view.steps, view.dims, strict=True):
            dim = None if position is None else map_.results[position].position
            first = times(box[dim][0], step) if dim in box else 0
            offsets.append(plus(first, offset))
            sizes.append(1 if dim is None else self.length(dim, box))
        return offsets, sizes, list(view.steps)

    def number(self) -> mlir.Value:
        """A scalar result: it replaces the reads of the element."""
        loops = self.chosen()
        old = self.read(self.out, self.maps[-1], self.target, {}, self.target.tensor)
        new = self.total(loops, {}, self.target.tensor, old)
        users = [use.owner.operation for use in self.op.results[0].uses]
        for user in (user for user in users if user.name == "tensor.extract"):
            replace_op(user, new)
        return emit.value("tensor.from_elements", [new], self.out.type)

    def chosen(self) -> tuple[int, ...]:
        """The loops from the outermost to the innermost."""
        given = tuple(range(len(self.order)))
        if any(self.order) or len(given) > _MOST_LOOPS:
            return given
        return min(itertools.permutations(given), key=lambda loops: (self.cost(loops[-1]) if loops else 0, loops))

    def cost(self, loop: int) -> int:
        """The number of operands without adjacent elements along a loop; a short loop costs as much as all operands."""
        size = self.sizes[loop]
        count = int(isinstance(size, int) and size < _SHORT) * len(self.maps)
        for map_, view in zip(self.maps, [*self.views, self.target], strict=True):
            if view is None:
                continue
            moved = [n for n, expression in enumerate(map_.results) if loop in dims_in(expression)]
            positions = [position for position, dim in enumerate(view.dims) if dim in moved]
            near = positions == [len(view.dims) - 1] and view.steps[-1] == 1
            count += bool(positions) and not near
        return count

    def nest(self, loops: Sequence[int], at: dict[int, mlir.Value], array: mlir.Value) -> mlir.Value:
        """The loops that store into an array; returns the array after them."""
        if not all(self.sums[d] for d in loops):
            return self.loop(loops[0], at, array, lambda indices, carried: self.nest(loops[1:], indices, carried))
        indices = self.indices_in(self.target, self.maps[-1], at)
        kind = array.type.element_type
        old = emit.value("tensor.extract", [array, *indices], kind) if loops or self.reads_out() else None
        new = self.total(loops, at, array, old)
        return emit.value("tensor.insert", [new, array, *indices], array.type)

    def total(
        self, loops: Sequence[int], at: dict[int, mlir.Value], array: mlir.Value, old: mlir.Value | None
    ) -> mlir.Value:
        """The sum over the innermost loops, starting with the old element."""
        if not loops:
            return self.element(at, array, old)
        assert old is not None
        return self.loop(loops[0], at, old, lambda indices, number: self.total(loops[1:], indices, array, number))

    def loop(self, loop: int, at: dict[int, mlir.Value], start: mlir.Value, body: Body) -> mlir.Value:
        """One loop that carries one value."""
        first, last = self.bounds.get(loop, (0, self.sizes[loop]))
        size = as_index(last)

        def iteration(variable: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
            if self.order[loop] < 0:
                variable = emit.same_type("arith.subi", emit.same_type("arith.subi", size, variable), emit.index(1))
            inner_indices = {**at, loop: variable}
            self.read_early(inner_indices)
            return [body(inner_indices, carried[0])]

        return emit.for_loop(as_index(first), without_limit(size), emit.index(1), iteration, [start])[0]

    def read_early(self, at: dict[int, mlir.Value]) -> None:
        """Read the operands that inner loops do not index; slices are in bounds even if inner loops are zero-trip."""
        for number, (value, map_, view) in enumerate(zip(self.inputs, self.maps, self.views)):
            if number in self.early or (view is not None and view.tensor == self.target.tensor):
                continue
            used = any(True for _ in self.body.arguments[number].uses)
            if used and all(d in at for d in dims_of(map_)):
                self.early[number] = self.read(value, map_, view, at, self.target.tensor)

    def reads_out(self) -> bool:
        return any(True for _ in self.body.arguments[len(self.inputs)].uses)

    def element(self, at: dict[int, mlir.Value], array: mlir.Value, old: mlir.Value | None) -> mlir.Value:
        """The value that the body yields in one iteration."""
        *body, final = block_ops(self.body)
        known: dict[mlir.Value, mlir.Value] = {self.target.tensor: array}
        for number, argument in enumerate(list(self.body.arguments)[: len(self.inputs)]):
            if number in self.early:
                known[argument] = self.early[number]
            elif any(True for _ in argument.uses):
                known[argument] = self.read(self.inputs[number], self.maps[number], self.views[number], at, array)
        if old is not None:
            known[self.body.arguments[len(self.inputs)]] = old
        for op in body:
            if op.name == "linalg.index":
                known[op.results[0]] = at[op.attributes["dim"].value]
            else:
                emit.body_op(op, known)
        (result,) = final.operands
        return known.get(result, result)

    def read(
        self, value: mlir.Value, map_: mlir.AffineMap, view: View | None, at: dict[int, mlir.Value], array: mlir.Value
    ) -> mlir.Value:
        """An element of an operand."""
        if view is None:
            return value
        op = defining_op(value)
        if op is not None and op.name == "tensor.from_elements" and len(op.operands) == 1 and not map_.results:
            return op.operands[0]
        tensor = array if view.tensor == self.target.tensor else view.tensor
        return emit.value("tensor.extract", [tensor, *self.indices_in(view, map_, at)], tensor.type.element_type)

    def indices_in(self, view: View, map_: mlir.AffineMap, at: dict[int, mlir.Value]) -> list[mlir.Value]:
        """The indices of an element in the source of a view."""
        found = []
        for offset, step, dim in zip(view.offsets, view.steps, view.dims, strict=True):
            walked = 0 if dim is None else times(value_of(map_.results[dim], at), step)
            found.append(as_index(plus(walked, offset)))
        return found


def value_of(expression: mlir.AffineExpr, at: dict[int, mlir.Value]) -> Number:
    """The value of a linear expression of dims."""
    if isinstance(expression, mlir.AffineDimExpr):
        return at[expression.position]
    if isinstance(expression, mlir.AffineConstantExpr):
        return int(expression.value)
    one, other = value_of(expression.lhs, at), value_of(expression.rhs, at)
    if isinstance(expression, mlir.AffineAddExpr):
        return plus(one, other)
    assert isinstance(expression, mlir.AffineMulExpr) and isinstance(other, int), f"{expression} is not linear"
    return times(one, other)


def plus(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(b, int) and b == 0:
        return a
    if isinstance(a, int):
        return plus(b, a) if a else b
    return emit.same_type("arith.addi", a, as_index(b))


def times(a: Number, factor: int) -> Number:
    if isinstance(a, int):
        return a * factor
    return a if factor == 1 else emit.same_type("arith.muli", a, emit.index(factor))


def as_index(number: Number) -> mlir.Value:
    return emit.index(number) if isinstance(number, int) else number


def without_limit(size: mlir.Value) -> mlir.Value:
    """A length as the upper bound of a loop, which may be negative."""
    op = defining_op(size)
    if op is None or op.name != "arith.maxsi":
        return size
    value, least = op.operands
    return value if constant_of(least) == 0 else size


_FREE = ("tensor.extract_slice", "tensor.from_elements", "tensor.empty", "arith.maxsi", "arith.constant", "tensor.dim")

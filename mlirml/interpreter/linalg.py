"""Rules of the reference interpreter for structured operations: `linalg.generic` and every named one with a body.

The body is evaluated on arrays: each block argument is a view of its operand over a box of the iteration space, of size
one along the dimensions that its map does not use. The dimensions that the outputs lack decide the boxes:

    lanes    every output has every dimension             the whole space
    reduce   outputs are `out OP value`, OP associative   the whole space, values folded along the missing dimensions
    carry    anything else                                one point of the missing dimensions at a time
    points   the body does not work on arrays, or writes  one point at a time
             memory that it reads at other indices
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from mlirml.analysis.affine import linear_of
from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.interpreter.affine import expression
from mlirml.interpreter.program import Code, Environment, Function, Kernel, Step, controls, evaluates, unsupported
from mlirml.interpreter.reduction import Reduction
from mlirml.interpreter.tensor import is_lane_safe
from mlirml.interpreter.values import Array, Buffer, Trap, Value, checked, dtype_of, integer
from mlirml.ir.bindings import block_ops, defining_op, linalg, mlir
from mlirml.ir.combiners import COMBINERS

BOX_LIMIT = 1 << 21
"""The maximum number of points of a box, which bounds the memory for the values of a body."""

Box = tuple[range, ...]


class Access:
    """The access of one operand over the iteration space."""

    def __init__(self, affine_map: mlir.AffineMap) -> None:
        self.map = affine_map
        self.rank = affine_map.n_dims
        self.linear = [linear_of(expr) for expr in affine_map.results]
        self._expressions = [expression(expr) for expr in affine_map.results]
        self.dimensions = [expr.variable if expr is not None else None for expr in self.linear]
        """For each dimension of the operand that of the iteration space, if its expression is a single dimension."""

    @property
    def covered(self) -> set[int]:
        """The dimensions along which no two points access the same element."""
        return {dim for dim in self.dimensions if dim is not None}

    @property
    def is_projection(self) -> bool:
        """True if the operand does not depend on the dimensions that are not covered."""
        return all(expr is not None and (expr.is_constant or expr.variable is not None) for expr in self.linear)

    def over(self, array: Array, sizes: Sequence[int]) -> View:
        """The operand as a view over an iteration space of these sizes."""
        if all(expr is not None for expr in self.linear):
            return StridedView(self._strided(array, sizes))
        return GatheredView(array, self)

    def _strided(self, array: Array, sizes: Sequence[int]) -> Array:
        start, strides, shape = 0, [0] * self.rank, [1] * self.rank
        for axis, expr in enumerate(self.linear):
            assert isinstance(expr, Linear)
            _check_range(expr, sizes, array.shape[axis], axis)
            start += expr.constant * array.strides[axis]
            for dim, factor in expr.factors.items():
                strides[dim] += factor * array.strides[axis]
                shape[dim] = sizes[dim]
        # A view with an offset is sliced to its first element, so that NumPy handles the offset.
        first = array[tuple(slice(expr.constant, None) for expr in self.linear if expr is not None)] if start else array
        return np.lib.stride_tricks.as_strided(first, shape, strides)

    def indices(self, box: Box) -> tuple[Value, ...]:
        """The index arrays of the operand over a box."""
        points = np.ix_(*[np.arange(r.start, r.stop) for r in box])
        return tuple(np.asarray(e(points, ())) for e in self._expressions)


def _check_range(expr: Linear, sizes: Sequence[int], limit: int, axis: int) -> None:
    reach = [factor * (sizes[dim] - 1) for dim, factor in expr.factors.items()]
    low = expr.constant + sum(min(0, r) for r in reach)
    high = expr.constant + sum(max(0, r) for r in reach)
    if low < 0 or high >= limit:
        raise Trap(f"indices {low} to {high} are out of bounds for dimension {axis} of size {limit}")


class View:
    """An operand over the iteration space."""

    def get(self, box: Box) -> Array:
        """The elements over a box; of size one along dimensions that the operand does not depend on."""
        raise NotImplementedError

    def set(self, box: Box, value: Value) -> None:
        """Write the elements over a box."""
        raise NotImplementedError


@dataclass(frozen=True)
class StridedView(View):
    """An operand whose map is linear: an array with the rank of the iteration space, over the operand's memory."""

    array: Array

    def _index(self, box: Box) -> tuple[slice, ...]:
        return tuple(
            slice(r.start, r.stop) if size != 1 else slice(None) for r, size in zip(box, self.array.shape, strict=True)
        )

    def get(self, box: Box) -> Array:
        return self.array[self._index(box)]

    def set(self, box: Box, value: Value) -> None:
        self.array[self._index(box)] = value


@dataclass(frozen=True)
class GatheredView(View):
    """An operand whose map has `mod` or divisions, accessed by index arrays."""

    array: Array
    access: Access

    def get(self, box: Box) -> Array:
        taken: Array = self.array[checked(self.access.indices(box), self.array.shape)]
        return taken.reshape((1,) * len(box)) if taken.ndim == 0 else taken

    def set(self, box: Box, value: Value) -> None:
        index = checked(self.access.indices(box), self.array.shape)
        shape = np.broadcast_shapes(*[np.shape(i) for i in index])
        self.array[index] = np.broadcast_to(value, shape)


@dataclass(frozen=True)
class Fold:
    """An output of the form `out OP value`: the values, and the operations that the fold replaces."""

    reduction: Reduction
    values: list[int]
    combiners: list[mlir.Operation]
    product: mlir.Operation | None
    """The multiplication that computes the only value, if it has no other use."""


def match_fold(
    block: mlir.Block, argument: mlir.Value, yielded: mlir.Value, tainted: set[mlir.Value], function: Function
) -> Fold | None:
    """The chain `((argument OP a) OP b)` that ends in `yielded`, if its intermediate values have no other uses."""
    combiners: list[mlir.Operation] = []
    others: list[mlir.Value] = []
    current = yielded
    while current != argument:
        op = _defining(block, current)
        if op is None or op.name not in COMBINERS or (combiners and op.name != combiners[0].name):
            return None
        if len(list(current.uses)) != 1:
            return None
        inner = [value for value in op.operands if value in tainted]
        outer = [value for value in op.operands if value not in tainted]
        if len(inner) != 1:
            return None
        combiners.append(op)
        others += outer
        current = inner[0]
    if not combiners or len(list(argument.uses)) != 1:
        return None
    product = _defining(block, others[0]) if len(others) == 1 else None
    if product is not None and (product.name not in ("arith.mulf", "arith.muli") or len(list(others[0].uses)) != 1):
        product = None
    reduction = Reduction(combiners[0].name, dtype_of(argument.type))
    return Fold(reduction, [function.slot(value) for value in others], combiners, product)


def _defining(block: mlir.Block, value: mlir.Value) -> mlir.Operation | None:
    op = defining_op(value)
    return op if op is not None and op.block == block else None


@controls("linalg.generic")
def structured_rule(op: mlir.Operation, function: Function) -> Step:
    """Every operation with indexing maps and a body."""
    maps = linalg.get_indexing_maps(op)
    if maps is None:
        raise unsupported(op)
    return Structured(op, [attribute.value for attribute in maps], function).run


def _access(affine_map: mlir.AffineMap, function: Function) -> Access:
    known: dict[mlir.AffineMap, Access] = function.program.accesses
    if affine_map not in known:
        known[affine_map] = Access(affine_map)
    return known[affine_map]


class Structured:
    """A structured operation prepared to run."""

    def __init__(self, op: mlir.Operation, maps: list[mlir.AffineMap], function: Function) -> None:
        self.op = op
        self.slots = [function.slot(value) for value in op.operands]
        self.results = [function.slot(value) for value in op.results]
        self.rank = maps[0].n_dims
        self.accesses = [_access(affine_map, function) for affine_map in maps]
        self.indices = [function.new_slot() for _ in range(self.rank)]
        function.index_slots.append(self.indices)
        block = op.regions[0].blocks[0]
        self.code = function.block(block)
        function.index_slots.pop()
        self.count = len(self.code.results)
        self.inputs = len(self.slots) - self.count
        self.reads_memory = any(inner.name == "memref.load" for inner in block_ops(block))
        missing = [self._missing(access) for access in self.accesses[self.inputs :]]
        self.carried = sorted(set().union(*missing))
        self.safe = all(is_lane_safe(inner) for inner in block_ops(block)[:-1])
        self.folds = self._folds(block, function) if self.carried and self.safe else []
        skipped = {combiner for fold in self.folds if fold for combiner in fold.combiners}
        self.reduced_code = self.code.without(skipped)
        self.contraction = self._contraction(skipped, function)

    def _missing(self, access: Access) -> set[int]:
        """The dimensions along which points share elements of an operand."""
        return set(range(self.rank)) - access.covered

    def _folds(self, block: mlir.Block, function: Function) -> list[Fold | None]:
        """The fold of each output, None for one that has every dimension; empty unless all others are folds."""
        if not all(access.is_projection for access in self.accesses[self.inputs :]):
            return []
        arguments = list(block.arguments)[self.inputs :]
        missing = [self._missing(access) for access in self.accesses[self.inputs :]]
        tainted = {argument for argument, dims in zip(arguments, missing) if dims}
        for inner in block_ops(block):
            if any(value in tainted for value in inner.operands):
                tainted |= set(inner.results)
        folds: list[Fold | None] = []
        for argument, dims, yielded in zip(arguments, missing, block_ops(block)[-1].operands):
            fold = match_fold(block, argument, yielded, tainted, function) if dims else None
            if fold is None and (dims or yielded in tainted):
                return []
            folds.append(fold)
        return folds

    def _contraction(self, skipped: set[mlir.Operation], function: Function) -> tuple[Code, list[int]] | None:
        """For a single sum of products: the code that computes the factors, and their slots."""
        if len(self.folds) != 1 or self.folds[0] is None or self.folds[0].product is None:
            return None
        product, combiner = self.folds[0].product, self.folds[0].combiners[0]
        dtype = dtype_of(product.results[0].type)
        if combiner.name != product.name.replace("mul", "add") or dtype.itemsize < 4:
            return None
        return self.code.without(skipped | {product}), [function.slot(value) for value in product.operands]

    def run(self, environment: Environment) -> None:
        """Compute the outputs: new tensors, or memrefs in place."""
        values = [environment[slot] for slot in self.slots]
        arrays = [value.array if isinstance(value, Buffer) else np.asarray(value) for value in values]
        for position in range(self.inputs, len(arrays)):
            if not isinstance(values[position], Buffer):
                arrays[position] = arrays[position].copy()
        sizes = self._sizes(arrays)
        if 0 not in sizes:
            self._compute(environment, values, arrays, sizes)
        for slot, array in zip(self.results, arrays[self.inputs :]):
            environment[slot] = array

    def _sizes(self, arrays: list[Array]) -> list[int]:
        sizes: list[int | None] = [None] * self.rank
        for array, access in zip(arrays, self.accesses):
            for size, dim in zip(array.shape, access.dimensions):
                if dim is not None and sizes[dim] is None:
                    sizes[dim] = size
                elif dim is not None and sizes[dim] != size:
                    raise Trap(f"dimension d{dim} has sizes {sizes[dim]} and {size}")
        if None in sizes:
            raise unsupported(self.op, "an iteration dimension that no map names alone")
        return [size for size in sizes if size is not None]

    def _compute(self, environment: Environment, values: list[Value], arrays: list[Array], sizes: list[int]) -> None:
        views = [access.over(array, sizes) for access, array in zip(self.accesses, arrays)]
        space: Box = tuple(range(size) for size in sizes)
        if not self.safe or self._overlap(values, arrays):
            for point in _split(space, range(self.rank)):
                self._run_point(environment, views, point)
        elif self.contraction is not None and self._contract(environment, views, space):
            return
        elif self.folds:
            for box in _bounded(space):
                self._run_reduced(environment, views, box)
        else:
            for point in _split(space, self.carried):
                for box in _bounded(point):
                    self._run_lanes(environment, views, box)

    def _overlap(self, values: list[Value], arrays: list[Array]) -> bool:
        """True if an output in memory is read through another operand too."""
        for position in range(self.inputs, len(values)):
            if not isinstance(values[position], Buffer):
                continue
            if self.reads_memory:
                return True
            for other, array in enumerate(arrays):
                if other == position or not np.may_share_memory(array, arrays[position]):
                    continue
                same = _same_memory(array, arrays[position]) and self.accesses[other].map == self.accesses[position].map
                if self.carried or not same:
                    return True
        return False

    def _bind(self, environment: Environment, views: list[View], box: Box) -> None:
        for dim, slot in enumerate(self.indices):
            environment[slot] = np.arange(box[dim].start, box[dim].stop).reshape(
                [-1 if axis == dim else 1 for axis in range(self.rank)]
            )
        for slot, view in zip(self.code.arguments, views):
            environment[slot] = view.get(box)

    def _run_lanes(self, environment: Environment, views: list[View], box: Box) -> None:
        self._bind(environment, views, box)
        self.code.execute(environment)
        results = [environment[slot] for slot in self.code.results]
        for view, value in zip(views[self.inputs :], results):
            view.set(box, value)

    def _run_point(self, environment: Environment, views: list[View], box: Box) -> None:
        for slot, dim in zip(self.indices, box):
            environment[slot] = np.int64(dim.start)
        for slot, view in zip(self.code.arguments, views):
            environment[slot] = view.get(box).reshape(-1)[0]
        self.code.execute(environment)
        results = [environment[slot] for slot in self.code.results]
        for view, value in zip(views[self.inputs :], results):
            view.set(box, value)

    def _run_reduced(self, environment: Environment, views: list[View], box: Box) -> None:
        self._bind(environment, views, box)
        self.reduced_code.execute(environment)
        sizes = [len(r) for r in box]
        outputs = zip(views[self.inputs :], self.accesses[self.inputs :], self.folds, self.code.results)
        updates = []
        for view, access, fold, result in outputs:
            if fold is None:
                updates.append((view, environment[result]))
                continue
            axes = sorted(self._missing(access))
            total: Value = view.get(box)
            for slot in fold.values:
                total = fold.reduction.fold(total, np.broadcast_to(environment[slot], sizes), axes)
            updates.append((view, total))
        for view, value in updates:
            view.set(box, value)

    def _contract(self, environment: Environment, views: list[View], space: Box) -> bool:
        """Compute a sum of products of two views as a matrix product; False if a dimension does not allow it."""
        assert self.contraction is not None
        code, factors = self.contraction
        self._bind(environment, views, space)
        code.execute(environment)
        covered = self.accesses[-1].covered
        lhs, rhs = (np.asarray(environment[slot]) for slot in factors)
        if lhs.ndim != self.rank or rhs.ndim != self.rank:
            return False
        product = _matrix_product(lhs, rhs, [len(r) for r in space], covered)
        if product is None:
            return False
        output = views[-1]
        output.set(space, output.get(space) + product)
        return True


def _matrix_product(lhs: Array, rhs: Array, sizes: list[int], covered: set[int]) -> Array | None:
    """sum(lhs * rhs) over the dimensions that are not `covered`, which become size one."""
    groups: dict[tuple[bool, bool, bool], list[int]] = {}
    for dim, size in enumerate(sizes):
        key = (dim in covered, lhs.shape[dim] == size and size > 1, rhs.shape[dim] == size and size > 1)
        groups.setdefault(key if size > 1 else (True, False, False), []).append(dim)
    batch, rows = groups.pop((True, True, True), []), groups.pop((True, True, False), [])
    columns, summed = groups.pop((True, False, True), []), groups.pop((False, True, True), [])
    ones = groups.pop((True, False, False), [])
    if groups or any(sizes[dim] > 1 for dim in ones):
        return None
    counts = [int(np.prod([sizes[dim] for dim in dims], dtype=np.int64)) for dims in (batch, rows, columns, summed)]
    left = lhs.transpose([*batch, *rows, *summed, *columns, *ones]).reshape(counts[0], counts[1], counts[3])
    right = rhs.transpose([*batch, *summed, *columns, *rows, *ones]).reshape(counts[0], counts[3], counts[2])
    order = [*batch, *rows, *columns, *summed, *ones]
    product = np.matmul(left, right).reshape([sizes[dim] if dim not in summed else 1 for dim in order])
    return np.transpose(product, np.argsort(order))


def _same_memory(a: Array, b: Array) -> bool:
    return a.ctypes.data == b.ctypes.data and a.shape == b.shape and a.strides == b.strides


def _split(space: Box, dims: Sequence[int]) -> Iterator[Box]:
    """The space split into single points of `dims`, in row-major order."""
    ranges = [[range(i, i + 1) for i in r] if dim in dims else [r] for dim, r in enumerate(space)]
    yield from itertools.product(*ranges)


def _bounded(box: Box) -> Iterator[Box]:
    """The box split, in order, along its longest dimensions until the parts are small enough."""

    sizes = [len(r) for r in box]
    if int(np.prod(sizes, dtype=np.int64)) <= BOX_LIMIT:
        yield box
        return
    dim = sizes.index(max(sizes))
    middle = box[dim].start + sizes[dim] // 2
    for half in (range(box[dim].start, middle), range(middle, box[dim].stop)):
        yield from _bounded((*box[:dim], half, *box[dim + 1 :]))


@evaluates("linalg.softmax")
def softmax_rule(op: mlir.Operation, _: Function) -> Kernel:
    """exp(x - max) / sum(exp(x - max)) along a dimension, in f64."""
    axis, dtype = integer(op, "dimension"), dtype_of(op.operands[0].type)

    def softmax(source: Array) -> Array:
        wide = source.astype(np.float64)
        powers = np.exp(wide - wide.max(axis, keepdims=True))
        return np.asarray(powers / powers.sum(axis, keepdims=True), dtype)

    def kernel(source: Value, target: Value) -> Value:
        if isinstance(source, Buffer):
            target.array[...] = softmax(source.array)
            return ()
        return softmax(source)

    return kernel

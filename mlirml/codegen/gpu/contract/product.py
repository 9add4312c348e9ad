"""A contraction as the kernels see it: batches of matrices, and the computations on each operand before the product."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from mlirml.analysis.structured import indexing_maps, sizes_of
from mlirml.codegen.gpu.combiners import Combiner
from mlirml.codegen.gpu.elements import Elements, apply, out_map
from mlirml.codegen.gpu.index import Form, cut_up
from mlirml.core.dataclass import dataclass, replace
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch


@dataclass(frozen=True)
class Side:
    """One factor: its operand number, the operations of the body on it, the value that is multiplied."""

    operand: int
    ops: tuple[mlir.Operation, ...]
    value: mlir.Value


@dataclass(frozen=True)
class Product:
    """`out[b, m, n] += a[b, m, k] * b[b, k, n]`, where each of b, m, n, k is a list of loops, by their numbers."""

    combiner: Combiner
    sides: tuple[Side, Side]
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    depth: tuple[int, ...]

    @property
    def op(self) -> mlir.Operation:
        return self.combiner.op

    @property
    def result(self) -> mlir.Value:
        return self.op.results[0]

    def size(self, loops: Sequence[int]) -> int:
        """The number of points of some loops."""
        sizes = sizes_of(self.op)
        return math.prod(sizes[d] for d in loops)

    def point(self, batch: Form, row: Form, column: Form, depth: Form) -> list[Form]:
        """The indices of all loops, from the row-major indices of the groups of loops."""
        sizes = sizes_of(self.op)
        point = [Form()] * len(sizes)
        for loops, number in ((self.batch, batch), (self.rows, row), (self.columns, column), (self.depth, depth)):
            for d, index in zip(loops, cut_up(number, [sizes[d] for d in loops]), strict=True):
                point[d] = index
        return point

    def result_indices(self, batch: Form, row: Form, column: Form) -> tuple[Form, ...]:
        """The indices of an element of the result."""
        return apply(out_map(self.op, 0), self.point(batch, row, column, Form()))

    def factor(self, elements: Elements, side: int, point: Sequence[Form]) -> mlir.Value:
        """The factor of one operand at a point."""
        part = self.sides[side]
        argument = self.op.regions[0].blocks[0].arguments[part.operand]
        element = elements.get(self.op.operands[part.operand], apply(indexing_maps(self.op)[part.operand], point))
        environment = {argument: element}
        for op in part.ops:
            elements.body_op(op, point, environment)
        return environment[part.value]

    def raw(self, elements: Elements, side: int, point: Sequence[Form]) -> mlir.Value:
        """The element of one operand at a point, as in memory."""
        part = self.sides[side]
        return elements.get(self.op.operands[part.operand], apply(indexing_maps(self.op)[part.operand], point))

    def last_loop(self, side: int) -> int:
        """The loop that indexes the last dimension of an operand; -1 if there is none."""
        results = indexing_maps(self.op)[self.sides[side].operand].results
        last = results[-1] if results else None
        return last.position if isinstance(last, mlir.AffineDimExpr) else -1


def flipped(product: Product) -> Product:
    """The product with its factors in the other order."""
    first, second = product.sides
    return replace(product, sides=(second, first), rows=product.columns, columns=product.rows)


def match_product(op: mlir.Operation) -> Product:
    """Read a structured operation as a contraction; raises NoMatch."""
    if len(op.results) != 1 or len(op.operands) != 3:
        raise NoMatch("not two operands and a result")
    combiner = Combiner(op)
    if len(combiner.reducers) != 1 or combiner.reducers[0].combiner.word != "sum":
        raise NoMatch("no sum")
    multiply = defining_op(combiner.reducers[0].value)
    if multiply is None or multiply.name not in ("arith.mulf", "arith.muli"):
        raise NoMatch("no product")
    arguments = list(combiner.body.arguments)
    first, second = (side(combiner, value, arguments) for value in multiply.operands)
    if {first.operand, second.operand} != {0, 1}:
        raise NoMatch("the factors are not the operands")
    maps = indexing_maps(op)
    if any(not isinstance(e, mlir.AffineDimExpr) for e in maps[2].results):
        raise NoMatch("the result is walked in another way")
    groups: dict[tuple[bool, bool, bool], list[int]] = {}
    left, right = maps[first.operand], maps[second.operand]
    for d, size in enumerate(sizes_of(op)):
        used = (mentions(left, d), mentions(right, d), mentions(maps[2], d))
        if size != 1 or used == (True, True, False):
            groups.setdefault(used, []).append(d)
        else:
            groups.setdefault((True, True, True) if used[2] else (True, True, False), []).append(d)
    known = {(True, True, True), (True, False, True), (False, True, True), (True, True, False)}
    if not set(groups) <= known:
        raise NoMatch("a loop is in one operand only")
    batch, rows, columns, depth = (
        tuple(groups.get(group, ()))
        for group in ((True, True, True), (True, False, True), (False, True, True), (True, True, False))
    )
    return Product(combiner, (first, second), batch, rows, columns, depth)


def side(combiner: Combiner, value: mlir.Value, arguments: list[mlir.Value]) -> Side:
    """A factor: one operand, and operations on it alone."""
    needed: list[mlir.Operation] = []
    sources: set[int] = set()
    todo = [value]
    while todo:
        value_ = todo.pop()
        if value_ in arguments:
            sources.add(arguments.index(value_))
            continue
        op = defining_op(value_)
        if op is None or op not in combiner.body.ops:
            continue
        if op.regions or op.name in ("linalg.index", "tensor.extract"):
            raise NoMatch("a factor is computed in another way")
        if op not in needed:
            needed.append(op)
            todo += list(op.operands)
    if len(sources) != 1:
        raise NoMatch("a factor is not made of one operand")
    ordered = [op for op in combiner.body.ops if op in needed]
    return Side(sources.pop(), tuple(ordered), value)


def mentions(map_: mlir.AffineMap, loop: int) -> bool:
    """True if a map has a loop anywhere, as the window of a convolution has `row + offset`."""
    return bool(re.search(rf"\bd{loop}\b", str(map_).partition("->")[2]))


def fewest(product: Product) -> int:
    """The smaller side of the result's matrices."""
    return min(product.size(product.rows), product.size(product.columns))


def has_zero_init(product: Product) -> bool:
    """True if the init of the sum is a filled zero."""
    fill = defining_op(product.op.operands[2])
    if fill is None or fill.name != "linalg.fill":
        return False
    scalar = defining_op(fill.operands[0])
    return scalar is not None and scalar.name == "arith.constant" and scalar.attributes["value"].value == 0

"""Attention: two products with the softmax of rows between them, in any form that divides exponentials by their sum.

    s = a @ b
    e = exp(f(s) - m)        # m: the maxima of rows
    o = (e / sum of e) @ v

`f` are elementwise operations: a scale, a bias, a mask. Values are traced through the bodies of structured operations,
and conversions between types of floats are seen through.
"""

from __future__ import annotations

import math

from mlirml.analysis.structured import indexing_maps, is_contraction, is_parallel, reductions_of
from mlirml.analysis.traits import FLOAT_CASTS
from mlirml.analysis.values import agree, walk
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import NoMatch

_MAXIMA = ("arith.maximumf", "arith.maxnumf")
_ORDERED = {3: (False, 0), 2: (False, 1), 5: (True, 0), 4: (True, 1), 7: (False, 0), 6: (False, 1)}
"""For sle, slt, sge, sgt, ule and ult of the column and the row: whether they are swapped, and whether strictly."""
_SMALL = (mlir.F16Type, mlir.BF16Type)


@dataclass(frozen=True)
class Traced:
    """The origin of a value: the operation in a body that computes it, or the tensor that it is an element of."""

    op: mlir.Operation | None
    tensor: mlir.Value | None = None


@dataclass(frozen=True)
class Attention:
    """The products, and between them the maxima and the sums of rows; `ops` are all operations, in order.

    `weights` is the number of the operand of the last product that are the weights, and `score` the operation whose
    exponentials they are, if there is one; `traced` is the origin of the scores.
    """

    first: mlir.Operation
    score: mlir.Operation | None
    maxima: mlir.Value
    totals: mlir.Value
    last: mlir.Operation
    weights: int
    ops: tuple[mlir.Operation, ...]
    traced: Traced


class Tracer:
    """Traces values to what computes them; `ops` are the structured operations on the way."""

    def __init__(self) -> None:
        self.ops: list[mlir.Operation] = []

    def trace(self, value: mlir.Value) -> Traced:
        """The origin of a value in a body, without conversions."""
        owner = defining_op(value)
        if owner is not None:
            return self.trace(owner.operands[0]) if owner.name in FLOAT_CASTS else Traced(owner)
        around = value.owner.owner.operation
        return self.element(around.operands[value.arg_number])

    def element(self, tensor: mlir.Value) -> Traced:
        """The origin of an element of a tensor."""
        op = defining_op(tensor)
        if op is None or op.name != "linalg.generic":
            return Traced(None, tensor)
        number = list(op.results).index(tensor)
        if not is_elementwise(op, number):
            return Traced(None, tensor)
        self.visit(op)
        return self.trace(block_ops(op.regions[0].blocks[0])[-1].operands[number])

    def visit(self, op: mlir.Operation) -> None:
        if op not in self.ops:
            self.ops.append(op)

    def leaves(self, traced: Traced) -> list[mlir.Value]:
        """The tensors that a value is computed from."""

        def parts(one: Traced) -> list[Traced]:
            if one.op is None or one.op.name == "linalg.index":
                return []
            if one.op.regions or one.op.name == "tensor.extract":
                raise NoMatch("a score is computed in another way")
            return [self.trace(v) for v in one.op.operands if is_inside(v)]

        return [one.tensor for one in walk(traced, parts) if one.op is None]

    def same(self, a: Traced, b: Traced) -> bool:
        """True if two values are computed in the same way."""
        return agree(a, b, self._compared)

    def _compared(self, a: Traced, b: Traced) -> list[tuple[Traced, Traced]] | None:
        if a.op is None or b.op is None or a.op == b.op:
            return [] if a == b else None
        if a.op.name != b.op.name or a.op.attributes != b.op.attributes or len(a.op.operands) != len(b.op.operands):
            return None
        pairs = [(x, y) for x, y in zip(a.op.operands, b.op.operands, strict=True) if x != y]
        if not all(is_inside(x) and is_inside(y) for x, y in pairs):
            return None
        return [(self.trace(x), self.trace(y)) for x, y in pairs]


def is_inside(value: mlir.Value) -> bool:
    """True if a value is in the body of a structured operation, and not a scalar of the function around it."""
    owner = value.owner
    parent = owner.owner.operation if isinstance(owner, mlir.Block) else owner.operation.parent.operation
    return bool(parent.name == "linalg.generic")


def is_elementwise(op: mlir.Operation, number: int) -> bool:
    """True if all loops index a result of an operation."""
    maps = indexing_maps(op)
    found = maps[len(maps) - len(op.results) + number]
    return bool(found == mlir.AffineMap.get_identity(found.n_dims))


def match_attention(last: mlir.Operation, *, alone: bool = True) -> Attention:
    """Match attention that ends with a product; raises `NoMatch`.

    If it is `alone`, nothing between the products is used elsewhere, and the factors are small floats.
    """
    if not is_contraction(last) or len(last.results) != 1:
        raise NoMatch("no product")
    for number in (0, 1):
        made = defining_op(last.operands[number])
        if made is not None and made.name == "linalg.generic" and is_parallel(made):
            return match_weights(last, number, alone=alone)
    raise NoMatch("no factor is computed")


def match_weights(last: mlir.Operation, number: int, *, alone: bool) -> Attention:
    """Match attention whose weights are an operand of the last product."""
    tracer = Tracer()
    weights = tracer.element(last.operands[number])
    if weights.op is None or weights.op.name != "arith.divf":
        raise NoMatch("the weights are no quotients")
    exponential, total = map(tracer.trace, weights.op.operands)
    summed = reduced(tracer, total.tensor, ("arith.addf",))
    if exponential.op is None or exponential.op.name != "math.exp" or not tracer.same(exponential, summed):
        raise NoMatch("the weights are not exponentials over their sum")
    difference = tracer.trace(exponential.op.operands[0])
    if difference.op is None or difference.op.name != "arith.subf":
        raise NoMatch("no maximum is subtracted")
    score, maximum = map(tracer.trace, difference.op.operands)
    reduced(tracer, maximum.tensor, _MAXIMA)
    leaves = tracer.leaves(score)
    products = [op for leaf in leaves if (op := defining_op(leaf)) is not None and is_contraction(op)]
    if len(products) != 1 or maximum.tensor in leaves or total.tensor in leaves:
        raise NoMatch("the scores are no product")
    first = products[0]
    ops = in_order([first, *tracer.ops, last])
    if not alone:
        return Attention(first, score.op, maximum.tensor, total.tensor, last, number, tuple(ops), score)
    if any(use.owner.operation not in ops for op in ops[:-1] for result in op.results for use in result.uses):
        raise NoMatch("something between the products is used elsewhere")
    if not all(isinstance(v.type.element_type, _SMALL) for op in (first, last) for v in list(op.operands)[:2]):
        raise NoMatch("the factors are no small floats")
    return Attention(first, score.op, maximum.tensor, total.tensor, last, number, tuple(ops), score)


def triangle_of(select: mlir.Operation | None) -> int | None:
    """The offset of the diagonal up to which an operation takes its first value, in rows of the last loop, if any.

    %keep = arith.cmpi sle, %column, (%row + offset)
    arith.select %keep, %score, -inf
    """
    if select is None or select.name != "arith.select":
        return None
    compare, below = defining_op(select.operands[0]), defining_op(select.operands[2])
    if compare is None or compare.name != "arith.cmpi" or below is None or below.name != "arith.constant":
        return None
    predicate = compare.attributes["predicate"].value
    if below.attributes["value"].value != -math.inf or predicate not in _ORDERED:
        return None
    swapped, strict = _ORDERED[predicate]
    column, row = reversed(list(compare.operands)) if swapped else compare.operands
    (last, before), (number, offset) = index_and_offset(column), index_and_offset(row)
    loops = len(select.parent.operation.attributes["iterator_types"])
    if last != loops - 1 or number != loops - 2:
        return None
    return offset - before - strict


def index_and_offset(value: mlir.Value) -> tuple[int, int]:
    """The loop that an index is of, -1 for another value, and the constant that is added to it."""
    op = defining_op(value)
    if op is None:
        return -1, 0
    if op.name == "linalg.index":
        return op.attributes["dim"].value, 0
    more = defining_op(op.operands[1]) if op.name == "arith.addi" else None
    if more is None or more.name != "arith.constant":
        return -1, 0
    number, offset = index_and_offset(op.operands[0])
    return number, offset + more.attributes["value"].value


def reduced(tracer: Tracer, tensor: mlir.Value | None, combiners: tuple[str, ...]) -> Traced:
    """The origin of the values that are combined for each element of a tensor, a reduction of the last loop."""
    op = None if tensor is None else defining_op(tensor)
    if op is None or op.name != "linalg.generic" or sum(reductions_of(op)) != 1 or not reductions_of(op)[-1]:
        raise NoMatch("no reduction of rows")
    tracer.visit(op)
    number = list(op.results).index(tensor)
    body = op.regions[0].blocks[0]
    combined = defining_op(block_ops(body)[-1].operands[number])
    own = list(body.arguments)[len(body.arguments) - len(op.results) + number]
    if combined is None or combined.name not in combiners or own not in list(combined.operands):
        raise NoMatch("another reduction")
    (value,) = (operand for operand in combined.operands if operand != own)
    return tracer.trace(value)


def in_order(ops: list[mlir.Operation]) -> list[mlir.Operation]:
    """Operations of one block in its order."""
    block = ops[0].block
    if any(op.block != block for op in ops):
        raise NoMatch("the operations are in several blocks")
    return [op for op in block_ops(block) if op in ops]

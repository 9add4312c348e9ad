"""Solve inverses: the product of an inverse with a matrix or a vector is the solution of a linear system.

Before:
    %i = "mlirml.inverse"(%a, %e0) {kind = "f64"} : (tensor<1x40x40xf64>, ...) -> tensor<1x40x40xf64>
    %c = tensor.extract_slice %i[0, 0, 0] [1, 1, 1] [1, 1, 1] : ... to tensor<1xf64>      // NaN if it is singular
    %m = tensor.collapse_shape %i [[0, 1], [2]] : tensor<1x40x40xf64> into tensor<40x40xf64>
    %x = linalg.matvec ins(%m, %b : tensor<40x40xf64>, tensor<40xf64>) outs(%zeros)
After:
    %r = tensor.insert_slice %b into %ones[0, 0, 0] [1, 40, 1] [1, 1, 1] : tensor<40xf64> into tensor<1x40x2xf64>
    %s = "mlirml.solve"(%a, %r, %e0) {kind = "f64"} : (tensor<1x40x40xf64>, ...) -> tensor<1x40x2xf64>
    %c = tensor.extract_slice %s[0, 0, 1] [1, 1, 1] [1, 1, 1] : ... to tensor<1xf64>
    %x = tensor.extract_slice %s[0, 0, 0] [1, 40, 1] [1, 1, 1] : ... to tensor<40xf64>

A third of the flops of the inverse is left, and the error is smaller. The column of ones is finite whatever `b` holds:
its solution is NaN where that of the inverse was, so that the error of a singular matrix stays the same. The inverse
must have no other user. Floats are reassociated, which `exact` forbids.
"""

from __future__ import annotations

from contextlib import suppress

from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.dimensions import slice_numbers
from mlirml.analysis.values import has_one_use, used_values
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import defining_op, mlir, named_operations
from mlirml.passes import NoMatch, Pass, register
from mlirml.pipelines.tensor.products import networks, orders
from mlirml.pipelines.tensor.products.networks import Factor, Product

_KINDS = ("f32", "f64")
_MOVABLE = ("linalg.", "tensor.", "arith.constant")


@register(when=("mlirml.inverse",), optional=True)
class SolveInversesPass(Pass):
    """Solve systems in place of products with inverses. With `exact` nothing changes."""

    exact: bool = False

    def run(self, module: mlir.Operation) -> None:
        if self.exact:
            return
        for op in named_operations(module, ("mlirml.inverse",)):
            with suppress(NoMatch):
                solve(match_inverse(op))


@dataclass(frozen=True)
class Inverse:
    """The inverses `op` of a stack of matrices, slices of their corners, and their product with `right`.

    `passed` is the reshape of a stack of one, if there is one; `columns` the number of columns of `right`.
    """

    op: mlir.Operation
    corners: tuple[mlir.Operation, ...]
    product: Product
    passed: tuple[mlir.Operation, ...]
    right: Factor
    columns: int


def match_inverse(op: mlir.Operation) -> Inverse:
    """Match an inverse that is only multiplied from the left; raises `NoMatch`."""
    stack = op.results[0].type.shape[0] if op.results[0].type.rank == 3 else 0
    if not stack or mlir.StringAttr(op.attributes["kind"]).value not in _KINDS:
        raise NoMatch("no stack of real matrices")
    users = [use.owner.operation for use in op.results[0].uses]
    corners = tuple(user for user in users if is_corner(user))
    rest = [user for user in users if user not in corners]
    if len(rest) != 1:
        raise NoMatch("the inverse has other users")
    passed: tuple[mlir.Operation, ...] = ()
    value, user = op.results[0], rest[0]
    if user.name == "tensor.collapse_shape" and stack == 1 and user.results[0].type.rank == 2:
        if not has_one_use(user.results[0]):
            raise NoMatch("the inverse has other users")
        passed, value = (user,), user.results[0]
        user = next(iter(value.uses)).owner.operation
    if user.name not in CONTRACTIONS or user.block != op.block or user.operands[0] == user.operands[1]:
        raise NoMatch("no product")
    product = networks.match_product(user)
    left, right = sorted(product.factors, key=lambda factor: factor.value != value)
    batch, row, inner = left.dims[:-2], left.dims[-2], left.dims[-1]
    more = right.dims[len(batch) + 1 :]
    if product.casts or right.dims[: len(batch) + 1] != (*batch, inner) or len(more) > 1:
        raise NoMatch("not multiplied from the left")
    if product.dims != (*batch, row, *more):
        raise NoMatch("the result is transposed")
    return Inverse(op, corners, product, passed, right, product.sizes[more[0]] if more else 1)


def is_corner(op: mlir.Operation) -> bool:
    """True for a slice of the first element of each matrix of a stack."""
    if op.name != "tensor.extract_slice" or len(op.operands) != 1 or op.results[0].type.rank != 1:
        return False
    count = op.operands[0].type.shape[0]
    return slice_numbers(op) == [[0, 0, 0], [count, 1, 1], [1, 1, 1]]


def solve(found: Inverse) -> None:
    """Replace an inverse and its product; raises `NoMatch` if the other factor depends on the inverse."""
    op, columns = found.op, found.columns
    stack, size, _ = op.results[0].type.shape
    for each in movable_before(found.right.value, op):
        each.move_before(op)
    element = found.product.element
    with found.product.op.location, mlir.InsertionPoint(op):
        wide = mlir.RankedTensorType.get([stack, size, columns + 1], element)
        ones = emit.fill(emit.number(element, 1), emit.empty(wide)).results[0]
        sides = emit.insert_slice(found.right.value, ones, [0, 0, 0], [stack, size, columns])
        operands = [op.operands[0], sides, emit.empty(wide)]
        solution = emit.value("mlirml.solve", operands, wide, kind=op.attributes["kind"])
        shape = list(found.product.op.results[0].type.shape)
        result = emit.extract_slice(solution, [0, 0, 0], [stack, size, columns], shape)
    for corner in found.corners:
        with corner.location, mlir.InsertionPoint(corner):
            first = emit.extract_slice(solution, [0, 0, columns], [stack, 1, 1], [stack])
        corner.results[0].replace_all_uses_with(first)
    cubes = float(stack * size**3)
    old, new = orders.Cost(2 * cubes + 2.0 * stack * size**2 * columns), orders.Cost(cubes * 2 / 3)
    new += orders.Cost(2.0 * stack * size**2 * (columns + 1))
    networks.tell(found.product.op.location, f"`inv(a) @ b` is solved: {orders.saving(old, new)}")
    found.product.op.results[0].replace_all_uses_with(result)
    networks.erase_unused([found.product.op, *found.passed, *found.corners, op])


def movable_before(value: mlir.Value, op: mlir.Operation) -> list[mlir.Operation]:
    """The operations after `op` that a value is computed by, in order; raises `NoMatch` if one depends on `op`."""
    found: dict[mlir.Operation, None] = {}

    def visit(each: mlir.Value) -> None:
        owner = defining_op(each)
        if owner is None or owner.block != op.block or owner in found or owner.is_before_in_block(op):
            return
        if owner == op or not owner.name.startswith(_MOVABLE):
            raise NoMatch("the other factor is computed after the inverse")
        for operand in used_values(owner):
            visit(operand)
        found[owner] = None

    visit(value)
    return list(found)

"""Fold into contractions: transposes and conversions of their operands, and transposes of their results.

Before:
    %t = linalg.generic {maps = [(i, j) -> (j, i), (i, j) -> (i, j)]} ins(%b : tensor<40x20xbf16>) outs(%e0) {
      %0 = arith.extf %x : bf16 to f32
      linalg.yield %0
    }
    %r = linalg.matmul ins(%a, %t : tensor<30x20xf32>, tensor<20x40xf32>) outs(%zeros)
After:
    %r = linalg.contract indexing_maps = [(m, n, k) -> (m, k), (m, n, k) -> (n, k), (m, n, k) -> (m, n)]
      ins(%a, %b : tensor<30x20xf32>, tensor<40x20xbf16>) outs(%zeros)

Kernels of contractions iterate over their operands in any order and convert the elements that they pack, so nothing is
copied. An operand is not folded if its contiguous dim would become a batch dim, or if the copy has other users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlirml.analysis.structured import indexing_maps
from mlirml.codegen.cpu.contract.problem import CASTS, CONTRACTIONS, ELEMENTS, match_contraction
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations
from mlirml.ir.erase import is_unused
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import ANY_CONTRACTION, ANY_WINDOW

_COPIES = ("linalg.generic", "linalg.transpose")
_RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape")
Dims = tuple[int, ...]


@register(when=(*ANY_CONTRACTION, *ANY_WINDOW), optional=True)
class FoldContractPass(Pass):
    """Make contractions read and write the sources and targets of transposes and conversions.

    Without `narrowing`, numbers that are rounded to fewer bits are stored so: they take less memory, and tensor cores
    multiply them as they are. Without `converting`, no conversion is folded, for kernels whose operands have one type.
    """

    narrowing: bool = True
    converting: bool = True

    def run(self, module: mlir.Operation) -> None:
        changed = [fold(op, self.is_allowed) for op in named_operations(module, CONTRACTIONS)]
        if any(changed):
            for op in reversed(named_operations(module, (*CONTRACTIONS, *_COPIES, *_RESHAPES, "linalg.fill"))):
                if is_unused(op):
                    op.erase()

    def is_allowed(self, copy: Copy) -> bool:
        """True if the conversions of a copy may be folded."""
        return not copy.casts or (self.converting and (self.narrowing or extends(copy)))


@dataclass(frozen=True)
class Copy:
    """An operation that moves and converts elements: element [dims] of its result is the cast of `source`[`order`].

    Dim d of the source is dim `order[d]` of the result.
    """

    op: mlir.Operation
    source: mlir.Value
    order: Dims
    casts: tuple[mlir.Operation, ...]


def match_copy(op: mlir.Operation | None) -> Copy:
    """Match a transpose or a conversion on tensors, also one with further dims of size 1; raises `NoMatch`."""
    if op is None or op.name != "tensor.collapse_shape":
        return match_plain_copy(op)
    inner = match_plain_copy(defining_op(op.operands[0]))
    expand = defining_op(inner.source)
    if expand is None or expand.name != "tensor.expand_shape":
        raise NoMatch("no dims of size 1 were added")
    kept, added = main_dims(op, op.operands[0]), main_dims(expand, expand.results[0])
    # Dim d of the source is dim added[d] of the expanded tensor, and so dim order[added[d]] before the collapse.
    order = [inner.order[d] for d in added]
    if sorted(order) != sorted(kept):
        raise NoMatch("other dims are dropped than were added")
    return Copy(op, expand.operands[0], tuple(kept.index(d) for d in order), inner.casts)


def main_dims(reshape: mlir.Operation, large: mlir.Value) -> list[int]:
    """For each dim with few dims, the only one of more dims that is larger than 1, or the first; raises `NoMatch`."""
    found = []
    shape = large.type.shape
    for group in reshape.attributes["reassociation"]:
        dims = [int(mlir.IntegerAttr(d).value) for d in mlir.ArrayAttr(group)]
        wide = [d for d in dims if shape[d] != 1]
        if len(wide) > 1:
            raise NoMatch("dims are merged")
        found.append((wide or dims)[0])
    return found


def match_plain_copy(op: mlir.Operation | None) -> Copy:
    """Match a transpose or a conversion on tensors; raises `NoMatch`."""
    if op is None or op.name not in _COPIES or len(op.results) != 1 or len(op.operands) != 2:
        raise NoMatch("no copy")
    maps = indexing_maps(op)
    if not all(affine_map.is_permutation for affine_map in maps):
        raise NoMatch("it repeats or drops elements")
    if str(mlir.ShapedType(op.operands[0].type).element_type) not in ELEMENTS:
        raise NoMatch("kernels do not read its elements")
    source, target = ([mlir.AffineDimExpr(e).position for e in affine_map.results] for affine_map in maps)
    block = op.regions[0].blocks[0]
    *body, final = block_ops(block)
    value = block.arguments[0]
    for cast in body:
        if cast.name not in CASTS or "roundingmode" in cast.attributes or cast.operands[0] != value:
            raise NoMatch(f"it computes {cast.name}")
        value = cast.results[0]
    if final.operands[0] != value:
        raise NoMatch("it gives something else")
    return Copy(op, op.operands[0], tuple(target.index(loop) for loop in source), tuple(body))


@dataclass
class Form:
    """A contraction during folding: the dims by which its operands are indexed, its operands, and casts of a and b."""

    maps: list[Dims]
    operands: list[mlir.Value]
    casts: list[tuple[mlir.Operation, ...]]
    result: mlir.Value

    @property
    def batch(self) -> set[int]:
        return set(self.maps[0]) & set(self.maps[1]) & set(self.maps[2])


def read_form(op: mlir.Operation) -> Form:
    """Match a contraction on tensors that kernels can compute; raises `NoMatch`."""
    if len(op.results) != 1:
        raise NoMatch("not on tensors")
    return Form(list(match_contraction(op).maps), list(op.operands), [(), ()], op.results[0])


def fold(op: mlir.Operation, is_allowed: Callable[[Copy], bool]) -> bool:
    """Fold the allowed copies into a contraction, and rebuild it if there were any; returns True if it was rebuilt."""
    try:
        form = read_form(op)
    except NoMatch:
        return False
    changed = [fold_operand(form, 0, is_allowed), fold_operand(form, 1, is_allowed), fold_result(form)]
    if any(changed):
        build(op, form)
    return any(changed)


def fold_operand(form: Form, number: int, is_allowed: Callable[[Copy], bool]) -> bool:
    """Replace an operand by the source of its chain of copies."""
    changed = False
    while True:
        value = form.operands[number]
        try:
            copy = match_copy(defining_op(value))
        except NoMatch:
            return changed
        if not feeds_contractions(value) or not is_allowed(copy):
            return changed
        dims = tuple(form.maps[number][d] for d in copy.order)
        if dims and dims[-1] in form.batch and mlir.ShapedType(copy.source.type).shape[-1] > 1:
            return changed
        form.maps[number], form.operands[number] = dims, copy.source
        form.casts[number] = copy.casts + form.casts[number]
        changed = True


def extends(copy: Copy) -> bool:
    """True if no element is converted to fewer bits."""
    return all(cast.operands[0].type.width <= cast.results[0].type.width for cast in copy.casts)


def feeds_contractions(value: mlir.Value) -> bool:
    """True if only contractions use a value, directly or through copies."""
    for use in value.uses:
        user = use.owner.operation
        copied = user.name in _COPIES and len(user.results) == 1 and feeds_contractions(user.results[0])
        if user.name not in CONTRACTIONS and not copied:
            return False
    return True


def fold_result(form: Form) -> bool:
    """Replace the result by that of its transpose."""
    changed = False
    while True:
        uses = list(form.result.uses)
        init = defining_op(form.operands[2])
        if len(uses) != 1 or init is None or init.name != "linalg.fill":
            return changed
        try:
            copy = match_copy(uses[0].owner.operation)
        except NoMatch:
            return changed
        # Dim d of the product is dim order[d] of the copy.
        dims = tuple(form.maps[2][copy.order.index(d)] for d in range(len(copy.order)))
        if copy.casts or copy.source != form.result or (dims and dims[-1] in form.batch):
            return changed
        form.maps[2], form.result = dims, copy.op.results[0]
        with copy.op.location, mlir.InsertionPoint(init):
            form.operands[2] = emit.fill(init.operands[0], emit.empty(copy.op.results[0].type)).results[0]
        changed = True


def build(op: mlir.Operation, form: Form) -> None:
    """Replace `op` by a `linalg.contract`, and erase unused copies."""
    rank = 1 + max(d for dims in form.maps for d in dims)
    maps = [mlir.AffineMap.get(rank, 0, [mlir.AffineDimExpr.get(d) for d in dims]) for dims in form.maps]
    kept = {name: op.attributes[name] for name in ("cast", "mlirml.schedule") if name in op.attributes}

    def body(xs: list[mlir.Value]) -> mlir.Value:
        factors = [converted(casts, x) for casts, x in zip(form.casts, xs)]
        return emit.body_again(op.regions[0].blocks[0], [*factors, *xs[len(factors) :]])[0]

    with op.location, mlir.InsertionPoint(op):
        contract = emit.contract(form.operands, maps, body, kept)
    form.result.replace_all_uses_with(contract)


def converted(casts: Sequence[mlir.Operation], value: mlir.Value) -> mlir.Value:
    """The casts of `value`, built at the insertion point."""
    for cast in casts:
        environment = {cast.operands[0]: value}
        emit.body_op(cast, environment)
        value = environment[cast.results[0]]
    return value

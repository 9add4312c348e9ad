"""Recompute masks: comparisons of indices are made where they are read, and not stored.

Before:
    %m:2 = linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i, j), (i, j) -> (i)]} ins(%x) outs(%e0, %lowest) {
      %keep = arith.cmpi sle, %j, %i                     // linalg.index 1, linalg.index 0
      %s = arith.select %keep, %x, %minus_infinity
      ...
      linalg.yield %keep, %largest
    }
    %e = linalg.generic ins(%m#0, %x, %m#1) outs(...) { %s = arith.select %keep, %x, %minus_infinity ... }
After:
    %m = linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i)]} ins(%x) outs(%lowest) { ... linalg.yield %largest }
    %e = linalg.generic ins(%x, %m) outs(...) { %keep = arith.cmpi sle, %j, %i ... }

A comparison takes less time than a read, and where the mask is known loops are split at its edges
(`mlirml-split-masked`). Integers and truth values are recomputed that are made of indices, numbers, and elements of
arrays of fewer dims, such as lengths of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from mlirml.analysis.dimensions import Member, Part, along
from mlirml.analysis.masks.terms import COPY, ELEMENT, INDEX, Term, Terms
from mlirml.analysis.structured import dims_of, reductions_of, sizes_of
from mlirml.analysis.values import walk
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir, named_operations, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.presence import every
from mlirml.pipelines.tensor.tiling.row_limits import Elements, can_build

_MOST_TERMS = 24
"""The most terms that a value is recomputed from."""


@register(when=every(("arith.select",), ("linalg.index",)), optional=True)
class RecomputeMasksPass(Pass):
    """Recompute masks and integers of indices in the operations that read them."""

    def run(self, module: mlir.Operation) -> None:
        makers: dict[mlir.Operation, None] = {}
        for op in named_operations(module, ("linalg.generic",)):
            with suppress(NoMatch):
                makers.update(dict.fromkeys(recompute(match_masks(op))))
        for op in reversed(makers):
            drop_results(op)


@dataclass(frozen=True)
class Masks:
    """A structured operation, and the terms of its operands, by position, that it can compute."""

    member: Member
    terms: dict[int, Term]


def match_masks(op: mlir.Operation) -> Masks:
    """Match an operation that selects by what it reads; raises `NoMatch`."""
    body = op.regions[0].blocks[0]
    if not any(inner.name == "arith.select" for inner in block_ops(body)):
        raise NoMatch("it selects nothing")
    sizes = sizes_of(op)
    if min(sizes, default=-1) < 0:
        raise NoMatch("sizes are dynamic")
    member = along(op, {d: Part(d, size) for d, size in enumerate(sizes)})
    terms = Terms({})
    found: dict[int, Term] = {}
    for number in range(member.inputs):
        value, argument = op.operands[number], body.arguments[number]
        if isinstance(value.type, mlir.RankedTensorType) and is_made(value) and any(True for _ in argument.uses):
            term = terms.value(member, argument)
            if is_recomputed(term, value.type.rank):
                found[number] = term
    if not found:
        raise NoMatch("it reads no mask")
    return Masks(member, found)


def is_made(value: mlir.Value) -> bool:
    """True for tensors of integers or truth values that an operation computes."""
    return isinstance(value.type.element_type, mlir.IntegerType) and defining_op(value) is not None


def is_recomputed(term: Term, rank: int) -> bool:
    """True for a few operations on indices, numbers, and elements of tensors of lower rank."""
    if not term.is_known or not can_build(term) or term.op is None:
        return False
    seen: dict[Term, None] = {}
    todo = [term]
    while todo:
        found = todo.pop()
        if found in seen:
            continue
        seen[found] = None
        todo += found.args
        if found.name == COPY or (found.name == INDEX and (found.payload.step != 1 or found.payload.single)):
            return False
        if found.name == ELEMENT and found.payload[0].type.rank >= rank:
            return False
    return len(seen) <= _MOST_TERMS


def leaves(term: Term) -> list[Term]:
    """The elements of tensors in a term."""
    return [one for one in walk(term, lambda one: () if one.name == ELEMENT else one.args) if one.name == ELEMENT]


def recompute(found: Masks) -> list[mlir.Operation]:
    """Rebuild an operation without the operands that it computes by itself; returns what has computed them."""
    member, op = found.member, found.member.op
    block, count, rank = op.regions[0].blocks[0], found.member.inputs, found.member.maps[0].n_dims
    kept = [number for number in range(count) if number not in found.terms]
    elements = list(dict.fromkeys(leaf for term in found.terms.values() for leaf in leaves(term)))
    maps = [member.maps[number] for number in kept]
    for leaf in elements:
        dims = [
            mlir.AffineConstantExpr.get(0) if p is None else mlir.AffineDimExpr.get(p.axis) for p in leaf.payload[1]
        ]
        maps.append(mlir.AffineMap.get(rank, 0, dims))
    if not has_sizes(rank, [*maps, *member.maps[count:]]):
        raise NoMatch("the size of a loop is that of the mask")
    inputs = [*(op.operands[number] for number in kept), *(leaf.payload[0] for leaf in elements)]

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        built = Elements(index_of, dict(zip(elements, xs[len(kept) : len(inputs)], strict=True)))
        given = dict(zip(kept, xs, strict=False))
        arguments = [given[n] if n in given else built.build(found.terms[n]) for n in range(count)]
        return emit.body_again(block, [*arguments, *xs[len(inputs) :]])

    makers = [maker for n in found.terms if (maker := maker_of(op.operands[n])) is not None]
    with op.location, mlir.InsertionPoint(op):
        new = emit.generic(inputs, list(op.operands)[count:], [*maps, *member.maps[count:]], iterators_of(op), body)
    replace_op(op, *new.results)
    return makers


def has_sizes(rank: int, maps: Sequence[mlir.AffineMap]) -> bool:
    """True if each of `rank` loops is a dim of an operand."""
    return len(frozenset[int]().union(*map(dims_of, maps))) == rank


def index_of(part: Part) -> mlir.Value:
    """The index of a loop."""
    return emit.value("linalg.index", [], mlir.IndexType.get(), dim=emit.i64(part.axis))


def iterators_of(op: mlir.Operation) -> list[str]:
    """The iterator types of an operation."""
    return ["reduction" if is_reduced else "parallel" for is_reduced in reductions_of(op)]


def maker_of(value: mlir.Value) -> mlir.Operation | None:
    """The structured operation that computes a tensor, through reshapes, which are erased where they are unused."""
    op = defining_op(value)
    while op is not None and op.name != "linalg.generic":
        if not len(op.operands):
            return None
        op = defining_op(op.operands[0])
    return op


def drop_results(op: mlir.Operation) -> None:
    """Erase an operation that is unused, or its results that are."""
    erase_reshapes(op)
    used = [n for n, result in enumerate(op.results) if any(True for _ in result.uses)]
    if len(used) == len(op.results):
        return
    if not used:
        op.erase()
        return
    block, count = op.regions[0].blocks[0], len(op.operands) - len(op.results)
    dropped = [n for n in range(len(op.results)) if n not in used]
    if any(True for n in dropped for _ in block.arguments[count + n].uses):
        return
    maps = [mlir.AffineMapAttr(each).value for each in op.attributes["indexing_maps"]]
    positions = [*range(count), *(count + n for n in used)]
    if not has_sizes(maps[0].n_dims, [maps[n] for n in positions]):
        return

    def body(xs: list[mlir.Value]) -> list[mlir.Value]:
        given = dict(zip(positions, xs, strict=True))
        arguments = [given.get(n, xs[-1]) for n in range(len(op.operands))]  # the others are not read
        return [yielded for n, yielded in enumerate(emit.body_again(block, arguments)) if n in used]

    operands = list(op.operands)
    with op.location, mlir.InsertionPoint(op):
        new = emit.generic(
            operands[:count], select(operands, positions[count:]), select(maps, positions), iterators_of(op), body
        )
    for n, result in zip(used, new.results, strict=True):
        op.results[n].replace_all_uses_with(result)
    op.erase()


def select(items: Sequence[object], positions: Sequence[int]) -> list[object]:
    """The items at some positions."""
    return [items[n] for n in positions]


def erase_reshapes(op: mlir.Operation) -> None:
    """Erase the unused reshapes of the results of an operation."""
    for result in op.results:
        for use in list(result.uses):
            user = use.owner.operation
            if (
                user.name.startswith("tensor.")
                and len(user.results) == 1
                and not any(True for _ in user.results[0].uses)
            ):
                user.erase()

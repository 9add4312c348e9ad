"""The iteration space of a structured operation on memrefs: its loops, and the stride of each operand along them."""

from __future__ import annotations

from collections.abc import Sequence

from mlirml.analysis.affine import linear_of
from mlirml.analysis.cost import element_bytes
from mlirml.analysis.structured import indexing_maps, reductions_of, sizes_of
from mlirml.core.dataclass import dataclass, replace
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, mlir
from mlirml.passes import NoMatch


@dataclass(frozen=True)
class Access:
    """One memref operand: element `base + offset + sum(strides[d] * i[d])` of the memref as one flat array.

    `base` is the offset that a loop around the nest adds, if there is one.
    """

    operand: mlir.Value
    offset: int
    strides: tuple[int, ...]
    bytes: int
    base: tuple[mlir.Value, ...] = ()


@dataclass(frozen=True)
class Nest:
    """Loops from the outermost to the innermost.

    `accesses` has one entry for each operand, None for a scalar. `origin` has the dimension of the operation that each
    loop is; loops that `linalg.index` reads are in `pinned` and never collapsed. `entered` are the variables of loops
    around the nest.
    """

    sizes: tuple[int, ...]
    reduction: tuple[bool, ...]
    accesses: tuple[Access | None, ...]
    num_outputs: int
    origin: tuple[int, ...]
    pinned: frozenset[int]
    entered: tuple[tuple[int, mlir.Value], ...] = ()

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def memory(self) -> list[Access]:
        """The memref operands."""
        return [access for access in self.accesses if access is not None]

    def out(self, number: int) -> Access:
        """The access of an output."""
        access = self.accesses[len(self.accesses) - self.num_outputs + number]
        assert access is not None
        return access

    def permuted(self, order: Sequence[int]) -> Nest:
        """The same loops in another order; omitted dimensions must have size 1."""
        if list(order) == list(range(self.rank)):
            return self

        def pick(items: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(items[d] for d in order)

        accesses = tuple(a and replace(a, strides=pick(a.strides)) for a in self.accesses)
        reduction = tuple(self.reduction[d] for d in order)
        return replace(self, sizes=pick(self.sizes), reduction=reduction, accesses=accesses, origin=pick(self.origin))

    def without_unit_dims(self) -> Nest:
        """The nest without loops of trip count 1."""
        return self.permuted([d for d, size in enumerate(self.sizes) if size != 1])

    def collapsed(self, first: int = 0) -> Nest:
        """Merge adjacent loops of equal iterator type that are contiguous in every operand, from loop `first` on."""
        nest, d = self, first
        while d + 1 < nest.rank:
            if nest.can_collapse(d):
                nest = nest.collapse(d)
            else:
                d += 1
        return nest

    def can_collapse(self, d: int) -> bool:
        """True if loops `d` and `d + 1` are contiguous in every operand."""
        if self.reduction[d] != self.reduction[d + 1] or {self.origin[d], self.origin[d + 1]} & self.pinned:
            return False
        return all(a.strides[d] == a.strides[d + 1] * self.sizes[d + 1] for a in self.memory)

    def collapse(self, d: int) -> Nest:
        """Merge loops `d` and `d + 1`."""

        def drop(items: tuple[int, ...]) -> tuple[int, ...]:
            return items[:d] + items[d + 1 :]

        sizes = (*self.sizes[:d], self.sizes[d] * self.sizes[d + 1], *self.sizes[d + 2 :])
        accesses = tuple(a and replace(a, strides=drop(a.strides)) for a in self.accesses)
        reduction = self.reduction[:d] + self.reduction[d + 1 :]
        return replace(self, sizes=sizes, reduction=reduction, accesses=accesses, origin=drop(self.origin))


@dataclass(frozen=True)
class Body:
    """The scalar computation: block arguments in operand order, operations, yielded values."""

    arguments: tuple[mlir.Value, ...]
    ops: tuple[mlir.Operation, ...]
    yields: tuple[mlir.Value, ...]

    def reads(self, argument: mlir.Value) -> bool:
        """True if a block argument is used."""
        return any(True for _ in argument.uses)


def read_body(op: mlir.Operation) -> Body:
    """The body of a structured operation. A subtraction from the accumulator becomes an addition of the negation."""
    block = op.regions[0].blocks[0]
    ops = block_ops(block)
    accumulators = list(block.arguments)[-len(ops[-1].operands) :]
    for argument, value in zip(accumulators, ops[-1].operands):
        difference = defining_op(value)
        if difference is not None and difference.name == "arith.subf" and difference.operands[0] == argument:
            with difference.location, mlir.InsertionPoint(difference):
                negated = emit.same_type("arith.negf", difference.operands[1])
                value.replace_all_uses_with(emit.same_type("arith.addf", argument, negated))
            difference.erase()
            ops = block_ops(block)
    return Body(tuple(block.arguments), tuple(ops[:-1]), tuple(ops[-1].operands))


def match_nest(op: mlir.Operation, body: Body) -> Nest:
    """The nest of a structured operation on static memrefs; NoMatch if an indexing map is not linear."""
    maps = indexing_maps(op)
    operands = list(op.operands)
    rank = maps[0].n_dims
    accesses: list[Access | None] = []
    for operand, map_ in zip(operands, maps, strict=True):
        if not isinstance(operand.type, mlir.MemRefType):
            accesses.append(None)
            continue
        layout, _ = operand.type.get_strides_and_offset()
        offset, strides = 0, [0] * rank
        for expression, stride in zip(map_.results, layout, strict=True):
            if isinstance(expression, mlir.AffineDimExpr):
                strides[expression.position] += stride
            else:
                found = linear_of(expression)
                if found is None:
                    raise NoMatch(f"the indexing map has the expression {expression}, which is not linear")
                offset += stride * found.constant
                for position, factor in found.factors.items():
                    strides[position] += stride * factor
        accesses.append(Access(whole(operand), offset, tuple(strides), element_bytes(operand.type.element_type)))
    pinned = frozenset(inner.attributes["dim"].value for inner in body.ops if inner.name == "linalg.index")
    num_outputs, sizes = len(body.yields), tuple(sizes_of(op, maps))
    if any(size < 0 for size in sizes):
        raise NoMatch("its extents are not constant")
    return Nest(sizes, reductions_of(op), tuple(accesses), num_outputs, tuple(range(rank)), pinned)


def whole(operand: mlir.Value) -> mlir.Value:
    """The memref that a value is a reshape of: as flat arrays they are the same."""
    op = defining_op(operand)
    while op is not None and op.name in ("memref.expand_shape", "memref.collapse_shape"):
        source = op.operands[0]
        if not (is_contiguous(source.type) and is_contiguous(operand.type)):
            break
        operand = source
        op = defining_op(operand)
    return operand


def is_contiguous(type_: mlir.Type) -> bool:
    """True if a memref is contiguous in the order of its indices, from its first element on."""
    return isinstance(type_.layout, mlir.AffineMapAttr) and type_.rank > 0


def root(value: mlir.Value) -> mlir.Value:
    """The buffer that a memref is a view of."""
    op = defining_op(value)
    while op is not None and len(op.operands) and op.name != "memref.view":
        value = op.operands[0]
        op = defining_op(value)
    return value

"""Terms: elements of tensors as expressions of tiled indices, traced through the bodies of structured operations.

    %m = linalg.generic ... { %0 = linalg.index 0; %1 = linalg.index 1; %2 = arith.cmpi sle, %1, %0; yield %2 }
    %s = linalg.generic ... ins(%m, %x) { ^bb0(%a, %b, %o): %3 = arith.select %a, %b, %zero; yield %3 }

The element of %s is `select(sle(column, row), element of %x, 0)`. Equal terms are one object.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from mlirml.analysis.constants import constant_of, float_of
from mlirml.analysis.contractions import CONTRACTIONS
from mlirml.analysis.dimensions import Member, Part, Parts, along, follow, loops_of
from mlirml.analysis.structured import sizes_of
from mlirml.analysis.traits import RESHAPES
from mlirml.core.dataclass import dataclass
from mlirml.core.no_match import NoMatch
from mlirml.ir.bindings import block_ops, defining_op, mlir

INDEX, LITERAL, SCALAR, ELEMENT, TOTAL, PRODUCT, COPY, OPAQUE = (
    "index", "literal", "scalar", "element", "total", "product", "copy", "opaque",
)  # fmt: skip
_IGNORED = ("fastmath", "overflowFlags")


@dataclass(eq=False)
class Term:
    """An expression: an operation on other terms, or a leaf.

    Leaves are `index` of a `Part`, `literal` numbers, `scalar` values of the function, `element` of a tensor, `total`
    of a row (a reduction) and `product` (an element of the result of a contraction), whose payload is (value, parts).
    A `copy` is an element of a tensor in memory that its one argument computes. An `opaque` one is not known.
    """

    name: str
    type: mlir.Type
    payload: Any = None
    args: tuple[Term, ...] = ()
    op: mlir.Operation | None = None
    indices: frozenset[Part] = frozenset()
    is_known: bool = True

    def depends_on(self, part: Part) -> bool:
        """True unless the term is the same for all indices of a tiled dimension."""
        return not self.is_known or any(own.axis == part.axis for own in self.indices)


@dataclass
class Terms:
    """The terms of a group of operations; `members` are those that are tiled together, by their results.

    `axes` are the dimensions of a mask, one of which operations before the group may reduce.
    """

    members: dict[mlir.Value, Member]
    axes: tuple[Part, ...] = ()
    _known: dict[Any, Term] = field(default_factory=dict)
    _values: dict[tuple[mlir.Value, int], Term] = field(default_factory=dict)
    _around: dict[tuple[mlir.Value, Parts], Member] = field(default_factory=dict)

    def result(self, member: Member, number: int = 0) -> Term:
        """The term that a structured operation yields for a result."""
        return self.value(member, block_ops(member.op.regions[0].blocks[0])[-1].operands[number])

    def value(self, member: Member, value: mlir.Value) -> Term:
        """The term of a value in the body of a member."""
        key = value, id(member)  # members are kept, so that no other one gets this address
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = self._value(member, value)
        return found

    def of(self, value: mlir.Value, parts: Parts) -> Term:
        """The term of an element of a tensor at tiled indices."""
        member = self.members.get(value)
        if member is not None:
            return self._of_member(member, value, parts)
        op, element = defining_op(value), value.type.element_type
        if op is not None and op.name == "linalg.fill":
            return self._scalar(op.operands[0])
        computed = self._computed(value, parts)
        if computed is None:
            return self._make(ELEMENT, element, (value, parts), indices=parts)
        if not isinstance(element, mlir.FloatType) or computed.name in (TOTAL, PRODUCT):
            return computed
        return self._make(COPY, element, (value, parts), (computed,))

    def member_of(self, element: tuple[mlir.Value, Parts]) -> Member:
        """The operation of a total or a product, in the group or before it."""
        member = self.members.get(element[0])
        return self._around[element] if member is None else member

    def _of_member(self, member: Member, value: mlir.Value, parts: Parts) -> Term:
        number = list(member.op.results).index(value)
        element = value.type.element_type
        if member.results[value] != parts:
            return self._opaque(element, (value, parts))
        if member.op.name in RESHAPES:
            return self.of(member.op.operands[0], member.parts[0])
        if member.op.name in CONTRACTIONS:
            return self._make(PRODUCT, element, (value, parts), indices=parts)
        if member.op.name != "linalg.generic":
            return self._opaque(element, (value, parts))
        if not is_parallel_result(member, number):
            return self._make(TOTAL, element, (value, parts), indices=parts)
        return self.result(member, number)

    def _computed(self, value: mlir.Value, parts: Parts) -> Term | None:
        """The term of an element that a structured operation or a reshape before the group computes."""
        op = defining_op(value)
        if op is None or not any(parts):
            return None
        try:
            if op.name in RESHAPES:
                return self._element_of(op.operands[0], follow(op, {1: parts}).parts[0])
            if op.name != "linalg.generic" and op.name not in CONTRACTIONS:
                return None
            number = list(op.results).index(value)
            member = self._around.get((value, parts))
            if member is None:
                member = self._around[value, parts] = self._followed(op, number, parts)
            return self._of_member(member, value, parts)
        except NoMatch:
            return None

    def _followed(self, op: mlir.Operation, number: int, parts: Parts) -> Member:
        """An operation before the group with these parts of a result; what it reduces is the other axis of the mask."""
        member = follow(op, {len(op.operands) + number: parts})
        if is_parallel_result(member, number) or op.name in CONTRACTIONS:
            return member
        sizes = sizes_of(op)
        missing = [d for d, size in enumerate(sizes) if d not in member.loops and size != 1]
        loops = dict(member.loops)
        for part in self.axes:
            if len(missing) == 1 and part not in loops.values() and part.size == sizes[missing[0]]:
                loops[missing[0]] = part
                return along(op, loops)
        return member

    def _element_of(self, value: mlir.Value, parts: Parts) -> Term:
        found = self.of(value, parts)
        return found.args[0] if found.name == COPY else found

    def _value(self, member: Member, value: mlir.Value) -> Term:
        body = member.op.regions[0].blocks[0]
        owner = defining_op(value)
        if owner is None:
            if value.owner != body:
                return self._scalar(value)
            return self._operand(member, value.arg_number)
        if owner.block != body:
            return self._scalar(value)
        if owner.name == "linalg.index":
            part = member.loops.get(owner.attributes["dim"].value)
            if part is None:
                return self._opaque(value.type, value)
            return self._make(INDEX, value.type, part, indices=(part,))
        if owner.name == "arith.constant":
            return self._scalar(value)
        if owner.regions or len(owner.results) != 1 or owner.name == "tensor.extract":
            return self._opaque(value.type, value)
        args = tuple(self.value(member, operand) for operand in owner.operands)
        kept = tuple(str(owner.attributes[name]) for name in owner.attributes if name not in _IGNORED)
        return self._make(owner.name, value.type, kept, args, owner)

    def _operand(self, member: Member, number: int) -> Term:
        argument = member.op.regions[0].blocks[0].arguments[number]
        if number >= member.inputs:
            return self._opaque(argument.type, argument)
        value, parts = member.op.operands[number], member.parts[number]
        if not isinstance(value.type, mlir.RankedTensorType):
            return self._scalar(value)
        loops = loops_of(member.maps[number])
        if any(part is None and size > 1 for part, size in zip(parts, value.type.shape, strict=True)) or any(
            d < 0 and size > 1 for d, size in zip(loops, value.type.shape, strict=True)
        ):
            return self._opaque(argument.type, argument)
        return self.of(value, parts)

    def _scalar(self, value: mlir.Value) -> Term:
        owner = defining_op(value)
        if owner is not None and owner.name == "arith.constant":
            number = constant_of(value)
            known = float_of(value) if number is None else number
            if known is not None:
                return self._make(LITERAL, value.type, known)
        return self._make(SCALAR, value.type, value)

    def _opaque(self, type_: mlir.Type, payload: Any) -> Term:
        return self._make(OPAQUE, type_, payload, is_known=False)

    def _make(
        self,
        name: str,
        type_: mlir.Type,
        payload: Any = None,
        args: tuple[Term, ...] = (),
        op: mlir.Operation | None = None,
        indices: Any = (),
        is_known: bool = True,
    ) -> Term:
        key = name, type_, repr(payload) if name == LITERAL else payload, args  # -0.0 is not 0.0, and NaN is not NaN
        found = self._known.get(key)
        if found is None:
            own = frozenset(part for part in indices if part is not None).union(*(arg.indices for arg in args))
            known = is_known and all(arg.is_known for arg in args)
            found = self._known[key] = Term(name, type_, payload, args, op, own, known)
        return found


def is_parallel_result(member: Member, number: int) -> bool:
    """True if each element of a result is computed in one iteration."""
    return bool(member.maps[member.inputs + number].n_dims == len(member.maps[member.inputs + number].results))

"""Split masked loops: a loop over elements that a comparison of indices masks is split at the edges of the mask.

Before:
    scf.for %i = %c0 to %c1024 step %c1 {
      %t = scf.for %j = %c0 to %c1024 step %c1 iter_args(%sum = %zero) -> (f32) {
        %x = memref.load %a[%i, %j] : memref<1024x1024xf32>
        %keep = arith.cmpi sle, %j, %i : index
        %y = arith.select %keep, %x, %zero : f32
        %new = arith.addf %sum, %y : f32
        scf.yield %new : f32
      }
      ...
    }
After:
    scf.for %i = %c0 to %c1024 step %c1 {
      %edge = ...                                        // %i + 1
      %s = scf.for %j = %c0 to %edge step %c1 iter_args(%sum = %zero) -> (f32) {
        %x = memref.load %a[%i, %j] : memref<1024x1024xf32>
        %new = arith.addf %sum, %x : f32
        scf.yield %new : f32
      }
      %once = ...                                        // 1 if %edge is less than 1024, else 0
      %t = scf.for %j = %c0 to %once step %c1 iter_args(%sum = %s) -> (f32) {
        %new = arith.addf %sum, %zero : f32              // as adding it once more changes nothing
        scf.yield %new : f32
      }
      ...
    }

The condition is any combination of comparisons of the index with something that is the same in the loop, as
`mlirml.analysis.masks` knows them: causal, banded, block-diagonal, or padded by the lengths of rows. Where it holds, it
is not tested, and where it does not, nothing is computed that only it selects: the numbers are those that were selected
before. Where numbers from memory might make sums wrap around, the iterations between the edges test the condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from mlirml.analysis.constants import constant_of, float_of
from mlirml.analysis.dimensions import Part
from mlirml.analysis.masks.limits import Both, Cut, Limits, Not, Row, has_limits, limits_of
from mlirml.analysis.masks.terms import INDEX, LITERAL, OPAQUE, SCALAR, Term
from mlirml.analysis.traits import COUNTED_LOOPS
from mlirml.analysis.trip_counts import trip_count
from mlirml.analysis.values import walk
from mlirml.core.dataclass import dataclass
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, clone_with, defining_op, mlir, named_operations, replace_op
from mlirml.passes import NoMatch, Pass, register
from mlirml.passes.report import add_remark
from mlirml.pipelines.memref.invariants import Invariants
from mlirml.pipelines.tensor.tiling.row_limits import Elements, row_columns

_FEWEST = 257
"""The least number of iterations of a loop that is split: more than a tile of `mlirml-skip-masked` has, where blocks
are left out already, and code would only get longer.
"""
_BLOCK = 64
"""The iterations of a block that is tested whole where an edge is in it: loops of vectors have no rest, then."""
_MOST_OPS = 64
"""The most operations in the body of a loop, which is cloned."""
_PURE = ("arith.", "math.")
_REPEATED = ("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf", "arith.ori", "arith.andi",
             "arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui")  # fmt: skip
"""Combinations with the same number, of which all but the first change nothing."""


@register(when=("arith.select",), optional=True)
class SplitMaskedPass(Pass):
    """Split innermost loops at the edges of the masks by which they select."""

    def run(self, module: mlir.Operation) -> None:
        for loop in named_operations(module, ("scf.for",)):
            with suppress(NoMatch):
                split(match_masked(loop))


@dataclass(frozen=True)
class Masked:
    """A loop of `count` iterations, the condition by which it selects, and the iterations where that may hold."""

    loop: mlir.Operation
    count: int
    condition: mlir.Value
    limits: Limits
    invariants: Invariants
    outer: dict[Part, mlir.Value]


def match_masked(loop: mlir.Operation) -> Masked:
    """Match an innermost loop that selects by its index; raises `NoMatch`."""
    block = loop.regions[0].blocks[0]
    ops = block_ops(block)[:-1]
    count = trip_count(loop)
    if count is None or count < _FEWEST or constant_of(loop.operands[0]) != 0 or constant_of(loop.operands[2]) != 1:
        raise NoMatch("a short loop, or one of dynamic length")
    if len(ops) > _MOST_OPS or not all(is_simple(op) for op in ops):
        raise NoMatch("something else than arithmetic")
    conditions = [op.operands[0] for op in ops if op.name == "arith.select" and is_number(op.results[0].type)]
    invariants, seen = Invariants(loop), set[mlir.Value]()
    for condition in conditions:
        if condition in seen:
            continue
        seen.add(condition)
        reader = Reader(invariants, Part(0, count), {}, {})
        term = reader.of(condition)
        if not term.is_known or not term.depends_on(reader.column):
            continue
        limits = limits_of(term, reader.column)
        if has_limits(limits) and is_interval(limits):
            return Masked(loop, count, condition, limits, invariants, reader.outer)
    raise NoMatch("no condition has edges")


def is_simple(op: mlir.Operation) -> bool:
    """True for arithmetic, loads and stores."""
    return op.name.startswith((*_PURE, "memref.load", "memref.store")) and not len(op.regions)


def is_number(type_: mlir.Type) -> bool:
    """True for all types but truth values."""
    return not (isinstance(type_, mlir.IntegerType) and type_.width == 1)


def is_interval(limits: Limits) -> bool:
    """True if no iterations but those of one interval are selected, as far as is known."""
    if isinstance(limits, Cut):
        return True
    if isinstance(limits, Both):
        return is_interval(limits.a) or is_interval(limits.b)
    if isinstance(limits, Not):
        inner = limits.a
        return isinstance(inner, Cut) and (inner.low is None or inner.high is None)
    return False


@dataclass
class Reader:
    """Reads values of the body of a loop as terms; `outer` are the variables of loops around it."""

    invariants: Invariants
    column: Part
    outer: dict[Part, mlir.Value]
    known: dict[mlir.Value, Term]

    def of(self, value: mlir.Value) -> Term:
        """The term of a value."""
        if value not in self.known:
            self.known[value] = self._of(value)
        return self.known[value]

    def _of(self, value: mlir.Value) -> Term:
        if value == self.invariants.body.arguments[0]:
            return Term(INDEX, value.type, self.column, indices=frozenset([self.column]))
        number = constant_of(value)
        if number is not None:
            return Term(LITERAL, value.type, number)
        bound = outer_bound(value)
        if bound is not None:
            part = Part(1 + len(self.outer), bound)
            self.outer[part] = value
            return Term(INDEX, value.type, part, indices=frozenset([part]))
        op = defining_op(value)
        if op is None and value.owner == self.invariants.body:  # carried from the iteration before
            return Term(OPAQUE, value.type, value, is_known=False)
        if op is None or op.block != self.invariants.body:
            return Term(SCALAR, value.type, value)
        if op.name == "memref.load":
            if self.invariants.has(value):
                return Term(SCALAR, value.type, value)
            return Term(OPAQUE, value.type, value, is_known=False)
        args = tuple(map(self.of, op.operands))
        indices = frozenset[Part]().union(*(arg.indices for arg in args))
        return Term(op.name, value.type, None, args, op, indices, all(arg.is_known for arg in args))


def outer_bound(value: mlir.Value) -> int | None:
    """The upper bound of the variable of a loop that counts up from 0 or more; None for other values."""
    if defining_op(value) is not None:
        return None
    loop = value.owner.owner.operation
    if loop.name not in COUNTED_LOOPS or value.owner.arguments[0] != value or len(loop.operands) < 3:
        return None
    if loop.name == "scf.parallel" and len(value.owner.arguments) != 1:
        return None
    lower, upper = (constant_of(operand) for operand in list(loop.operands)[:2])
    return upper if lower is not None and lower >= 0 and upper is not None and upper < 1 << 40 else None


class Edges(Elements):
    """Builds terms before a loop: values of its body are hoisted."""

    def __init__(self, found: Masked) -> None:
        super().__init__(found.outer.__getitem__)
        self.found = found

    def _build(self, term: Term) -> mlir.Value:
        if term.name == SCALAR:
            return self.found.invariants.hoist(term.payload)
        return super()._build(term)


def split(found: Masked) -> None:
    """Replace a loop by those before, between and after the edges of its mask."""
    loop = found.loop
    lower, upper = list(loop.operands)[:2]
    with loop.location, mlir.InsertionPoint(loop):
        columns = row_columns(found.limits, Edges(found), found.count)
        # A mask that holds nowhere has the limits (count, 0), of which only the second is meant if none is below.
        low = lower if starts_at_zero(found.limits) else emit.same_type("arith.minsi", columns.may_low, upper)
        high = emit.same_type("arith.maxsi", columns.may_high, low)
        first = lower if starts_at_zero(found.limits) else multiple(low, 0)
        last = (
            upper if ends_at_count(found.limits) else emit.same_type("arith.minsi", multiple(high, _BLOCK - 1), upper)
        )
        carried = list(loop.operands)[3:]
        if not starts_at_zero(found.limits):
            carried = build_part(found, lower, first, carried, holds=False)
        if is_exact(found.limits):
            begin = emit.same_type("arith.minsi", multiple(low, _BLOCK - 1), last)
            end = emit.same_type("arith.maxsi", multiple(high, 0), begin)
            if not starts_at_zero(found.limits):
                carried = build_part(found, first, begin, carried, holds=None)
            else:
                begin = lower
            if ends_at_count(found.limits):
                end = last
            carried = build_part(found, begin, end, carried, holds=True)
            first = end
        if not is_exact(found.limits) or not ends_at_count(found.limits):
            carried = build_part(found, first, last, carried, holds=None)
        if not ends_at_count(found.limits):
            carried = build_part(found, last, upper, carried, holds=False)
    add_remark(loop.location, "masked: a loop is split at the edges of its mask", outcome="masked")
    replace_op(loop, *carried)


def multiple(value: mlir.Value, more: int) -> mlir.Value:
    """The number of iterations in whole blocks of a value and `more`."""
    size = emit.index(_BLOCK)
    blocks = emit.same_type(
        "arith.divui", emit.same_type("arith.addi", value, emit.index(more)) if more else value, size
    )
    return emit.same_type("arith.muli", blocks, size)


def is_exact(limits: Limits) -> bool:
    """True if the iterations where a condition may hold are those where it holds, as no sum may wrap around."""
    if isinstance(limits, Cut):
        sums = [each for each in (limits.low, limits.high) if each is not None]
        return all(term.name == INDEX for each in sums for _, term in (*each.terms, *each.rest))
    if isinstance(limits, Both):
        return is_exact(limits.a) and is_exact(limits.b)
    if isinstance(limits, Not):
        return is_exact(limits.a)
    return isinstance(limits, Row)


def starts_at_zero(limits: Limits) -> bool:
    """True if nothing bounds a condition from below."""
    return isinstance(limits, Cut) and limits.low is None


def ends_at_count(limits: Limits) -> bool:
    """True if nothing bounds a condition from above."""
    return isinstance(limits, Cut) and limits.high is None


@dataclass
class Folded:
    """The body of a loop where a condition is known: truth values that follow, and values that are others."""

    loop: mlir.Operation
    truths: dict[mlir.Value, bool]
    others: dict[mlir.Value, mlir.Value]

    @property
    def body(self) -> mlir.Block:
        return self.loop.regions[0].blocks[0]

    def of(self, value: mlir.Value) -> mlir.Value:
        """The value that another one is."""
        while value in self.others:
            value = self.others[value]
        return value

    def needed(self) -> list[mlir.Operation]:
        """The operations that stores and results of the loop need, in order."""
        *ops, end = block_ops(self.body)
        wanted: set[mlir.Value] = set(map(self.of, end.operands))
        chosen = []
        for op in reversed(ops):
            if op.name == "memref.store" or any(result in wanted for result in op.results):
                if len(op.results) and op.results[0] in self.truths:
                    continue
                chosen.append(op)
                wanted.update(map(self.of, op.operands))
        return chosen[::-1]

    def is_fixed(self, value: mlir.Value) -> bool:
        """True for values that are the same in each iteration, without loads."""

        def operands(value: mlir.Value) -> list[mlir.Value]:
            op = defining_op(value)
            if op is None or op.block != self.body or value in self.truths:
                return []
            return [self.of(operand) for operand in op.operands]

        def may_be(value: mlir.Value) -> bool:
            op = defining_op(value)
            if op is None:
                return bool(value.owner != self.body)
            return op.block != self.body or value in self.truths or op.name.startswith(_PURE)

        return all(map(may_be, walk(self.of(value), operands)))

    def changes_once(self) -> bool:
        """True if all iterations but the first one change nothing."""
        *ops, end = block_ops(self.body)
        if any(op.name == "memref.store" for op in ops):
            return False
        return all(map(self.repeats, list(self.body.arguments)[1:], end.operands))

    def repeats(self, argument: mlir.Value, value: mlir.Value) -> bool:
        """True if a value that is yielded is the same for all later iterations."""
        value = self.of(value)
        op = defining_op(value)
        if value == argument:
            return True
        if op is None or op.block != self.body or len(op.operands) != 2:
            return False
        operands = list(map(self.of, op.operands))
        if operands.count(argument) != 1 or not self.is_fixed(operands[1 - operands.index(argument)]):
            return False
        other = operands[1 - operands.index(argument)]
        is_zero = constant_of(other) == 0 or float_of(other) == 0
        return op.name in _REPEATED or (op.name in ("arith.addf", "arith.addi") and is_zero)


def folded(found: Masked, holds: bool | None) -> Folded:
    """The body of a loop where its condition holds or does not, or is not known."""
    result = Folded(found.loop, {} if holds is None else {found.condition: holds}, {})
    for op in block_ops(result.body)[:-1]:
        if op.name == "arith.select":
            chosen = result.truths.get(result.of(op.operands[0]))
            if chosen is not None:
                result.others[op.results[0]] = op.operands[1 if chosen else 2]
        elif op.name in ("arith.andi", "arith.ori") and not is_number(op.results[0].type):
            for one, other in (op.operands, list(op.operands)[::-1]):
                truth = result.truths.get(result.of(one))
                if truth is None:
                    continue
                if truth is (op.name == "arith.andi"):
                    result.others[op.results[0]] = other
                else:
                    result.truths[op.results[0]] = truth
                break
    return result


def build_part(
    found: Masked, lower: mlir.Value, upper: mlir.Value, carried: Sequence[mlir.Value], *, holds: bool | None
) -> list[mlir.Value]:
    """Some iterations of a loop, where the condition is known to hold or not to, or is tested; returns its results."""
    known = folded(found, holds)
    if holds is False and known.changes_once():
        some = emit.compare("slt", lower, upper)
        lower, upper = emit.index(0), emit.same_type("arith.select", some, emit.index(1), emit.index(0))

    def body(index: mlir.Value, arguments: list[mlir.Value]) -> list[mlir.Value]:
        values = dict(zip(known.body.arguments, [index, *arguments], strict=True))
        for value, truth in known.truths.items():
            values[value] = emit.constant(mlir.BoolAttr.get(truth))
        for op in known.needed():
            values.update({operand: values.get(known.of(operand), known.of(operand)) for operand in op.operands})
            clone_with(op, values)
        ends = [known.of(value) for value in block_ops(known.body)[-1].operands]
        return [values.get(value, value) for value in ends]

    attributes = {name: found.loop.attributes[name] for name in found.loop.attributes}
    types = [value.type for value in carried]
    loop = emit.create("scf.for", [lower, upper, found.loop.operands[2], *carried], types, attributes, regions=1)
    inner = emit.block(loop, [mlir.IndexType.get(), *types])
    with mlir.InsertionPoint(inner):
        arguments = list(inner.arguments)
        emit.create("scf.yield", body(arguments[0], arguments[1:]))
    return list(loop.results)

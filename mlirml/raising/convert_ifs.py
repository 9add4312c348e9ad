"""Convert ifs: in loops, an `scf.if` that only computes scalars and stores elements becomes selects.

Before:
    %y1 = scf.if %c -> (tensor<8xf32>) {
      %a = tensor.extract %x[%k] : tensor<10xf32>
      %r = math.sqrt %a : f32
      %s = tensor.insert %r into %y[%i] : tensor<8xf32>
      scf.yield %s : tensor<8xf32>
    } else {
      scf.yield %y : tensor<8xf32>
    }
After, where %k may be out of the bounds of %x and %i is within those of %y:
    %k1 = arith.select %c, %k, %c0 : index
    %a = tensor.extract %x[%k1] : tensor<10xf32>
    %r = math.sqrt %a : f32
    %old = tensor.extract %y[%i] : tensor<8xf32>
    %new = arith.select %c, %r, %old : f32
    %y1 = tensor.insert %new into %y[%i] : tensor<8xf32>

An index that is not known to be in bounds is 0 if the branch is not taken. A store by both branches to one element
becomes a single store, and the old element is not read. All selects of an `if` have its own condition, so that raising
can recover the condition of a statement.

Loops in a branch are executed unconditionally, with selects in them, if a condition on loop variables mostly holds: the
guard of a padded row then is inside of the loop over the row. Not converted are branches with other loops, operations
on arrays, or divisions that may trap; long branches, which cost more than the jump; branches that exchange elements at
dynamic indices; and conditionals in `scf.while`, which is not raised.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from operator import and_, or_, xor
from types import MappingProxyType
from typing import Any

from mlirml.analysis.affine import Reader
from mlirml.analysis.ranges import Ranges
from mlirml.analysis.values import agree
from mlirml.core.affine import Linear
from mlirml.core.dataclass import dataclass
from mlirml.dialects.mlirml import CHECK
from mlirml.ir import emit
from mlirml.ir.bindings import block_ops, defining_op, has_op, mlir, operations, replace_op
from mlirml.passes import NoMatch, Pass, register, run_upstream
from mlirml.passes.presence import ANY_LOOP
from mlirml.raising.batch_dots import TAKEN
from mlirml.raising.nests.find_loops import loop_functions
from mlirml.raising.nests.remarks import remark
from mlirml.raising.nests.speculation import may_speculate

_CLEAN = "cse"  # canonicalization would make select(k >= 0, k, 0) a maximum


@register(when=ANY_LOOP, optional=True)
class ConvertIfsPass(Pass):
    """Turn conditionals in loops into selects, if both branches may run; `longest` is in operations.

    With `exchanges`, also those that exchange elements at dynamic indices.
    """

    longest: int = 60
    exchanges: bool = False

    def run(self, module: mlir.Operation) -> None:
        converted = False
        for function in loop_functions(module):
            if has_op(function, ("scf.if",)):
                converted |= convert_function(function, self.longest, self.exchanges)
        if converted:
            run_upstream(module, _CLEAN)


def convert_function(function: mlir.Operation, longest: int, exchanges: bool) -> bool:
    """Convert the conditionals of a function, inner ones first; True if there was one."""
    ranges = Ranges()
    converted = False
    for op in reversed(list(operations(function))):
        if op.name == "scf.if" and is_in_for(op):
            try:
                found = match_if(op, ranges, longest, exchanges)
            except NoMatch as reason:
                remark(op, f"the `if` stays, because {reason}")
                if TAKEN in op.attributes:
                    del op.attributes[TAKEN]
                continue
            with op.location:
                build_selects(found, ranges)
            converted = True
    return converted


def is_in_for(op: mlir.Operation) -> bool:
    """True if the innermost loop around an operation is an `scf.for`."""
    around = op.parent
    while around is not None and around.name not in ("scf.for", "scf.while", "func.func"):
        around = around.operation.parent
    return around is not None and around.name == "scf.for"


@dataclass(frozen=True)
class Conditional:
    """An `scf.if` that may be converted.

    `stores` has, for each tensor result, the stores of both branches and the tensor that both start from.
    """

    op: mlir.Operation
    stores: dict[int, Stores]


@dataclass(frozen=True)
class Stores:
    """The stores of both branches into one array, in order; None for a branch whose loops store."""

    array: mlir.Value
    branches: tuple[tuple[mlir.Operation, ...] | None, tuple[mlir.Operation, ...] | None]

    def store_to_equal_indices(self) -> bool:
        """True if the branches store to the same elements in the same order."""
        first, second = self.branches
        if first is None or second is None or len(first) != len(second):
            return False
        return all(is_same(p, q) for a, b in zip(first, second) for p, q in zip(indices_of(a), indices_of(b)))

    @property
    def both(self) -> list[mlir.Operation]:
        """The stores of both branches that are not in loops."""
        return [store for branch in self.branches for store in branch or ()]


def indices_of(store: mlir.Operation) -> list[mlir.Value]:
    """The indices of a `tensor.insert`."""
    return list(store.operands)[2:]


def match_if(op: mlir.Operation, ranges: Ranges, longest: int, exchanges: bool) -> Conditional:
    """Check that both branches of an `scf.if` may run; raises `NoMatch`."""
    if len(op.regions[1].blocks) == 0:
        raise NoMatch("it has effects besides stores into arrays")
    branches = [block_ops(region.blocks[0]) for region in op.regions]
    inside = [(n, inner) for n, branch in enumerate(branches) for outer in branch for inner in operations(outer)]
    for number, inner in inside:
        if inner.name == "tensor.extract" or inner.name == "tensor.insert":
            kind = inner.operands[inner.name == "tensor.insert"].type
            if any(size < 1 for size in kind.shape):
                raise NoMatch("it reads an array whose size is not known, or that is empty")
        elif inner.name == "scf.for":
            if not runs_mostly(op, number, ranges) or not has_plain_bounds(inner):
                raise NoMatch("it holds a loop")
        elif inner.name != "scf.yield" and not is_check(inner) and not may_speculate(inner, ranges):
            raise NoMatch(_reason(inner))
    if len(inside) - len(branches) > longest:
        raise NoMatch(f"its branches have more than {longest} operations")
    stores: dict[int, Stores] = {}
    for number, result in enumerate(op.results):
        if not isinstance(result.type, mlir.ShapedType):
            continue
        first, second = (chain_of(branch[-1].operands[number], op) for branch in branches)
        if first is None or second is None or first[0] != second[0]:
            raise NoMatch("its branches give different arrays")
        if any(first[0] == other.array for other in stores.values()):
            raise NoMatch("an array leaves it twice")
        stores[number] = Stores(first[0], (first[1], second[1]))
        if not exchanges and exchanges_elements(
            stores[number], [inner for _, inner in inside if inner.name == "tensor.extract"]
        ):
            raise NoMatch("it exchanges elements at dynamic indices")
    return Conditional(op, stores)


def exchanges_elements(stores: Stores, reads: Sequence[mlir.Operation]) -> bool:
    """True if branches store at indices that are not linear in the loops, and read other elements of the array.

    Such loops are not raised, and iterations that store the old value would have to wait for each other.
    """
    reader = Reader(lambda value: defining_op(value) is None)
    wild = [
        s for s in stores.both if any(reader.read(index) is None for index in indices_of(s) if not is_outside(index, s))
    ]
    chain = {stores.array, *(store.results[0] for store in stores.both)}
    read = [op for op in reads if op.operands[0] in chain]
    return any(
        not all(is_same(a, b) for a, b in zip(indices_of(store), list(op.operands)[1:], strict=True))
        for store in wild
        for op in read
    )


def is_outside(index: mlir.Value, store: mlir.Operation) -> bool:
    """True if an index is computed before the loop of a store."""
    op, around = defining_op(index), store.parent
    while around.name != "scf.for":
        around = around.operation.parent
    inside = None if op is None else op.parent
    while inside is not None and inside.name not in ("scf.for", "func.func"):
        inside = inside.operation.parent
    return op is not None and inside != around


def runs_mostly(op: mlir.Operation, branch: int, ranges: Ranges) -> bool:
    """True if a branch is taken in at least half of the iterations, by a linear condition on loop variables.

    A branch with batched dot products counts as such, too. A loop in such a branch is executed in vain where it is not
    taken, but can be raised with the enclosing loops.
    """
    if TAKEN in op.attributes:
        return bool(mlir.IntegerAttr(op.attributes[TAKEN]).value == branch)
    terms: list[Linear] = []
    holds = _condition(op.operands[0], Reader(lambda _: True), terms)
    variables = list(dict.fromkeys(v for term in terms for v in term.factors))
    spans = [ranges.of(v) for v in variables if isinstance(v, mlir.Value) and is_loop_variable(v)]
    if holds is None or len(spans) < len(variables) or any(high - low > _MOST_ROUNDS for low, high in spans):
        return False
    drawn = random.Random(0)
    points = [dict(zip(variables, (drawn.randint(*span) for span in spans))) for _ in range(_DRAWN)]
    return 2 * sum(holds(point) != branch for point in points) >= _DRAWN


Point = Mapping[Any, int]
_DRAWN = 100
_MOST_TERMS = 64
_MOST_ROUNDS = 1 << 40
_COMPARISONS: dict[int, Callable[[int], bool]] = {
    2: lambda difference: difference < 0,
    3: lambda difference: difference <= 0,
    4: lambda difference: difference > 0,
    5: lambda difference: difference >= 0,
}
"""Of `a - b`, by the numbers of slt, sle, sgt and sge; a branch for one value of a variable is not taken mostly."""
_LOGIC: dict[str, Callable[[bool, bool], bool]] = {"arith.andi": and_, "arith.ori": or_, "arith.xori": xor}


def _condition(value: mlir.Value, reader: Reader, terms: list[Linear]) -> Callable[[Point], bool] | None:
    """A condition as a function of loop variables, and the differences that it compares; None if it is not linear."""
    op = defining_op(value)
    if op is not None and op.name == "arith.constant":
        always = bool(mlir.IntegerAttr(op.attributes["value"]).value)
        return lambda _: always
    if op is not None and op.name in _LOGIC:
        combine = _LOGIC[op.name]
        first = _condition(op.operands[0], reader, terms)
        second = _condition(op.operands[1], reader, terms) if first is not None else None
        return None if first is None or second is None else lambda point: combine(first(point), second(point))
    if op is None or op.name != "arith.cmpi":
        return None
    a, b = (reader.read(operand) for operand in op.operands)
    compare = _COMPARISONS.get(mlir.IntegerAttr(op.attributes["predicate"]).value)
    if a is None or b is None or compare is None or len(terms) >= _MOST_TERMS:
        return None
    difference = a - b
    terms.append(difference)
    return lambda point: compare(difference.constant + sum(f * point[v] for v, f in difference.factors.items()))


def is_loop_variable(value: mlir.Value) -> bool:
    """True if a value is the induction variable of an `scf.for`."""
    if defining_op(value) is not None:
        return False
    return bool(value.owner.owner.name == "scf.for" and value == value.owner.arguments[0])


def has_plain_bounds(loop: mlir.Operation) -> bool:
    """True if the bounds of a loop are linear expressions of loop variables, so that they do not overflow."""
    reader = Reader(lambda _: True)
    bounds = [reader.read(bound) for bound in list(loop.operands)[:3]]
    return all(
        b is not None and all(isinstance(v, mlir.Value) and is_loop_variable(v) for v in b.factors) for b in bounds
    )


def _reason(op: mlir.Operation) -> str:
    if op.name == "scf.while":
        return "it holds a loop"
    if op.name.startswith("scf."):
        return "it holds another `if` that stays"
    if op.name.startswith("arith."):
        return "it divides integers, by zero perhaps where it is not taken"
    return f"it holds an operation on arrays, `{op.name}`"


def is_check(op: mlir.Operation) -> bool:
    """True if an operation is a run-time check inserted by this compiler."""
    return op.name == "cf.assert" and CHECK in op.attributes


def chain_of(value: mlir.Value, around: mlir.Operation) -> tuple[mlir.Value, tuple[mlir.Operation, ...] | None] | None:
    """The outer tensor that a value results from by stores in `around`, and these stores in order.

    The stores are None if some of them are in loops. The result is None if the value is not such a tensor.
    """
    chain: list[mlir.Operation] | None = []
    owner = defining_op(value)
    while owner is not None and owner.parent.operation == around:
        if owner.name == "tensor.insert":
            if chain is not None:
                chain.append(owner)
            value = owner.operands[1]
        elif owner.name == "scf.for":
            number, body = list(owner.results).index(value), owner.regions[0].blocks[0]
            inner = chain_of(block_ops(body)[-1].operands[number], owner)
            if inner is None or inner[0] != body.arguments[1 + number]:
                return None
            chain, value = None, owner.operands[3 + number]
        else:
            return None
        owner = defining_op(value)
    return value, None if chain is None else tuple(chain[::-1])


def is_same(a: mlir.Value, b: mlir.Value) -> bool:
    """True if two values are computed in the same way."""
    return agree(a, b, _compared)


def _compared(a: mlir.Value, b: mlir.Value) -> list[tuple[mlir.Value, mlir.Value]] | None:
    one, other = defining_op(a), defining_op(b)
    if a == b:
        return []
    if one is None or other is None or one.name != other.name or one.name.partition(".")[0] not in ("arith", "affine"):
        return None
    attributes = [{name: str(op.attributes[name]) for name in op.attributes} for op in (one, other)]
    return list(zip(one.operands, other.operands)) if attributes[0] == attributes[1] else None


def build_selects(found: Conditional, ranges: Ranges) -> None:
    """Build both branches, and the selects."""
    op = found.op
    condition = op.operands[0]
    merged = {n for n, stores in found.stores.items() if stores.store_to_equal_indices() and not is_read(stores)}
    builder = _Builder(op, ranges, [s for n in merged for s in found.stores[n].both])
    first = builder.branch(0)
    # The second branch starts with the results of the first one, which are unchanged if it is not taken.
    second = builder.branch(1, {stores.array: first[n] for n, stores in found.stores.items() if n not in merged})
    with mlir.InsertionPoint(op):
        for number, result in enumerate(op.results):
            if number in merged:
                value = builder.merged(found.stores[number])
            elif number in found.stores:
                value = second[number]
            elif starts_with(first[number], second[number]):
                value = first[number]
            elif starts_with(second[number], first[number]):
                value = second[number]
            else:
                value = select(condition, first[number], second[number])
            result.replace_all_uses_with(value)
    op.erase()


def starts_with(value: mlir.Value, init: mlir.Value) -> bool:
    """True if a value is the result of a loop with the init `init`, which it returns if the branch is not taken."""
    op = defining_op(value)
    if op is None or op.name != "scf.for":
        return False
    started: mlir.Value = op.operands[3 + list(op.results).index(value)]
    return bool(started == init)


def is_read(stores: Stores) -> bool:
    """True if a branch reads elements after its stores."""
    return any(use.owner.name == "tensor.extract" for store in stores.both for use in store.results[0].uses)


def select(condition: mlir.Value, a: mlir.Value, b: mlir.Value) -> mlir.Value:
    """`arith.select`, or the value itself where both are equal."""
    return a if a == b else emit.same_type("arith.select", condition, a, b)


class _Builder:
    """Builds the branches of a conditional before it. `merged` are the stores that are built later."""

    def __init__(self, op: mlir.Operation, ranges: Ranges, merged: Sequence[mlir.Operation]) -> None:
        self._op = op
        self._condition = op.operands[0]
        self._ranges = ranges
        self._merged = merged

    def branch(self, number: int, arrays: Mapping[mlir.Value, mlir.Value] = MappingProxyType({})) -> list[mlir.Value]:
        """Build one branch, with other arrays in place of those from outside; returns its results."""
        *inner, final = block_ops(self._op.regions[number].blocks[0])
        for op in inner:
            for user in operations(op) if arrays else ():
                for position, operand in enumerate(user.operands):
                    if operand in arrays:
                        user.operands[position] = arrays[operand]
            if op not in self._merged:
                op.move_before(self._op)
                self._build(op, taken=number == 0)
        return [arrays.get(v, v) for v in final.operands]

    def _build(self, op: mlir.Operation, taken: bool) -> None:
        with op.location, mlir.InsertionPoint(op):
            if op.name == "tensor.insert":
                self._store(op, taken)
            elif op.name == "tensor.extract":
                for position, index in enumerate(self._safe_indices(op.operands[0], list(op.operands)[1:], taken)):
                    op.operands[1 + position] = index
            elif is_check(op):
                op.operands[0] = emit.same_type("arith.ori", self._not_taken(taken), op.operands[0])
            elif op.name == "scf.for":
                self._loop(op.regions[0].blocks[0], taken)

    def _loop(self, body: mlir.Block, taken: bool) -> None:
        """Build a loop of a branch, which yields its scalars unchanged if the branch is not taken."""
        *inner, final = block_ops(body)
        for op in inner:
            self._build(op, taken)
        with final.location, mlir.InsertionPoint(final):
            for number, (value, old) in enumerate(zip(final.operands, list(body.arguments)[1:], strict=True)):
                if not isinstance(value.type, mlir.ShapedType) and not starts_with(value, old):
                    final.operands[number] = self._select(taken, value, old)

    def _store(self, op: mlir.Operation, taken: bool) -> None:
        value, array = op.operands[0], op.operands[1]
        index = self._safe_indices(array, indices_of(op), taken)
        old = emit.value("tensor.extract", [array, *index], value.type)
        kept = self._select(taken, value, old)
        replace_op(op, emit.value("tensor.insert", [kept, array, *index], array.type))

    def merged(self, stores: Stores) -> mlir.Value:
        """The array after the stores of both branches to the same elements."""
        array, half = stores.array, len(stores.both) // 2
        for first, second in zip(stores.both[:half], stores.both[half:], strict=True):
            value = select(self._condition, first.operands[0], second.operands[0])
            with first.location:
                array = emit.value("tensor.insert", [value, array, *indices_of(first)], array.type)
        return array

    def _safe_indices(self, array: mlir.Value, indices: Sequence[mlir.Value], taken: bool) -> list[mlir.Value]:
        """The indices, with 0 for those that may be out of bounds if the branch is not taken."""
        return [
            index if self._ranges.within(index, 0, size - 1) else self._select(taken, index, emit.index(0))
            for index, size in zip(indices, array.type.shape, strict=True)
        ]

    def _select(self, taken: bool, value: mlir.Value, other: mlir.Value) -> mlir.Value:
        return select(self._condition, *((value, other) if taken else (other, value)))

    def _not_taken(self, taken: bool) -> mlir.Value:
        true = emit.number(self._condition.type, 1)
        return emit.same_type("arith.xori", self._condition, true) if taken else self._condition

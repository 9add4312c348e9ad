"""Convert ifs: in loops, an `scf.if` that only computes numbers and stores elements becomes selects.

Before:
    %y1 = scf.if %c -> (tensor<8xf32>) {
      %a = tensor.extract %x[%k] : tensor<10xf32>
      %r = math.sqrt %a : f32
      %s = tensor.insert %r into %y[%i] : tensor<8xf32>
      scf.yield %s : tensor<8xf32>
    } else {
      scf.yield %y : tensor<8xf32>
    }
After, where %k may lie outside of %x and %i lies inside of %y:
    %k1 = arith.select %c, %k, %c0 : index
    %a = tensor.extract %x[%k1] : tensor<10xf32>
    %r = math.sqrt %a : f32
    %old = tensor.extract %y[%i] : tensor<8xf32>
    %new = arith.select %c, %r, %old : f32
    %y1 = tensor.insert %new into %y[%i] : tensor<8xf32>

An index that is not known to be in bounds is 0 in the branch that is not taken. What both branches store at one place
is stored once, and the old element is not read. All selects of an `if` are on its own condition: with them, whoever
reads the loop finds the condition of a statement again.

Left alone are branches that hold loops, operations on arrays, or divisions that may trap; long branches, which cost
more than the jump; and what stands in `scf.while`, whose loops stay loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from mlirml.dataclass import dataclass
from mlirml.dialects import emit
from mlirml.dialects.mlirml import CHECK
from mlirml.dialects.ranges import Ranges
from mlirml.ir import block_ops, defining_op, mlir, operations, passmanager
from mlirml.passes import NoMatch, Pass, register
from mlirml.raising.loops import has_op, loop_functions
from mlirml.raising.remarks import remark
from mlirml.raising.speculation import may_speculate

_CLEAN = "builtin.module(canonicalize,cse)"


@register
@dataclass(frozen=True)
class ConvertIfsPass(Pass):
    """Turn conditionals in loops into selects, where both branches may run; `longest` is in operations."""

    name = "mlirml-convert-ifs"
    longest: int = 60

    def run(self, module: mlir.Operation) -> None:
        converted = False
        for function in loop_functions(module):
            if has_op(function, ("scf.if",)):
                converted |= convert_function(function, self.longest)
        if converted:
            passmanager.PassManager.parse(_CLEAN, module.context).run(module)


def convert_function(function: mlir.Operation, longest: int) -> bool:
    """Convert the conditionals of a function, inner ones first; whether there was one."""
    ranges = Ranges()
    converted = False
    for op in reversed(list(operations(function))):
        if op.name == "scf.if" and stands_in_for(op):
            try:
                found = match_if(op, ranges, longest)
            except NoMatch as reason:
                remark(op, f"the `if` stays, because {reason}")
                continue
            with op.location:
                build_selects(found, ranges)
            converted = True
    return converted


def stands_in_for(op: mlir.Operation) -> bool:
    """Whether the loop around an operation counts."""
    around = op.parent
    while around is not None and around.name not in ("scf.for", "scf.while", "func.func"):
        around = around.operation.parent
    return around is not None and around.name == "scf.for"


@dataclass(frozen=True)
class Conditional:
    """An `scf.if` that may be converted.

    `stores` has, for each result that is a tensor, the stores of both branches and the tensor that both start from.
    """

    op: mlir.Operation
    stores: dict[int, Stores]


@dataclass(frozen=True)
class Stores:
    """What both branches store into one array, in order."""

    array: mlir.Value
    branches: tuple[tuple[mlir.Operation, ...], tuple[mlir.Operation, ...]]

    def are_at_equal_places(self) -> bool:
        """Whether the branches store at the same elements one after the other."""
        first, second = self.branches
        return len(first) == len(second) and all(
            is_same(p, q) for a, b in zip(first, second) for p, q in zip(places(a), places(b))
        )


def places(store: mlir.Operation) -> list[mlir.Value]:
    """The indices of a `tensor.insert`."""
    return list(store.operands)[2:]


def match_if(op: mlir.Operation, ranges: Ranges, longest: int) -> Conditional:
    """Look whether both branches of an `scf.if` may run; raises `NoMatch`."""
    if len(op.regions[1].blocks) == 0:
        raise NoMatch("it has effects besides stores into arrays")
    branches = [block_ops(region.blocks[0]) for region in op.regions]
    for inner in (inner for branch in branches for inner in branch[:-1]):
        if inner.name == "tensor.extract" or inner.name == "tensor.insert":
            kind = inner.operands[inner.name == "tensor.insert"].type
            if any(size < 1 for size in kind.shape):
                raise NoMatch("it reads an array whose size is not known, or that is empty")
        elif not is_check(inner) and not may_speculate(inner, ranges):
            raise NoMatch(_reason(inner))
    if sum(map(len, branches)) - 2 > longest:
        raise NoMatch(f"its branches have more than {longest} operations")
    stores: dict[int, Stores] = {}
    for number, result in enumerate(op.results):
        if not isinstance(result.type, mlir.ShapedType):
            continue
        first, second = (chain_of(branch[-1].operands[number], op) for branch in branches)
        if first[0] != second[0]:
            raise NoMatch("its branches give different arrays")
        if any(first[0] == other.array for other in stores.values()):
            raise NoMatch("an array leaves it twice")
        stores[number] = Stores(first[0], (first[1], second[1]))
    return Conditional(op, stores)


def _reason(op: mlir.Operation) -> str:
    if op.name in ("scf.for", "scf.while"):
        return "it holds a loop"
    if op.name.startswith("scf."):
        return "it holds another `if` that stays"
    if op.name.startswith("arith."):
        return "it divides integers, by zero perhaps where it is not taken"
    return f"it holds an operation on arrays, `{op.name}`"


def is_check(op: mlir.Operation) -> bool:
    """Whether an operation is one of the product's checks at run time."""
    return op.name == "cf.assert" and CHECK in op.attributes


def chain_of(value: mlir.Value, conditional: mlir.Operation) -> tuple[mlir.Value, tuple[mlir.Operation, ...]]:
    """The tensor outside of the conditional that a value is after stores, and the stores, the first one first."""
    chain: list[mlir.Operation] = []
    owner = defining_op(value)
    while owner is not None and owner.parent.operation == conditional:
        chain.append(owner)
        value = owner.operands[1]
        owner = defining_op(value)
    return value, tuple(chain[::-1])


def is_same(a: mlir.Value, b: mlir.Value) -> bool:
    """Whether two numbers are computed in the same way."""
    if a == b:
        return True
    one, other = defining_op(a), defining_op(b)
    if one is None or other is None or one.name != other.name or one.name.partition(".")[0] not in ("arith", "affine"):
        return False
    attributes = [{name: str(op.attributes[name]) for name in op.attributes} for op in (one, other)]
    return attributes[0] == attributes[1] and all(map(is_same, one.operands, other.operands))


def build_selects(found: Conditional, ranges: Ranges) -> None:
    """Run both branches, and select."""
    op = found.op
    condition = op.operands[0]
    merged = {n for n, stores in found.stores.items() if stores.are_at_equal_places() and not is_read(stores)}
    builder = _Builder(op, ranges, [s for n in merged for branch in found.stores[n].branches for s in branch])
    first = builder.branch(0)
    # The second branch goes on where the first one ends, which has changed nothing if it was not to be taken.
    second = builder.branch(1, {stores.array: first[n] for n, stores in found.stores.items() if n not in merged})
    with mlir.InsertionPoint(op):
        for number, result in enumerate(op.results):
            if number in merged:
                value = builder.merged(found.stores[number])
            elif number in found.stores:
                value = second[number]
            else:
                value = select(condition, first[number], second[number])
            result.replace_all_uses_with(value)
    op.erase()


def is_read(stores: Stores) -> bool:
    """Whether a branch reads elements behind its stores."""
    return any(
        use.owner.name == "tensor.extract" for branch in stores.branches for s in branch for use in s.results[0].uses
    )


def select(condition: mlir.Value, a: mlir.Value, b: mlir.Value) -> mlir.Value:
    """`arith.select`, or the value where both are one."""
    return a if a == b else emit.same_type("arith.select", condition, a, b)


class _Builder:
    """Builds the branches of a conditional in front of it. `merged` are the stores that are built later."""

    def __init__(self, op: mlir.Operation, ranges: Ranges, merged: Sequence[mlir.Operation]) -> None:
        self._op = op
        self._condition = op.operands[0]
        self._ranges = ranges
        self._merged = merged
        self._values: dict[mlir.Value, mlir.Value] = {}

    def branch(self, number: int, arrays: Mapping[mlir.Value, mlir.Value] = MappingProxyType({})) -> list[mlir.Value]:
        """Build one branch, with other arrays for those from outside; the values that it ends with."""
        self._values |= arrays
        *inner, final = block_ops(self._op.regions[number].blocks[0])
        for op in inner:
            if op not in self._merged:
                with op.location, mlir.InsertionPoint(self._op):
                    self._build(op, taken=number == 0)
        return [self._values.get(v, v) for v in final.operands]

    def _build(self, op: mlir.Operation, taken: bool) -> None:
        for position, operand in enumerate(op.operands):
            op.operands[position] = self._values.get(operand, operand)
        if op.name == "tensor.insert":
            self._store(op, taken)
            return
        if op.name == "tensor.extract":
            for position, place in enumerate(self._guarded(op.operands[0], list(op.operands)[1:], taken)):
                op.operands[1 + position] = place
        elif is_check(op):
            op.operands[0] = emit.same_type("arith.ori", self._not_taken(taken), op.operands[0])
        op.move_before(self._op)

    def _store(self, op: mlir.Operation, taken: bool) -> None:
        value, array = op.operands[0], op.operands[1]
        place = self._guarded(array, places(op), taken)
        old = emit.value("tensor.extract", [array, *place], value.type)
        kept = self._select(taken, value, old)
        self._values[op.results[0]] = emit.value("tensor.insert", [kept, array, *place], array.type)

    def merged(self, stores: Stores) -> mlir.Value:
        """The array after stores of both branches at the same places."""
        array = self._values.get(stores.array, stores.array)
        array = stores.array
        for first, second in zip(*stores.branches, strict=True):
            a, b, *place = (self._values.get(v, v) for v in (first.operands[0], second.operands[0], *places(first)))
            with first.location:
                array = emit.value("tensor.insert", [select(self._condition, a, b), array, *place], array.type)
        return array

    def _guarded(self, array: mlir.Value, place: Sequence[mlir.Value], taken: bool) -> list[mlir.Value]:
        """A place, with 0 for the indices that may be out of bounds where the branch is not taken."""
        return [
            index if self._ranges.within(index, 0, size - 1) else self._select(taken, index, emit.index(0))
            for index, size in zip(place, array.type.shape, strict=True)
        ]

    def _select(self, taken: bool, value: mlir.Value, other: mlir.Value) -> mlir.Value:
        return select(self._condition, *((value, other) if taken else (other, value)))

    def _not_taken(self, taken: bool) -> mlir.Value:
        true = emit.number(self._condition.type, 1)
        return emit.same_type("arith.xori", self._condition, true) if taken else self._condition

"""Integer range analysis of indices and integers, from the bounds of the enclosing loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from mlirml.analysis.carried_ranges import carried_ranges
from mlirml.analysis.float_ranges import FloatRanges
from mlirml.analysis.structured import is_parallel, sizes_of
from mlirml.analysis.tensor_elements import choice_of, element_of, source_of
from mlirml.analysis.traits import AFFINE_VALUES, INTEGER_STEPS, TENSOR_VIEWS
from mlirml.analysis.values import combined, operands_first
from mlirml.analysis.while_ranges import SIGNED, bound, is_outside, range_of_argument, range_of_result
from mlirml.ir.bindings import defining_op, mlir

_DIFFERENT = 1
_NEGATED = (1, 0, 5, 4, 3, 2, 9, 8, 7, 6)
_SWAPPED = (0, 1, 4, 5, 2, 3, 8, 9, 6, 7)

Range = tuple[int, int]
"""The least and the greatest value, both inclusive."""
Change = tuple[Range, Range | None]
"""The range that an iteration adds to a loop-carried value, and the range of values that may replace it."""


_BITS = 64
"""Shifts by as many bits, or more, have no range."""
_MOST_ASSUMED = 500
_DEEPEST = 50
"""Tensors that are computed of each other, at most: each is a few calls on Python's stack."""


class Ranges:
    """The ranges of the integers of a function, computed once each; the range of the type where nothing is known."""

    def __init__(self) -> None:
        self._known: dict[mlir.Value, Range] = {}
        self._assumed: dict[mlir.Value, Range] = {}
        self._carried: dict[mlir.Operation, dict[int, Range]] = {}
        self.inducing: frozenset[mlir.Operation] = frozenset()
        self.depth = 0
        self._nested = 0
        self.floats = FloatRanges(self)

    def _refined(self) -> Ranges:
        """Ranges that assume what these do, and more."""
        refined = Ranges()
        refined._assumed = dict(self._assumed)
        refined.inducing = self.inducing
        return refined

    def given(self, condition: mlir.Value, holds: bool = True) -> Ranges:
        """The ranges where a condition is known to hold, or not to hold."""
        refined = self._refined()
        for value, found in _implied_ranges(condition, holds, self):
            refined._assume(value, found, self)
        return refined

    def given_ranges(self, known: Mapping[mlir.Value, Range]) -> Ranges:
        """The ranges where these values are known to lie in these ranges."""
        refined = self._refined()
        for value, found in known.items():
            refined._assume(value, found, self)
        return refined

    def inducing_over(self, loop: mlir.Operation, carried: Mapping[mlir.Value, Range]) -> Ranges:
        """The ranges in any iteration of a loop that begins with its carried values in these ranges.

        What is assumed of a value in the loop holds in one iteration, and perhaps not in those before it.
        """
        refined = self._refined()
        refined._assumed = {value: found for value, found in self._assumed.items() if is_outside(value, loop)}
        refined._assumed |= carried
        refined.inducing |= {loop}
        return refined

    @property
    def assumed(self) -> dict[mlir.Value, Range]:
        """The ranges that follow from the assumed conditions, by the values that they restrict."""
        return self._assumed

    def _assume(self, value: mlir.Value, found: Range, outside: Ranges) -> None:
        """Assume a range of a value, and the ranges that follow for the operands it is computed from."""
        todo, done = [(value, found)], dict[mlir.Value, Range]()
        for _ in range(_MOST_ASSUMED):
            if not todo:
                break
            value, found = todo.pop()
            low, high = _both(found, self._assumed.get(value, outside.of(value)))
            if low > high or done.get(value) == (low, high):  # unreachable, or nothing new
                continue
            self._assumed[value] = done[value] = low, high
            op = defining_op(value)
            if op is not None and op.name in INTEGER_STEPS:
                todo += reversed(list(_parts(op, (low, high), outside)))
            elif op is not None and op.name in _SIGNED_CASTS and _width(op.operands[0].type) <= _width(value.type):
                todo.append((op.operands[0], (low, high)))

    def of(self, value: mlir.Value) -> Range:
        """The range of an index or a signed integer."""
        if value not in self._known:
            if self._nested > _DEEPEST:  # a chain of many operations, whose operands are looked at first
                for each in operands_first(value, self._unknown_operands):
                    if each != value:
                        self.of(each)
            whole = _whole(value.type)
            self._known[value] = whole  # for values that depend on themselves, such as loop-carried ones
            self._nested += 1
            low, high = self._find(value) or whole
            self._nested -= 1
            if value in self._assumed:
                low, high = _both((max(low, whole[0]), min(high, whole[1])), self._assumed[value])
            # Beyond the type's range the arithmetic has wrapped.
            self._known[value] = (low, high) if _is_within((low, high), whole) else whole
        return self._known[value]

    def _unknown_operands(self, value: mlir.Value) -> Sequence[mlir.Value]:
        op = defining_op(value)
        return op.operands if value not in self._known and op is not None and op.name in _RULES else ()

    def within(self, value: mlir.Value, low: int, high: int) -> bool:
        """True if a value is known to lie from `low` to `high`, both included."""
        least, greatest = self.of(value)
        return low <= least and greatest <= high

    def _find(self, value: mlir.Value) -> Range | None:
        op = defining_op(value)
        if op is None:
            return self._of_argument(value)
        if op.name == "arith.constant":
            number = op.attributes["value"]
            return (number.value, number.value) if isinstance(number, mlir.IntegerAttr) else None
        if op.name in AFFINE_VALUES:
            return self._of_map(op)
        if op.name == "tensor.dim":
            return 0, _whole(value.type)[1]
        if op.name == "linalg.index":
            return _of_position(op)
        if op.name == "tensor.extract":
            return self.of_elements(op.operands[0])
        if op.name == "arith.fptosi":
            found = self.floats.of(op.operands[0])
            if found is None or math.inf in map(abs, found):
                return None
            return math.trunc(found[0]), math.trunc(found[1])
        if op.name == "scf.for" and "unsignedCmp" not in op.attributes:
            return self._of_counter(op, list(op.results).index(value), 0)
        if op.name == "scf.while":
            return range_of_result(self, op, list(op.results).index(value))
        if op.name == "scf.if" and isinstance(value.type, (mlir.IndexType, mlir.IntegerType)):
            number = list(op.results).index(value)
            yields = [region.blocks[0].operations[-1].operands[number] for region in op.regions]
            return self._of_choice(op.operands[0], *yields)
        rule = _RULES.get(op.name)
        if rule is None or isinstance(value.type, mlir.ShapedType):
            return None
        if op.name == "arith.select":
            return self._of_choice(*op.operands)
        operands: Sequence[mlir.Value] = op.operands
        divided = remainder_of(op)
        if divided is not None:
            rule, operands = _remainder, divided
        found = rule(*map(self.of, operands))
        if found is None and rule is _unsigned and _width(operands[0].type) < _width(value.type):
            return 0, (1 << _width(operands[0].type)) - 1
        return found

    def _of_choice(self, condition: mlir.Value, chosen: mlir.Value, other: mlir.Value) -> Range:
        """Each of the two values counts only where the condition selects it."""
        known = self.decides(condition)
        found = [
            self._where(condition, holds, value)
            for holds, value in ((True, chosen), (False, other))
            if known in (None, holds)
        ]
        return _either(found[0], found[-1])

    def decides(self, condition: mlir.Value) -> bool | None:
        """The result of a comparison, if the ranges decide it."""
        op = defining_op(condition)
        if op is None or op.name != "arith.cmpi" or isinstance(op.operands[0].type, mlir.ShapedType):
            return None
        return decided(mlir.IntegerAttr(op.attributes["predicate"]).value, *map(self.of, op.operands))

    def _where(self, condition: mlir.Value, holds: bool, value: mlir.Value) -> Range:
        """The range of a value where a condition holds, or does not; it may be about the value or its operands.

        No more than a few operations are recomputed: chains of selects would take exponential time.
        """
        return self.given(condition, holds)._near(value, self, _NEAR)

    def _near(self, value: mlir.Value, outside: Ranges, steps: int) -> Range:
        """The range of a value, from the assumptions about operands no more than `steps` definitions away."""
        found, op = self._assumed.get(value, outside.of(value)), defining_op(value)
        if steps and op is not None and op.name in _NEAR_OPS:
            near = _RULES[op.name](*(self._near(v, outside, steps - 1) for v in op.operands))
            if near is not None and _is_within(near, _whole(value.type)):
                return _both(found, near)
        return found

    def _of_argument(self, value: mlir.Value) -> Range | None:
        block = value.owner
        loop = block.owner.operation if isinstance(block, mlir.Block) else None
        if loop is not None and loop.name == "scf.while":
            return range_of_argument(self, loop, value)
        if loop is not None and loop.name == "linalg.generic":
            elements = source_of(loop, value)
            return None if elements is None else self.of_elements(elements)
        if loop is None or loop.name != "scf.for" or "unsignedCmp" in loop.attributes:
            return None
        if value != block.arguments[0]:
            return self._of_counter(loop, list(block.arguments).index(value) - 1, 1)
        return self.of(loop.operands[0])[0], self.of(loop.operands[1])[1] - 1

    def of_elements(self, tensor: mlir.Value) -> Range | None:
        """The range of all elements of a tensor; None where nothing is known."""
        op = defining_op(tensor)
        if op is not None and op.name == "arith.constant":
            return _of_table(op.attributes["value"])
        if op is not None and op.name in TENSOR_VIEWS:
            return self.of_elements(op.operands[0])
        number = element_of(tensor)
        if op is None or number is None or self.depth > _DEEPEST:
            return None
        self.depth += 1
        try:
            return self._of_elements(op, tensor, number)
        finally:
            self.depth -= 1

    def _of_elements(self, op: mlir.Operation, tensor: mlir.Value, number: mlir.Value) -> Range | None:
        if op.name != "linalg.generic" or is_parallel(op):
            return self.of(number)
        found = choice_of(op, tensor)
        start = None if found is None else self.of_elements(found[1])
        if found is None or start is None:
            return None
        kept = self.of(found[0])
        return None if found[2] and min(*start, *kept) < 0 else _either(start, kept)

    def _of_counter(self, loop: mlir.Operation, number: int, fewer: int) -> Range | None:
        """The range of a value that each iteration adds to, or sets; in the body there is one iteration fewer.

        What an iteration changes in another way may have a range that it stays in.
        """
        lower, upper, step = (self.of(value) for value in list(loop.operands)[:3])
        block = loop.regions[0].blocks[0]
        if not isinstance(loop.results[number].type, (mlir.IndexType, mlir.IntegerType)):
            return None
        if step[0] < 1 or str(loop.results[number].type) not in ("index", "i64"):
            return self._carried_range(loop, number)
        count = max(-(-(upper[1] - lower[0]) // step[0]) - fewer, 0)
        ends = block.operations[len(block.operations) - 1].operands
        changes = self.changes(ends[number], block.arguments[1 + number])
        if changes is None:
            return self._carried_range(loop, number)
        added, given = changes
        start = self.of(loop.operands[3 + number])
        low, high = start if given is None else _either(start, given)
        return low + count * min(added[0], 0), high + count * max(added[1], 0)

    def _carried_range(self, loop: mlir.Operation, number: int) -> Range | None:
        if loop not in self._carried:
            self._carried[loop] = carried_ranges(self, loop)
        return self._carried[loop].get(number)

    def changes(self, value: mlir.Value, carried: mlir.Value) -> Change | None:
        """The change from a carried value to `value`; None if it is not made of sums with constants and of selects."""
        return self._changes(value, carried, {})

    def _changes(self, value: mlir.Value, carried: mlir.Value, seen: dict[mlir.Value, Change | None]) -> Change | None:
        if value == carried:
            return (0, 0), None
        if value not in seen:
            seen[value] = self._changes_of(value, carried, seen)
        return seen[value]

    def _changes_of(
        self, value: mlir.Value, carried: mlir.Value, seen: dict[mlir.Value, Change | None]
    ) -> Change | None:  # fmt: skip
        op = defining_op(value)
        if op is None:
            return None
        if op.name == "arith.constant":
            return (0, 0), self.of(value)
        if op.name in INTEGER_STEPS:
            before, rule = self._changes(op.operands[0], carried, seen), _add if op.name == "arith.addi" else _subtract
            number = defining_op(op.operands[1])
            if before is None or number is None or number.name != "arith.constant":
                return None
            by = self.of(op.operands[1])
            return rule(before[0], by), None if before[1] is None else rule(before[1], by)
        if op.name == "arith.select":
            sides = list(op.operands)[1:]
        elif op.name == "scf.if":
            position = list(op.results).index(value)
            blocks = [region.blocks[0] for region in op.regions]
            sides = [block.operations[len(block.operations) - 1].operands[position] for block in blocks]
        else:
            return None
        one, other = (self._changes(side, carried, seen) for side in sides)
        if one is None or other is None:
            return None
        given = [side for side in (one[1], other[1]) if side is not None]
        return _either(one[0], other[0]), _either(given[0], given[-1]) if given else None

    def _of_map(self, op: mlir.Operation) -> Range | None:
        affine = mlir.AffineMapAttr(op.attributes["map"]).value
        operands = [self.of(v) for v in op.operands]
        ranges = [_of_expression(e, operands, affine.n_dims) for e in affine.results]
        if None in ranges:
            return None
        if op.name == "affine.max":
            return _maximum(*filter(None, ranges))
        return _minimum(*filter(None, ranges))


def _of_position(op: mlir.Operation) -> Range | None:
    """The range of a `linalg.index`."""
    around = op.parent
    while not around.name.startswith("linalg."):
        around = around.parent
    size = sizes_of(around)[op.attributes["dim"].value]
    return (0, size - 1) if size > 0 else None


_COPIED = (8, 16, 32, 64)
"""The widths of integers that NumPy has, too."""


def _of_table(attribute: mlir.Attribute) -> Range | None:
    """The range of the elements of a constant array of integers."""
    if not isinstance(attribute, mlir.DenseIntElementsAttr) or _width(attribute.type.element_type) not in _COPIED:
        return None
    numbers = np.array(attribute)
    return (int(numbers.min()), int(numbers.max())) if numbers.size else None


def _parts(op: mlir.Operation, total: Range, ranges: Ranges) -> Iterator[tuple[mlir.Value, Range]]:
    """The ranges of the operands of a sum or a difference whose range is `total`."""
    a, b = op.operands
    x, y = ranges.of(a), ranges.of(b)
    adds = op.name == "arith.addi"
    wraps = not _is_within(_add(x, y) if adds else _subtract(x, y), _whole(op.results[0].type))
    for part, of_part, other in (
        (a, _subtract(total, y) if adds else _add(total, y), y),
        (b, _subtract(total, x) if adds else _subtract(x, total), x),
    ):
        if wraps and (other[0] != other[1] or not _is_within(of_part, _whole(part.type))):
            continue  # one value of the total may come from several values of the operand
        if defining_op(part) is None or ranges.of(part)[0] != ranges.of(part)[1]:
            yield part, of_part


def _is_within(a: Range, whole: Range) -> bool:
    return whole[0] <= a[0] and a[1] <= whole[1]


def _both(a: Range, b: Range) -> Range:
    return max(a[0], b[0]), min(a[1], b[1])


def _implied_ranges(condition: mlir.Value, holds: bool, ranges: Ranges) -> Iterator[tuple[mlir.Value, Range]]:
    """The ranges that follow from a condition."""
    for value in combined(condition, "arith.andi" if holds else "arith.ori"):
        op = defining_op(value)
        if op is None or op.name != "arith.cmpi" or isinstance(op.operands[0].type, mlir.ShapedType):
            continue
        predicate = mlir.IntegerAttr(op.attributes["predicate"]).value
        if not holds:
            predicate = _NEGATED[predicate]
        a, b = op.operands
        x, y = ranges.of(a), ranges.of(b)
        if predicate == _DIFFERENT:
            yield a, _without(x, y)
            yield b, _without(y, x)
        else:
            yield a, bound(predicate, y, _whole(a.type))
            yield b, bound(_SWAPPED[predicate], x, _whole(b.type))


def _without(found: Range, other: Range) -> Range:
    """A range without one value at one of its ends, where `other` is a single value."""
    (low, high), (number, last) = found, other
    if number != last or low == high:
        return found
    return low + (low == number), high - (high == number)


def _width(type_: mlir.Type) -> int:
    return type_.width if isinstance(type_, mlir.IntegerType) else 64


def _whole(type_: mlir.Type) -> Range:
    width = _width(type_)
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


def _of_expression(e: mlir.AffineExpr, operands: Sequence[Range], dims: int) -> Range | None:
    position: int
    if isinstance(e, mlir.AffineConstantExpr):
        return (number := e.value), number
    if isinstance(e, mlir.AffineDimExpr):
        position = e.position
        return operands[position]
    if isinstance(e, mlir.AffineSymbolExpr):
        position = dims + e.position
        return operands[position]
    for type_, rule in (
        (mlir.AffineAddExpr, _add),
        (mlir.AffineMulExpr, _multiply),
        (mlir.AffineFloorDivExpr, _floor_divide),
        (mlir.AffineCeilDivExpr, _ceil_divide),
        (mlir.AffineModExpr, _modulo),
    ):
        if isinstance(e, type_):
            a, b = (_of_expression(side, operands, dims) for side in (e.lhs, e.rhs))
            return None if a is None or b is None else rule(a, b)
    return None


def _add(a: Range, b: Range) -> Range:
    return a[0] + b[0], a[1] + b[1]


def _subtract(a: Range, b: Range) -> Range:
    return a[0] - b[1], a[1] - b[0]


def _multiply(a: Range, b: Range) -> Range:
    products = [x * y for x in a for y in b]
    return min(products), max(products)


def _floor_divide(a: Range, b: Range) -> Range | None:
    """By a positive number only."""
    if b[0] <= 0:
        return None
    quotients = [x // y for x in a for y in b]
    return min(quotients), max(quotients)


def _ceil_divide(a: Range, b: Range) -> Range | None:
    if b[0] <= 0:
        return None
    quotients = [-(-x // y) for x in a for y in b]
    return min(quotients), max(quotients)


def _divide(a: Range, b: Range) -> Range | None:
    """Rounds towards zero, which is downwards for a dividend that is not negative."""
    return _floor_divide(a, b) if a[0] >= 0 else None


def _modulo(a: Range, b: Range) -> Range | None:
    """With the sign of a positive divisor."""
    if b[0] <= 0:
        return None
    return a if a[0] >= 0 and a[1] < b[0] else (0, b[1] - 1)


def _remainder(a: Range, b: Range) -> Range | None:
    """With the sign of the dividend."""
    return _modulo(a, b) if a[0] >= 0 else None


def remainder_of(op: mlir.Operation) -> tuple[mlir.Value, mlir.Value] | None:
    """The `a` and `b` of `a - (a / b) * b`."""
    product = defining_op(op.operands[1]) if op.name == "arith.subi" else None
    quotient = defining_op(product.operands[0]) if product is not None and product.name == "arith.muli" else None
    if product is None or quotient is None or quotient.name != "arith.divsi":
        return None
    a, b = quotient.operands
    return (a, b) if op.operands[0] == a and product.operands[1] == b else None


def _shifted_left(a: Range, by: Range) -> Range | None:
    return _multiply(a, (1 << by[0], 1 << by[1])) if by[0] >= 0 and by[1] < _BITS else None


def _shifted_right(a: Range, by: Range) -> Range | None:
    if by[0] < 0 or by[1] >= _BITS:
        return None
    ends = [end >> count for end in a for count in by]
    return min(ends), max(ends)


def _shifted_right_unsigned(a: Range, by: Range) -> Range | None:
    return _shifted_right(a, by) if a[0] >= 0 else None


def _bits(a: Range, b: Range) -> Range | None:
    """`|` and `^` of operands that are not negative set no bit that neither operand has."""
    if a[0] < 0 or b[0] < 0:
        return None
    return 0, (1 << max(a[1].bit_length(), b[1].bit_length())) - 1


def _common_bits(a: Range, b: Range) -> Range | None:
    """`&` with an operand that is not negative is not greater than it."""
    ends = [high for low, high in (a, b) if low >= 0]
    return (0, min(ends)) if ends else None


def _unsigned_minimum(a: Range, b: Range) -> Range | None:
    return _minimum(a, b) if a[0] >= 0 and b[0] >= 0 else None


CLAMPS = ("arith.minsi", "arith.minui", "arith.maxsi", "arith.maxui")


def clamped_operand(op: mlir.Operation, range_of: Callable[[mlir.Value], Range]) -> mlir.Value | None:
    """The operand that a minimum or a maximum returns; None if the ranges of integers do not decide it."""
    (a, b), (x, y) = op.operands, map(range_of, op.operands)
    if op.name.endswith("ui") and min(*x, *y) < 0:
        return None
    if op.name.startswith("arith.max"):
        a, b = b, a
    return a if x[1] <= y[0] else b if y[1] <= x[0] else None


def returned_operand(op: mlir.Operation, ranges: Ranges) -> mlir.Value | None:
    """The operand that a select, a minimum or a maximum returns; None for others, and if ranges do not decide it."""
    if op.name == "arith.select":
        holds = ranges.decides(op.operands[0])
        return None if holds is None else op.operands[1 if holds else 2]
    return clamped_operand(op, ranges.of) if op.name in CLAMPS else None


def decided(predicate: int, a: Range, b: Range) -> bool | None:
    """The result of a comparison by the ranges of its operands and MLIR's predicate number; None if undecided."""
    if predicate > SIGNED:
        if a[0] < 0 or b[0] < 0:
            return None
        predicate -= SIGNED - 1
    less, equal, greater = a[1] < b[0], a == b and a[0] == a[1], a[0] > b[1]
    not_greater, not_less = a[1] <= b[0], a[0] >= b[1]
    different = less or greater
    always = (equal, different, less, not_greater, greater, not_less)[predicate]
    never = (different, equal, not_less, greater, not_greater, less)[predicate]
    return True if always else False if never else None


def _maximum(*ranges: Range) -> Range:
    return max(low for low, _ in ranges), max(high for _, high in ranges)


def _minimum(*ranges: Range) -> Range:
    return min(low for low, _ in ranges), min(high for _, high in ranges)


def _either(a: Range, b: Range) -> Range:
    return min(a[0], b[0]), max(a[1], b[1])


def _same(a: Range) -> Range:
    return a


def _unsigned(a: Range) -> Range | None:
    """A cast that reads the bits as an unsigned integer."""
    return a if a[0] >= 0 else None


_RULES: dict[str, Callable[..., Range | None]] = {
    "arith.addi": _add,
    "arith.subi": _subtract,
    "arith.muli": _multiply,
    "arith.floordivsi": _floor_divide,
    "arith.ceildivsi": _ceil_divide,
    "arith.divsi": _divide,
    "arith.remsi": _remainder,
    "arith.maxsi": _maximum,
    "arith.minsi": _minimum,
    "arith.minui": _unsigned_minimum,
    "arith.ori": _bits,
    "arith.xori": _bits,
    "arith.andi": _common_bits,
    "arith.shli": _shifted_left,
    "arith.shrsi": _shifted_right,
    "arith.shrui": _shifted_right_unsigned,
    "arith.select": _either,
    "arith.index_cast": _same,
    "arith.index_castui": _unsigned,
    "arith.extsi": _same,
    "arith.extui": _unsigned,
    "arith.trunci": _same,
}
_SIGNED_CASTS = ("arith.index_cast", "arith.extsi")
_NEAR, _NEAR_OPS = 3, ("arith.addi", "arith.subi", *_SIGNED_CASTS, "arith.trunci")
"""The number of these operations that are recomputed for a value under a condition."""

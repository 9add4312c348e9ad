"""Decide how a statement becomes one `linalg.generic`: the box of its loops, slices of arrays, maps, a mask.

    for i in 0..n: for j in 0..i: C[i, j + 1] = C[i, j + 1] + A[j]

becomes, with i and j in boxes of n rounds and t, u counted from 0: the out is the slice [0, 1] of size [n, n] of C with
map (t, u) -> (t, u), the input the slice [0] of size [n] of A with map (t, u) -> (u), and where j < i does not hold,
the old element stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal

from mlirml.analysis.affine import Linear, Loop, Span, Variable, constant, extreme, range_of
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch
from mlirml.raising.nests.accumulations import Combination, match_combination
from mlirml.raising.nests.dilate import Dilated
from mlirml.raising.nests.model import Access, Array, Statement, is_pure
from mlirml.raising.nests.skew import Skewed

_DIVISIONS = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.ceildivsi", "arith.floordivsi")
Spans = Mapping[Variable, Span]
_DRAWN = 192
_MOST_ELEMENTS = 1 << 24

Form = Literal["box", "triangle", "inner"]
"""How a statement is raised: all its loops, whose domain is a box; one that is none, by a mask or by slices of changing
length; those inside of loops that stay."""
PASS_OF: Mapping[Form, str] = {
    "box": "mlirml-raise-statements",
    "triangle": "mlirml-raise-triangles",
    "inner": "mlirml-raise-inner-loops",
}
"""The pass for each form; `mlirml-raise` does all."""


@dataclass(frozen=True)
class Dim:
    """A loop of the generic: round t stands for `first + t`, or for `last - t` where it runs `backward`."""

    loop: Loop
    first: Linear
    last: Linear
    backward: bool

    @property
    def size(self) -> Linear:
        return self.last - self.first + 1

    @property
    def start(self) -> Linear:
        return self.last if self.backward else self.first


@dataclass(frozen=True)
class Index:
    """One dimension of a slice, and where in it an iteration is: `sum(factors of the dims)`; None where it is one."""

    offset: Linear
    size: Linear
    stride: int
    factors: dict[int, int] | None


@dataclass(frozen=True)
class Operand:
    """A slice of an array, seen as one row if `flat`; `values` are what a statement reads through it."""

    array: Array
    indices: tuple[Index, ...]
    values: tuple[mlir.Value, ...] = ()
    flat: bool = False

    def covers(self, other: tuple[Array, tuple[Index, ...]]) -> bool:
        return self.array is other[0] and self.indices == other[1]


@dataclass(frozen=True)
class Raised:
    """A statement as one generic over its loops from number `level` on.

    `mask` are expressions that are not negative where the statement runs. `gathers` are values that the body extracts
    by itself. `windows` are dims whose length no operand tells, as those of a pooling.
    """

    statement: Statement
    level: int
    dims: tuple[Dim, ...]
    inputs: tuple[Operand, ...]
    gathers: tuple[mlir.Value, ...]
    windows: tuple[int, ...]
    out: Operand
    iterators: tuple[str, ...]
    combination: Combination | None
    mask: tuple[Linear, ...]
    gone: Mapping[Loop, Linear] = field(default_factory=dict)
    """Loops of the nest that others stand for."""
    dilated: tuple[Dilated, ...] = ()
    """Arrays with zeros between their elements that inputs are slices of."""
    order: tuple[int, ...] | None = None
    """How the loops go that it becomes again: 1 upward, -1 downward, 0 any way; None where it stays an operation."""

    @property
    def is_empty(self) -> bool:
        return any(is_never(dim.size) for dim in self.dims)


def form_of(raised: Raised) -> Form:
    """The form of a raised statement."""
    if raised.mask or not all(dim.size.is_constant for dim in raised.dims):
        return "triangle"
    return "inner" if raised.level else "box"


@dataclass(frozen=True)
class Layout:
    """A local array in memory: dims for the loops from number `level` on that it belongs to, then its own."""

    level: int
    firsts: tuple[int, ...]
    sizes: tuple[int, ...]


def layout_of(array: Array, statement: Statement, level: int, spans: Spans) -> Layout:
    """The layout of a local array that is made at a level; raises `NoMatch` for loops of unknown length."""
    firsts, sizes = [], []
    for loop in statement.loops[level : array.depth]:
        if loop not in spans:
            raise NoMatch("numbers must be kept for a loop of unknown length")
        low, high = spans[loop]
        firsts.append(low)
        sizes.append(max(high - low + 1, 0))
    if math.prod(sizes) * math.prod(array.shape) > _MOST_ELEMENTS:
        raise NoMatch("too many numbers would be kept")
    return Layout(level, tuple(firsts), (*sizes, *array.shape))


def places_in(layout: Layout | None, access: Access, loops: Sequence[Loop]) -> tuple[Linear, ...] | None:
    """The place in memory that is accessed."""
    if access.indices is None:
        return None
    return (*outer_places(layout, access, loops), *access.indices)


def outer_places(layout: Layout | None, access: Access, loops: Sequence[Loop]) -> tuple[Linear, ...]:
    """Where in the dimensions that a layout puts in front the array of this round is."""
    if layout is None:
        return ()
    own = loops[layout.level : access.array.depth]
    return tuple(Linear.of(loop) - first for loop, first in zip(own, layout.firsts, strict=True))


def spans_of(loops: Sequence[Loop], known: Spans) -> dict[Variable, Span]:
    """Between which numbers the variables of loops lie, as far as that is known; `known` are those of symbols."""
    spans = dict(known)
    for loop in loops:
        lows = [low for low, _ in (range_of(lower, spans) for lower in loop.lowers) if low is not None]
        highs = [high for _, high in (range_of(upper, spans) for upper in loop.uppers) if high is not None]
        if lows and highs:
            spans[loop] = (max(lows), min(highs) - 1)
    return spans


def match_raised(
    statement: Statement,
    level: int,
    layouts: Mapping[Array, Layout],
    spans: Spans,
    small: bool,
    ordered: bool,
    skew: Skewed | None = None,
) -> Raised:
    """Raises `NoMatch` with the reason why the loops from `level` on cannot be one generic.

    It becomes loops again if it is `small`, or if the lengths of its slices differ from round to round of the loops
    around; they must go as those of the nest if it is `ordered`, as it reads what it stores later.
    """
    loops = statement.loops[level:]
    ends = hull(loops)
    returns = small or not all((last - first).is_constant for first, last in ends.values())
    mask = [*conditions(loops, ends, spans), *(skew.conditions if skew is not None else ())]
    if returns and mask:
        raise NoMatch("how many rounds it has differs from round to round of its own loops")
    if returns and any(loop.op is None for loop in loops):
        raise NoMatch("how many rounds it has differs from round to round of the loops around")
    if returns and skew is not None:
        raise NoMatch("how many rounds it has differs from round to round of the loops around")
    check_density(statement.loops, mask, ends, spans)
    if any(is_never(last - first + 1) for first, last in ends.values()):
        dims = tuple(Dim(loop, *ends[loop], backward=False) for loop in loops)
        return Raised(statement, level, dims, (), (), (), Operand(statement.write.array, ()), (), None, ())
    write = places_in(layouts.get(statement.write.array), statement.write, statement.loops)
    if write is None:
        raise NoMatch("it stores to places that are not linear in the loops")
    box = tuple(Dim(loop, *ends[loop], backward=False) for loop in loops)
    part = bool(mask) or not has_rounds(box, spans)
    check_bounds(write, shape_in(statement.write.array, layouts), box, spans, part)
    flat = not is_separate(write, loops)
    if flat and returns:
        raise NoMatch("what could be raised is a diagonal, with loops around it")
    if flat:
        write = flattened(write, statement.write.array, loops)
    dims = tuple(Dim(loop, *ends[loop], backward=any(e.factor(loop) < 0 for e in write)) for loop in loops)
    combination = None
    written = [loop for index in write for loop in index.loops if loop in loops]
    iterators = tuple("parallel" if loop in written else "reduction" for loop in loops)
    if "reduction" in iterators:
        combination = match_combination(statement)
    if not is_scalar_type(statement.write.array.kind):
        raise NoMatch("it keeps indices")
    if part and has_division(statement.value, statement):
        raise NoMatch("it divides integers in a part of a box only")
    inputs: list[Operand] = []
    gathers: list[mlir.Value] = []
    for value, access in statement.reads.items():
        if combination is not None and value == combination.old:
            continue
        if mask and access.indices is None:
            raise NoMatch("it reads places that are not linear in the loops, in a part of a box only")
        operand = match_read(statement, access, dims, layouts, spans, part)
        if operand is None:
            gathers.append(value)
            continue
        same = next((n for n, other in enumerate(inputs) if other.covers(operand)), None)
        if same is None:
            inputs.append(Operand(*operand, (value,)))
        else:
            inputs[same] = Operand(*operand, (*inputs[same].values, value))
    if combination is not None:
        check_lengths(mask, loops, written, statement, layouts)
    out = Operand(statement.write.array, tuple(slice_index(place, dims) for place in write), flat=flat)
    told = {number for operand in (*inputs, out) for index in operand.indices for number in walking(index)}
    windows = tuple(number for number in range(len(dims)) if number not in told)
    if windows and not (inputs or gathers):
        raise NoMatch("it reads no array")
    if not all(dims[number].size.is_constant for number in windows):
        raise NoMatch("no array tells how many rounds it has")
    return Raised(
        statement,
        level,
        dims,
        tuple(inputs),
        tuple(gathers),
        windows,
        out,
        iterators,
        combination,
        tuple(mask),
        skew.gone if skew is not None else {},
        skew.dilated if skew is not None else (),
        tuple((-1 if dim.backward else 1) if ordered else 0 for dim in dims) if returns else None,
    )


def check_lengths(
    mask: Sequence[Linear],
    loops: Sequence[Loop],
    written: Sequence[Loop],
    statement: Statement,
    layouts: Mapping[Array, Layout],
) -> None:
    """Raises `NoMatch` for sums of products whose length no array tells.

    A triangle of a matrix that is read has zeros in the place of the rest, but `A[j, k] * x[k]` for k < i have none.
    """
    read = [places_in(layouts.get(access.array), access, statement.loops) or () for access in statement.reads.values()]
    walked = [{loop for place in places for loop in place.loops} for places in read]
    if sum(len(each & set(loops)) > 0 for each in walked) < 2:
        return
    for condition in mask:
        inside = {loop for loop in condition.loops if loop in loops}
        summed = inside - set(written)
        if summed and inside != summed and not any(inside <= each for each in walked):
            raise NoMatch("it adds up slices whose length differs from iteration to iteration")


def is_separate(places: Sequence[Linear], loops: Sequence[Loop]) -> bool:
    """True if each dimension of an array is walked by a loop of its own, or by none."""
    walked = [[loop for loop in place.loops if loop in loops] for place in places]
    flat = [loop for found in walked for loop in found]
    return len(flat) == len(set(flat)) and all(len(found) <= 1 for found in walked)


def flattened(places: Sequence[Linear], array: Array, loops: Sequence[Loop]) -> tuple[Linear]:
    """The place in an array seen as one row, for a diagonal; raises `NoMatch` if more than one loop walks along it."""
    if array.local:
        raise NoMatch("several rounds store to one place")
    total, stride = constant(0), 1
    for place, size in zip(places[::-1], array.shape[::-1], strict=True):
        total, stride = total + place * stride, stride * size
    if len([loop for loop in total.loops if loop in loops]) != 1:
        raise NoMatch("several rounds store to one place")
    return (total,)


def walking(index: Index) -> list[int]:
    """The dim that walks along a slice, if it is one dim alone."""
    factors = index.factors or {}
    return list(factors) if list(factors.values()) == [1] else []


def match_read(
    statement: Statement,
    access: Access,
    dims: Sequence[Dim],
    layouts: Mapping[Array, Layout],
    spans: Spans,
    part: bool,
) -> tuple[Array, tuple[Index, ...]] | None:
    """The slice that is read; None for elements that the body picks by itself."""
    array = access.array
    places = places_in(layouts.get(array), access, statement.loops)
    if places is None:
        return None
    if part and 0 in shape_in(array, layouts):
        raise NoMatch("it reads an array without elements")
    if not stays_inside(places, shape_in(array, layouts), dims, spans, part):
        return None  # and held inside of the array
    try:
        indices = tuple(slice_index(place, dims) for place in places)
    except NoMatch:
        return None
    walked = [number for index in indices for number in index.factors or ()]
    return (array, indices) if len(walked) == len(set(walked)) else None


def shape_in(array: Array, layouts: Mapping[Array, Layout]) -> tuple[int, ...]:
    return layouts[array].sizes if array in layouts else array.shape


def is_never(size: Linear) -> bool:
    return size.is_constant and size.constant <= 0


def is_scalar_type(kind: mlir.Type) -> bool:
    return not isinstance(kind, mlir.IndexType)


def hull(loops: Sequence[Loop]) -> dict[Loop, tuple[Linear, Linear]]:
    """The first and the last value of each loop whatever those around it are, in terms of loops further out."""
    ends: dict[Loop, tuple[Linear, Linear]] = {}
    for number, loop in enumerate(loops):
        around = loops[:number][::-1]
        firsts = [extreme(lower, around, ends, -1) for lower in loop.lowers]
        lasts = [extreme(upper - 1, around, ends, 1) for upper in loop.uppers]
        ends[loop] = (tightest(firsts, 1), tightest(lasts, -1))
    return ends


def check_density(
    loops: Sequence[Loop], mask: Sequence[Linear], ends: Mapping[Loop, tuple[Linear, Linear]], spans: Spans
) -> None:
    """Raises `NoMatch` if a box would be empty for the most part, as that around a band is. Points are drawn."""
    if not mask:
        return
    seed, inside = 1, 0
    for _ in range(_DRAWN):
        point: dict[Variable, int] = {}
        for loop in loops:
            low, high = spans.get(loop, (0, 0))
            if loop in ends and all(end.is_constant for end in ends[loop]):
                low, high = (end.constant for end in ends[loop])
            seed = (seed * 1103515245 + 12345) % (1 << 31)
            point[loop] = low + (seed >> 8) % max(high - low + 1, 1)
        inside += all(at(condition, point) >= 0 for condition in mask)
    if inside * 12 < _DRAWN:
        raise NoMatch("the box around its loops would be empty for the most part")


def at(expression: Linear, point: Mapping[Variable, int]) -> int:
    """The value of an expression at a point; symbols count as 0."""
    return expression.constant + sum(factor * point.get(v, 0) for v, factor in expression.factors.items())


def tightest(bounds: Sequence[Linear], sign: int) -> Linear:
    """The greatest (`sign` 1) or least bound, or one of them where that depends on the run."""
    best = bounds[0]
    for bound in bounds[1:]:
        difference = (bound - best) * sign
        if (difference.is_constant and difference.constant > 0) or (not difference.is_constant and bound.is_constant):
            best = bound
    return best


def conditions(loops: Sequence[Loop], ends: Mapping[Loop, tuple[Linear, Linear]], spans: Spans) -> list[Linear]:
    """What must not be negative for a round of the box to be one of the loops'."""
    found = []
    for loop in loops:
        variable = Linear.of(loop)
        for bound in (*(variable - lower for lower in loop.lowers), *(upper - 1 - variable for upper in loop.uppers)):
            least, _ = range_of(extreme(bound, loops[::-1], ends, -1), spans)
            if least is None or least < 0:
                found.append(bound)
    return found


def slice_index(place: Linear, dims: Sequence[Dim]) -> Index:
    """The slice that the rounds of a box touch in one dimension; raises `NoMatch` where it is walked backward."""
    factors: dict[int, int] = {}
    offset = place
    for number, dim in enumerate(dims):
        factor = place.factor(dim.loop)
        if factor:
            factors[number] = -factor if dim.backward else factor
            offset = offset.replaced(dim.loop, dim.start)
    if not factors:
        return Index(offset, Linear(1), 1, None)
    if any(factor < 0 for factor in factors.values()):
        raise NoMatch("it is walked backward")
    if len(factors) == 1:
        ((number, factor),) = factors.items()
        return Index(offset, dims[number].size, factor, {number: 1})
    span = Linear(1)
    for number, factor in factors.items():
        if not dims[number].size.is_constant:
            raise NoMatch("the slice that is touched has a length that is not known")
        span = span + (dims[number].size - 1) * factor
    return Index(offset, span, 1, factors)


def check_bounds(places: Sequence[Linear], shape: Sequence[int], dims: Sequence[Dim], spans: Spans, part: bool) -> None:
    """Raises `NoMatch` if a box may touch what is outside of an array, though the program (`part` of it) may not."""
    if not stays_inside(places, shape, dims, spans, part):
        raise NoMatch("the box around its loops may reach out of an array")


def stays_inside(places: Sequence[Linear], shape: Sequence[int], dims: Sequence[Dim], spans: Spans, part: bool) -> bool:
    """True if a box touches nothing outside of an array, of which the program touches what is inside of `part`."""
    loops = [dim.loop for dim in dims][::-1]
    ends = {dim.loop: (dim.first, dim.last) for dim in dims}
    for place, size in zip(places, shape, strict=True):
        first, last = (extreme(place, loops, ends, sign) for sign in (-1, 1))
        least, latest = range_of(first, spans)
        _, most = range_of(last, spans)
        inside = least is not None and latest is not None and most is not None
        if part and not (inside and least >= 0 and latest <= size and most < size):  # type: ignore[operator]
            return False
        if (first.is_constant and not 0 <= first.constant < size) or (last.is_constant and last.constant >= size):
            return False
    return True


def has_rounds(dims: Sequence[Dim], spans: Spans) -> bool:
    """True if it is known that all dims have a round: what a slice touches, the program does too."""
    return all((range_of(dim.size, spans)[0] or 0) > 0 for dim in dims)


def has_division(value: mlir.Value, statement: Statement) -> bool:
    """True if integers are divided by something that may be zero."""
    todo, seen = [value], {value}
    while todo:
        found = todo.pop()
        op = defining_op(found)
        if found in statement.reads or op is None or not is_pure(op):
            continue
        if op.name in _DIVISIONS:
            divisor = defining_op(op.operands[1])
            if divisor is None or divisor.name != "arith.constant":
                return True
        todo += [operand for operand in op.operands if operand not in seen]
        seen.update(op.operands)
    return False

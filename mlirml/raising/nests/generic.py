"""Form one `linalg.generic` from a statement: the bounding box of its loops, slices of arrays, maps, a mask.

    for i in 0..n: for j in 0..i: C[i, j + 1] = C[i, j + 1] + A[j]

becomes, with i and j in boxes of n iterations and t, u counted from 0: the output is the slice [0, 1] of size [n, n] of
C with map (t, u) -> (t, u), the input the slice [0] of size [n] of A with map (t, u) -> (u), and the body selects the
old element where j < i does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field

from mlirml.analysis.affine import Loop, Variable, constant, extreme, loops_in
from mlirml.analysis.traits import INTEGER_DIVISIONS
from mlirml.core.affine import Linear, Span
from mlirml.core.dataclass import dataclass
from mlirml.ir.bindings import defining_op, mlir
from mlirml.passes import NoMatch
from mlirml.raising.nests.accumulations import Combination, match_combination
from mlirml.raising.nests.dilate import Dilated
from mlirml.raising.nests.model import Access, Array, Statement, is_pure
from mlirml.raising.nests.skew import Skewed

Spans = Mapping[Variable, Span]
_DRAWN = 192
_MOST_ELEMENTS = 1 << 24

FORMS = ("box", "triangle", "inner")
"""The ways a statement is raised: all its loops with a box as domain; any other domain, by a mask or by slices of
changing length; only the inner loops, within loops that are not raised.
"""


@dataclass(frozen=True)
class Dim:
    """A loop of the generic: its index t is `first + t` of the loop, or `last - t` where it runs `backward`."""

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
    """One dimension of a slice, and the index in it, `sum(factors of the dims)`; None for a dropped dimension."""

    offset: Linear
    size: Linear
    stride: int
    factors: dict[int, int] | None


@dataclass(frozen=True)
class Operand:
    """A slice of an array, collapsed to one dimension if `flat`; a statement reads `values` through it."""

    array: Array
    indices: tuple[Index, ...]
    values: tuple[mlir.Value, ...] = ()
    flat: bool = False

    def covers(self, other: tuple[Array, tuple[Index, ...]]) -> bool:
        return self.array is other[0] and self.indices == other[1]


@dataclass(frozen=True)
class Raised:
    """A statement as one generic over its loops from number `level` on.

    `mask` are expressions that are all >= 0 where the statement is executed. `gathers` are values that the body
    extracts itself. `windows` are dims whose size no operand has, as those of a pooling.
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
    replaced_loops: Mapping[Loop, Linear] = field(default_factory=dict)
    """Loops of the nest as expressions of the loops that replaced them."""
    dilated: tuple[Dilated, ...] = ()
    """Arrays with zeros between their elements of which inputs are slices."""
    order: tuple[int, ...] | None = None
    """The direction of each loop that it is lowered to: 1 upward, -1 downward, 0 either; None without lowering."""

    @property
    def is_empty(self) -> bool:
        return any(is_never(dim.size) for dim in self.dims)


def form_of(raised: Raised) -> str:
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
    """The layout of a local array that is allocated at a level; raises `NoMatch` for loops of dynamic length."""
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


def memory_indices(layout: Layout | None, access: Access, loops: Sequence[Loop]) -> tuple[Linear, ...] | None:
    """The indices of an access in memory."""
    if access.indices is None:
        return None
    return (*outer_indices(layout, access, loops), *access.indices)


def outer_indices(layout: Layout | None, access: Access, loops: Sequence[Loop]) -> tuple[Linear, ...]:
    """The leading indices, by the enclosing loops, that a layout adds to a local array."""
    if layout is None:
        return ()
    own = loops[layout.level : access.array.depth]
    return tuple(Linear.of(loop) - first for loop, first in zip(own, layout.firsts, strict=True))


def spans_of(loops: Sequence[Loop], known: Spans) -> dict[Variable, Span]:
    """The known ranges of the variables of loops; `known` are those of symbols."""
    spans = dict(known)
    for loop in loops:
        lows = [low for low, _ in (lower.range(spans) for lower in loop.lowers) if low is not None]
        highs = [high for _, high in (upper.range(spans) for upper in loop.uppers) if high is not None]
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
    """The generic over the loops from `level` on; raises `NoMatch` with the reason if there is none.

    It is lowered to loops later if it is `small`, or if the lengths of its slices differ from iteration to iteration of
    the enclosing loops; these must run in the order of the nest if it is `ordered`, as it reads elements that it stores
    later.
    """
    loops = statement.loops[level:]
    ends = hull(loops)
    returns = small or not all((last - first).is_constant for first, last in ends.values())
    mask = [*conditions(loops, ends, spans), *(skew.conditions if skew is not None else ())]
    if returns:
        check_lowering(statement, loops, mask, skew)
    check_density(statement.loops, mask, ends, spans)
    if any(is_never(last - first + 1) for first, last in ends.values()):
        dims = tuple(Dim(loop, *ends[loop], backward=False) for loop in loops)
        return Raised(statement, level, dims, (), (), (), Operand(statement.write.array, ()), (), None, ())
    box = tuple(Dim(loop, *ends[loop], backward=False) for loop in loops)
    part = bool(mask) or not has_no_zero_trip_loop(box, spans)
    write, flat = match_write(statement, box, layouts, spans, part)
    if flat and returns:
        raise NoMatch("what could be raised is a diagonal, with loops around it")
    dims = tuple(Dim(loop, *ends[loop], backward=any(e.factor(loop) < 0 for e in write)) for loop in loops)
    written = [loop for index in write for loop in loops_in(index) if loop in loops]
    iterators = tuple("parallel" if loop in written else "reduction" for loop in loops)
    combination = match_combination(statement) if "reduction" in iterators else None
    if not is_scalar_type(statement.write.array.element_type):
        raise NoMatch("it keeps indices")
    if part and has_division(statement.value, statement):
        raise NoMatch("it divides integers in a part of a box only")
    reads = {x: read for x, read in statement.reads.items() if combination is None or x != combination.old}
    if mask and any(read.indices is None for read in reads.values()):
        raise NoMatch("it reads at indices that are not linear in the loops, in a part of a box only")
    operands = {x: match_read(statement, read, dims, layouts, spans, part) for x, read in reads.items()}
    inputs, gathers = shared_operands(operands), tuple(x for x, operand in operands.items() if operand is None)
    if combination is not None:
        check_lengths(mask, loops, written, statement, layouts)
    out = Operand(statement.write.array, tuple(slice_index(index, dims) for index in write), flat=flat)
    return Raised(
        statement,
        level,
        dims,
        inputs,
        gathers,
        match_windows(dims, (*inputs, out), reads_arrays=bool(operands)),
        out,
        iterators,
        combination,
        tuple(mask),
        skew.replaced_loops if skew is not None else {},
        skew.dilated if skew is not None else (),
        tuple((-1 if dim.backward else 1) if ordered else 0 for dim in dims) if returns else None,
    )


def check_lowering(statement: Statement, loops: Sequence[Loop], mask: Sequence[Linear], skew: Skewed | None) -> None:
    """Raises `NoMatch` for a statement, or a domain, whose generic cannot be lowered to loops later.

    These read the array that they store into, which may have changed, even where the statement reads a copy of it.
    """
    write = statement.write
    root = write.array.root
    for read in statement.reads.values():
        source = read.array.root
        is_copy = read.array is not write.array and root is not None and source is not None and root == source
        if is_copy and read.indices != write.indices:
            raise NoMatch("it reads a copy of the array that it stores into")
    if mask:
        raise NoMatch("its trip count differs from iteration to iteration of its own loops")
    if skew is not None or any(loop.op is None for loop in loops):
        raise NoMatch("its trip count differs from iteration to iteration of the loops around")


def match_write(
    statement: Statement, box: Sequence[Dim], layouts: Mapping[Array, Layout], spans: Spans, part: bool
) -> tuple[tuple[Linear, ...], bool]:
    """The indices at which a statement stores, and True if they are one of a collapsed array, as of a diagonal."""
    array, loops = statement.write.array, [dim.loop for dim in box]
    write = memory_indices(layouts.get(array), statement.write, statement.loops)
    if write is None:
        raise NoMatch("it stores at indices that are not linear in the loops")
    check_bounds(write, shape_in(array, layouts), box, spans, part)
    return (write, False) if is_separate(write, loops) else (flattened(write, array, loops), True)


def shared_operands(operands: Mapping[mlir.Value, tuple[Array, tuple[Index, ...]] | None]) -> tuple[Operand, ...]:
    """The slices of arrays through which a statement reads values, each slice once."""
    found: list[Operand] = []
    for value, operand in operands.items():
        if operand is None:
            continue
        same = next((n for n, other in enumerate(found) if other.covers(operand)), None)
        if same is None:
            found.append(Operand(*operand, (value,)))
        else:
            found[same] = Operand(*operand, (*found[same].values, value))
    return tuple(found)


def match_windows(dims: Sequence[Dim], operands: Sequence[Operand], reads_arrays: bool) -> tuple[int, ...]:
    """The dims whose size no operand has; raises `NoMatch` if one is dynamic, or nothing is read over them."""
    sized = {number for operand in operands for index in operand.indices for number in walking(index)}
    windows = tuple(number for number in range(len(dims)) if number not in sized)
    if windows and not reads_arrays:
        raise NoMatch("it reads no array")
    if not all(dims[number].size.is_constant for number in windows):
        raise NoMatch("no array has its trip count as a size")
    return windows


def check_lengths(
    mask: Sequence[Linear],
    loops: Sequence[Loop],
    written: Sequence[Loop],
    statement: Statement,
    layouts: Mapping[Array, Layout],
) -> None:
    """Raises `NoMatch` for sums of products whose length no array has.

    The masked rest of a triangle of a matrix is zero, but in `A[j, k] * x[k]` for k < i there is no such matrix.
    """
    read = [
        memory_indices(layouts.get(access.array), access, statement.loops) or () for access in statement.reads.values()
    ]
    walked = [{loop for index in indices for loop in loops_in(index)} for indices in read]
    if sum(len(each & set(loops)) > 0 for each in walked) < 2:
        return
    for condition in mask:
        condition_loops = {loop for loop in loops_in(condition) if loop in loops}
        summed = condition_loops - set(written)
        if summed and condition_loops != summed and not any(condition_loops <= each for each in walked):
            raise NoMatch("it adds up slices whose length differs from iteration to iteration")


def is_separate(indices: Sequence[Linear], loops: Sequence[Loop]) -> bool:
    """True if each dimension of an array is indexed by a different loop, or by none."""
    walked = [[loop for loop in loops_in(index) if loop in loops] for index in indices]
    flat = [loop for found in walked for loop in found]
    return len(flat) == len(set(flat)) and all(len(found) <= 1 for found in walked)


def flattened(indices: Sequence[Linear], array: Array, loops: Sequence[Loop]) -> tuple[Linear]:
    """The index into a collapsed array, for a diagonal; raises `NoMatch` if more than one loop is in it."""
    if array.local:
        raise NoMatch("several iterations store to one element")
    total, stride = constant(0), 1
    for index, size in zip(indices[::-1], array.shape[::-1], strict=True):
        total, stride = total + index * stride, stride * size
    if len([loop for loop in loops_in(total) if loop in loops]) != 1:
        raise NoMatch("several iterations store to one element")
    return (total,)


def walking(index: Index) -> list[int]:
    """The dim that indexes a slice, if it is the only one."""
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
    """The slice that is read; None for elements that the body extracts itself."""
    array = access.array
    where = memory_indices(layouts.get(array), access, statement.loops)
    if where is None:
        return None
    if part and 0 in shape_in(array, layouts):
        raise NoMatch("it reads an array without elements")
    if not stays_inside(where, shape_in(array, layouts), dims, spans, part):
        return None  # and clamped to the array
    try:
        indices = tuple(slice_index(index, dims) for index in where)
    except NoMatch:
        return None
    walked = [number for index in indices for number in index.factors or ()]
    return (array, indices) if len(walked) == len(set(walked)) else None


def shape_in(array: Array, layouts: Mapping[Array, Layout]) -> tuple[int, ...]:
    return layouts[array].sizes if array in layouts else array.shape


def is_never(size: Linear) -> bool:
    return size.is_constant and size.constant <= 0


def is_scalar_type(type_: mlir.Type) -> bool:
    return not isinstance(type_, mlir.IndexType)


def hull(loops: Sequence[Loop]) -> dict[Loop, tuple[Linear, Linear]]:
    """The first and the last value of each loop over all iterations of outer ones, in terms of loops further out."""
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
    """Raises `NoMatch` if most of a box would be masked, as for a band. Points are sampled."""
    if not mask:
        return
    seed, hits = 1, 0
    for _ in range(_DRAWN):
        point: dict[Variable, int] = {}
        for loop in loops:
            low, high = spans.get(loop, (0, 0))
            if loop in ends and all(end.is_constant for end in ends[loop]):
                low, high = (end.constant for end in ends[loop])
            seed = (seed * 1103515245 + 12345) % (1 << 31)
            point[loop] = low + (seed >> 8) % max(high - low + 1, 1)
        hits += all(at(condition, point) >= 0 for condition in mask)
    if hits * 12 < _DRAWN:
        raise NoMatch("the box around its loops would be empty for the most part")


def at(expression: Linear, point: Mapping[Variable, int]) -> int:
    """The value of an expression at a point; symbols count as 0."""
    return expression.constant + sum(factor * point.get(v, 0) for v, factor in expression.factors.items())


def tightest(bounds: Sequence[Linear], sign: int) -> Linear:
    """The greatest (`sign` 1) or least bound, or one of them where that is dynamic."""
    best = bounds[0]
    for bound in bounds[1:]:
        difference = (bound - best) * sign
        if (difference.is_constant and difference.constant > 0) or (not difference.is_constant and bound.is_constant):
            best = bound
    return best


def conditions(loops: Sequence[Loop], ends: Mapping[Loop, tuple[Linear, Linear]], spans: Spans) -> list[Linear]:
    """The mask constraints: a point of the bounding box is in the domain iff all are >= 0."""
    found = []
    for loop in loops:
        variable = Linear.of(loop)
        for bound in (*(variable - lower for lower in loop.lowers), *(upper - 1 - variable for upper in loop.uppers)):
            least, _ = extreme(bound, loops[::-1], ends, -1).range(spans)
            if least is None or least < 0:
                found.append(bound)
    return found


def slice_index(index: Linear, dims: Sequence[Dim]) -> Index:
    """The slice that the iterations of a box access in one dimension; raises `NoMatch` for negative strides."""
    factors: dict[int, int] = {}
    offset = index
    for number, dim in enumerate(dims):
        factor = index.factor(dim.loop)
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


def check_bounds(
    indices: Sequence[Linear], shape: Sequence[int], dims: Sequence[Dim], spans: Spans, part: bool
) -> None:
    """Raises `NoMatch` if a box may be out of the bounds of an array, though the program (`part` of it) may not."""
    if not stays_inside(indices, shape, dims, spans, part):
        raise NoMatch("the box around its loops may reach out of an array")


def stays_inside(
    indices: Sequence[Linear], shape: Sequence[int], dims: Sequence[Dim], spans: Spans, part: bool
) -> bool:
    """True if a box is within the bounds of an array; the program only accesses elements in bounds (in `part`)."""
    loops = [dim.loop for dim in dims][::-1]
    ends = {dim.loop: (dim.first, dim.last) for dim in dims}
    for index, size in zip(indices, shape, strict=True):
        first, last = (extreme(index, loops, ends, sign) for sign in (-1, 1))
        least, latest = first.range(spans)
        _, most = last.range(spans)
        bounded = least is not None and latest is not None and most is not None
        if part and not (bounded and least >= 0 and latest <= size and most < size):  # type: ignore[operator]
            return False
        if (first.is_constant and not 0 <= first.constant < size) or (last.is_constant and last.constant >= size):
            return False
    return True


def has_no_zero_trip_loop(dims: Sequence[Dim], spans: Spans) -> bool:
    """True if no loop is zero-trip, so every element of the slice is accessed by the program."""
    return all((dim.size.range(spans)[0] or 0) > 0 for dim in dims)


def has_division(value: mlir.Value, statement: Statement) -> bool:
    """True if the value is computed by an integer division whose divisor may be zero."""
    todo, seen = [value], {value}
    while todo:
        found = todo.pop()
        op = defining_op(found)
        if found in statement.reads or op is None or not is_pure(op):
            continue
        if op.name in INTEGER_DIVISIONS:
            divisor = defining_op(op.operands[1])
            if divisor is None or divisor.name != "arith.constant":
                return True
        todo += [operand for operand in op.operands if operand not in seen]
        seen.update(op.operands)
    return False

"""Index expressions as view operations and index arrays, checked against static shapes.

Slices, integers, `None` and `...` are views. Integer arrays gather; their dimensions replace the indexed ones if those
are adjacent, and come first otherwise, as in NumPy. Constant masks are converted to arrays of positions. Dynamic
integers are views with a dynamic offset; dynamic integer arrays gather.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.core.sizes import Size, is_size
from mlirml.errors import IndexOutOfBoundsError, InvalidIndexError, ShapeError, UnsupportedSyntaxError
from mlirml.frontend import advice
from mlirml.frontend.arrays.tracer import Tracer
from mlirml.ir.text.builder import Builder, Check, Value
from mlirml.ops.indexing.gather import broadcast_indices, gather
from mlirml.ops.indexing.positions import Positions, out_of_bounds, positions, scalar_position
from mlirml.ops.shapes.views import Reshape, Select, Slice, ViewOp

if TYPE_CHECKING:
    from mlirml.frontend.tracing.trace import Trace


_BASIC = {int, slice, type(None), type(Ellipsis)}


@dataclass(frozen=True)
class Index:
    """An index expression for an array of a known shape.

    `views` lead to the subarray that `arrays` index along `axes`; the dimensions of the arrays are inserted at
    `first_dim`, and `shape` is that of the result. Without arrays, the result is the subarray. `copies` means that
    NumPy copies nevertheless, `full` that the index selects one element, which NumPy returns as a scalar; `new_axes`
    are the dimensions that `None` adds; `numbers` are the axes counted in the array; `known` is the index as real
    arrays, if it is constant.
    """

    views: tuple[ViewOp, ...]
    axes: tuple[int, ...]
    arrays: tuple[Value, ...]
    first_dim: int
    shape: tuple[int, ...]
    copies: bool
    full: bool
    new_axes: frozenset[int] = frozenset()
    numbers: tuple[int, ...] = ()
    known: Any = None

    def load(self, part: Tracer) -> Value:
        """The elements, gathered from the subarray that the views lead to."""
        b, base = part._trace.builder, part._read()
        found = self.positions(b, base.shape)
        return b.reshape(gather(b, base, self.axes, found, self.first_dim), self.shape)

    def positions(self, b: Builder, part: tuple[int, ...]) -> list[Positions]:
        """The positions along each of the axes of the subarray of this shape, checked now or by the program."""
        given = zip(self.arrays, self.axes, self.numbers)
        return [positions(b, array, part[axis], number) for array, axis, number in given]


@dataclass(frozen=True)
class _Item:
    """One canonical item: a slice, "new", "rest", an integer, a traced integer, or an array of positions."""

    kind: str
    value: Any = None
    copies: bool = False


class UnknownLengthError(UnsupportedSyntaxError):
    """A slice of dynamic length, which the loop front end supports."""


ENDLESS = 1 << 40
"""A bound of slices after the end of any axis."""
DYNAMIC = "__mlirml_varying__"
"""The attribute of array classes with dynamic lengths: their name in messages."""


def is_dynamic(x: Any) -> bool:
    """True for an array of such a class."""
    return hasattr(type(x), DYNAMIC)


def with_arrays(index: Any) -> Any:
    """An index in which lists whose lengths the data decide are arrays of dynamic length, and bounds are integers."""
    if type(index) is tuple:
        return tuple(map(with_arrays, index))
    if type(index) is slice:
        return _with_given_bounds(index)
    return index.array() if hasattr(type(index), "is_counted") and index.is_counted else index


def _with_given_bounds(item: slice) -> slice:
    """A slice whose bounds may be None depending on data, `x[: -n or None]`, with numbers for None."""
    bounds = item.start, item.stop
    if not any(hasattr(type(bound), "_mlirml_bound") for bound in bounds):
        return item
    forward = item.step is None or item.step > 0
    defaults = (0, ENDLESS) if forward else (ENDLESS, -ENDLESS)
    start, stop = (
        bound._mlirml_bound(default) if hasattr(type(bound), "_mlirml_bound") else bound
        for bound, default in zip(bounds, defaults)
    )
    return slice(start, stop, item.step)


def parse_index(trace: Trace, shape: tuple[int, ...], index: Any) -> Index:
    """Parse the index of an array of this shape. Checks of dynamic positions are emitted into the program."""
    if trace.builder.direct:
        found = trace.handlers.window_index(trace, shape, index)
        if found is not None:
            return found
    items = index if isinstance(index, tuple) else (index,)
    if trace.builder.direct and any(map(_has_open_bounds, items)):
        raise UnknownLengthError("the length of a slice beside an array of positions differs between iterations")
    if _BASIC.issuperset(map(type, items)):
        return _basic_index(shape, items)
    return _parsed(trace, shape, [_array(trace, item) for item in items])


def known_truth(index: Any) -> bool | None:
    """The truth value if a constant one is the whole index: it then selects an axis of one element or none."""
    if getattr(index, "dtype", None) == np.bool_ and hasattr(index, "_known") and index.shape == ():
        found = index._known()
        return None if found is None else bool(found)
    return bool(index) if isinstance(index, (bool, np.bool_)) else None


def _has_open_bounds(item: Any) -> bool:
    """True for a slice with a bound that the program computes."""
    bounds = (item.start, item.stop, item.step) if isinstance(item, slice) else ()
    return any(hasattr(bound, "_known") and bound._known() is None for bound in bounds)


def _basic_index(shape: tuple[int, ...], items: tuple[Any, ...]) -> Index:
    """The index of Python integers, slices, `...` and `None`: the fast path."""
    used = rests = 0
    for item in items:
        if item is Ellipsis:
            rests += 1
        elif item is not None:
            used += 1
    _check_counts(shape, used, rests)
    starts: list[int] = []
    sizes: list[int] = []
    steps: list[int] = []
    drop: list[int] = []
    kept: list[int] = []
    result: list[int] = []
    for item in items if rests else (*items, Ellipsis):
        axis = len(starts)
        if item is None:
            result.append(1)
        elif item is Ellipsis:
            rest = shape[axis : axis + len(shape) - used]
            starts += [0] * len(rest)
            steps += [1] * len(rest)
            for part in (sizes, kept, result):
                part += rest
        elif type(item) is int:
            starts.append(position(item, shape[axis], axis))
            sizes.append(1)
            steps.append(1)
            drop.append(axis)
        else:
            start, stop, step = slice_bounds(item, shape[axis])
            count = length(start, stop, step)
            starts.append(start if count else 0)
            steps.append(step if step != 1 and count > 1 else 1)
            for part in (sizes, kept, result):
                part.append(count)
    view = Slice(tuple(kept), tuple(starts), tuple(sizes), tuple(steps), tuple(drop))
    views = (view,) if result == kept else (view, Reshape(tuple(result)))
    return Index(views, (), (), 0, tuple(result), False, not rests and len(drop) == len(shape) == len(items))


def _check_counts(shape: tuple[int, ...], used: int, rests: int) -> None:
    if used > len(shape):
        rank = "1 dimension" if len(shape) == 1 else f"{len(shape)} dimensions"
        raise IndexOutOfBoundsError(f"too many indices: {used} for an array of {rank}, shape {list(shape)}")
    if rests > 1:
        raise InvalidIndexError("an index can have only one ellipsis (`...`)")


def _parsed(trace: Trace, shape: tuple[int, ...], given: list[Any]) -> Index:
    """The index of any items."""
    used = sum(map(_consumed, given))
    rests = sum(item is Ellipsis for item in given)
    _check_counts(shape, used, rests)
    items: list[_Item] = []
    axis = 0
    for item in given if rests else [*given, Ellipsis]:
        items += _canonical(trace, shape, item, axis)
        axis += len(shape) - used if item is Ellipsis else _consumed(item)
    full = not rests and used == len(shape) and all(i.kind in ("integer", "traced", "rest") for i in items)
    advanced = any(item.kind == "array" for item in items)
    plan = _Plan(trace, shape)
    for part in items:
        plan.add(part, len(shape) - used, advanced)
    found = plan.finished(any(item.copies for item in items), full)
    return replace(found, known=_real(given)) if advanced else found


def _real(items: list[Any]) -> tuple[Any, ...] | None:
    """The index with traced arrays replaced by their contents; None if one is dynamic, or read anew at each call."""
    real = [item._known() if isinstance(item, Tracer) else item for item in items]
    if any(isinstance(item, np.ndarray) for item in items):
        return None
    return None if any(new is None and old is not None for new, old in zip(real, items)) else tuple(real)


class _Plan:
    """Collects the components of an index, dimension by dimension of the array."""

    def __init__(self, trace: Trace, shape: tuple[int, ...]) -> None:
        self.trace, self.shape = trace, shape
        self.ranges: list[tuple[int, int, int]] = []  # start, size and step along each dimension of the array
        self.drop: list[int] = []
        self.dynamic_positions: list[tuple[int, Value]] = []
        self.arrays: list[tuple[int, Value]] = []
        self.result: list[int] = []
        self.new_axes: list[int] = []
        self.groups = 0  # runs of adjacent items that become arrays of positions
        self.first_dim: int | None = None
        self.in_group = False

    def add(self, item: _Item, rest: int, advanced: bool) -> None:
        """Add the next item; an ellipsis takes `rest` dimensions."""
        axis = len(self.ranges)
        if item.kind in ("new", "rest", "slice"):
            self.in_group = False
            if item.kind == "new":
                self.new_axes.append(len(self.result))
                self.result.append(1)
            elif item.kind == "rest":
                sizes = self.shape[axis : axis + rest]
                self.ranges += [(0, n, 1) for n in sizes]
                self.result += sizes
            else:
                self._add_slice(item.value, self.shape[axis])
            return
        if advanced and not self.in_group:
            self.groups, self.in_group = self.groups + 1, True
            self.first_dim = len(self.result) if self.first_dim is None else self.first_dim
        if item.kind == "integer":
            self.ranges.append((position(item.value, self.shape[axis], axis), 1, 1))
            self.drop.append(axis)
            return
        self.ranges.append((0, self.shape[axis], 1))
        (self.arrays if item.kind == "array" else self.dynamic_positions).append((axis, item.value))

    def _add_slice(self, item: slice, size: int) -> None:
        start, stop, step = slice_bounds(item, size)
        count = length(start, stop, step)
        self.ranges.append((start if count else 0, count, step if count > 1 else 1))
        self.result.append(count)

    def finished(self, copies: bool, full: bool) -> Index:
        """The index."""
        starts, sizes, steps = (tuple(r[i] for r in self.ranges) for i in range(3))
        kept = [d for d in range(len(self.shape)) if d not in self.drop]
        views: list[ViewOp] = [Slice(tuple(sizes[d] for d in kept), starts, sizes, steps, tuple(self.drop))]
        if self.dynamic_positions:
            views.append(self._select(kept))
            taken = [axis for axis, _ in self.dynamic_positions]
            kept = [d for d in kept if d not in taken]
        if not self.arrays:
            if tuple(self.result) != views[-1].shape:
                views.append(Reshape(tuple(self.result)))
            return Index(tuple(views), (), (), 0, tuple(self.result), copies, full)
        common = broadcast_indices([array.shape for _, array in self.arrays])
        first_dim = self.first_dim if self.groups == 1 and self.first_dim is not None else 0
        shape = (*self.result[:first_dim], *common, *self.result[first_dim:])
        # The result's dimensions without the new ones: those of the subarray before `first_dim`.
        before = self._dimensions_before(first_dim)
        axes = tuple(kept.index(axis) for axis, _ in self.arrays)
        arrays, new = tuple(a for _, a in self.arrays), (d if d < first_dim else d + len(common) for d in self.new_axes)
        return Index(
            tuple(views),
            axes,
            arrays,
            before,
            shape,
            True,
            False,
            frozenset(new),
            tuple(axis for axis, _ in self.arrays),
        )

    def _dimensions_before(self, first_dim: int) -> int:
        if not first_dim:
            return 0
        first = min(axis for axis, _ in self.arrays)
        dropped = {*self.drop, *(axis for axis, _ in [*self.dynamic_positions, *self.arrays])}
        return sum(axis not in dropped for axis in range(first))

    def _select(self, kept: list[int]) -> Select:
        base = [self.ranges[d][1] for d in kept]
        axes = [kept.index(axis) for axis, _ in self.dynamic_positions]
        names = [scalar_position(self.trace.builder, v, self.shape[d], d) for d, v in self.dynamic_positions]
        shape = tuple(n for d, n in enumerate(base) if d not in axes)
        return Select(
            shape, tuple(axes), tuple(v for _, v in self.dynamic_positions), tuple(names), self.trace.builder.region
        )


def _consumed(item: Any) -> int:
    """The number of the array's dimensions that an item indexes."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if getattr(item, "dtype", None) == np.bool_ and np.ndim(item) else 1


def _array(trace: Trace, item: Any) -> Any:
    """A list or `range` as NumPy's array, and the value of a variable that may be None; anything else as it is."""
    if hasattr(type(item), "_mlirml_given"):
        return item._mlirml_given()
    if not isinstance(item, (list, tuple, range)):
        return item
    array = trace.array(list(item))
    return array.astype(np.int64) if array.size == 0 and array.dtype.kind == "f" else array


def _canonical(trace: Trace, shape: tuple[int, ...], item: Any, axis: int) -> list[_Item]:
    """An item of an index in canonical forms; a mask becomes several."""
    if item is None or item is Ellipsis:
        return [_Item("new" if item is None else "rest")]
    if isinstance(item, slice):
        return [_Item("slice", item)]
    if isinstance(item, (bool, np.bool_)) or (getattr(item, "dtype", None) == np.bool_ and np.ndim(item) == 0):
        raise UnsupportedSyntaxError("indexing with True or False is not compiled", help="use `x[None]` to add an axis")
    if isinstance(item, (Tracer, np.ndarray)):
        if item.dtype == np.bool_:
            return _mask(trace, shape, item, axis)
        if item.dtype.kind not in "iu":
            if not item.ndim:
                help_ = "divide with `//`, or convert it: with `int(...)` in loops, `.astype(np.int64)` elsewhere"
                raise _not_an_index(f"a number of {item.dtype}", help_)
            raise _not_an_index(f"an array of {item.dtype}", "convert it with `.astype(np.int64)`")
        return [_integers(trace, item)]
    if is_size(item):
        return [_Item("integer", item)]
    try:
        return [_Item("integer", int(item.__index__()))]
    except (AttributeError, TypeError):
        raise _not_an_index(repr(item)) from None


def _not_an_index(what: str, help_: str | None = None) -> InvalidIndexError:
    return InvalidIndexError(
        f"an index must be an integer, a slice, `...`, None or an array of those, got {what}", help=help_
    )


def _integers(trace: Trace, item: Any) -> _Item:
    """An array of integers; a constant 0-d one becomes an integer, as in NumPy."""
    if not isinstance(item, Tracer):
        item = trace.array(item, copy=False)
    known = item._known()
    copies = not item.ndim and not item._scalar
    if known is not None and not known.shape:
        return _Item("integer", int(known), copies)
    return _Item("array" if item.ndim else "traced", item._read(), copies)


def _mask(trace: Trace, shape: tuple[int, ...], mask: Any, axis: int) -> list[_Item]:
    """A mask with known elements as arrays of positions, one for each of its dimensions."""
    known = mask._known() if isinstance(mask, Tracer) else np.asarray(mask)
    if known is None:
        raise ShapeError(advice.MASK, help=advice.MASK_HELP)
    if known.shape != shape[axis : axis + known.ndim]:
        raise mask_does_not_fit(known.shape, shape)
    if known is mask:  # a real array whose reads are not recorded
        _check_unchanged(trace, known)
    return [_Item("array", trace.builder.constant(places)) for places in np.nonzero(known)]


def mask_does_not_fit(mask: tuple[int, ...], shape: tuple[int, ...]) -> InvalidIndexError:
    """The error for a mask of a wrong shape."""
    return InvalidIndexError(
        f"a mask of shape {list(mask)} does not fit an array of shape {list(shape)}",
        help="a mask has the shape of the array, or that of the dimensions that it indexes",
    )


def _check_unchanged(trace: Trace, mask: np.ndarray) -> None:
    # A real array is read anew at each call, but the shape of the result was taken from its elements now.
    b = trace.builder
    if not mask.size:
        return
    now, then = b.constant(mask, live=True), b.constant(mask.copy())
    differs: Callable[..., str] = lambda block, xs: block.op(f"arith.xori {xs[0]}, {xs[1]}", "i1")  # noqa: E731
    bit = np.dtype(np.bool_)
    changed = b.elementwise([now, then], [bit, bit], bit, mask.shape, differs)
    some = b.reduce(
        changed, range(mask.ndim), bit, False, lambda block, x, acc: block.op(f"arith.ori {x}, {acc}", "i1")
    )
    differ = b.named(f"tensor.extract {some.name}[] : {some.type}")
    same = b.named(f"arith.xori {differ}, {b.scalar(True, bit)} : i1")
    message = "a mask from outside the function has other elements than when the function was compiled"
    b.check(same, Check("LaunchError", message, "pass the mask as an argument, and select with `np.where(mask, x, 0)`"))


def slice_bounds(item: slice, size: int) -> tuple[int, int, int]:
    """Start, stop and step of a slice of an axis."""
    for bound in (item.start, item.stop, item.step):
        if bound is None or type(bound) in (int, Size):
            continue
        if hasattr(bound, "_known") and bound._known() is None:
            error = UnsupportedSyntaxError(
                f"a bound of a slice is known only at run time ({bound._describe()}), and so is the length",
                help=f"for a known length n write `x[start + np.arange(n)]`, or {advice.STATIC}",
            )
            error.sizes, error.subject = bound._sizes(), advice.SLICE
            raise error
        if not hasattr(bound, "__index__"):
            raise InvalidIndexError(f"slice bounds must be integers or None, got {bound!r}")
    if item.step is not None and int(item.step.__index__()) == 0:
        raise ShapeError("slice step cannot be zero")
    is_dynamic = any(map(is_size, (item.start, item.stop, size)))
    return dynamic_bounds(item, size) if is_dynamic else item.indices(size)


def dynamic_bounds(item: slice, size: Any) -> tuple[int, int, int]:
    """Start, stop and step of a slice of an axis of dynamic size, as `slice.indices`; they may be dynamic, too."""
    step = 1 if item.step is None else int(item.step.__index__())
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def clamped(bound: Any, default: Any) -> Any:
        if bound is None:
            return default
        bound = bound + size if bound < 0 else bound
        return low if bound < low else high if bound >= high else bound

    first, last = (low, high) if step > 0 else (high, low)
    return clamped(item.start, first), clamped(item.stop, last), step


def length(start: Any, stop: Any, step: int) -> Any:
    """The length of a range of integers or sizes."""
    if type(start) is int and type(stop) is int:
        return len(range(start, stop, step))
    span = stop - start if step > 0 else start - stop
    by = abs(step)
    return (span + by - 1) // by if span > 0 else 0


def position(number: int, size: int, axis: int) -> int:
    """A Python integer as a position along an axis."""
    if not -size <= number < size:
        raise out_of_bounds(number, size, axis)
    return number % size if type(size) is int else number if number >= 0 else size + number

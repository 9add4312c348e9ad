"""Slices of dynamic length: operations on them become loops.

    a[i, k:] -= a[i, j] * a[j, k:]              for t in range(n - k):
                                                    a[i, k + t] -= a[i, j] * a[j, k + t]

A slice is a location in an array, and an expression of slices a function from indices to elements, which is evaluated
where they are stored or summed up. If it is assigned to a variable first, or if a store would overwrite elements that
it reads, it is materialised in an array of its greatest length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.errors import CaptureError, DTypeError, ShapeError, UnsupportedSyntaxError
from mlirml.frontend import advice
from mlirml.frontend.arrays.array import Traced
from mlirml.frontend.arrays.function_options import with_options
from mlirml.frontend.arrays.indexing import is_dynamic, with_arrays
from mlirml.frontend.arrays.operators import install_operators
from mlirml.frontend.arrays.tracer import Cell
from mlirml.frontend.frames import at_user_line, user_location
from mlirml.frontend.loops.dynamic_indices import Axis, Number, Read, clamped, index_name, index_of
from mlirml.frontend.loops.ranges import TracedRange
from mlirml.frontend.tracing.trace import Trace
from mlirml.ir.text.builder import Check
from mlirml.ir.text.dtypes import short_name

Element = Callable[[tuple[Number, ...]], Any]
_ONE_LENGTH = "this result has one length in all calls: pad the array"
_HELP = "write a loop over the elements, or slices of one length, as in `x[i : i + 3]`"
_AS_FUNCTIONS = (
    "argpartition", "choose", "clip", "conj", "conjugate", "cumprod", "diagonal", "nonzero", "repeat", "round",
    "searchsorted", "squeeze", "swapaxes", "take", "trace",
)  # fmt: skip
"""Methods that are functions of the same name."""


@dataclass(frozen=True)
class Operations:
    """The functions of slices that other files of the package define: indices, ufuncs, functions, products, methods."""

    part: Callable[[DynamicSlice, Any], DynamicSlice]
    has_positions: Callable[[Any], bool]
    store_at: Callable[[DynamicSlice, Any, Any], None]
    has_rows: Callable[[Any], bool]
    store_rows: Callable[[DynamicSlice, Any, Any], None]
    call_ufunc: Callable[[Trace, np.ufunc, str, Sequence[Any], dict[str, Any]], Any]
    call_function: Callable[[DynamicSlice, Callable[..., Any], Sequence[Any], dict[str, Any]], Any]
    product: Callable[[Trace, Any, Any], Any]
    functions: Mapping[Callable[..., Any], Callable[..., Any]]
    methods: Mapping[str, Callable[..., Any]]
    named: Mapping[str, Callable[..., Any]]
    """Functions that take the trace first, by their names."""


class DynamicSlice:
    """An array with dynamic lengths.

    `most` bounds the lengths, and is a length where that is static; `sample` is an array with one element that has the
    dtype. `indices` is the location of a slice of an array.
    """

    __array_priority__ = 2000
    __mlirml_varying__ = "a slice of changing length"
    __hash__ = None  # type: ignore[assignment]
    _operations: ClassVar[Operations]
    """Set when the package is loaded, in its `__init__.py`."""

    def __init__(
        self,
        trace: Trace,
        shape: Sequence[Number],
        most: Sequence[int],
        sample: Any,
        element: Element,
        reads: Sequence[Read],
        indices: Read | None = None,
    ) -> None:
        self._trace, self._shape = trace, tuple(shape)
        self._most = tuple(n if isinstance(n, int) else limit for n, limit in zip(shape, most))
        self._sample, self._element, self._reads, self._location = sample, element, tuple(reads), indices

    # Attributes of `numpy.ndarray`.

    @property
    def shape(self) -> tuple[Number, ...]:
        """The lengths."""
        with at_user_line():
            return tuple(map(self._length, range(self.ndim)))

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        sample: np.ndarray = np.asarray(self._sample)
        return sample.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._shape)

    @property
    def size(self) -> Number:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def T(self) -> DynamicSlice:
        """Dimensions reversed, a view."""
        return transposed(self, tuple(reversed(range(self.ndim))))

    @property
    def real(self) -> DynamicSlice:
        """The real parts."""
        return np.real(self)

    @property
    def imag(self) -> DynamicSlice:
        """The imaginary parts."""
        return np.imag(self)

    def _length(self, dim: int) -> Number:
        """A length, clamped to be non-negative."""
        length = self._shape[dim]
        if not isinstance(length, Traced):
            return length
        return clamped(self._trace, length, 0, self._most[dim])

    def _describe(self) -> str:
        shown = [str(n) if isinstance(n, int) else "?" for n in self._shape]
        return f"{short_name(self.dtype)}[{','.join(shown)}]"

    def __repr__(self) -> str:
        return f"Varying({self._describe()})"

    def __len__(self) -> int:
        if self._shape and isinstance(self._shape[0], int):
            return self._shape[0]
        raise self._refused("its length as a number")

    def __bool__(self) -> bool:
        raise self._refused("its truth value", "use `np.any(x)` or `np.all(x)`")

    def __iter__(self) -> Iterator[Any]:
        if self._shape and isinstance(self._shape[0], int):
            return map(self.__getitem__, range(self._shape[0]))
        raise self._refused("to go through its items outside of a `for` statement")

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise self._refused("an array of it")

    def __float__(self) -> float:
        raise self._refused("a number made of it")

    __int__ = __index__ = __float__

    def __getattr__(self, name: str) -> Any:
        if name in self._operations.methods:
            method = with_options(name, self._operations.methods[name])
            return lambda *args, **kwargs: _called(method, self, *args, **kwargs)
        if name in _AS_FUNCTIONS:
            return lambda *args, **kwargs: getattr(np, name)(self, *args, **kwargs)
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        raise self._refused(f"`.{name}`")

    def as_result(self, path: str) -> CaptureError:
        """The error for a dynamic slice in the result of the function."""
        message = f"{path} is a slice whose length is known only at run time"
        return ShapeError(message, help="return the array and the length")

    def of_one_length(self, path: str) -> Traced:
        """The array that a function returns for a transform or a loop, which has one length in each of its calls.

        A slice such as `x[i : i + 2]` has that length where it is within its dimension, which is checked.
        """
        trace, integers = self._trace, self._trace.integers
        lengths: list[int] = []
        for length in self._shape:
            known = length if isinstance(length, int) else integers.whole_lengths.get(length._read().name)
            if known is None or not trace.builder.direct:
                raise self.as_result(path)
            lengths.append(known)
        b = trace.builder
        for dim, known in enumerate(lengths):
            if isinstance(self._shape[dim], Traced) and b.checked:
                same = b.named(f"arith.cmpi eq, {index_name(trace, self._length(dim))}, {b.index(known)} : index")
                message = f"{path} is a slice of length {known}, and ends beyond the array"
                b.check(same, Check("ShapeError", message, _ONE_LENGTH))
        out = Traced(trace, Cell(b.empty(tuple(lengths), self.dtype), owned=True))
        axes = [Axis(0, 1, dim) for dim in range(self.ndim)]
        store(part(out, axes, lengths, lengths), _with_lengths(self, lengths))
        return out

    def _refused(self, what: str, help_: str = _HELP) -> CaptureError:
        """The error for operations that need static lengths."""
        return refused(self._trace, self, what, help_)

    def _is_same_part(self, other: Any) -> bool:
        if not isinstance(other, DynamicSlice) or self._location is None or other._location is None:
            return self is other
        return self._location.is_same_part(other._location)

    # Elements.

    def _operated(self, ufunc: np.ufunc, operands: Sequence[Any]) -> Any:
        """The result of a Python operator of which this is an operand."""
        return operated(self._trace, ufunc, operands)

    def _at(self, indices: Sequence[Number]) -> Any:
        """The element at indices within the lengths."""
        return self._element(tuple(indices))

    def __getitem__(self, index: Any) -> Any:
        with at_user_line():
            check_front_end(self._trace)
            found = self._operations.part(self, with_arrays(index))
            if found.ndim:
                return found
            check_unchanged(found)
            return found._at(())

    def __setitem__(self, index: Any, value: Any) -> None:
        with at_user_line():
            check_front_end(self._trace)
            index = with_arrays(index)
            if self._operations.has_positions(index):
                self._operations.store_at(self, index, value)
            elif self._operations.has_rows(index):
                self._operations.store_rows(self, index, value)
            else:
                store(self._operations.part(self, index), value)

    def store(self, value: Any) -> None:
        """`self[...] = value`."""
        store(self, value)

    def store_in_place(self, ufunc: np.ufunc, operand: Any) -> Any:
        """`self += operand` and the like."""
        return store_in_place(self, ufunc, operand)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        with at_user_line():
            check_front_end(self._trace)
            return self._operations.call_ufunc(self._trace, ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        with at_user_line():
            check_front_end(self._trace)
            return self._operations.call_function(self, function, args, kwargs)


def _called(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with at_user_line():
        for x in args:
            if isinstance(x, DynamicSlice):
                check_front_end(x._trace)
        return method(*args, **kwargs)


def check_front_end(trace: Trace) -> None:
    """Refuse loops over elements in a function that is traced without its loops: it is captured with them then."""
    if not trace.builder.direct:
        error = ShapeError(advice.DATA_SIZE, location=user_location(2), help=advice.DATA_SIZE_HELP)
        error.subject = advice.DATA_SIZE
        raise error


def refused(trace: Trace, part: DynamicSlice, what: str, help_: str = _HELP) -> CaptureError:
    """The error for an unsupported operation on a dynamic slice; unrolling the enclosing loops would make it static."""
    check_front_end(trace)
    error = UnsupportedSyntaxError(
        f"the length of a slice is known only at run time, and {what} would need it",
        location=user_location(2),
        help=help_,
    )
    starts = [axis.start for read in part._reads for axis in read.axes]
    lengths = [n for read in part._reads for n in read.shape]
    bounds = [*starts, *lengths, *part._shape]
    error.roots = frozenset().union(*map(trace.integers.roots, bounds))
    error.sizes = frozenset().union(*(bound._sizes() for bound in bounds if isinstance(bound, Traced)))
    return error


def require(trace: Trace, condition: Any, check: Check) -> None:
    """Emit a check of a condition on lengths, or raise its error now."""
    b = trace.builder
    if isinstance(condition, Traced):
        if b.checked:
            name = b.named(f"arith.cmpi ne, {index_name(trace, condition.astype(np.int64))}, {b.index(0)} : index")
            b.check(name, check)
    elif not condition:
        raise ShapeError(check.message)


# Functions from indices to elements.


def as_part(trace: Trace, x: Any) -> DynamicSlice:
    """Any operand of an expression as a `DynamicSlice`."""
    if isinstance(x, DynamicSlice):
        return x
    if is_dynamic(x):
        return x.side_by_side()
    if not isinstance(x, Traced) and not np.isscalar(x):
        x = trace.array(x, copy=False)
    if not isinstance(x, Traced):
        return DynamicSlice(trace, (), (), x, lambda indices: x, ())
    if not x.ndim:
        kind = {"b": True, "i": 1, "u": 1, "f": 1.0, "c": 1j}[x.dtype.kind] if x._is_weak() else x.dtype.type(1)
        return DynamicSlice(trace, (), (), kind, lambda indices: x, ())
    return whole(x)


def whole(x: Traced) -> DynamicSlice:
    """The whole of an array."""
    axes = tuple(Axis(0, 1, dim) for dim in range(x.ndim))
    return part(x, axes, x.shape, x.shape)


def part(base: Traced, axes: Sequence[Axis], shape: Sequence[Number], most: Sequence[int]) -> DynamicSlice:
    """A slice of an array."""
    read = Read(base, tuple(axes), tuple(shape), base._cell.version)

    def element(indices: tuple[Number, ...]) -> Any:
        return base[index_of(read, indices)]

    sample = np.ones((1,) * len(shape), base.dtype)
    return DynamicSlice(base._trace, shape, most, sample, element, [read], read)


def combined(
    trace: Trace, compute: Callable[..., Any], sample: Callable[..., Any], operands: Sequence[Any]
) -> DynamicSlice:
    """The result of `compute` on the elements of operands that are broadcast."""
    parts = [as_part(trace, x) for x in operands]
    shape, most = common_shape(trace, parts)
    with np.errstate(all="ignore"):
        found = sample(*(p._sample for p in parts))

    def element(indices: tuple[Number, ...]) -> Any:
        return compute(*(stretched(p, indices) for p in parts))

    reads = [r if p.ndim == len(shape) else replace(r, aligned=False) for p in parts for r in reads_of(p)]
    return DynamicSlice(trace, shape, most, np.asarray(found).reshape((1,) * len(shape)), element, reads)


def stretched(p: DynamicSlice, indices: Sequence[Number]) -> Any:
    """The element of an operand at indices of the shape that it is broadcast to."""
    own = list(indices)[len(indices) - p.ndim :]
    return p._at([0 if is_one(n) else k for n, k in zip(p._shape, own)])


def axis_of(axis: int, rank: int, name: str = "") -> int:
    """The number of an axis from 0 on; raises `ShapeError`, which names a function, for one out of bounds."""
    if not -rank <= axis < rank:
        raise ShapeError(f"{name and f'{name}: '}axis {axis} is out of bounds for an array of {rank} dimension(s)")
    return axis % rank


def is_one(length: Number) -> bool:
    """True if a length is known to be 1, so that it may be broadcast."""
    return isinstance(length, int) and length == 1


def is_mask(item: Any) -> bool:
    """True for a mask of static length."""
    return isinstance(item, Traced) and len(item.shape) == 1 and item.dtype == np.bool_


def is_static(length: Number) -> bool:
    """True if a length is known when tracing."""
    return isinstance(length, int)


def common_shape(trace: Trace, parts: Sequence[DynamicSlice]) -> tuple[tuple[Number, ...], tuple[int, ...]]:
    """The broadcast shape, and its limits. A dynamic length is not broadcast."""
    rank = max(p.ndim for p in parts)
    shape: list[Number] = []
    most: list[int] = []
    for dim in range(-rank, 0):
        chosen: tuple[Number, int] | None = None
        for p in parts:
            if p.ndim < -dim or is_one(p._shape[dim]):
                continue
            given = p._shape[dim], p._most[dim]
            chosen = given if chosen is None else same_length(trace, chosen, given, parts)
        shape.append(1 if chosen is None else chosen[0])
        most.append(1 if chosen is None else chosen[1])
    return tuple(shape), tuple(most)


def same_length(
    trace: Trace, one: tuple[Number, int], other: tuple[Number, int], parts: Sequence[DynamicSlice]
) -> tuple[Number, int]:
    """The common length of two slices; compared at run time if it is unknown."""
    b, integers = trace.builder, trace.integers
    forms = integers.of(one[0]), integers.of(other[0])
    most = min(one[1], other[1])
    difference = forms[0] - forms[1]
    if not difference.is_constant:
        if b.checked:
            # A slice that ends before it begins is as empty as any other one.
            names = [index_name(trace, clamped(trace, length, 0, limit)) for length, limit in (one, other)]
            equal = b.named(f"arith.cmpi eq, {names[0]}, {names[1]} : index")
            b.check(equal, Check("ShapeError", "slices of different lengths are combined"))
        return (one[0] if isinstance(one[0], Traced) else other[0]), most
    if difference.constant:
        shown = ", ".join(p._describe() for p in parts if p.ndim)
        raise ShapeError(
            f"slices of different lengths are combined: {shown}, one always longer by {abs(difference.constant)}",
            help="compare the bounds of the slices",
        )
    return (one[0] if type(one[0]) is int else other[0]), most


def transposed(x: DynamicSlice, order: Sequence[int]) -> DynamicSlice:
    """Dimension d of the result is dimension `order[d]` of `x`."""
    back = [list(order).index(d) for d in range(x.ndim)]
    if x._location is not None:
        axes = [Axis(a.start, a.step, None if a.dim is None else back[a.dim]) for a in x._location.axes]
        return part(x._location.base, axes, [x._shape[d] for d in order], [x._most[d] for d in order])
    return DynamicSlice(
        x._trace,
        [x._shape[d] for d in order],
        [x._most[d] for d in order],
        x._sample,
        lambda indices: x._at([indices[back[d]] for d in range(x.ndim)]),
        moved(x),
    )


def reads_of(x: DynamicSlice) -> list[Read]:
    """The reads of an expression: a slice is read as it is now, an expression of slices as they were then."""
    if x._location is None:
        return list(x._reads)
    return [replace(r, version=r.base._cell.version) for r in x._reads]


def moved(x: DynamicSlice) -> list[Read]:
    """The reads of an expression, none of them aligned."""
    return [replace(r, aligned=False) for r in reads_of(x)]


def _with_lengths(x: DynamicSlice, lengths: Sequence[int]) -> DynamicSlice:
    """The same elements, whose lengths are known to be these."""
    return DynamicSlice(x._trace, lengths, lengths, x._sample, x._element, reads_of(x))


# Loops.


def over(trace: Trace, length: Number, total: Any, body: Callable[[Any, Number], Any]) -> Any:
    """`body(total, number)`, which returns the next total, for each number below a length."""
    check_front_end(trace)

    def iteration(number: Number) -> None:
        nonlocal total
        total = body(total, number)

    own = ("total",)
    trace.hooks.for_(_iterable(length), iteration, own, own, own, (), "", "", False)
    return total


def fold(trace: Trace, lengths: Sequence[Number], total: Any, body: Callable[[Any, tuple[Number, ...]], Any]) -> Any:
    """`over` for all indices of a box."""

    def level(total: Any, indices: tuple[Number, ...]) -> Any:
        if len(indices) == len(lengths):
            return body(total, indices)
        return over(trace, lengths[len(indices)], total, lambda inner, number: level(inner, (*indices, number)))

    return level(total, ())


def _iterable(length: Number) -> Any:
    return TracedRange(0, length, 1) if isinstance(length, Traced) else range(length)


def check_unchanged(x: DynamicSlice) -> None:
    """Refuse an expression of elements that have been overwritten since."""
    if x._location is None and any(r.version != r.base._cell.version for r in x._reads):
        raise CaptureError(
            "an array that a slice of changing length is taken of has been stored into since",
            help="give what is computed of the slice a name of its own, or take a `.copy()`",
        )


def store(target: DynamicSlice, value: Any) -> None:
    """`target[...] = value`."""
    check_front_end(target._trace)
    trace, indices = target._trace, target._location
    if indices is None:
        raise CaptureError(
            "a store into what was computed of a slice of changing length",
            help="give it a name first, and store into that",
        )
    given = as_part(trace, value)
    if given._location is not None and given._location.is_same_part(indices):
        return
    while given.ndim > target.ndim and is_one(given._shape[0]):
        given = given[0]
    common_shape(trace, [target, given])
    alike = zip(given._shape, target._shape[target.ndim - given.ndim :])
    if given.ndim > target.ndim or any(is_one(n) and not is_one(m) for m, n in alike):
        raise ShapeError(f"assignment: {given._describe()} does not broadcast to {target._describe()}")
    check_unchanged(given)
    if not all((r.aligned and r.is_same_part(indices)) or r.is_apart(indices) for r in given._reads):
        given = materialised(given)
    base, lengths = indices.base, target._shape

    def level(found: tuple[Number, ...]) -> None:
        if len(found) == len(lengths):
            base[index_of(indices, found)] = stretched(given, found)
            return

        def iteration(number: Number) -> None:
            base  # noqa: B018  (the loop stores into it)
            level((*found, number))

        trace.hooks.for_(_iterable(lengths[len(found)]), iteration, (), (), (), ("base",), "", "", False)

    level(())


def materialised(x: DynamicSlice) -> DynamicSlice:
    """A new array of the greatest length, of which a slice is filled."""
    trace = x._trace
    check_unchanged(x)
    out = Traced(trace, Cell(trace.builder.empty(x._most, x.dtype), owned=True))
    result = part(out, [Axis(0, 1, dim) for dim in range(x.ndim)], x._shape, x._most)
    store(result, x)
    return part(out, [Axis(0, 1, dim) for dim in range(x.ndim)], x._shape, x._most)


def named(value: Any) -> Any:
    """The value that a variable gets in an assignment: an expression is materialised."""
    if isinstance(value, DynamicSlice):
        return value if value._location is not None else materialised(value)
    if type(value) in (tuple, list) and any(isinstance(x, DynamicSlice) for x in value):
        return type(value)(map(named, value))
    return value


def store_in_place(target: DynamicSlice, ufunc: np.ufunc, operand: Any) -> Any:
    """`target += operand` and the like."""
    new = operated(target._trace, ufunc, (target, operand))
    if target._location is None:
        return new
    if not np.can_cast(new.dtype, target.dtype, "same_kind"):
        raise DTypeError(
            f"cannot store {new._describe()} in place into {target._describe()}",
            help=f"make a new array, `x = x + y`, or convert the result with `.astype(np.{target.dtype.name})`",
        )
    store(target, new)
    return target


def operated(trace: Trace, ufunc: np.ufunc, operands: Sequence[Any]) -> DynamicSlice:
    """A Python operator."""
    if ufunc is np.matmul:
        return DynamicSlice._operations.product(trace, *operands)
    return combined(trace, lambda *xs: trace.call_operator(ufunc, xs), ufunc, operands)


install_operators(
    DynamicSlice,
    lambda self, ufunc, operands: _called(operated, self._trace, ufunc, operands),
    lambda self, ufunc, other: _called(store_in_place, self, ufunc, other),
)

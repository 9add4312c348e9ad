"""Elements under a dynamic mask: `x[x > 0]`, whose length depends on the data.

    x[m] *= 2                 x[...] = np.where(m, x * 2, x)
    np.mean(x[m])             np.mean(x, where=m)

The elements keep their positions in the masked array. Elementwise functions are computed for all elements; reductions
ignore elements outside of the mask; a store under the same mask is a `where`. Operations that need the elements
side by side are those of an array of dynamic length, which the loop front end makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirml.errors import CaptureError, DTypeError, ShapeError
from mlirml.frontend import advice
from mlirml.frontend.arrays.function_options import with_options
from mlirml.frontend.arrays.indexing import is_dynamic
from mlirml.frontend.arrays.operators import install_operators
from mlirml.frontend.arrays.scattering import Masked
from mlirml.frontend.arrays.tracer import Tracer
from mlirml.frontend.frames import at_user_line, user_location
from mlirml.ir.text.builder import Check
from mlirml.ir.text.dtypes import short_name
from mlirml.ops.reductions import normalized_axes

if TYPE_CHECKING:
    from mlirml.frontend.arrays.array import Traced
    from mlirml.frontend.tracing.trace import Trace

_DIFFERENT = "what one mask picks is combined with what another one picks, and the masks differ"
_ELEMENTWISE = {
    np.where, np.clip, np.round, np.around, np.nan_to_num, np.real, np.imag, np.isclose, np.angle, np.real_if_close,
    np.sinc, np.i0, np.copy,
}  # fmt: skip


class MaskedElements:
    """The elements of `values` where `mask` is true, as one dimension after the first `lead` ones of `values`."""

    __array_priority__ = 2000
    __mlirml_varying__ = "what a mask picks"
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, trace: Trace, values: Traced, mask: Traced, lead: int, index: Any) -> None:
        self._trace, self._values, self._mask, self._lead, self._index = trace, values, mask, lead, index
        self._origin: tuple[Callable[..., Any], list[Any]] | None = None  # the function and operands that it is of
        self._side_by_side: Any = None  # the same as an array of dynamic length, and the region that it is made in

    # What a user asks of an array.

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        return self._values.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._lead + 1 + self._free

    @property
    def shape(self) -> tuple[Any, ...]:
        """Sizes of the dimensions, of which one is dynamic."""
        sizes = self._values.shape
        return (*sizes[: self._lead], self._count(), *sizes[len(sizes) - self._free :])

    @property
    def size(self) -> Any:
        """The number of elements."""
        with at_user_line():
            others = self._values.size // max(self._mask.size, 1)
            return self._count() * others

    @property
    def real(self) -> MaskedElements:
        """The real parts."""
        return self._like(self._values.real)

    @property
    def imag(self) -> MaskedElements:
        """The imaginary parts."""
        return self._like(self._values.imag)

    @property
    def _free(self) -> int:
        """The number of dimensions after those of the mask."""
        return self._values.ndim - self._lead - self._mask.ndim

    def _count(self) -> Any:
        return self._trace.call_function(np.count_nonzero, (self._mask,), {})

    def _wide_mask(self) -> Traced:
        """The mask with a dimension of size 1 for each dimension after it."""
        return self._mask.reshape(self._mask.shape + (1,) * self._free)

    def _describe(self) -> str:
        sizes = self._values.shape
        shown = [*sizes[: self._lead], "?", *sizes[len(sizes) - self._free :]]
        return f"{short_name(self.dtype)}[{','.join(map(str, shown))}]"

    def __repr__(self) -> str:
        return f"Selected({self._describe()})"

    def _like(self, values: Traced) -> MaskedElements:
        return MaskedElements(self._trace, values, self._mask, self._lead, self._index)

    def _is_same_part(self, other: Any) -> bool:
        return self is other

    # Elements.

    def refused(self, what: str = "") -> CaptureError:
        """The error for operations that need the number of the elements when the function is traced."""
        notes = (f"{what} would need all of what the mask picks, side by side",) if what else ()
        error = ShapeError(advice.MASK, location=self._index, notes=notes, help=advice.MASK_HELP)
        error.subject = advice.DATA_SIZE
        return error

    def as_result(self, path: str) -> CaptureError:
        """The error for such an array in the result of a function within the program."""
        return self.refused()

    def side_by_side(self, what: str = "") -> Any:
        """The elements as an array of dynamic length, for operations that need them so.

        Raises ShapeError, by which the loop front end is chosen, in a function that is traced without its loops.
        """
        if not self._trace.builder.direct:
            raise self.refused(what)
        found = self._side_by_side
        if found is None or not found[1].open:
            found = self._side_by_side = self._trace.handlers.compacted_elements(self), self._trace.builder.region
        return found[0]

    def __len__(self) -> int:
        raise self.refused("`len`")

    def __bool__(self) -> bool:
        raise self.refused("a truth test")

    def __iter__(self) -> Any:
        raise self.refused("a loop over it")

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise self.refused("an array of it")

    def __float__(self) -> float:
        raise self.refused("a number made of it")

    __int__ = __index__ = __float__

    def __getitem__(self, index: Any) -> Any:
        with at_user_line():
            if self._is_all(index):
                return self
            return self.side_by_side("an index")[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        with at_user_line():
            if not self._is_all(index):
                error = self.refused("a store at an index")
                error.help = "take a `.copy()` of what the mask picks, and store into that"
                error.masks = frozenset([self._index])
                raise error
            self._replace(self._operand(value), "assignment")

    def _is_all(self, index: Any) -> bool:
        items = index if isinstance(index, tuple) else (index,)
        return all(
            x is Ellipsis or (isinstance(x, slice) and all(part is None for part in (x.start, x.stop, x.step)))
            for x in items
        )

    def _replace(self, values: Any, what: str) -> None:
        """Store into this array, which is a copy of the elements under the mask."""
        new = self._trace.array(values, copy=False)
        if not np.can_cast(new.dtype, self.dtype, "unsafe" if what == "assignment" else "same_kind"):
            raise DTypeError(
                f"cannot store {new._describe()} in place into {self._describe()}",
                help=f"make a new array, `x = x + y`, or convert the result with `.astype(np.{self.dtype.name})`",
            )
        spread = self._trace.call_function(
            np.broadcast_to, (new.astype(self.dtype, copy=False), self._values.shape), {}
        )
        self._values, self._side_by_side = spread._copy(), None
        self._origin = None

    def _operand(self, x: Any) -> Any:
        """An operand of an expression with this array, broadcast to the masked array's dimensions."""
        if isinstance(x, MaskedElements):
            if (x._lead, x._free, x._mask.shape) != (self._lead, self._free, self._mask.shape):
                raise ShapeError(
                    f"{self._describe()} and {x._describe()} are combined, which masks of different shapes pick",
                    help="compute with whole arrays first, and select with `np.where(mask, new, x)`",
                )
            check_same_mask(self._trace, x._mask, self._mask)
            return x._values
        if type(x) in (bool, int, float, complex):
            return x
        if isinstance(x, (list, tuple)):
            x = self._trace.array(x)
        if np.ndim(x) > self._free:
            raise ShapeError(
                f"an array of shape {list(np.shape(x))} is combined with what a mask picks, whose length depends on "
                "the data",
                help="pick from both with the mask, `x[mask] + y[mask]`",
            )
        return x

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        with at_user_line():
            masked_elements = next(x for x in (*inputs, *kwargs.get("out", ())) if isinstance(x, MaskedElements))
            return masked_elements._call_ufunc(ufunc, method, inputs, kwargs)

    def _call_ufunc(self, ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if any(is_dynamic(x) and not isinstance(x, MaskedElements) for x in (*inputs, *kwargs.get("out", ()))):
            return self._with_slices(lambda xs: getattr(ufunc, method)(*xs, **_side_by_side(kwargs, "")), inputs)
        if method == "reduce" and ufunc in _REDUCED:
            return reduced(_REDUCED[ufunc])(*inputs, **{"axis": 0, **kwargs})
        (out,) = kwargs.pop("out", (None,))
        if (
            method != "__call__"
            or kwargs
            or ufunc.signature
            or (out is not None and not isinstance(out, MaskedElements))
        ):
            if ufunc is np.matmul and not kwargs and out is None:
                return product(*inputs)
            what = f"`np.{ufunc.__name__}{'' if method == '__call__' else '.' + method}`"
            outs = {} if out is None else {"out": (out,)}
            return self._with_slices(lambda xs: getattr(ufunc, method)(*xs, **kwargs, **outs), inputs, what)
        found = self._computed(lambda *xs: self._trace.call_ufunc(ufunc, "__call__", xs, {}), inputs, ufunc is np.power)
        if out is None:
            return found
        out._replace(out._operand(found), "in place")
        return out

    def _computed(self, compute: Callable[..., Any], operands: Sequence[Any], guarded: bool = False) -> Any:
        """The result of an elementwise function; `guarded` replaces elements outside of the mask, so that no check
        fails on them.
        """
        full_operands = [self._operand(x) for x in operands]
        if guarded:
            mask = self._wide_mask()
            full_operands = [
                self._trace.call_function(np.where, (mask, x, x.dtype.type(1)), {})
                if isinstance(x, Tracer) and x.ndim and x.dtype.kind in "iu"
                else x
                for x in full_operands
            ]
        found = compute(*full_operands)
        if isinstance(found, tuple):
            return tuple(map(self._like, found))
        result = self._like(found)
        result._origin = compute, [copy(x) if isinstance(x, MaskedElements) else x for x in operands]
        return result

    def _operated(self, ufunc: np.ufunc, operands: Sequence[Any]) -> Any:
        if ufunc is np.matmul:
            return product(*operands)
        if any(self._needs_side_by_side(x) for x in operands):
            return self._with_slices(lambda xs: _operator(self._trace, ufunc, xs), operands)
        return self._computed(lambda *xs: self._trace.call_operator(ufunc, xs), operands, ufunc is np.power)

    def _needs_side_by_side(self, x: Any) -> bool:
        """True for an operand along the elements, whose length is that of another array."""
        if isinstance(x, MaskedElements):
            return False
        return is_dynamic(x) or np.ndim(x) > self._free

    def _with_slices(self, function: Callable[..., Any], operands: Sequence[Any], what: str = "") -> Any:
        """The result of a function with the elements side by side."""
        return function(_side_by_side(tuple(operands), what))

    def _operated_in_place(self, ufunc: np.ufunc, other: Any) -> MaskedElements:
        found = self._operated(ufunc, (self, other))
        self._replace(found._values, "in place")
        return self

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        with at_user_line():
            if function in _ELEMENTWISE:
                return self._computed(lambda *xs: self._trace.call_function(function, xs, kwargs), args)
            if function not in _FUNCTIONS or not isinstance(args[0] if args else None, MaskedElements):
                module = "linalg." if "linalg" in (getattr(function, "__module__", "") or "") else ""
                what = f"`np.{module}{function.__name__}`"
                return self._with_slices(lambda xs: function(*xs, **_side_by_side(kwargs, what)), args, what)
            return with_options(function.__name__, _FUNCTIONS[function])(*args, **kwargs)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> MaskedElements:
        """A copy with another element type."""
        return self._like(self._values.astype(dtype, *args, **kwargs))

    def copy(self, order: str = "C") -> Any:
        """A new array with the same contents, into which elements can be stored."""
        return self.side_by_side().copy() if self._trace.builder.direct else self._like(self._values)

    def store_in_place(self, ufunc: np.ufunc, operand: Any) -> Any:
        """`self += operand` and its like."""
        return self._operated_in_place(ufunc, operand)

    def __getattr__(self, name: str) -> Any:
        if name in _METHODS:
            return lambda *args, **kwargs: _called(with_options(name, _METHODS[name]), self, *args, **kwargs)
        if name in ("clip", "round", "conj", "conjugate"):
            function = getattr(np, name)
            return lambda *args, **kwargs: function(self, *args, **kwargs)
        if name in ("flatten", "ravel") and not self._lead and not self._free:
            return self.copy
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        return getattr(self.side_by_side(f"`.{name}`"), name)


def _side_by_side(x: Any, what: str) -> Any:
    """Operands in which elements under masks are arrays of dynamic length."""
    if isinstance(x, MaskedElements):
        return x.side_by_side(what)
    if type(x) in (list, tuple):
        return type(x)(_side_by_side(item, what) for item in x)
    if type(x) is dict:
        return {key: _side_by_side(item, what) for key, item in x.items()}
    return x


def _called(method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with at_user_line():
        return method(*args, **kwargs)


def _operator(trace: Trace, ufunc: np.ufunc, operands: Sequence[Any]) -> Any:
    """A Python operator on operands of which one is an array of dynamic length."""
    found = next(x for x in operands if is_dynamic(x))
    return found._operated(ufunc, operands)


def masked_elements(masked: Masked) -> Any:
    """`x[mask]`."""
    part, mask, location = masked.part, masked.mask, user_location(2)
    mask = mask.reshape(mask.shape[: mask.ndim - masked.free])
    lead = part.ndim - mask.ndim - masked.free
    found = MaskedElements(part._trace, part._copy(), mask._copy(), lead, location)
    return found.side_by_side() if location in part._trace.masks else found


def check_same_mask(trace: Trace, one: Traced, other: Traced) -> None:
    """Let the call fail if masks differ, unless they are the same value."""
    b, values = trace.builder, (one._read(), other._read())
    if values[0].name == values[1].name:
        return
    same = trace.call_function(np.all, (trace.call_function(np.equal, (one, other), {}),), {})
    help_ = "compute the mask once, `mask = x > 0`, and use it for all of them"
    b.check(b.element(same._read()), Check("ShapeError", _DIFFERENT, help_))


def store_masked(masked: Masked, value: Any) -> None:
    """`x[mask] = y[mask]`, and arrays whose length has to be the number of elements under the mask."""
    part, mask, free = masked.part, masked.mask, masked.free
    trace, rank = part._trace, mask.ndim - free
    lead = part.ndim - mask.ndim
    flat = mask.reshape(mask.shape[:rank])
    if isinstance(value, MaskedElements):
        if (value._mask.shape, value._free) != (flat.shape, free) or value._lead not in (0, lead):
            raise ShapeError(
                f"storing {value._describe()}, which another mask picks, under a mask of shape {list(flat.shape)}",
                help="write `x[...] = np.where(mask, value, x)` with a value of the shape of x",
            )
        check_same_mask(trace, value._mask, flat)
        part._assign_where(mask, value._values)
        return
    length: Any = None
    if is_dynamic(value):
        (new, *lengths), dims = trace.handlers.sized_parts(value)
        if dims != (new.ndim - 1 - free,):
            raise ShapeError(f"storing {value._describe()} through a mask, which picks along another dimension")
        length = lengths[0]
    else:
        new = trace.array(value, copy=False)
    if new.ndim > lead + 1 + free:
        raise ShapeError(
            f"storing {new._describe()} through a mask, which leaves {lead + 1 + free} dimension(s)",
            help="write `x[...] = np.where(mask, value, x)` with a value of the shape of x",
        )
    axis = new.ndim - 1 - free  # of the value, along which its elements are compacted
    if length is None and new.shape[axis] == 1:
        part._assign_where(mask, new.reshape(new.shape[:axis] + (1,) * rank + new.shape[axis + 1 :]))
        return
    count = trace.call_function(np.count_nonzero, (flat,), {})
    fits = trace.call_function(np.equal, (count, new.shape[axis] if length is None else length), {})
    b = trace.builder
    help_ = "`x[...] = np.where(mask, value, x)` takes a value of the shape of x"
    given = (new if length is None else value)._describe()
    message = f"assignment: the mask picks another number of elements than there are in {given}"
    b.check(b.element(fits._read()), Check("ShapeError", message, help_))
    if not new.size:
        return
    numbers = trace.call_function(np.cumsum, (flat,), {}) - 1
    full_operands = trace.call_function(np.clip, (numbers, 0, new.shape[axis] - 1), {})
    spread = trace.call_function(np.take, (new, full_operands.reshape(flat.shape)), {"axis": axis})
    part._assign_where(mask, spread)


# Functions of all elements.


def reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    """`np.sum` and the like, which ignore elements outside of the mask."""

    def reduction(x: MaskedElements, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        trace, mask = x._trace, x._wide_mask()
        if args or kwargs.get("out") is not None or kwargs.get("where", True) is not True:
            what = f"`np.{function.__name__}` with these arguments"
            return function(x.side_by_side(what), axis, *args, **kwargs)
        kwargs = {k: v for k, v in kwargs.items() if v is not np._NoValue and k not in ("where", "out")}
        keepdims = kwargs.pop("keepdims", False)
        axes = tuple(range(x.ndim)) if axis is None else normalized_axes(function.__name__, (1,) * x.ndim, axis)
        over_mask, rank = x._lead in axes, x._mask.ndim
        inner = [d for a in axes for d in _dimensions(x, a)]
        values = x._values
        if over_mask:
            kwargs["where"] = mask
            if function in (np.max, np.min) and "initial" not in kwargs:
                kwargs["initial"] = _neutral(x, function)
        elif function in (np.max, np.min) or keepdims:
            kwargs["keepdims"] = keepdims
        if over_mask and function is np.count_nonzero:
            del kwargs["where"]
            values = trace.call_function(np.logical_and, (values.astype(np.bool_), mask), {})
        result = trace.call_function(function, (values,), {"axis": tuple(inner), **kwargs})
        if not over_mask:
            return MaskedElements(trace, result, x._mask, x._lead - sum(a < x._lead for a in axes), x._index)
        if not keepdims:
            return result
        sizes = values.shape
        shape = [1 if a in axes else sizes[a if a < x._lead else a + rank - 1] for a in range(x.ndim)]
        return result.reshape(tuple(shape))

    return reduction


def _dimensions(x: MaskedElements, axis: int) -> range:
    """The dimensions of the values that a dimension of this array corresponds to."""
    rank = x._mask.ndim
    if axis == x._lead:
        return range(axis, axis + rank)
    index = axis if axis < x._lead else axis + rank - 1
    return range(index, index + 1)


def _neutral(x: MaskedElements, function: Callable[..., Any]) -> Any:
    """The identity of a maximum or minimum; emits a check that there is any element."""
    name = "max" if function is np.max else "min"
    if x.dtype.kind == "c":
        raise x.refused(f"`np.{name}` of complex numbers")
    trace, b = x._trace, x._trace.builder
    some = trace.call_function(np.any, (x._mask,), {})
    b.check(b.element(some._read()), Check("ShapeError", f"{name}: the mask picks no element", "give `initial=...`"))
    if x.dtype.kind == "b":
        return name == "min"
    if x.dtype.kind in "iu":
        limits = np.iinfo(x.dtype)
        return limits.min if name == "max" else limits.max
    return -np.inf if name == "max" else np.inf


def product(one: Any, other: Any) -> Any:
    """`one @ other`: of two vectors under the same mask, or of rows with an array."""
    if isinstance(one, MaskedElements) and not one._lead:
        if isinstance(other, MaskedElements) and not one._free and not other._free and not other._lead:
            return reduced(np.sum)(np.multiply(one, other))
        if not isinstance(other, MaskedElements) and one._free == 1 and 1 <= np.ndim(other) <= 2:
            return one._like(one._trace.call_ufunc(np.matmul, "__call__", (one._values, other), {}))
    return np.matmul(*_side_by_side((one, other), "a matrix product"))


def norm(x: MaskedElements, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """`np.linalg.norm`, the Euclidean one."""
    if ord not in (None, 2) or (ord == 2 and axis is None and x.ndim != 1) or isinstance(axis, tuple):
        return np.linalg.norm(x.side_by_side(f"the norm {ord!r}"), ord, axis, keepdims)
    y: Any = x if x.dtype.kind in "fc" else x.astype(np.float64)
    parts = y.real * y.real + y.imag * y.imag if y.dtype.kind == "c" else y * y
    return np.sqrt(reduced(np.sum)(parts, axis, keepdims=keepdims))


def average(
    x: MaskedElements, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    """`np.average`."""
    if returned:
        raise x.refused("`np.average` with `returned`")
    options = {} if keepdims is np._NoValue else {"keepdims": keepdims}
    if weights is None:
        return reduced(np.mean)(x, axis, **options)
    total = reduced(np.sum)(np.multiply(x, weights), axis, **options)
    return total / reduced(np.sum)(np.multiply(weights, np.ones_like(x.real)), axis, **options)


def dot(one: Any, other: Any) -> Any:
    """`np.dot`."""
    if not np.ndim(other):
        return np.multiply(one, other)
    return product(one, other)


_REDUCED: dict[np.ufunc, Callable[..., Any]] = {
    np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min, np.logical_and: np.all,
    np.logical_or: np.any,
}  # fmt: skip
_AVERAGES: tuple[Any, ...] = (np.mean, np.var, np.std, np.count_nonzero)
_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    **{f: reduced(f) for f in (*_REDUCED.values(), *_AVERAGES)},
    np.linalg.norm: norm,
    np.average: average,
    np.ones_like: lambda x, dtype=None: x._like(np.ones_like(x._values, dtype=dtype)),
    np.zeros_like: lambda x, dtype=None: x._like(np.zeros_like(x._values, dtype=dtype)),
    np.dot: dot,
    np.size: lambda x, axis=None: x.size if axis is None else x.shape[axis],
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.ravel: lambda x, order="C": x.ravel(),
}
_METHODS: dict[str, Callable[..., Any]] = {
    **{
        name: _FUNCTIONS[getattr(np, name)]
        for name in ("sum", "prod", "max", "min", "all", "any", "mean", "var", "std")
    },
    "dot": dot,
    "fill": lambda x, value: x.__setitem__(..., value),
}


install_operators(
    MaskedElements,
    lambda self, ufunc, operands: _called(MaskedElements._operated, self, ufunc, operands),
    lambda self, ufunc, other: _called(MaskedElements._operated_in_place, self, ufunc, other),
)

"""Reductions: sums, extrema, means, truth and positions along axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlirml.core.sizes import Extent, Size
from mlirml.errors import DTypeError, IndexOutOfBoundsError, ShapeError
from mlirml.ir.combiners import UFUNCS, combiners_of
from mlirml.ir.text.builder import Body, Builder, Operand, Scalar, Value
from mlirml.ir.text.dtypes import as_dtype, check_integer, is_float, is_supported, mlir_name, short_name
from mlirml.ops import elementwise as ew
from mlirml.ops import promotion
from mlirml.ops.registry import ALL, BOOL, BY_FUNCTION, FLOATS, INTEGERS, NUMBERS, OpDef, define, family, operation

_SINGLE, _DOUBLE, _BOOL = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.bool_)


_ADD = ew.combiner(np.add)


def normalized_axes(name: str, shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    """Axes as sorted numbers from 0; a `ShapeError` for one out of range or given twice."""
    rank = len(shape)
    if axis is None:
        return tuple(range(rank))
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    result = []
    for a in axes:
        try:
            number = int(a.__index__())
        except AttributeError:
            raise ShapeError(f"{name}: an axis must be an integer, got {a!r}") from None
        if not -rank <= number < rank:
            raise IndexOutOfBoundsError(
                f"{name}: axis {number} is out of bounds for an array of shape {list(shape)}",
                help=f"an axis lies between {-rank} and {rank - 1}" if rank else "the array has no axes",
            )
        result.append(number % rank)
    if len(set(result)) != len(result):
        raise ShapeError(f"{name}: axis {axis} names a dimension twice")
    return tuple(sorted(result))


def _reduced_axes(name: str, shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    """As `normalized_axes`, but a 0-d array may be reduced along the axis that it lacks."""
    return () if not shape and type(axis) is int and axis in (0, -1) else normalized_axes(name, shape, axis)


def as_value(b: Builder, a: Operand) -> Value:
    """A scalar becomes a 0-d tensor."""
    return a if isinstance(a, Value) else b.filled((), a.dtype, a.value)


def with_axis(b: Builder, value: Value) -> Value:
    """A 0-d array as one of one element, which is how some functions of NumPy see it where an axis is given."""
    return value if value.shape else b.reshape(value, (1,))


def _restored(b: Builder, value: Value, shape: tuple[int, ...], axes: Sequence[int], keepdims: bool) -> Value:
    if not keepdims:
        return value
    return b.reshape(value, tuple(1 if i in axes else n for i, n in enumerate(shape)))


def _accumulate(
    b: Builder,
    value: Value,
    axes: tuple[int, ...],
    dtype: np.dtype,
    initial: object,
    combine: ew.ScalarBody,
    first: np.dtype | None = None,
) -> Value:
    """Reduce in `dtype`; 16-bit floats accumulate in f32, as NumPy's pairwise loops do."""
    wide = _SINGLE if is_float(dtype) and dtype.itemsize == 2 else dtype

    def body(block: Body, x: str, accumulator: str) -> str:
        x = block.cast(block.cast(x, value.dtype, first or dtype), first or dtype, wide)
        return combine(block, [x, accumulator], wide)

    return b.cast(b.reduce(value, axes, wide, initial, body), dtype)


def _chosen(b: Builder, name: str, value: Value, where: Any, neutral: object) -> Value:
    """The array with `neutral` in place of what a mask leaves out."""
    if where is True:
        return value
    mask = where if isinstance(where, Value) else Scalar(bool(getattr(where, "value", where)))
    if ew.broadcast_shapes(name, (value, mask)) != value.shape:
        raise ShapeError(f"{name}: the mask {mask} does not broadcast to {value}")
    return ew.where.build(b, mask, value, Scalar(_scalar(neutral, value.dtype), weak=False))


def _scalar(number: object, dtype: np.dtype) -> Any:
    return np.asarray(number).astype(dtype)[()]


def _check_initial(name: str, initial: Any, dtype: np.dtype) -> None:
    """Refuse a Python integer to start from that does not fit the dtype of the result."""
    number = getattr(initial, "value", initial)
    if type(number) is int:
        check_integer(name, number, dtype)


def _started(
    b: Builder, value: Value, initial: Any, neutral: object, reduce: Callable[[object], Value], join: Any
) -> Value:
    """A reduction that starts from `initial`, which may be a dynamic value."""
    if not isinstance(initial, Value):
        return reduce(getattr(initial, "value", initial))
    if initial.shape:
        raise ShapeError(f"the initial value of a reduction is a scalar, not {initial}")
    result = reduce(neutral)
    return join.build(b, b.broadcast(initial, (), result.dtype), result)


def sum_dtype(name: str, a: Value, dtype: Any) -> np.dtype:
    """The dtype of a sum or product: given, or 64 bits for smaller integers."""
    result: np.dtype
    if dtype is not None:
        result = as_dtype(dtype)
    elif a.dtype.kind in "bi" and a.dtype.itemsize < 8:
        result = np.dtype(np.int64)
    elif a.dtype.kind == "u" and a.dtype.itemsize < 8:
        result = np.dtype(np.uint64)
    else:
        result = a.dtype
    if not is_supported(result):
        raise DTypeError(f"{name}: dtype {result} is not supported")
    return result


_OPTIONS = ("initial", "where")


@operation("reduction", np.sum, dtypes=ALL, methods=("sum",), aliases=(np.add.reduce,), array_options=_OPTIONS)
def sum_(
    b: Builder,
    a: Operand,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = 0,
    where: Any = True,
) -> Value:
    """Sum over axes; small integers add up in 64 bits, as in NumPy."""
    value = as_value(b, a)
    axes, kind = _reduced_axes("sum", value.shape, axis), sum_dtype("sum", value, dtype)
    _check_initial("sum", initial, kind)
    value = _chosen(b, "sum", value, where, 0)
    total = _started(b, value, initial, 0, lambda start: _accumulate(b, value, axes, kind, start, _ADD), ew.add)
    return _restored(b, total, value.shape, axes, keepdims)


@operation(
    "reduction",
    np.prod,
    dtypes=ALL,
    methods=("prod",),
    aliases=(np.multiply.reduce,),
    array_options=_OPTIONS,
    domain=(0.5, 1.5),
    tolerance=8,
)
def prod(
    b: Builder,
    a: Operand,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = 1,
    where: Any = True,
) -> Value:
    """Product over axes; small integers multiply in 64 bits, as in NumPy."""
    value = as_value(b, a)
    axes, kind = _reduced_axes("prod", value.shape, axis), sum_dtype("prod", value, dtype)
    _check_initial("prod", initial, kind)
    value = _chosen(b, "prod", value, where, 1)
    combine = ew.combiner(np.multiply)
    total = _started(b, value, initial, 1, lambda start: _accumulate(b, value, axes, kind, start, combine), ew.multiply)
    return _restored(b, total, value.shape, axes, keepdims)


def _lowest(dtype: np.dtype) -> object:
    return -np.inf if is_float(dtype) else False if dtype == _BOOL else np.iinfo(dtype).min


def _highest(dtype: np.dtype) -> object:
    return np.inf if is_float(dtype) else True if dtype == _BOOL else np.iinfo(dtype).max


def _refuse_empty(name: str, value: Value, axes: Sequence[int]) -> None:
    if any(value.shape[i] == 0 for i in axes):
        raise ShapeError(
            f"{name}: no elements to choose from, {value} is empty along the axis",
            help="give the value for this case: `initial=...`" if name in ("max", "min") else None,
        )


def _extremum(
    name: str,
    b: Builder,
    a: Operand,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Value:
    ufunc, join, start = (np.maximum, ew.maximum, _lowest) if name == "max" else (np.minimum, ew.minimum, _highest)
    value = as_value(b, a)
    axes = _reduced_axes(name, value.shape, axis)
    if initial is None:
        if where is not True:
            raise ShapeError(f"{name}: with a mask, `initial` is needed too: there may be nothing to choose from")
        _refuse_empty(name, value, axes)
        initial = start(value.dtype)
    _check_initial(name, initial, value.dtype)
    value = _chosen(b, name, value, where, start(value.dtype))
    combine = ew.combiner(ufunc)

    def body(block: Body, x: str, accumulator: str) -> str:
        return combine(block, [x, accumulator], value.dtype)

    def reduce(first: object) -> Value:
        return b.reduce(value, axes, value.dtype, first, body)

    best = _started(b, value, initial, start(value.dtype), reduce, join)
    return _restored(b, best, value.shape, axes, keepdims)


max_, min_ = family(
    "reduction",
    _extremum,
    {"max": "Largest element over axes; NaN wins.", "min": "Smallest element over axes; NaN wins."},
    methods=True,
    aliases={"max": (np.amax, np.maximum.reduce), "min": (np.amin, np.minimum.reduce)},
    dtypes=ALL,
    array_options=_OPTIONS,
)


@operation("reduction", np.ptp, dtypes=NUMBERS)
def ptp(b: Builder, a: Operand, axis: Any = None, out: None = None, keepdims: bool = False) -> Value:
    """Largest minus smallest element over axes."""
    return ew.subtract.build(b, *(_extremum(name, b, a, axis, None, keepdims) for name in ("max", "min")))


def _mean_dtypes(name: str, value: Value, dtype: Any) -> tuple[np.dtype, np.dtype]:
    """The dtype to compute in and the dtype of the result."""
    result = as_dtype(dtype) if dtype is not None else value.dtype if is_float(value.dtype) else _DOUBLE
    if not is_float(result):
        raise DTypeError(f"{name}: the result must be a float, not {short_name(result)}")
    return (_SINGLE if result.itemsize == 2 else result), result


def _count(shape: tuple[int, ...], axes: Sequence[int]) -> Extent:
    return math.prod(shape[i] for i in axes)


def _divisor(b: Builder, value: Value, axes: tuple[int, ...], where: Any, ddof: Any, compute: np.dtype) -> Operand:
    """The number of averaged elements, less `ddof`; an array if there is a mask."""
    less = promotion.as_operand(ddof)
    if less.dtype.kind == "c":
        raise DTypeError("degrees of freedom are counted by a real number, not a complex one")
    known = float(less.value) if isinstance(less, Scalar) else None  # type: ignore[arg-type]
    if where is True:
        total = _count(value.shape, axes)
        if type(total) is Size:
            count = b.cast(b.size_number(total), compute)
            if known == 0:
                return count
        elif known is not None:
            return Scalar(max(float(total) - known, 0.0))
        else:
            count = b.filled((), compute, float(total))
    else:
        ones = b.filled(value.shape, _BOOL, True)
        count = b.cast(count_nonzero.build(b, _chosen(b, "mean", ones, where, False), axes), compute)
        if known == 0:
            return count
    left = Scalar(known) if known is not None else b.cast(as_value(b, less), compute)
    return ew.maximum.build(b, ew.subtract.build(b, count, left), Scalar(0.0))


def _mean(b: Builder, value: Value, axes: tuple[int, ...], compute: np.dtype, divisor: Operand, where: Any) -> Value:
    return ew.divide.build(b, _total(b, value, axes, compute, where), divisor)


def _total(b: Builder, value: Value, axes: tuple[int, ...], compute: np.dtype, where: Any) -> Value:
    return _accumulate(b, _chosen(b, "mean", value, where, 0), axes, compute, 0, _ADD)


def _less_error_of_mean(b: Builder, squares: Value, apart: Value, count: Operand) -> Value:
    """The sum of squares of differences to a mean that is off by `apart / count`, as of those to the mean itself.

    Chan, Golub and LeVeque, "Algorithms for computing the sample variance", The American Statistician 37, 1983,
    equation 1.7. With the mean off by a rounding error alone, the difference may be less than 0.
    """
    error = ew.divide.build(b, ew.square.build(b, apart), count)
    larger = ew.greater.build(b, squares, error)
    return ew.where.build(b, larger, ew.subtract.build(b, squares, error), squares)


@operation("reduction", np.mean, dtypes=ALL, methods=("mean",), array_options=("where",))
def mean(
    b: Builder,
    a: Operand,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Value:
    """Mean over axes; integers give f64, f16 and bf16 are summed in f32. The mean of nothing is NaN."""
    value = as_value(b, a)
    axes = normalized_axes("mean", value.shape, axis)
    compute, result = _mean_dtypes("mean", value, dtype)
    divisor = _divisor(b, value, axes, where, 0, compute)
    average = b.cast(_mean(b, value, axes, compute, divisor, where), result)
    return _restored(b, average, value.shape, axes, keepdims)


def _variance(
    name: str,
    b: Builder,
    a: Operand,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Value:
    ddof, centre = (ddof if correction is None else correction), mean
    value = as_value(b, a)
    axes = normalized_axes(name, value.shape, axis)
    compute, result = _mean_dtypes(name, value, dtype)
    inexact = centre is None and is_float(value.dtype)
    if centre is None:
        divisor = _divisor(b, value, axes, where, 0, compute)
        centre = _restored(b, _mean(b, value, axes, compute, divisor, where), value.shape, axes, True)
    else:
        centre = promotion.as_operand(centre)
        if dtype is None and is_float(value.dtype):
            compute, result = _mean_dtypes(name, value, promotion.result_type(value, centre))
        centre = b.cast(as_value(b, centre), compute)
    apart = ew.subtract.build(b, b.cast(value, compute), centre)
    total = _total(b, ew.square.build(b, apart), axes, compute, where)
    if inexact:
        total = _less_error_of_mean(b, total, _total(b, apart, axes, compute, where), divisor)
    spread = ew.divide.build(b, total, _divisor(b, value, axes, where, ddof, compute))
    if name == "std":
        spread = ew.sqrt.build(b, spread)
    return _restored(b, b.cast(spread, result), value.shape, axes, keepdims)


var, std = family(
    "reduction",
    _variance,
    {
        "var": "Variance over axes in two passes, the sum of squares divided by n - ddof.",
        "std": "Standard deviation over axes, the root of `var`.",
    },
    methods=True,
    dtypes=ALL,
    array_options=("where", "mean", "ddof", "correction"),
    tolerance=8,
)


def _truth(
    name: str,
    b: Builder,
    a: Operand,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Value:
    start, op = name == "all", "arith.andi" if name == "all" else "arith.ori"
    value = _chosen(b, name, as_value(b, a), where, start)
    axes = _reduced_axes(name, value.shape, axis)

    def body(block: Body, x: str, accumulator: str) -> str:
        return block.op(f"{op} {block.cast(x, value.dtype, _BOOL)}, {accumulator}", "i1")

    return _restored(b, b.reduce(value, axes, _BOOL, start, body), value.shape, axes, keepdims)


any_, all_ = family(
    "reduction",
    _truth,
    {
        "any": "True where some element along the axes is not zero.",
        "all": "True where no element along the axes is zero.",
    },
    methods=True,
    aliases={"any": (np.logical_or.reduce,), "all": (np.logical_and.reduce,)},
    dtypes=ALL,
    array_options=("where",),
)


@operation("reduction", np.count_nonzero, dtypes=ALL)
def count_nonzero(b: Builder, a: Operand, axis: Any = None, *, keepdims: bool = False) -> Value:
    """The number of elements along the axes that are not zero."""
    value = as_value(b, a)
    axes = _reduced_axes("count_nonzero", value.shape, axis)
    return _restored(b, _accumulate(b, value, axes, np.dtype(np.int64), 0, _ADD, _BOOL), value.shape, axes, keepdims)


def _position(
    b: Builder, a: Operand, axis: Any, keepdims: bool, name: str, better: dict[str, str], worst: Any
) -> Value:
    value = as_value(b, a)
    shape, index = value.shape, np.dtype(np.int64)
    axes: tuple[int, ...] = (0,)
    if axis is None or _reduced_axes(name, shape, axis) == ():
        value, axis = b.reshape(value, (value.size,)), None
    else:
        axes = normalized_axes(name, shape, int(axis))
    _refuse_empty(name, value, axes)
    dtype, kind = value.dtype, ew.kind_of(value.dtype)
    kept = [i for i in range(len(value.shape)) if i not in axes]
    out_shape = [value.shape[i] for i in kept]
    outs = b.filled(out_shape, dtype, worst(dtype)), b.filled(out_shape, index, 0)

    def body(block: Body, xs: list[str], accumulators: list[str]) -> tuple[str, str]:
        best, where = accumulators
        take = block.op(f"{better[kind]}, {xs[0]}, {best}", mlir_name(dtype))
        if kind == "f":  # the first NaN wins, as in NumPy
            is_nan = block.op(f"arith.cmpf uno, {xs[0]}, {xs[0]}", mlir_name(dtype))
            was_number = block.op(f"arith.cmpf ord, {best}, {best}", mlir_name(dtype))
            take = block.op(f"arith.ori {take}, {block.op(f'arith.andi {is_nan}, {was_number}', 'i1')}", "i1")
        here = block.op(f"arith.index_cast {block.op(f'linalg.index {axes[0]}', 'index')}", "index to i64")
        return (
            block.op(f"arith.select {take}, {xs[0]}, {best}", mlir_name(dtype)),
            block.op(f"arith.select {take}, {here}, {where}", "i64"),
        )

    kinds = ["reduction" if i in axes else "parallel" for i in range(len(value.shape))]
    result = b.generic2([value], [range(len(value.shape))], outs, kept, kinds, body)[1]
    if not keepdims:
        return result
    gone = range(len(shape)) if axis is None else axes
    return b.reshape(result, tuple(1 if i in gone else n for i, n in enumerate(shape)))


_GREATER = {"b": "arith.cmpi ugt", "i": "arith.cmpi sgt", "u": "arith.cmpi ugt", "f": "arith.cmpf ogt"}
_LESS = {"b": "arith.cmpi ult", "i": "arith.cmpi slt", "u": "arith.cmpi ult", "f": "arith.cmpf olt"}


@operation("reduction", np.argmax, dtypes=ALL, methods=("argmax",))
def argmax(b: Builder, a: Operand, axis: Any = None, out: None = None, *, keepdims: bool = False) -> Value:
    """Position of the first largest element (i64); the first NaN wins."""
    return _position(b, a, axis, keepdims, "argmax", _GREATER, _lowest)


@operation("reduction", np.argmin, dtypes=ALL, methods=("argmin",))
def argmin(b: Builder, a: Operand, axis: Any = None, out: None = None, *, keepdims: bool = False) -> Value:
    """Position of the first smallest element (i64); the first NaN wins."""
    return _position(b, a, axis, keepdims, "argmin", _LESS, _highest)


def loop_dtype(name: str, ufunc: np.ufunc, given: np.dtype, dtype: Any) -> np.dtype:
    """The dtype in which a function combines elements of an array, given or NumPy's."""
    try:
        return promotion.resolve(ufunc, (given, given), None if dtype is None else as_dtype(dtype))[-1]
    except TypeError:
        raise DTypeError(f"{name}: not defined for {short_name(given)}, as in NumPy") from None


def _reduce(ufunc: np.ufunc) -> None:
    """Define `ufunc.reduce` of a function that is a combiner."""
    name, rows, combine = f"{ufunc.__name__}.reduce", combiners_of(ufunc.__name__), ew.combiner(ufunc)

    def build(
        b: Builder,
        array: Operand,
        axis: Any = 0,
        dtype: Any = None,
        out: None = None,
        *,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Value:
        value = as_value(b, array)
        axes, kind = _reduced_axes(name, value.shape, axis), loop_dtype(name, ufunc, value.dtype, dtype)
        neutral = _scalar(rows[ew.kind_of(kind)].identity(8 * kind.itemsize), kind)
        value = _chosen(b, name, b.cast(value, kind), where, neutral)
        start = neutral if initial is None else initial
        join = BY_FUNCTION[ufunc]
        total = _started(b, value, start, neutral, lambda s: _accumulate(b, value, axes, kind, s, combine), join)
        return _restored(b, total, value.shape, axes, keepdims)

    dtypes = tuple(
        d for letter, names in (("b", BOOL), ("i", INTEGERS), ("f", FLOATS)) if letter in rows for d in names
    )
    doc = f"`np.{ufunc.__name__}` of the elements along axes."
    define(OpDef(name.replace(".", "_"), "reduction", ufunc.reduce, build, dtypes, doc, array_options=_OPTIONS))


for _name in UFUNCS:
    # Where all elements are NaN, an extreme that ignores NaN is NaN, which its identity does not keep.
    _keeps_nan = not any(_row.ignores_nan for _row in combiners_of(_name).values())
    if _keeps_nan and getattr(np, _name).reduce not in BY_FUNCTION.entered:
        _reduce(getattr(np, _name))

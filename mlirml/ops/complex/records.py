"""The complex forms of op records, and the records that exist for complex numbers only."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mlirml.core.dataclass import dataclass
from mlirml.errors import DTypeError, ShapeError
from mlirml.ir.text.builder import Builder, Operand, Scalar, Value
from mlirml.ir.text.complex import NOT_COMPILED, ComplexBuilder, ComplexValue, has_complex
from mlirml.ir.text.complex_scalars import Complex, Real, Truth
from mlirml.ir.text.dtypes import as_dtype, is_complex, part_dtype, short_name
from mlirml.ops import contractions, promotion, scans
from mlirml.ops import elementwise as ew
from mlirml.ops import reductions as red
from mlirml.ops.complex import functions as cf
from mlirml.ops.indexing import gather
from mlirml.ops.registry import ALL, NUMBERS, OPS, OpDef, complex_form, lift, operation
from mlirml.ops.shapes import joins, rearrange

Body = Callable[..., "Complex | Real | Truth"]


def _enter(record: OpDef, body: Body) -> None:
    """The complex form of a ufunc: `body` takes the operands, cast to the dtypes of the loop that NumPy picks."""
    ufunc = record.reference
    assert isinstance(ufunc, np.ufunc)

    @complex_form(record)
    def build(b: ComplexBuilder, *operands: Operand, dtype: Any = None) -> Value:
        *operands, dtype = (*operands, dtype) if len(operands) == record.arrays else operands  # type: ignore[assignment]
        return _ufunc(record.name, ufunc, body, b, operands, dtype)


def _ufunc(
    name: str, ufunc: np.ufunc, body: Body, b: ComplexBuilder, operands: Sequence[Operand], dtype: Any = None
) -> Value:
    loop = ew.loop_dtypes(name, ufunc, operands, dtype)
    if not is_complex(loop[0]):
        raise DTypeError(f"{name}: {NOT_COMPILED} with dtype {short_name(loop[-1])}")
    return b.numbers(operands, loop[0], ew.broadcast_shapes(name, operands), lambda xs: body(*xs))


def _both(predicate: Callable[[Real], Truth], *, either: bool) -> Body:
    def body(z: Complex) -> Truth:
        return predicate(z.re) | predicate(z.im) if either else predicate(z.re) & predicate(z.im)

    return body


def _extremum(predicate: str, *, nan_wins: bool) -> Body:
    def body(a: Complex, b: Complex) -> Complex:
        first = cf.less(b, a, predicate)
        return (first | cf.is_nan(a if nan_wins else b)).pick(a, b)

    return body


_BODIES: dict[OpDef | str, Body] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "negative": lambda z: -z,
    "positive": lambda z: z,
    "absolute": cf.magnitude,
    "sign": cf.sign,
    "square": cf.square,
    "sqrt": cf.sqrt,
    "reciprocal": cf.reciprocal,
    "exp": cf.exp,
    "exp2": cf.exp2,
    "expm1": cf.expm1,
    "log": cf.log,
    "log2": cf.log_to(2.0),
    "log10": cf.log_to(10.0),
    "log1p": cf.log1p,
    "sin": cf.turned(cf.sinh),
    "cos": cf.cos,
    "tan": cf.turned(cf.tanh),
    "sinh": cf.sinh,
    "cosh": cf.cosh,
    "tanh": cf.tanh,
    "arcsin": cf.arcsin,
    "arccos": cf.arccos,
    "arctan": cf.arctan,
    "arcsinh": cf.arcsinh,
    "arccosh": cf.arccosh,
    "arctanh": cf.arctanh,
    "rint": cf.rint,
    "isnan": _both(Real.is_nan, either=True),
    "isinf": _both(Real.is_infinite, either=True),
    "isfinite": _both(Real.is_finite, either=False),
    "equal": lambda a, b: a.re.same(b.re) & a.im.same(b.im),
    "not_equal": lambda a, b: a.re.differs(b.re) | a.im.differs(b.im),
    "less": cf.less,
    "less_equal": lambda a, b: cf.less(a, b, "ole"),
    "greater": lambda a, b: cf.less(b, a),
    "greater_equal": lambda a, b: cf.less(b, a, "ole"),
    "maximum": _extremum("ole", nan_wins=True),
    "fmax": _extremum("ole", nan_wins=False),
}
for _name, _body in _BODIES.items():
    _enter(OPS[str(_name)], _body)


def _logical(record: OpDef, body: Body) -> None:
    @complex_form(record)
    def build(b: ComplexBuilder, *operands: Operand, dtype: Any = None) -> Value:
        operands = operands[: record.arrays]
        shape = ew.broadcast_shapes(record.name, operands)
        return b.numbers(operands, promotion.result_type(*operands), shape, lambda xs: body(*(x.is_true() for x in xs)))


_logical(ew.logical_and, lambda x, y: x & y)
_logical(ew.logical_or, lambda x, y: x | y)
_logical(ew.logical_xor, lambda x, y: x ^ y)
_logical(ew.logical_not, lambda x: ~x)


def _least(*, nan_wins: bool) -> Body:
    def body(a: Complex, b: Complex) -> Complex:
        return (cf.less(a, b, "ole") | cf.is_nan(a if nan_wins else b)).pick(a, b)

    return body


_enter(ew.minimum, _least(nan_wins=True))
_enter(ew.fmin, _least(nan_wins=False))


@complex_form(ew.power)
def _power(b: ComplexBuilder, x1: Operand, x2: Operand, dtype: Any = None) -> Value:
    if isinstance(x2, Scalar) and x2.weak and not isinstance(x2.value, bool):
        exponent = complex(x2.value)
        if exponent.imag == 0 and exponent.real == 0.5:
            return _ufunc("power", np.power, lambda a, _: cf.sqrt(a), b, (x1, x2), dtype)
        if exponent.imag == 0 and exponent.real.is_integer() and abs(exponent.real) < 100:
            return _ufunc("power", np.power, lambda a, _: cf.integer_power(a, int(exponent.real)), b, (x1, x2), dtype)
    return _ufunc("power", np.power, cf.power, b, (x1, x2), dtype)


@complex_form(ew.float_power)
def _float_power(b: ComplexBuilder, x1: Operand, x2: Operand, dtype: Any = None) -> Value:
    return _ufunc("float_power", np.float_power, cf.power, b, (x1, x2), dtype)


@complex_form(ew.where)
def _where(b: ComplexBuilder, condition: Operand, x: Operand | None = None, y: Operand | None = None) -> Value:
    if x is None or y is None:
        return inspect.unwrap(ew.where.build)(b, condition, x, y)  # refuses it
    truth = b.cast(red.as_value(b, condition), np.dtype(np.bool_))
    dtype = promotion.result_type(x, y)
    if not is_complex(dtype):
        return ew.where.build(b, truth, x, y)
    pairs = [b.broadcast(v, v.shape, dtype) for v in (x, y)]
    re, im = (ew.where.build(b, truth, *(getattr(pair, part) for pair in pairs)) for part in ("re", "im"))
    return ComplexValue.of(re, im)


# Reductions.


def _pair(b: ComplexBuilder, name: str, a: Operand, dtype: Any) -> ComplexValue:
    wanted = as_dtype(dtype) if dtype is not None else a.dtype
    if not is_complex(wanted):
        raise DTypeError(
            f"{name}: {NOT_COMPILED} with dtype {short_name(wanted)}", help="take the real parts first: `x.real`"
        )
    value = b.cast(red.as_value(b, a), wanted)
    assert isinstance(value, ComplexValue)
    return value


def _part(x: Any, name: str) -> Any:
    """The real or imaginary part of an operand or option; what is no number stays what it is."""
    if isinstance(x, ComplexValue):
        return x.re if name == "real" else x.im
    if isinstance(x, Scalar):
        return replace(x, value=getattr(x.value, name))
    if isinstance(x, (complex, np.complexfloating, np.ndarray)):
        return getattr(x, name)
    return x


def _by_parts(record: OpDef, *, numbers: Sequence[str] = ()) -> None:
    """The complex form of what treats both parts alike. `numbers` are options that are numbers, 0 by default."""

    @complex_form(record)
    def build(b: ComplexBuilder, *args: Any, **options: Any) -> Value:
        given = record.signature.bind(*args, **options).arguments
        first = next(iter(given))
        wanted = as_dtype(given["dtype"]) if given.get("dtype") is not None else given[first].dtype
        given[first] = b.cast(red.as_value(b, given[first]), wanted)
        if not is_complex(wanted):
            values: Any = given.get("values")
            if has_complex([values]) and values.weak:  # NumPy casts complex arrays here, with a warning
                raise DTypeError(f"{record.name}: a complex number cannot be stored as {wanted.name}")
            bound = record.signature.bind_partial()
            bound.arguments.update({k: _part(v, "real") if k in numbers else v for k, v in given.items()})
            return record.build(b, *bound.args, **bound.kwargs)
        if "dtype" in given:
            given["dtype"] = None
        for name in numbers:
            if isinstance(given.get(name), Value):
                given[name] = b.cast(given[name], wanted)
            elif name in given and not isinstance(given[name], Scalar):
                given[name] = np.asarray(given[name]).astype(wanted)[()]
        both = []
        for name in ("real", "imag"):
            bound = record.signature.bind_partial()
            bound.arguments.update({k: _part(v, name) for k, v in given.items()})
            both.append(record.build(b, *bound.args, **bound.kwargs))
        return ComplexValue.of(*both)


_by_parts(red.mean)
_by_parts(scans.cumsum)
_by_parts(OPS["add_accumulate"])
for _record in (
    rearrange.roll,
    rearrange.tile,
    rearrange.repeat,
    rearrange.tril,
    rearrange.triu,
    rearrange.diagonal,
    rearrange.diag,
    rearrange.diagflat,
    rearrange.trace,
    rearrange.delete,
    rearrange.resize,
):
    _by_parts(_record)
_by_parts(rearrange.pad, numbers=("constant_values",))
_by_parts(rearrange.insert, numbers=("values",))


def _given(record: OpDef, *args: Any, **options: Any) -> dict[str, Any]:
    """The arguments of a record by name, with its defaults."""
    bound = record.signature.bind(*args, **options)
    bound.apply_defaults()
    return bound.arguments


def _variance(record: OpDef) -> None:
    @complex_form(record)
    def build(b: ComplexBuilder, *args: Any, **options: Any) -> Value:
        given = _given(record, *args, **options)
        value = _pair(b, record.name, given["a"], given["dtype"])
        rest = {name: given[name] for name in ("axis", "ddof", "keepdims", "where", "correction")}
        spread = [
            red.var.build(b, part, **rest, mean=_part(given["mean"], name))
            for part, name in ((value.re, "real"), (value.im, "imag"))
        ]
        total = ew.add.build(b, *spread)
        result: Value = ew.sqrt.build(b, total) if record is red.std else total
        return result if given["dtype"] is None else b.cast(result, as_dtype(given["dtype"]))


_variance(red.var)
_variance(red.std)


def _truth_of(record: OpDef) -> None:
    @complex_form(record)
    def build(b: ComplexBuilder, a: Operand, *args: Any, **options: Any) -> Value:
        return record.build(b, b.cast(red.as_value(b, a), np.dtype(np.bool_)), *args, **options)


for _record in (red.any_, red.all_, red.count_nonzero, OPS["logical_and_accumulate"], OPS["logical_or_accumulate"]):
    _truth_of(_record)


def _fold(b: ComplexBuilder, name: str, value: ComplexValue, axis: Any, initial: Any, where: Any, fold: _Fold) -> Value:
    """Reduce with a scalar body of two complex numbers, the element and the accumulator."""
    axes = red._reduced_axes(name, value.shape, axis)
    chosen = red._chosen(b, name, value, where, fold.neutral)
    assert isinstance(chosen, ComplexValue)
    kept = [i for i in range(len(value.shape)) if i not in axes]
    part = part_dtype(value.dtype)

    def write(block: Any, xs: list[str], accumulators: list[str]) -> tuple[str, str]:
        x, accumulator = (Complex(*(Real(block, n, part) for n in names)) for names in (xs, accumulators))
        result = fold.body(accumulator, x)
        assert isinstance(result, Complex)
        return result.re.name, result.im.name

    def reduce(start: object) -> Value:
        out = b.filled([value.shape[i] for i in kept], value.dtype, start)
        assert isinstance(out, ComplexValue)
        kinds = ["reduction" if i in axes else "parallel" for i in range(len(value.shape))]
        whole = range(len(value.shape))
        return ComplexValue.of(
            *b.generic2([chosen.re, chosen.im], [whole, whole], (out.re, out.im), kept, kinds, write)
        )

    return red._started(b, value, initial, fold.neutral, reduce, fold.join)


@dataclass(frozen=True)
class _Fold:
    """A reduction: `body(accumulator, element)`, where it starts, and the record that joins two results."""

    body: Body
    neutral: complex
    join: OpDef


_PRODUCT = _Fold(lambda total, x: total * x, 1, ew.multiply)
_MAX = _Fold(_extremum("ole", nan_wins=True), complex(-np.inf, -np.inf), ew.maximum)
_MIN = _Fold(_least(nan_wins=True), complex(np.inf, np.inf), ew.minimum)


_SUM = _Fold(lambda total, x: total + x, 0, ew.add)


@complex_form(red.sum_)
def _sum(b: ComplexBuilder, *args: Any, **options: Any) -> Value:
    a, axis, dtype, _, keepdims, initial, where = _given(red.sum_, *args, **options).values()
    if dtype is not None and not is_complex(as_dtype(dtype)):
        value = b.cast(red.as_value(b, a), as_dtype(dtype))
        return red.sum_.build(b, value, axis, as_dtype(dtype), None, keepdims, initial, where)
    pair = _pair(b, "sum", a, dtype)
    total = _fold(b, "sum", pair, axis, initial, where, _SUM)
    return red._restored(b, total, pair.shape, red._reduced_axes("sum", pair.shape, axis), keepdims)


_mean_of_parts = red.mean.forms["complex"]


@complex_form(red.mean)
def _mean(b: ComplexBuilder, *args: Any, **options: Any) -> Value:
    a, axis, dtype, _, keepdims, where = _given(red.mean, *args, **options).values()
    if where is not True or (dtype is not None and not is_complex(as_dtype(dtype))):
        return _mean_of_parts(b, a, axis, dtype, None, keepdims, where=where)
    value = _pair(b, "mean", a, dtype)
    count = Scalar(float(red._count(value.shape, red.normalized_axes("mean", value.shape, axis))))
    total = _sum(b, value, axis, None, None, keepdims)
    assert isinstance(total, ComplexValue)
    return total.map(lambda part: ew.divide.build(b, part, count))


@complex_form(red.prod)
def _prod(b: ComplexBuilder, *args: Any, **options: Any) -> Value:
    a, axis, dtype, _, keepdims, initial, where = _given(red.prod, *args, **options).values()
    if dtype is not None and not is_complex(as_dtype(dtype)):
        kind = as_dtype(dtype)
        return red.prod.build(b, b.cast(red.as_value(b, a), kind), axis, kind, None, keepdims, initial, where)
    value = _pair(b, "prod", a, dtype)
    total = _fold(b, "prod", value, axis, initial, where, _PRODUCT)
    return red._restored(b, total, value.shape, red._reduced_axes("prod", value.shape, axis), keepdims)


def _extreme(record: OpDef, fold: _Fold) -> None:
    @complex_form(record)
    def build(b: ComplexBuilder, *args: Any, **options: Any) -> Value:
        a, axis, _, keepdims, initial, where = _given(record, *args, **options).values()
        value = _pair(b, record.name, a, None)
        axes = red._reduced_axes(record.name, value.shape, axis)
        if initial is None:
            if where is not True:
                raise ShapeError(
                    f"{record.name}: with a mask, `initial` is needed too: there may be nothing to choose from"
                )
            red._refuse_empty(record.name, value, axes)
            initial = fold.neutral
        best = _fold(b, record.name, value, axis, initial, where, fold)
        return red._restored(b, best, value.shape, axes, keepdims)


_extreme(red.max_, _MAX)
_extreme(red.min_, _MIN)


@complex_form(red.ptp)
def _ptp(b: ComplexBuilder, a: Operand, axis: Any = None, out: None = None, keepdims: bool = False) -> Value:
    return ew.subtract.build(b, *(f.build(b, a, axis, None, keepdims) for f in (red.max_, red.min_)))


def _position(record: OpDef, extreme: OpDef) -> None:
    """The position of the first extreme element, as `argmax`; a NaN is extreme."""

    @complex_form(record)
    def build(b: ComplexBuilder, a: Operand, axis: Any = None, out: None = None, *, keepdims: bool = False) -> Value:
        value = red.as_value(b, a)
        red._refuse_empty(record.name, value, red._reduced_axes(record.name, value.shape, axis))
        best = extreme.build(b, value, axis, None, True)
        hit = ew.logical_or.build(b, ew.equal.build(b, value, best), ew.isnan.build(b, value))
        return red.argmax.build(b, hit, axis, keepdims=keepdims)


_position(red.argmax, red.max_)
_position(red.argmin, red.min_)


@complex_form(ew.clip)
def _clip(b: ComplexBuilder, *args: Any, **options: Any) -> Value:
    a, a_min, a_max, _, min, max = _given(ew.clip, *args, **options).values()
    low, high = (
        (a_min if min is None else promotion.as_operand(min)),
        (a_max if max is None else promotion.as_operand(max)),
    )
    a = promotion.strong(a)
    # All three promote together: an integer array and a float limit have no say beside a complex64 one.
    dtype = promotion.result_type(*(x for x in (a, low, high) if x is not None))
    value = b.cast(red.as_value(b, a), dtype)
    value = value if low is None else ew.maximum.build(b, value, low)
    return value if high is None else ew.minimum.build(b, value, high)


# Records whose primitives take complex values as they are.
lift(ew.isclose, ew.round_, joins.concat, joins.stack, joins.vstack, joins.hstack)
lift(contractions.matmul, contractions.dot, contractions.inner, contractions.outer)
lift(contractions.tensordot, contractions.einsum)
lift(gather.take, gather.take_along_axis, gather.compress)


# Records of their own.


conjugate = ew.elementwise(
    np.conjugate,
    lambda block, xs, dtype: xs[0],
    NUMBERS,
    "The imaginary part negated; a real array stays what it is.",
    methods=("conj", "conjugate"),
)
_enter(conjugate, Complex.conjugate)


@complex_form(contractions.vdot)
def _vdot(builder: ComplexBuilder, a: Operand, b: Operand) -> Value:
    return inspect.unwrap(contractions.vdot.build)(builder, conjugate.build(builder, a), b)


@operation("elementwise", np.angle, dtypes=ALL, arrays=1, tolerance=4)
def angle(b: ComplexBuilder, z: Operand, deg: bool = False) -> Value:
    """The argument of a complex number, radians or degrees; 0 or pi for a real one."""
    return _degrees(b, ew.arctan2.build(b, Scalar(0), z), deg)


def _degrees(b: Builder, radians: Value, deg: bool) -> Value:
    return ew.multiply.build(b, radians, Scalar(180 / np.pi)) if deg else radians


@complex_form(angle)
def _angle(b: ComplexBuilder, z: Operand, deg: bool = False) -> Value:
    return _degrees(b, b.numbers([z], z.dtype, z.shape, lambda xs: cf.angle(xs[0])), deg)


def _is_real(name: str, reference: Callable[..., Any], answer: bool, doc: str) -> None:
    def build(b: Builder, x: Operand) -> Value:
        return b.filled(x.shape, np.dtype(np.bool_), answer)

    build.__name__, build.__doc__ = name, doc
    record = operation("elementwise", reference, dtypes=ALL, arrays=1)(build)

    @complex_form(record)
    def of_complex(b: ComplexBuilder, x: Operand) -> Value:
        def body(xs: list[Complex]) -> Truth:
            return xs[0].im.same(0.0) if answer else xs[0].im.differs(0.0)

        return b.numbers([x], x.dtype, x.shape, body)


_is_real("isreal", np.isreal, True, "True where the imaginary part is 0.")
_is_real("iscomplex", np.iscomplex, False, "True where the imaginary part is not 0.")

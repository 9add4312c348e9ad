"""Elementwise operations on the parts of numbers: exponents, neighbours, fractions; and two results at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirml.errors import DTypeError
from mlirml.ir.text.builder import Body, Builder, Operand, Value
from mlirml.ir.text.dtypes import mlir_name, short_name
from mlirml.ops.elementwise import broadcast_shapes, elementwise, floor_divide, in_single, remainder, select
from mlirml.ops.promotion import promoted, resolve
from mlirml.ops.registry import BOOL, FLOATS, INTEGERS, NOT_IN_NUMPY, NUMBERS, OpDef, composed, define, operation

_MANTISSA = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
_INT, _SINGLE, _DOUBLE = np.dtype(np.int32), np.dtype(np.float32), np.dtype(np.float64)


def _word(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"i{dtype.itemsize}")


def _bits(block: Body, x: str, dtype: np.dtype) -> str:
    return block.op(f"arith.bitcast {x}", f"{mlir_name(dtype)} to {mlir_name(_word(dtype))}")


def _from_bits(block: Body, x: str, dtype: np.dtype) -> str:
    return block.op(f"arith.bitcast {x}", f"{mlir_name(_word(dtype))} to {mlir_name(dtype)}")


def _nextafter(block: Body, xs: list[str], dtype: np.dtype) -> str:
    kind, word = mlir_name(dtype), _word(dtype)
    x, y = xs
    zero, one, minus = block.constant(0.0, dtype), block.constant(1, word), block.constant(-1, word)
    bits, other = _bits(block, x, dtype), _bits(block, y, dtype)
    lowest = block.constant(np.iinfo(word).min, word)
    sign = block.op(f"arith.andi {other}, {lowest}", mlir_name(word))
    least = _from_bits(block, block.op(f"arith.ori {sign}, {one}", mlir_name(word)), dtype)
    below = block.op(f"arith.cmpf olt, {x}, {y}", kind)
    negative = block.op(f"arith.cmpf olt, {x}, {zero}", kind)
    grows = block.op(f"arith.xori {below}, {negative}", "i1")
    moved = block.op(f"arith.addi {bits}, {select(block, grows, one, minus, word)}", mlir_name(word))
    result = _from_bits(block, moved, dtype)
    result = select(block, block.op(f"arith.cmpf oeq, {x}, {zero}", kind), least, result, dtype)
    result = select(block, block.op(f"arith.cmpf oeq, {x}, {y}", kind), y, result, dtype)
    unordered = block.op(f"arith.cmpf uno, {x}, {y}", kind)
    return select(block, unordered, block.op(f"arith.addf {x}, {y}", kind), result, dtype)


def _spacing(block: Body, xs: list[str], dtype: np.dtype) -> str:
    kind, word = mlir_name(dtype), _word(dtype)
    (x,), one = xs, block.constant(1, word)
    bits = _bits(block, block.op(f"math.absf {x}", kind), dtype)
    above = block.op(f"arith.addi {bits}, {one}", mlir_name(word))
    magnitude = _from_bits(block, bits, dtype)  # has no derivative, as the distance has none
    distance = block.op(f"arith.subf {_from_bits(block, above, dtype)}, {magnitude}", kind)
    if dtype != np.float16:
        return block.op(f"math.copysign {distance}, {x}", kind)
    # NumPy's f16 loop: how far it is to the next number above.
    inner = block.op(f"arith.subi {bits}, {one}", mlir_name(word))
    to_zero = block.op(f"arith.subf {magnitude}, {_from_bits(block, inner, dtype)}", kind)
    negative = block.op(f"arith.cmpf olt, {x}, {block.constant(0.0, dtype)}", kind)
    finite = block.op(f"arith.cmpf olt, {magnitude}, {block.constant(np.inf, dtype)}", kind)
    result = select(block, negative, to_zero, distance, dtype)
    return select(block, finite, result, block.constant(np.nan, dtype), dtype)


def _heaviside(block: Body, xs: list[str], dtype: np.dtype) -> str:
    kind = mlir_name(dtype)
    x, at_zero = xs
    zero, one = block.constant(0.0, dtype), block.constant(1.0, dtype)
    result = select(block, block.op(f"arith.cmpf oeq, {x}, {zero}", kind), at_zero, x, dtype)
    result = select(block, block.op(f"arith.cmpf ogt, {x}, {zero}", kind), one, result, dtype)
    return select(block, block.op(f"arith.cmpf olt, {x}, {zero}", kind), zero, result, dtype)


def _bitwise_count(block: Body, xs: list[str], dtype: np.dtype) -> str:
    """The ones in |x|."""
    kind = mlir_name(dtype)
    magnitude = block.op(f"math.absi {xs[0]}", kind) if dtype.kind == "i" else xs[0]
    return block.cast(block.op(f"math.ctpop {magnitude}", kind), dtype, np.dtype(np.uint8))


def _split(block: Body, x: str, dtype: np.dtype) -> tuple[str, str, str]:
    """x -> (x with denormals scaled up, what the scaling added to the exponent, is not 0, inf or NaN)."""
    kind, word, shift = mlir_name(dtype), _word(dtype), _MANTISSA[dtype.name] + 2
    zero = block.constant(0.0, dtype)
    magnitude = block.op(f"math.absf {x}", kind)
    denormal = block.op(f"arith.cmpf olt, {magnitude}, {block.constant(np.finfo(dtype).smallest_normal, dtype)}", kind)
    scaled = block.op(f"arith.mulf {x}, {block.constant(2.0**shift, dtype)}", kind)
    normal = select(block, denormal, scaled, x, dtype)
    lifted = select(block, denormal, block.constant(shift, word), block.constant(0, word), word)
    finite = block.op(f"arith.cmpf olt, {magnitude}, {block.constant(np.inf, dtype)}", kind)
    positive = block.op(f"arith.cmpf one, {x}, {zero}", kind)
    return normal, lifted, block.op(f"arith.andi {finite}, {positive}", "i1")


def _fraction(block: Body, xs: list[str], dtype: np.dtype) -> str:
    """The mantissa of frexp in [0.5, 1), with the sign of x."""
    word, kind, shift = _word(dtype), mlir_name(_word(dtype)), _MANTISSA[dtype.name]
    normal, _, regular = _split(block, xs[0], dtype)
    # x * 2**(1 - e) / 4, so that derivatives see what it is times; 2**(1 - e) is a normal number for every x.
    field = _exponent_field(block, normal, dtype)
    twice_bias = (1 << 8 * dtype.itemsize - shift - 1) - 2
    biased = block.op(f"arith.subi {block.constant(twice_bias + 1, word)}, {field}", kind)
    power = _from_bits(block, block.op(f"arith.shli {biased}, {block.constant(shift, word)}", kind), dtype)
    scaled = block.op(f"arith.mulf {normal}, {power}", mlir_name(dtype))
    scaled = block.op(f"arith.mulf {scaled}, {block.constant(0.25, dtype)}", mlir_name(dtype))
    return select(block, regular, scaled, xs[0], dtype)


def _exponent_field(block: Body, x: str, dtype: np.dtype) -> str:
    """The bits of a float that hold its exponent, as an integer of its width."""
    word, kind, shift = _word(dtype), mlir_name(_word(dtype)), _MANTISSA[dtype.name]
    field = block.op(f"arith.shrui {_bits(block, x, dtype)}, {block.constant(shift, word)}", kind)
    return block.op(f"arith.andi {field}, {block.constant((1 << 8 * dtype.itemsize - shift - 1) - 1, word)}", kind)


def _exponent(block: Body, xs: list[str], dtype: np.dtype) -> str:
    """The exponent of frexp, as i32."""
    if dtype.itemsize == 2:
        return _exponent(block, [block.cast(xs[0], dtype, _SINGLE)], _SINGLE)
    word, kind, shift = _word(dtype), mlir_name(_word(dtype)), _MANTISSA[dtype.name]
    normal, lifted, regular = _split(block, xs[0], dtype)
    width = 8 * dtype.itemsize - shift - 1
    field = _exponent_field(block, normal, dtype)
    bias = block.op(f"arith.addi {lifted}, {block.constant((1 << width - 1) - 2, word)}", kind)
    exponent = block.op(f"arith.subi {field}, {bias}", kind)
    return block.cast(select(block, regular, exponent, block.constant(0, word), word), word, _INT)


def _whole(block: Body, xs: list[str], dtype: np.dtype) -> str:
    return block.op(f"math.trunc {xs[0]}", mlir_name(dtype))


def _fractional(block: Body, xs: list[str], dtype: np.dtype) -> str:
    kind, (x,) = mlir_name(dtype), xs
    difference = block.op(f"arith.subf {x}, {_whole(block, xs, dtype)}", kind)
    magnitude = block.op(f"math.absf {x}", kind)
    infinite = block.op(f"arith.cmpf oeq, {magnitude}, {block.constant(np.inf, dtype)}", kind)
    part = select(block, infinite, block.constant(0.0, dtype), difference, dtype)
    return block.op(f"math.copysign {part}, {x}", kind)


ScalarBody = Callable[[Body, list[str], np.dtype], str]


def _pair(name: str, ufunc: np.ufunc, bodies: tuple[ScalarBody, ScalarBody], doc: str) -> OpDef:
    """Define a ufunc of one operand and two results."""

    def build(b: Builder, x: Operand) -> tuple[Value, ...]:
        try:
            loop, *outs = resolve(ufunc, (promoted(x),), None)
        except TypeError:
            raise DTypeError(f"{name}: not defined for {short_name(x.dtype)}, as in NumPy") from None

        def make(out: np.dtype, body: ScalarBody) -> Value:
            return b.elementwise((x,), (loop,), out, x.shape, lambda block, xs: body(block, xs, loop))

        return tuple(make(out, body) for out, body in zip(outs, bodies))

    return define(OpDef(name, "elementwise", ufunc, build, FLOATS, doc))


nextafter = elementwise(np.nextafter, _nextafter, FLOATS, "The next float after x1 towards x2.")
spacing = elementwise(np.spacing, _spacing, FLOATS, "Distance to the next float away from 0.")
heaviside = elementwise(np.heaviside, _heaviside, FLOATS, "0 below 0, 1 above 0 and x2 at 0; NaN stays NaN.")
bitwise_count = elementwise(
    np.bitwise_count, _bitwise_count, BOOL + INTEGERS, "The number of ones in the magnitude, as u8."
)
frexp = _pair("frexp", np.frexp, (in_single(_fraction), _exponent), "Mantissa in [0.5, 1) and exponent, as i32.")
modf = _pair("modf", np.modf, (in_single(_fractional), in_single(_whole)), "Fractional and integral part.")


@operation("elementwise", np.divmod, dtypes=NUMBERS, arrays=2)
def divmod_(b: Builder, x1: Operand, x2: Operand, dtype: Any = None) -> tuple[Value, ...]:
    """Floor quotient and remainder."""
    return floor_divide.build(b, x1, x2, dtype), remainder.build(b, x1, x2, dtype)


def _power_of_two(block: Body, exponent: str, dtype: np.dtype) -> str:
    """2^exponent for the exponents of normal numbers; `exponent` is as wide as the float."""
    word, shift = _word(dtype), _MANTISSA[dtype.name]
    bias = (1 << 8 * dtype.itemsize - shift - 2) - 1
    biased = block.op(f"arith.addi {exponent}, {block.constant(bias, word)}", mlir_name(word))
    return _from_bits(block, block.op(f"arith.shli {biased}, {block.constant(shift, word)}", mlir_name(word)), dtype)


def _clamped(block: Body, x: str, low: int, high: int, dtype: np.dtype) -> str:
    kind = mlir_name(dtype)
    below = block.op(f"arith.minsi {x}, {block.constant(high, dtype)}", kind)
    return block.op(f"arith.maxsi {below}, {block.constant(low, dtype)}", kind)


def _scaled_by_power(block: Body, x: str, exponent: str, dtype: np.dtype, integer: np.dtype) -> str:
    """x * 2^exponent, rounded once: in a wider format, or in three steps of which only the last can be inexact."""
    if dtype != np.float64:
        wide = _SINGLE if dtype == np.float16 else _DOUBLE
        limit = 60 if dtype == np.float16 else 300
        count = block.cast(_clamped(block, exponent, -limit, limit, integer), integer, _word(wide))
        factor = _power_of_two(block, count, wide)
        product = block.op(f"arith.mulf {block.cast(x, dtype, wide)}, {factor}", mlir_name(wide))
        return block.cast(product, wide, dtype)
    word = _word(dtype)
    rest, steps = block.cast(_clamped(block, exponent, -3066, 3069, integer), integer, word), []
    for _ in range(3):
        steps.append(_clamped(block, rest, -1022, 1023, word))
        rest = block.op(f"arith.subi {rest}, {steps[-1]}", "i64")
    for step in reversed(steps):
        x = block.op(f"arith.mulf {x}, {_power_of_two(block, step, dtype)}", "f64")
    return x


@operation("elementwise", np.ldexp, dtypes=FLOATS, arrays=2)
def ldexp(b: Builder, x1: Operand, x2: Operand) -> Value:
    """x1 * 2**x2 for integers x2."""
    try:
        loop, integer, out = resolve(np.ldexp, (promoted(x1), promoted(x2)), None)
    except TypeError:
        raise DTypeError(
            f"ldexp: not defined for {short_name(x1.dtype)} and {short_name(x2.dtype)}, as in NumPy",
            help="the exponents must be integers",
        ) from None
    return b.elementwise(
        (x1, x2),
        (loop, integer),
        out,
        broadcast_shapes("ldexp", (x1, x2)),
        lambda block, xs: _scaled_by_power(block, xs[0], xs[1], loop, integer),
    )


@composed("elementwise", np.fix, dtypes=BOOL + NUMBERS, gaps=NOT_IN_NUMPY)
def fix(xp: Any, x: Any, out: Any = None) -> Any:
    """Round towards zero."""
    return xp.trunc(x)


@composed("elementwise", np.isposinf, dtypes=BOOL + NUMBERS, gaps=NOT_IN_NUMPY)
def isposinf(xp: Any, x: Any, out: Any = None) -> Any:
    """True where the element is infinite and positive."""
    return xp.logical_and(xp.isinf(x), ~xp.signbit(x))


@composed("elementwise", np.isneginf, dtypes=BOOL + NUMBERS, gaps=NOT_IN_NUMPY)
def isneginf(xp: Any, x: Any, out: Any = None) -> Any:
    """True where the element is infinite and negative."""
    return xp.logical_and(xp.isinf(x), xp.signbit(x))


@composed("elementwise", np.sinc, dtypes=BOOL + NUMBERS, tolerance=4)
def sinc(xp: Any, x: Any) -> Any:
    """sin(pi x)/(pi x), and 1 at 0.

    Near 0 it is the series of Maclaurin, whose derivatives are right where those of the quotient lose their digits.
    """
    x = xp.asarray(x) * np.pi
    small = abs(x) < 0.1
    y = xp.where(small, x.dtype.type(1), x)
    square = xp.where(small, x, x.dtype.type(0)) ** 2
    series = xp.zeros((), x.dtype)
    for coefficient in (1 / 362880, -1 / 5040, 1 / 120, -1 / 6, 1.0):
        series = series * square + x.dtype.type(coefficient)
    return xp.where(small, series, xp.sin(y) / y)


@composed(
    "elementwise",
    np.nan_to_num,
    dtypes=BOOL + NUMBERS,
    array_options=("nan", "posinf", "neginf"),
    gaps=tuple((name, "apply it to the real and imaginary parts") for name in ("c64", "c128")),
)
def nan_to_num(xp: Any, x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Other numbers for NaN and infinities: 0 and the largest numbers, if none are given."""
    given, x = x, xp.asarray(x)
    if x.dtype.kind == "c":
        raise DTypeError("nan_to_num: not compiled for complex numbers", help="apply it to `x.real` and `x.imag`")
    if x.dtype.kind != "f":  # of bf16 NumPy does not know that it is a float
        return x.copy() if copy else given
    limits = np.finfo(x.dtype)
    result = x
    for found, number, default in (
        (xp.isnan(x), nan, 0.0),
        (xp.isposinf(x), posinf, limits.max),
        (xp.isneginf(x), neginf, limits.min),
    ):
        other = xp.asarray(default if number is None else number).astype(x.dtype)
        result = xp.where(found, other, result)
    if copy:
        return result
    given[...] = result
    return given

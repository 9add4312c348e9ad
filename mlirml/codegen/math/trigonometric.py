"""sin, cos, tan where pi/2 can be subtracted exactly; larger arguments are left to libm.

x = n pi/2 + r with |r| <= pi/4, pi/2 in three parts (Cody and Waite, Software Manual for the Elementary Functions,
1980, chapter 8). Coefficients: `python docs/minimax.py`.
"""

from __future__ import annotations

from mlirml.codegen.math.builder import WIDTHS, Builder, Value
from mlirml.codegen.math.exponential import CONSTANTS, integer_of
from mlirml.codegen.math.registry import guarded
from mlirml.core.dataclass import dataclass

SIN_F32 = (  # 2^-28.0
    -0.0001951859740074724,
    0.008332191035151482,
    -0.16666655242443085,
)
COS_F32 = (  # 2^-33.1
    2.443195080559235e-05,
    -0.001388730714097619,
    0.04166664555668831,
)
SIN_F64 = (  # 2^-58.0
    1.5896805262672878e-10,
    -2.505075866034825e-08,
    2.7557313698515497e-06,
    -0.0001984126982983909,
    0.008333333333322476,
    -0.16666666666666632,
)
COS_F64 = (  # 2^-64.2
    -1.1359874684599489e-11,
    2.0875728296235526e-09,
    -2.755731439516753e-07,
    2.48015872896568e-05,
    -0.001388888888887446,
    0.0416666666666666,
)

TAN_F32 = (  # 2^-28.1
    0.004976389463990927,
    -0.001166910515166819,
    0.0118611054494977,
    0.020872041583061218,
    0.05414256453514099,
    0.13331900537014008,
    0.33333373069763184,
)
TAN_F64 = (  # 2^-56.0
    2.1082506847041085e-05,
    -4.581438182039089e-05,
    9.124212185520345e-05,
    -2.8395858340623246e-05,
    0.00013799970154441588,
    0.0002216382535807299,
    0.0005953260224331184,
    0.0014546932702138359,
    0.0035923002070394013,
    0.008863217871208987,
    0.021869489705571333,
    0.05396825392241139,
    0.13333333333424083,
    0.33333333333332704,
)

TWO_OVER_PI = 0.63661977236758134
# f32: x less n times the first part is exact in an fma. f64: n times the first two (33 bits each) is exact.
HALF_PI_F32 = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
# Of 8, 11 and 11 bits, and the rest: n times each is exact for n of 13 bits.
HALF_PI_SHORT = (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.563344151594519e-12)
HALF_PI_F64 = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)


@dataclass(frozen=True)
class Turn:
    """x = quarter pi/2 + r: sine and cosine of r, the integer `quarter`, and the condition that x is small enough."""

    sine: Value
    cosine: Value
    quarter: Value
    valid: Value


def reduce_f32(b: Builder, x: Value) -> tuple[Value, Value]:
    """f32 -> (n, r); without fma by way of f64, and without both by parts of pi/2 whose product with n is exact."""
    if not b.processor.has_fma and b.f64:
        n, r, _ = reduce_f64(b, b.cast("arith.extf", x, "f64"))
        return b.cast("arith.trunci", n, "i32"), b.cast("arith.truncf", r, "f32")
    magic = CONSTANTS["f32"].magic
    shifted = b.fma(x, TWO_OVER_PI, magic)
    n = shifted - magic
    r = x
    for part in HALF_PI_F32 if b.processor.has_fma else HALF_PI_SHORT:
        r = b.fma(n, -part, r)
    return integer_of(b, shifted), r


def reduce_f64(b: Builder, x: Value) -> tuple[Value, Value, Value]:
    """f64 -> (n, r, the rounding error of r)."""
    magic = CONSTANTS["f64"].magic
    shifted = b.fma(x, TWO_OVER_PI, magic)
    n = shifted - magic
    high = b.fma(n, -HALF_PI_F64[0], x)
    middle = b.fma(n, -HALF_PI_F64[1], high)
    rest = b.fma(n, -HALF_PI_F64[1], high - middle)
    rest = b.fma(n, -HALF_PI_F64[2], rest)
    r = middle + rest
    return integer_of(b, shifted), r, (middle - r) + rest


def turn(b: Builder, x: Value) -> Turn:
    """Sine and cosine of the reduced argument."""
    if x.dtype == "f32":
        quarter, r = reduce_f32(b, x)
        z = r * r
        sine = b.fma(r * z, b.horner(z, SIN_F32), r)
        cosine = b.fma(z * z, b.horner(z, COS_F32), b.fma(z, -0.5, 1.0))
    else:
        quarter, r, rest = reduce_f64(b, x)
        z = r * r
        half = z * 0.5
        sine = r + b.fma(r * z, b.horner(z, SIN_F64), b.fma(-half, rest, rest))
        whole = 1.0 - half
        small = b.fma(z * z, b.horner(z, COS_F64), b.fma(-r, rest, (1.0 - whole) - half))
        cosine = whole + small
    return Turn(sine, cosine, quarter, in_range(b, x))


def in_range(b: Builder, x: Value) -> Value:
    """The condition that pi/2 can be subtracted. The negation of >= includes NaN, where it costs nothing."""
    exact = b.processor.has_fma or b.f64 or x.dtype == "f64"
    return b.compare("ult", b.abs(x), 2.0**20 if exact else 2.0**13)


def is_odd(b: Builder, n: Value) -> Value:
    return (n & 1).differs(0)


def with_sign_of_half_turn(b: Builder, value: Value, quarter: Value) -> Value:
    """Negated where bit 1 of `quarter` is set."""
    sign = (quarter & 2) << (WIDTHS[value.dtype] - 2)
    return b.from_bits(b.to_bits(value) ^ sign, value.dtype)


@guarded("sin", "f32", "f64")
def sin(b: Builder, x: Value) -> tuple[Value, Value]:
    t = turn(b, x)
    value = with_sign_of_half_turn(b, b.select(is_odd(b, t.quarter), t.cosine, t.sine), t.quarter)
    return b.select(b.abs(x) < CONSTANTS[x.dtype].tiny, x, value), t.valid


@guarded("cos", "f32", "f64")
def cos(b: Builder, x: Value) -> tuple[Value, Value]:
    t = turn(b, x)
    value = b.select(is_odd(b, t.quarter), t.sine, t.cosine)
    return with_sign_of_half_turn(b, value, t.quarter + 1), t.valid


@guarded("tan", "f32", "f64")
def tan(b: Builder, x: Value) -> tuple[Value, Value]:
    """tan r, or -1/tan r in odd quarters."""
    if x.dtype == "f32":
        quarter, r = reduce_f32(b, x)
        z = r * r
        t = b.fma(r * z, b.horner(z, TAN_F32), r)
    else:
        quarter, r, rest = reduce_f64(b, x)
        z = r * r
        t = r + b.fma(r * z, b.horner(z, TAN_F64), b.fma(rest, z, rest))
    odd = is_odd(b, quarter)
    value = b.select(odd, b.constant(-1.0, x.dtype), t) / b.select(odd, t, 1.0)
    return b.select(b.abs(x) < CONSTANTS[x.dtype].tiny, x, value), in_range(b, x)

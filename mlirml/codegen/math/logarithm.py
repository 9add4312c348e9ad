"""log, log2, log10, log1p: the exponent and a polynomial of the mantissa.

x = 2^e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2). In f32 log(1 + f) = f - f^2/2 + f^3 P(f), as in Cephes `logf`; in f64
log(1 + f) = f - s (f - R(s^2)) with s = f/(2 + f), as in fdlibm `e_log.c`; log2(1 + f) = s P(s^2), log10 alike.
Coefficients: `python docs/minimax.py`.
"""

from __future__ import annotations

from mlirml.codegen.math.builder import MANTISSA, WIDTHS, Builder, Value
from mlirml.codegen.math.registry import expansion
from mlirml.core.dataclass import dataclass

LOG_F32 = (  # 2^-27.3
    -0.07635721564292908,
    0.12763065099716187,
    -0.131602481007576,
    0.14201459288597107,
    -0.16623324155807495,
    0.2000124603509903,
    -0.250008225440979,
    0.3333333134651184,
)
LOG2_F32 = (  # 2^-26.2
    0.47416922450065613,
    0.5748085379600525,
    0.9618204832077026,
    2.885390043258667,
)
LOG10_F32 = (  # 2^-25.4
    0.10745904594659805,
    0.17462974786758423,
    0.2895185053348541,
    0.8685889840126038,
)
LOG2_F64 = (  # 2^-56.0
    0.22827500805458517,
    0.21940023264437092,
    0.2623958863003787,
    0.3205972935282547,
    0.41219859870301295,
    0.5770780162819173,
    0.9617966939261091,
    2.8853900817779268,
)
LOG10_F64 = (  # 2^-55.1
    0.0722776149587196,
    0.06567588838031,
    0.07900417395906946,
    0.09650909421039197,
    0.1240841455980141,
    0.1737177927230184,
    0.28952965460223873,
    0.8685889638065036,
)
LOG_F64 = (  # 2^-58.5
    0.1479555555986809,
    0.1531409231905177,
    0.1818356257688599,
    0.22222198609815805,
    0.2857142874198952,
    0.3999999999941676,
    0.6666666666666734,
)
LOG_WIDE = (  # 2^-36.6
    0.23582234825633425,
    0.2853730323600379,
    0.40000335293921696,
    0.6666666564490624,
)

INFINITY = float("inf")
NAN = float("nan")
# ln 2, log10(2): the high parts have so few bits that the product with an exponent is exact.
LN2 = {"f32": (0.693359375, -2.1219444e-4), "f64": (6.93147180369123816490e-01, 1.90821492927058770002e-10)}
LOG10_2 = {
    "f32": (0.301025390625, 4.6050389811952137e-06),
    "f64": (3.01029995663611771306e-01, 3.69423907715893078616e-13),
}


@dataclass(frozen=True)
class Mantissa:
    """x = 2^exponent (1 + fraction); `exponent` as a float and as an integer."""

    exponent: Value
    integer: Value
    fraction: Value


def split_normal(b: Builder, x: Value, denormal: Value | None = None) -> Mantissa:
    """Split a positive normal number, which was scaled up where `denormal`."""
    dtype, shift = x.dtype, MANTISSA[x.dtype]
    root = b.to_bits_of(0.70710678118654752, dtype)
    bits = b.to_bits(x) - root
    integer = bits >> shift
    fraction = b.from_bits((bits & ((1 << shift) - 1)) + root, dtype) - 1.0
    if denormal is not None:
        integer = b.select(denormal, integer - (shift + 2), integer)
    return Mantissa(b.cast("arith.sitofp", integer, dtype), integer, fraction)


def split(b: Builder, x: Value) -> Mantissa:
    """Split a positive number; denormals are first made normal."""
    width, shift = WIDTHS[x.dtype], MANTISSA[x.dtype]
    smallest = 2.0 ** (2 - (1 << width - shift - 2))
    denormal = x < smallest
    return split_normal(b, b.select(denormal, x * 2.0 ** (shift + 2), x), denormal)


def with_special_values(b: Builder, x: Value, result: Value) -> Value:
    """-inf at 0, NaN below, inf at inf, NaN at NaN."""
    result = b.select(x < INFINITY, result, x)
    return b.select(x > 0.0, result, b.select(x.equals(0.0), b.constant(-INFINITY, x.dtype), NAN))


def log_of(b: Builder, m: Mantissa) -> Value:
    """exponent ln 2 + log(1 + fraction)."""
    high, low = LN2[m.fraction.dtype]
    f = m.fraction
    if f.dtype == "f64":
        s = f / (f + 2.0)
        z = s * s
        rest = b.fma(-z, b.horner(z, LOG_F64), f)
        return b.fma(m.exponent, high, f - b.fma(s, rest, m.exponent * -low))
    z = f * f
    small = b.fma(z, -0.5, b.fma(m.exponent, low, f * z * b.horner(f, LOG_F32)))
    return b.fma(m.exponent, high, f + small)


@expansion("log", "f32", "f64")
def log(b: Builder, x: Value) -> Value:
    return with_special_values(b, x, log_of(b, split(b, x)))


@expansion("log1p", "f32", "f64")
def log1p(b: Builder, x: Value) -> Value:
    """log of the rounded 1 + x, its rounding error added to the fraction (Tang, ACM TOMS 16, 1990)."""
    u = x + 1.0
    shadow = u - 1.0
    error = (1.0 - (u - shadow)) + (x - shadow)
    m = split_normal(b, u)
    bias = (1 << WIDTHS[x.dtype] - MANTISSA[x.dtype] - 2) - 1
    down = b.from_bits((bias - m.integer) << MANTISSA[x.dtype], x.dtype)  # 2^-exponent
    # For larger u, the error does not affect the result, and 2^-exponent may not be a normal number.
    error = b.select(u < 2.0 ** (MANTISSA[x.dtype] + 2), error * down, 0.0)
    result = log_of(b, Mantissa(m.exponent, m.integer, m.fraction + error))
    return b.copysign(with_special_values(b, u, result), x)


def fraction_ratio(b: Builder, f: Value, coefficients: tuple[float, ...]) -> Value:
    """s P(s^2) with s = f/(2 + f); in f64 s is corrected by its rounding error, as 1/(2 + f) = (1 - s)/2."""
    below = f + 2.0
    s = f / below
    p = b.horner(s * s, coefficients)
    if f.dtype == "f32":
        return s * p
    lost = b.fma(-s, f - (below - 2.0), b.quotient_error(f, below, s))
    return b.fma(s, p, lost * b.fma(s, -0.5, 0.5) * coefficients[-1])


@expansion("log2", "f32", "f64")
def log2(b: Builder, x: Value) -> Value:
    m = split(b, x)
    ratio = fraction_ratio(b, m.fraction, LOG2_F32 if x.dtype == "f32" else LOG2_F64)
    return with_special_values(b, x, m.exponent + ratio)


@expansion("log10", "f32", "f64")
def log10(b: Builder, x: Value) -> Value:
    high, low = LOG10_2[x.dtype]
    m = split(b, x)
    ratio = fraction_ratio(b, m.fraction, LOG10_F32 if x.dtype == "f32" else LOG10_F64)
    return with_special_values(b, x, b.fma(m.exponent, high, b.fma(m.exponent, low, ratio)))

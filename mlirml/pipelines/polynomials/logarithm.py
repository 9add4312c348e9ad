"""log, log2, log10, log1p: the exponent and a polynomial of the mantissa.

x = 2^e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2). In f32 log(1 + f) = f - f^2/2 + f^3 P(f), as in Cephes `logf`; in f64
log(1 + f) = f - s (f - R(s^2)) with s = f/(2 + f), as in fdlibm `e_log.c`; log2 and log10 multiply the longer form
f - (f^2/2 - s (f^2/2 + R(s^2))), split in two parts, as FreeBSD's `e_log2.c` does. Coefficients:
`python docs/minimax.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlirml.pipelines.polynomials.builder import MANTISSA, WIDTHS, Builder, Value
from mlirml.pipelines.polynomials.registry import expansion

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
LOG2_F32 = (  # 2^-25.6
    -0.09233765304088593,
    0.17200760543346405,
    -0.19186969101428986,
    0.2072664201259613,
    -0.23981478810310364,
    0.28839799761772156,
    -0.36068296432495117,
    0.48090222477912903,
    -0.7213475108146667,
    1.4426950216293335,
)
LOG10_F32 = (  # 2^-26.6
    -0.04878970608115196,
    0.0628049299120903,
    -0.0538962222635746,
    0.06004776805639267,
    -0.0724099799990654,
    0.08697938919067383,
    -0.10857268422842026,
    0.14476211369037628,
    -0.21714724600315094,
    0.4342944920063019,
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
# 1/ln 2, 1/ln 10: the high parts have 22 bits, so that the product with a number of 32 bits is exact.
INVERSE_LN2 = (1.44269504072144627571e00, 1.67517131648865118353e-10)
INVERSE_LN10 = (4.34294481878168880939e-01, 2.50829467116452752298e-11)


@dataclass(frozen=True)
class Mantissa:
    """x = 2^exponent (1 + fraction); `exponent` as a float and as an integer."""

    exponent: Value
    integer: Value
    fraction: Value


def split_normal(b: Builder, x: Value, denormal: Value | None = None) -> Mantissa:
    """Split a positive normal number, which was scaled up where `denormal`."""
    kind, shift = x.kind, MANTISSA[x.kind]
    root = b.to_bits_of(0.70710678118654752, kind)
    bits = b.to_bits(x) - root
    integer = bits >> shift
    fraction = b.from_bits((bits & ((1 << shift) - 1)) + root, kind) - 1.0
    if denormal is not None:
        integer = b.select(denormal, integer - (shift + 2), integer)
    return Mantissa(b.cast("arith.sitofp", integer, kind), integer, fraction)


def split(b: Builder, x: Value) -> Mantissa:
    """Split a positive number; denormals are first made normal."""
    width, shift = WIDTHS[x.kind], MANTISSA[x.kind]
    smallest = 2.0 ** (2 - (1 << width - shift - 2))
    denormal = x < smallest
    return split_normal(b, b.select(denormal, x * 2.0 ** (shift + 2), x), denormal)


def with_special_values(b: Builder, x: Value, result: Value) -> Value:
    """-inf at 0, NaN below, inf at inf, NaN at NaN."""
    result = b.select(x < INFINITY, result, x)
    return b.select(x > 0.0, result, b.select(x.equals(0.0), b.constant(-INFINITY, x.kind), NAN))


def fraction_parts(b: Builder, f: Value) -> tuple[Value, Value]:
    """f -> (f^2/2, r) with log(1 + f) = f - (f^2/2 - r), in f64."""
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    return half_square, s * (half_square + z * b.horner(z, LOG_F64))


def log_of(b: Builder, m: Mantissa, grade: str = "f64") -> Value:
    """exponent ln 2 + log(1 + fraction); an f64 of grade f32 has f32's accuracy."""
    high, low = LN2[m.fraction.kind]
    f = m.fraction
    if f.kind == "f64":
        s = f / (f + 2.0)
        z = s * s
        rest = b.fma(-z, b.horner(z, LOG_WIDE if grade == "f32" else LOG_F64), f)
        return b.fma(m.exponent, high, f - b.fma(s, rest, m.exponent * -low))
    z = f * f
    small = b.fma(z, -0.5, b.fma(m.exponent, low, f * z * b.horner(f, LOG_F32)))
    return b.fma(m.exponent, high, f + small)


@expansion("log", "f32", "f64")
def log(b: Builder, x: Value) -> Value:
    return with_special_values(b, x, log_of(b, split(b, x)))


@expansion("log1p", "f32", "f64")
def log1p(b: Builder, x: Value) -> Value:
    return log1p_of(b, x)


def log1p_of(b: Builder, x: Value, grade: str = "f64") -> Value:
    """log of the rounded 1 + x, its rounding error added to the fraction (Tang, ACM TOMS 16, 1990)."""
    u = x + 1.0
    shadow = u - 1.0
    error = (1.0 - (u - shadow)) + (x - shadow)
    m = split_normal(b, u)
    bias = (1 << WIDTHS[x.kind] - MANTISSA[x.kind] - 2) - 1
    down = b.from_bits((bias - m.integer) << MANTISSA[x.kind], x.kind)  # 2^-exponent
    # Above, the error cannot be seen in the result, and 2^-exponent may not be a normal number.
    error = b.select(u < 2.0 ** (MANTISSA[x.kind] + 2), error * down, 0.0)
    result = log_of(b, Mantissa(m.exponent, m.integer, m.fraction + error), grade)
    return b.copysign(with_special_values(b, u, result), x)


def log_to_base(b: Builder, x: Value, one: tuple[float, float], inverse: tuple[float, float]) -> Value:
    """log(x)/log(base) in f64; `one` is log 2/log(base), `inverse` is 1/log(base), both in two parts."""
    m = split(b, x)
    f = m.fraction
    half_square, rest = fraction_parts(b, f)
    high = b.from_bits(b.to_bits(f - half_square) & -(1 << 32), "f64")
    low = ((f - high) - half_square) + rest
    product = high * inverse[0]
    remainder = b.fma(low + high, inverse[1], low * inverse[0])
    exponent = m.exponent * one[0]
    total = exponent + product
    remainder = b.fma(m.exponent, one[1], remainder) + ((exponent - total) + product)
    return with_special_values(b, x, total + remainder)


@expansion("log2", "f32", "f64")
def log2(b: Builder, x: Value) -> Value:
    if x.kind == "f64":
        return log_to_base(b, x, (1.0, 0.0), INVERSE_LN2)
    m = split(b, x)
    return with_special_values(b, x, b.fma(m.fraction, b.horner(m.fraction, LOG2_F32), m.exponent))


@expansion("log10", "f32", "f64")
def log10(b: Builder, x: Value) -> Value:
    if x.kind == "f64":
        return log_to_base(b, x, LOG10_2["f64"], INVERSE_LN10)
    high, low = LOG10_2["f32"]
    m = split(b, x)
    small = b.fma(m.fraction, b.horner(m.fraction, LOG10_F32), m.exponent * low)
    return with_special_values(b, x, b.fma(m.exponent, high, small))

"""pow and cbrt.

x^y = 2^(y log2 x). In f64 log2 x is a sum of two numbers, good to 2^-64: log x = 2 atanh(s), s = (m - 1)/(m + 1), in
double-double arithmetic (Dekker, A floating-point technique for extending the available precision, 1971). f32 is
computed in f64.
"""

from __future__ import annotations

from mlirml.pipelines.polynomials.builder import Builder, Value
from mlirml.pipelines.polynomials.exponential import CONSTANTS, EXP2_F64, EXP2_WIDE, integer_of
from mlirml.pipelines.polynomials.logarithm import LOG_WIDE, Mantissa, split, with_special_values
from mlirml.pipelines.polynomials.registry import expansion, through_f64

CBRT_GUESS = (  # 2^-10.4
    0.011402322394176639,
    -0.10549029135828328,
    0.39017380665361634,
    -0.7656824500384382,
    1.0553198739743879,
    0.41447109058445947,
)

POW_F64 = (  # 2^-72.5
    0.11981756830412685,
    0.116757802039851,
    0.13336264527600133,
    0.1538455842776812,
    0.1818181884400292,
    0.2222222221778969,
    0.2857142857144384,
    0.3999999999999998,
)

NAN = float("nan")
INFINITY = float("inf")
INVERSE_LN2, INVERSE_LN2_LOW = 1.4426950408889634, 2.0355273740931033e-17
TWO_THIRDS, TWO_THIRDS_LOW = 0.66666666666666663, 3.7007434154171886e-17

Pair = tuple[Value, Value]


def fast_sum(high: Value, low: Value) -> Pair:
    """The rounded sum and its error, for |high| >= |low| (Dekker)."""
    total = high + low
    return total, (high - total) + low


def product(b: Builder, x: Value, y: Value) -> Pair:
    """The rounded product and its error."""
    rounded = x * y
    return rounded, b.product_error(x, y, rounded)


def pair_product(b: Builder, x: Pair, y: Pair) -> Pair:
    """The product of two sums of two, not renormalised."""
    high, error = product(b, x[0], y[0])
    return high, b.fma(x[0], y[1], b.fma(x[1], y[0], error))


def log2_pair(b: Builder, m: Mantissa) -> Pair:
    """log2 of 2^exponent (1 + fraction) as a sum of two."""
    f = m.fraction
    below, below_error = fast_sum(b.constant(2.0, "f64"), f)
    quotient = f / below
    scaled, scaled_error = product(b, quotient, below)
    rest = ((f - scaled) - scaled_error) - quotient * below_error
    s = (quotient, rest / below)
    z, z_error = product(b, quotient, quotient)
    z_low = b.fma(quotient + quotient, s[1], z_error)
    tail = z * b.horner(z, POW_F64)
    c, c_error = fast_sum(b.constant(TWO_THIRDS, "f64"), tail)
    series = pair_product(b, (z, z_low), (c, c_error + TWO_THIRDS_LOW))
    w, w_error = fast_sum(b.constant(2.0, "f64"), series[0])
    natural = pair_product(b, s, (w, w_error + series[1]))
    one_over = (b.constant(INVERSE_LN2, "f64"), b.constant(INVERSE_LN2_LOW, "f64"))
    binary = pair_product(b, natural, one_over)
    total, error = fast_sum(m.exponent, binary[0])
    return total, error + binary[1]


def log2_wide(b: Builder, m: Mantissa) -> Value:
    """log2 with the accuracy that an f32 power needs."""
    s = m.fraction / (m.fraction + 2.0)
    z = s * s
    return b.fma(s * b.fma(z, b.horner(z, LOG_WIDE), 2.0), INVERSE_LN2, m.exponent)


@expansion("powf", "f32", "f64")
@through_f64
def powf(b: Builder, grade: str, x: Value, y: Value) -> Value:
    """Special values as in C99: pow(x, 0) = pow(1, y) = 1, signs of odd powers, NaN for other powers of negatives."""
    a = b.abs(x)
    exponent = b.maximum(b.minimum(y, 1e300), -1e300)  # inf * log2(1) would be NaN
    m = split(b, a)
    low: Value | None = None
    if grade == "f32":
        whole = exponent * with_special_values(b, a, log2_wide(b, m))
        limit = 200.0
    else:
        logarithm, logarithm_low = log2_pair(b, m)
        whole, error = product(b, exponent, with_special_values(b, a, logarithm))
        limit = 1100.0
        low = b.select(b.abs(whole) < limit, b.fma(exponent, logarithm_low, error), 0.0)
    clamped = b.maximum(b.minimum(whole, limit), -limit)
    coefficients = EXP2_WIDE if grade == "f32" else EXP2_F64
    magic = CONSTANTS["f64"].magic
    shifted = clamped + magic
    r = clamped - (shifted - magic)
    r = r if low is None else r + low
    magnitude = b.scale(b.horner(r, (*coefficients, 1.0)), integer_of(b, shifted))
    return with_sign(b, x, y, magnitude)


def with_sign(b: Builder, x: Value, y: Value, magnitude: Value) -> Value:
    """The sign and the special values of x^y from |x|^y."""
    a = b.abs(y)
    counted = a + 2.0**52  # the units bit of a integer below 2^52
    large = a >= 2.0**52
    whole = (counted - 2.0**52).equals(a) | large
    units = b.select(large, b.select(a < 2.0**53, b.to_bits(a), 0), b.to_bits(counted))
    sign = b.select(whole, (units << 63) & b.to_bits(x), 0)
    result = b.from_bits(b.to_bits(magnitude) ^ sign, "f64")
    # -inf and -0 have powers of every exponent; other negative numbers do not.
    undefined = b.select(whole, b.constant(0, "i1"), (x < 0.0) & (x > -INFINITY))
    result = b.select(undefined, NAN, result)
    return b.select(x.equals(1.0), 1.0, b.select(y.equals(0.0), 1.0, result))


@expansion("cbrt", "f32", "f64")
@through_f64
def cbrt(b: Builder, grade: str, x: Value) -> Value:
    """x = 2^(3 q) y; a polynomial and Halley's iteration for the root of y, then one step as in FreeBSD `s_cbrt.c`."""
    a = b.abs(x)
    m = split(b, a)
    magic = CONSTANTS["f64"].magic
    shifted = b.fma(m.exponent, 1.0 / 3.0, magic)
    q = integer_of(b, shifted)
    y = (m.fraction + 1.0) * b.power_of_two(m.integer - q * 3, "f64")
    root = b.horner(y, CBRT_GUESS)
    cube = root * root * root
    root = root * ((cube + (y + y)) / ((cube + cube) + y))
    if grade == "f64":
        root = b.from_bits(b.to_bits(root) & -(1 << 28), "f64")  # so that its square is exact
        quotient = y / (root * root)
        root = b.fma(root, (quotient - root) / (root + root + quotient), root)
    result = b.copysign(root * b.power_of_two(q, "f64"), x)
    return b.select((a > 0.0) & (a < INFINITY), result, x)

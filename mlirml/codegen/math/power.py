"""pow and cbrt.

x^y = 2^(y log2 x). In f64 log2 x is a sum of two numbers, good to 2^-64: log x = 2 atanh(s), s = (m - 1)/(m + 1), in
double-double arithmetic (Dekker, A floating-point technique for extending the available precision, 1971). f32 is
computed in f64.
"""

from __future__ import annotations

from mlirml.codegen.math.builder import WIDTHS, Builder, Value
from mlirml.codegen.math.exponential import CONSTANTS, EXP2_F32, EXP2_F64, EXP2_WIDE, integer_of
from mlirml.codegen.math.logarithm import LOG_WIDE, Mantissa, split
from mlirml.codegen.math.registry import expansion, through_f64

POW_F32 = (  # 2^-28.7
    0.43090084195137024,
    0.5767565369606018,
    0.9617982506752014,
)
POW_F64 = (  # 2^-71.9
    0.17281935774727655,
    0.1684513088171683,
    0.19240133024020442,
    0.2219522702076721,
    0.26230819865930094,
    0.32059889791277923,
    0.4121985831113457,
    0.5770780163555851,
)

NAN = float("nan")
INFINITY = float("inf")
TWO_OVER_LN2, TWO_OVER_LN2_LOW = 2.885390043258667, 3.851925e-08
INVERSE_LN2 = 1.4426950408889634
POW_A, POW_B = (2.8853900817779268, 4.0710547481862066e-17), (0.9617966939259756, 5.0577616648125907e-17)

Pair = tuple[Value, Value]


def fast_sum(high: Value, low: Value) -> Pair:
    """The rounded sum and its error, for |high| >= |low| (Dekker)."""
    total = high + low
    return total, (high - total) + low


def product(b: Builder, x: Value, y: Value) -> Pair:
    """The rounded product and its error."""
    rounded = x * y
    return rounded, b.product_error(x, y, rounded)


def log2_pair(b: Builder, m: Mantissa, exponent: Value) -> Pair:
    """log2 of 2^exponent (1 + fraction) as a sum of two; `exponent` is used instead of that of `m`.

    log2(1 + f) = A s + B s^3 + s^5 P(s^2) with s = f/(2 + f); s, s^3, A and B are sums of two.
    """
    f = m.fraction
    below, below_error = fast_sum(b.constant(2.0, "f64"), f)
    inverse = 1.0 / below
    s = f * inverse
    s_low = b.fma(-s, below_error, b.quotient_error(f, below, s)) * inverse
    z, z_error = product(b, s, s)
    cube, cube_error = product(b, s, z)
    cube_low = b.fma(s, b.fma(s + s, s_low, z_error), b.fma(z, s_low, cube_error))
    third, third_error = product(b, cube, b.constant(POW_B[0], "f64"))
    third, third_lost = fast_sum(third, cube * z * b.horner(z, POW_F64))
    main, main_error = product(b, s, b.constant(POW_A[0], "f64"))
    binary, lost = fast_sum(main, third)
    low = b.fma(cube, POW_B[1], b.fma(cube_low, POW_B[0], third_error + third_lost))
    low = b.fma(s_low, POW_A[0], b.fma(s, POW_A[1], main_error)) + (low + lost)
    total, error = fast_sum(exponent, binary)
    return total, error + low


def log2_wide(b: Builder, m: Mantissa, exponent: Value) -> Value:
    """The same with the accuracy that an f32 power needs."""
    s = m.fraction / (m.fraction + 2.0)
    z = s * s
    return b.fma(s * b.fma(z, b.horner(z, LOG_WIDE), 2.0), INVERSE_LN2, exponent)


def log2_pair_f32(b: Builder, m: Mantissa, exponent: Value) -> Pair:
    """The same in f32, accurate to 2^-30 by fma or exact products; `exponent` is used instead of that of `m`."""
    f = m.fraction
    below = f + 2.0
    below_error = f - (below - 2.0)
    inverse = 1.0 / below
    s = f * inverse
    rest = b.fma(-s, below_error, b.quotient_error(f, below, s)) * inverse
    z = s * s
    tail = (s * z) * b.horner(z, POW_F32)
    if b.processor.has_fma:
        binary = b.fma(s, TWO_OVER_LN2, tail)
        error = b.fma(s, TWO_OVER_LN2, -binary) + tail
    else:
        factor = b.constant(TWO_OVER_LN2, "f32")
        main = s * factor
        binary, lost = fast_sum(main, tail)
        error = lost + b.product_error(s, factor, main)
    error = b.fma(rest, TWO_OVER_LN2, b.fma(s, TWO_OVER_LN2_LOW, error))
    total, lost = fast_sum(exponent, binary)
    return total, lost + error


def pow_f32(b: Builder, x: Value, y: Value) -> Value:
    """x^y from f32 alone."""
    a, c = b.abs(x), CONSTANTS["f32"]
    m = split(b, a)
    is_whole, sign = sign_of_power(b, x, y)
    exponent = special_exponent(b, x, is_whole, m.exponent)
    high, low = log2_pair_f32(b, m, exponent)
    power = b.maximum(b.minimum(y, 2.0**40), -(2.0**40))  # inf * log2(1) would be NaN
    whole = power * high
    error = b.fma(power, low, b.product_error(power, high, whole))
    clamped = b.maximum(b.minimum(whole, 200.0), -200.0)
    shifted = clamped + c.magic
    r = (clamped - (shifted - c.magic)) + b.select(clamped.equals(whole), error, 0.0)
    magnitude = b.scale_or_vanish(b.horner(r, (*EXP2_F32, 1.0)), integer_of(b, shifted), clamped < -152.0)
    return with_ones(b, x, y, b.from_bits(b.to_bits(magnitude) | sign, "f32"))


def sign_of_power(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """True if y is an integer, and the sign bit of x where y is odd."""
    half = y * 0.5
    is_whole = b.op("math.roundeven", y).equals(y)
    is_odd = is_whole & b.op("math.roundeven", half).differs(half)
    return is_whole, b.select(is_odd, b.to_bits(x) & -(1 << WIDTHS[x.dtype] - 1), 0)


def special_exponent(b: Builder, x: Value, is_whole: Value, exponent: Value) -> Value:
    """The exponent of |x|: infinite at 0 and inf, NaN at NaN and where x is negative and y is no integer.

    -inf and -0 have powers of every exponent.
    """
    a = b.abs(x)
    undefined = b.select(is_whole, b.constant(0, "i1"), x < 0.0)
    exponent = b.select(undefined, NAN, exponent)
    exponent = b.select(a < INFINITY, exponent, a)
    return b.select(a.equals(0.0), -INFINITY, exponent)


def with_ones(b: Builder, x: Value, y: Value, power: Value) -> Value:
    """x^0 and 1^y are 1, for NaN too."""
    return b.select(x.equals(1.0), 1.0, b.select(y.equals(0.0), 1.0, power))


@expansion("powf", "f32", "f64")
def powf(b: Builder, x: Value, y: Value) -> Value:
    """Special values as in C99: pow(x, 0) = pow(1, y) = 1, signs of odd powers, NaN for other powers of negatives."""
    return pow_f32(b, x, y) if x.dtype == "f32" and (b.processor.has_fma or not b.f64) else pow_wide(b, x, y)


@through_f64
def pow_wide(b: Builder, grade: str, x: Value, y: Value) -> Value:
    """x^y in f64, of f32's accuracy for f32."""
    m = split(b, b.abs(x))
    is_whole, sign = sign_of_power(b, x, y)
    exponent = special_exponent(b, x, is_whole, m.exponent)
    power = b.maximum(b.minimum(y, 1e100), -1e100)  # inf * log2(1) would be NaN
    limit = 200.0 if grade == "f32" else 1100.0
    if grade == "f32":
        whole = power * log2_wide(b, m, exponent)
        clamped = b.maximum(b.minimum(whole, limit), -limit)
    else:
        logarithm, logarithm_low = log2_pair(b, m, exponent)
        whole, error = product(b, power, logarithm)
        clamped = b.maximum(b.minimum(whole, limit), -limit)
        low = b.select(clamped.equals(whole), b.fma(power, logarithm_low, error), 0.0)
    magic = CONSTANTS["f64"].magic
    shifted = clamped + magic
    r = clamped - (shifted - magic)
    r = r if grade == "f32" else r + low
    polynomial = b.horner(r, (*(EXP2_WIDE if grade == "f32" else EXP2_F64), 1.0))
    magnitude = b.scale_or_vanish(polynomial, integer_of(b, shifted), clamped < (-160.0 if grade == "f32" else -1078.0))
    return with_ones(b, x, y, b.from_bits(b.to_bits(magnitude) | sign, "f64"))


def inverse_cbrt_guess(b: Builder, a: Value) -> Value:
    """a^(-1/3) to 4 %, from the upper 32 bits of a positive number: a linear function of them, as of its logarithm."""
    bits, magic = b.to_bits(a), 0x54A20700 if a.dtype == "f32" else 0x553EED70
    if a.dtype == "f64":
        bits = b.cast("arith.trunci", b.unsigned_shift(bits, 32), "i32")
    guess = b.fma(b.cast("arith.sitofp", bits, "f32"), -1.0 / 3.0, magic)
    upper = b.cast("arith.fptosi", guess, "i32")
    return b.from_bits(upper if a.dtype == "f32" else b.cast("arith.extui", upper, "i64") << 32, a.dtype)


def inverse_cbrt_step(b: Builder, a: Value, r: Value, first: float, second: float) -> Value:
    """A better r for a^(-1/3): (1 - h)^(-1/3) is about 1 + first h + second h^2."""
    h = b.fma(-(a * r * r), r, 1.0)
    return b.fma(r * h, b.fma(h, second, first), r)


@expansion("cbrt", "f32", "f64")
def cbrt(b: Builder, x: Value) -> Value:
    """a r^2 with r = a^(-1/3), and Newton's step, which needs no division then."""
    a, shift = b.abs(x), 24 if x.dtype == "f32" else 54
    denormal = a < (2.0**-126 if x.dtype == "f32" else 2.0**-1022)
    y = b.select(denormal, a * 2.0**shift, a)
    r = inverse_cbrt_step(b, y, inverse_cbrt_guess(b, y), 0.3347, 0.223)  # fitted to |h| < 0.105: 5e-5
    r = r if x.dtype == "f32" else inverse_cbrt_step(b, y, r, 1 / 3, 2 / 9)
    root, third = y * r * r, r * r * (1 / 3)
    square = root * root
    cube_error = b.fma(-square, root, y) if b.processor.has_fma else residue(b, y, square, root)
    if x.dtype == "f64":
        cube_error = cube_error - b.product_error(root, root, square) * root
    root = b.fma(cube_error, third, root)
    root = b.select(denormal, root * 2.0 ** -(shift // 3), root)
    return b.select(a < INFINITY, b.copysign(root, x), x)


def residue(b: Builder, y: Value, square: Value, root: Value) -> Value:
    """y - square * root without fma; f32 has digits to spare."""
    cube = square * root
    return y - cube if y.dtype == "f32" else (y - cube) - b.product_error(square, root, cube)

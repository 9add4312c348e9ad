"""Division of integers through floats, and the remainder of floats: exact, by one division of floats.

a = q b + r. A float quotient that is rounded once has the right integer part, unless it was rounded up to an integer,
which implies r < 0. With q below 2^mantissa the product q b is exact in an fma, and so is r.
"""

from __future__ import annotations

from mlirml.codegen.math.builder import Builder, Value
from mlirml.codegen.math.registry import elsewhere, expansion, guarded

# Each integer type's quotient is exact in this float type: its mantissa has more bits than the integers together need.
CARRIERS = {"i8": "f32", "i16": "f32", "i32": "f64"}
SIGN_32 = -(1 << 31)
_BITS = 22
_MANTISSA, _EXPONENTS = 23, 255


@guarded("remf", "f32", "f64")
def remf(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """fmod: the sign is that of x. Quotients of 2^22 (f32) or 2^51 (f64), y = 0, inf and NaN are left to libm."""
    n, d = b.abs(x), b.abs(y)
    rest, ratio = remainder(b, n, d)
    return b.copysign(rest, x), ratio < (2.0**_BITS if x.dtype == "f32" else 2.0**51)


def remainder(b: Builder, n: Value, d: Value) -> tuple[Value, Value]:
    """The remainder of positive numbers whose quotient is small enough, and the quotient."""
    ratio = n / d
    q = b.op("math.trunc", ratio)
    if b.processor.has_fma:
        r = b.op("math.fma", -q, d, n)
    elif n.dtype == "f32" and b.f64:
        wide = [b.cast("arith.extf", v, "f64") for v in (n, q, d)]
        r = b.cast("arith.truncf", wide[0] - wide[1] * wide[2], "f32")
    else:
        product = q * d
        r = (n - product) - b.product_error(q, d, product)
    r = b.select(r < 0.0, r + d, r)
    return b.select(n < d, n, r), ratio  # q d is NaN for an infinite d


@elsewhere("remf", "f32")
def far_remf(b: Builder, x: Value, y: Value) -> Value:
    """fmod of any numbers: remainders by d 2^k for ever smaller k, which are exact, since d divides d 2^k.

    Multiples of a normal d are computed by its exponent, as drivers may combine two products with constants.
    """
    n, d = b.abs(x), b.abs(y)
    small = d < 2.0**-126
    middle = b.select(small, d * 2.0**_BITS, d)
    normal = b.select(small, d * 2.0 ** (2 * _BITS), d)
    bits = b.to_bits(normal)
    for shift in range(_EXPONENTS // _BITS * _BITS, 0, -_BITS):
        fits = b.compare("slt", bits, b.bits((_EXPONENTS - shift) << _MANTISSA, "i32"))
        multiple = b.from_bits(bits + (shift << _MANTISSA), "f32")
        n = b.select(fits, remainder(b, n, multiple)[0], n)
    for divisor in (normal, middle, d):
        n = remainder(b, n, divisor)[0]
    return b.copysign(n, x)


@expansion("divsi", "i8", "i16", "i32")
def divsi(b: Builder, x: Value, y: Value) -> Value:
    wide = CARRIERS[x.dtype]
    quotient = b.cast("arith.sitofp", x, wide) / b.cast("arith.sitofp", y, wide)
    return b.cast("arith.fptosi", quotient, x.dtype)


@expansion("divui", "i8", "i16", "i32")
def divui(b: Builder, x: Value, y: Value) -> Value:
    wide = CARRIERS[x.dtype]
    if x.dtype != "i32" or b.processor.has_avx512:
        quotient = b.cast("arith.uitofp", x, wide) / b.cast("arith.uitofp", y, wide)
        return b.cast("arith.fptoui", quotient, x.dtype)
    # Only signed conversions are one instruction before AVX-512.
    n, d = (b.cast("arith.sitofp", v ^ SIGN_32, wide) + 2.0**31 for v in (x, y))
    return b.cast("arith.fptosi", b.op("math.trunc", n / d) - 2.0**31, "i32") ^ SIGN_32


@expansion("divui", "i64")
def divui_long(b: Builder, x: Value, y: Value) -> Value:
    """Two quotients that are never too large, the second of the first one's remainder, and one more if y still fits."""
    inverse = (1.0 - 2.0**-50) / b.cast("arith.uitofp", y, "f64")

    def quotient(dividend: Value) -> Value:
        return b.cast("arith.fptoui", b.cast("arith.uitofp", dividend, "f64") * inverse, "i64")

    first = quotient(x)
    rest = x - first * y
    second = quotient(rest)
    fits = b.compare("uge", rest - second * y, y)
    return first + second + b.cast("arith.extui", fits, "i64")


@expansion("divsi", "i64")
def divsi_long(b: Builder, x: Value, y: Value) -> Value:
    magnitudes = (b.op("math.absi", v) for v in (x, y))
    sign = (x ^ y) >> 63
    return (divui_long(b, *magnitudes) ^ sign) - sign

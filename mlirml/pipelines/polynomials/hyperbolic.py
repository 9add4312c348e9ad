"""sinh, cosh, asinh, acosh, atanh: f64 sinh and cosh by way of expm1, the inverse functions by log1p, as in fdlibm.

In f32 sinh and cosh of x = n ln 2 + r come from those of r: sinh x = cosh r (2^n - 2^-n)/2 + sinh r (2^n + 2^-n)/2.
Coefficients: `python docs/minimax.py`.
"""

from __future__ import annotations

from mlirml.pipelines.polynomials.builder import MANTISSA, Builder, Value
from mlirml.pipelines.polynomials.exponential import expm1_parts, split_exponent
from mlirml.pipelines.polynomials.logarithm import NAN, log1p
from mlirml.pipelines.polynomials.registry import expansion

SINH_F32 = (  # 2^-26.2
    0.008366536349058151,
    0.1666654348373413,
)
COSH_F32 = (  # 2^-33.2
    0.0013935420429334044,
    0.041666459292173386,
    0.5,
)

LN_TWO = 0.6931471805599453
TINY = {"f32": 2.0**-13, "f64": 2.0**-28}  # the square of a number below vanishes next to 1


def half_expm1(b: Builder, a: Value) -> tuple[Value, Value]:
    """a >= 0 -> (expm1(a)/2, exp(a)/2); the first only below 700."""
    n, q = expm1_parts(b, b.minimum(a, 711.0))
    half = b.power_of_two(n - 1, "f64")
    # exp(a)/2 is scaled in two steps, because 2^(n - 1) may be too large where the result is not.
    return b.fma(half, q, half - 0.5), b.scale(q + 1.0, n - 1)


def parts_f32(b: Builder, a: Value) -> tuple[Value, Value, Value, Value]:
    """a >= 0 -> quarters of 2^n and 2^-n, sinh r and cosh r."""
    n, r = split_exponent(b, b.minimum(a, 89.5))
    up = b.power_of_two(n - 2, "f32")
    exponent = 125 - n
    down = b.from_bits(b.select(exponent > 0, exponent, 0) << MANTISSA["f32"], "f32")
    z = r * r
    return up, down, b.fma(r * z, b.horner(z, SINH_F32), r), b.fma(z, b.horner(z, COSH_F32), 1.0)


@expansion("sinh", "f32", "f64")
def sinh(b: Builder, x: Value) -> Value:
    """In f64 t + t/(2 t + 1) with t = expm1(|x|)/2."""
    a = b.abs(x)
    if x.kind == "f32":
        up, down, s, c = parts_f32(b, a)
        result = b.fma(c, up - down, s * (up + down)) * 2.0
    else:
        t, large = half_expm1(b, a)
        result = b.select(a < 40.0, t + t / b.fma(t, 2.0, 1.0), large)
    return b.select(a < TINY[x.kind], x, b.copysign(result, x))


@expansion("cosh", "f32", "f64")
def cosh(b: Builder, x: Value) -> Value:
    """In f64 e + 1/(4 e) with e = exp(|x|)/2."""
    if x.kind == "f32":
        up, down, s, c = parts_f32(b, b.abs(x))
        return b.fma(c, up + down, s * (up - down)) * 2.0
    _, e = half_expm1(b, b.abs(x))
    return e + 0.25 / e


def log1p_of_either(b: Builder, large: Value, a: Value, argument: Value) -> Value:
    """log(1 + argument), or log(2 a) where `large`."""
    result = log1p(b, b.select(large, a - 1.0, argument))
    return result + b.select(large, b.constant(LN_TWO, a.kind), 0.0)


@expansion("asinh", "f32", "f64")
def asinh(b: Builder, x: Value) -> Value:
    """log1p(a + a^2/(1 + sqrt(1 + a^2))); log(a) + ln 2 where a^2 may overflow."""
    a = b.abs(x)
    square = a * a
    argument = a + square / (b.sqrt(square + 1.0) + 1.0)
    return b.copysign(log1p_of_either(b, a > 1 / TINY[x.kind], a, argument), x)


@expansion("acosh", "f32", "f64")
def acosh(b: Builder, x: Value) -> Value:
    """log1p(t + sqrt(t^2 + 2 t)) with t = x - 1; log(x) + ln 2 where t^2 may overflow."""
    t = x - 1.0
    argument = t + b.sqrt(b.fma(t, t, t + t))
    return b.select(x < 1.0, NAN, log1p_of_either(b, x > 1 / TINY[x.kind], x, argument))


@expansion("atanh", "f32", "f64")
def atanh(b: Builder, x: Value) -> Value:
    """log1p(2 a + 2 a^2/(1 - a))/2."""
    a = b.abs(x)
    twice = a + a
    result = log1p(b, b.fma(twice, a / (1.0 - a), twice)) * 0.5
    return b.copysign(b.select(a > 1.0, NAN, result), x)

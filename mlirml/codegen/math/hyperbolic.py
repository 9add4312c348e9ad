"""sinh, cosh, asinh, acosh, atanh.

f64: sinh and cosh by way of expm1, the inverse functions by log1p, as in fdlibm. f32: sinh and cosh of x = n ln 2 + r
come from those of r, as sinh x = cosh r (2^n - 2^-n)/2 + sinh r (2^n + 2^-n)/2; the inverse functions are polynomials
near 0. Coefficients: `python docs/minimax.py`.
"""

from __future__ import annotations

from dataclasses import replace

from mlirml.codegen.math.builder import MANTISSA, Builder, Value
from mlirml.codegen.math.exponential import expm1_parts, split_exponent
from mlirml.codegen.math.logarithm import INFINITY, NAN, log1p, log_of, split_normal
from mlirml.codegen.math.registry import expansion

SINH_F32 = (  # 2^-26.2
    0.008366536349058151,
    0.1666654348373413,
)
COSH_F32 = (  # 2^-33.2
    0.0013935420429334044,
    0.041666459292173386,
    0.5,
)

ASINH_F32 = (  # 2^-25.1
    0.020134206861257553,
    -0.04270520061254501,
    0.07484843581914902,
    -0.16666291654109955,
)
ACOSH_F32 = (  # 2^-25.0
    0.0012573606800287962,
    -0.005337175913155079,
    0.01871183142066002,
    -0.08333143591880798,
    1.0,
)
ATANH_F32 = (  # 2^-25.3
    0.1822127103805542,
    0.08214971423149109,
    0.14675156772136688,
    0.19977721571922302,
    0.3333374261856079,
)

LN_TWO = 0.6931471805599453
TINY = {"f32": 2.0**-13, "f64": 2.0**-28}  # the square of a smaller number vanishes next to 1


def half_expm1(b: Builder, a: Value) -> tuple[Value, Value]:
    """a >= 0 -> (expm1(a)/2, exp(a)/2); the first only below 700."""
    n, q = expm1_parts(b, b.minimum(a, 711.0))
    half = b.power_of_two(n - 1, "f64")
    # exp(a)/2 is scaled in two steps, because 2^(n - 1) may overflow where the result does not.
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
    if x.dtype == "f32":
        up, down, s, c = parts_f32(b, a)
        result = b.fma(c, up - down, s * (up + down)) * 2.0
    else:
        t, large = half_expm1(b, a)
        result = b.select(a < 40.0, t + t / b.fma(t, 2.0, 1.0), large)
    return b.select(a < TINY[x.dtype], x, b.copysign(result, x))


@expansion("cosh", "f32", "f64")
def cosh(b: Builder, x: Value) -> Value:
    """In f64 e + 1/(4 e) with e = exp(|x|)/2."""
    if x.dtype == "f32":
        up, down, s, c = parts_f32(b, b.abs(x))
        return b.fma(c, up + down, s * (up - down)) * 2.0
    _, e = half_expm1(b, b.abs(x))
    return e + 0.25 / e


def log_above_one(b: Builder, u: Value, large: Value | None = None) -> Value:
    """log(u) for u > 1, and log(2 u) where `large`; infinite and NaN at inf and NaN."""
    m = split_normal(b, u)
    if large is not None:
        m = replace(m, exponent=m.exponent + b.select(large, b.constant(1.0, u.dtype), 0.0))
    return b.select(u < INFINITY, log_of(b, m), u)


def log1p_of_either(b: Builder, large: Value, a: Value, argument: Value) -> Value:
    """log(1 + argument), or log(2 a) where `large`."""
    result = log1p(b, b.select(large, a - 1.0, argument))
    return result + b.select(large, b.constant(LN_TWO, a.dtype), 0.0)


@expansion("asinh", "f32", "f64")
def asinh(b: Builder, x: Value) -> Value:
    """log1p(a + a^2/(1 + sqrt(1 + a^2))); log(2 a) where a^2 may overflow. In f32 log(a + sqrt(1 + a^2)) above 1/2."""
    a = b.abs(x)
    square = a * a
    large = a > 1 / TINY[x.dtype]
    root = b.sqrt(square + 1.0)
    if x.dtype == "f32":
        near = b.fma(a * square, b.horner(square, ASINH_F32), a)
        far = log_above_one(b, b.select(large, a, a + root), large)
        result = b.select(a < 0.5, near, far)
    else:
        result = log1p_of_either(b, large, a, a + square / (root + 1.0))
    return b.copysign(result, x)


@expansion("acosh", "f32", "f64")
def acosh(b: Builder, x: Value) -> Value:
    """log1p(t + sqrt(t^2 + 2 t)) with t = x - 1; log(2 x) where t^2 may overflow. In f32 sqrt(2 t) P(t) below 3/2."""
    t = x - 1.0
    large = x > 1 / TINY[x.dtype]
    if x.dtype == "f32":
        below = t < 0.5
        root = b.sqrt(b.fma(b.select(below, b.constant(0.0, "f32"), t), t, t + t))  # NaN where x < 1
        far = log_above_one(b, b.select(large, x, x + root), large)
        return b.select(below, root * b.horner(t, ACOSH_F32), far)
    argument = t + b.sqrt(b.fma(t, t, t + t))
    return b.select(x < 1.0, NAN, log1p_of_either(b, large, x, argument))


@expansion("atanh", "f32", "f64")
def atanh(b: Builder, x: Value) -> Value:
    """log1p(2 a + 2 a^2/(1 - a))/2. In f32 log((1 + a)/(1 - a))/2 above 1/2."""
    a = b.abs(x)
    if x.dtype == "f32":
        square = a * a
        near = b.fma(a * square, b.horner(square, ATANH_F32), a)
        far = log_above_one(b, (a + 1.0) / (1.0 - a)) * 0.5
        result = b.select(a < 0.5, near, far)
    else:
        twice = a + a
        result = log1p(b, b.fma(twice, a / (1.0 - a), twice)) * 0.5
    return b.copysign(b.select(a > 1.0, NAN, result), x)

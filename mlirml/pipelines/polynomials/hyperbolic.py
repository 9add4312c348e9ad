"""sinh, cosh, asinh, acosh, atanh by way of expm1 and log1p, as in fdlibm; f32 is computed in f64."""

from __future__ import annotations

from mlirml.pipelines.polynomials.builder import Builder, Value
from mlirml.pipelines.polynomials.exponential import expm1_parts
from mlirml.pipelines.polynomials.logarithm import NAN, log1p_of
from mlirml.pipelines.polynomials.registry import expansion, through_f64

LN_TWO = 0.6931471805599453
LARGE = 2.0**28  # the square of a larger number swallows 1
TINY = 2.0**-28


def half_expm1(b: Builder, grade: str, a: Value) -> tuple[Value, Value]:
    """a >= 0 -> (expm1(a)/2, exp(a)/2); the first only below 700."""
    n, q = expm1_parts(b, b.minimum(a, 711.0 if grade == "f64" else 100.0), grade)
    half = b.power_of_two(n - 1, "f64")
    # exp(a)/2 is scaled in two steps, because 2^(n - 1) may be too large where the result is not.
    whole = b.scale(q + 1.0, n - 1) if grade == "f64" else b.fma(half, q, half)
    return b.fma(half, q, half - 0.5), whole


@expansion("sinh", "f32", "f64")
@through_f64
def sinh(b: Builder, grade: str, x: Value) -> Value:
    """t + t/(2 t + 1) with t = expm1(|x|)/2."""
    a = b.abs(x)
    t, large = half_expm1(b, grade, a)
    result = b.select(a < 40.0, t + t / b.fma(t, 2.0, 1.0), large)
    return b.select(a < TINY, x, b.copysign(result, x))


@expansion("cosh", "f32", "f64")
@through_f64
def cosh(b: Builder, grade: str, x: Value) -> Value:
    """e + 1/(4 e) with e = exp(|x|)/2."""
    _, e = half_expm1(b, grade, b.abs(x))
    return e + 0.25 / e


@expansion("asinh", "f32", "f64")
@through_f64
def asinh(b: Builder, grade: str, x: Value) -> Value:
    """log1p(a + a^2/(1 + sqrt(1 + a^2))); log(a) + ln 2 where a^2 may overflow."""
    a = b.abs(x)
    square = a * a
    argument = a + square / (b.sqrt(square + 1.0) + 1.0)
    large = a > LARGE
    result = log1p_of(b, b.select(large, a - 1.0, argument), grade)
    return b.copysign(result + b.select(large, b.constant(LN_TWO, "f64"), 0.0), x)


@expansion("acosh", "f32", "f64")
@through_f64
def acosh(b: Builder, grade: str, x: Value) -> Value:
    """log1p(t + sqrt(t^2 + 2 t)) with t = x - 1; log(x) + ln 2 where t^2 may overflow."""
    t = x - 1.0
    argument = t + b.sqrt(b.fma(t, t, t + t))
    large = x > LARGE
    result = log1p_of(b, b.select(large, t, argument), grade)
    result = result + b.select(large, b.constant(LN_TWO, "f64"), 0.0)
    return b.select(x < 1.0, NAN, result)


@expansion("atanh", "f32", "f64")
@through_f64
def atanh(b: Builder, grade: str, x: Value) -> Value:
    """log1p(2 a + 2 a^2/(1 - a))/2."""
    a = b.abs(x)
    twice = a + a
    result = log1p_of(b, b.fma(twice, a / (1.0 - a), twice), grade) * 0.5
    return b.copysign(b.select(a > 1.0, NAN, result), x)

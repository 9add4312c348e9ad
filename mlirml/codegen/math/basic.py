"""Classification, clamping and reciprocal roots: a few instructions each, and vectors of any rank."""

from __future__ import annotations

from mlirml.codegen.math.builder import MANTISSA, WIDTHS, Builder, Value
from mlirml.codegen.math.registry import expansion

INFINITY = float("inf")


@expansion("isnan", "f32", "f64")
def isnan(b: Builder, x: Value) -> Value:
    return x.differs(x)


@expansion("isinf", "f32", "f64")
def isinf(b: Builder, x: Value) -> Value:
    return b.abs(x).equals(INFINITY)


@expansion("isfinite", "f32", "f64")
def isfinite(b: Builder, x: Value) -> Value:
    return b.abs(x) < INFINITY


@expansion("isnormal", "f32", "f64")
def isnormal(b: Builder, x: Value) -> Value:
    smallest = 2.0 ** (2 - (1 << WIDTHS[x.dtype] - MANTISSA[x.dtype] - 2))
    magnitude = b.abs(x)
    return (magnitude >= smallest) & (magnitude < INFINITY)


@expansion("clampf", "f32", "f64")
def clampf(b: Builder, x: Value, low: Value, high: Value) -> Value:
    """NaN stays NaN."""
    return b.op("arith.maximumf", b.op("arith.minimumf", x, high), low)


@expansion("rsqrt", "f32", "f64")
def rsqrt(b: Builder, x: Value) -> Value:
    return 1.0 / b.sqrt(x)

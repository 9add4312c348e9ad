"""Scalar mathematics that NumPy lacks, exact or correctly rounded, on arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlirml.interpreter.values import Value, is_narrow, unsigned


def round_to(value: Value, dtype: np.dtype[Any]) -> Value:
    """Convert a float to another float dtype, to the nearest, ties to even, once."""
    if value.dtype == np.float64 and is_narrow(dtype) and dtype != np.float16:
        # ml_dtypes goes through f32; a first rounding to odd keeps the second one right.
        value = odd_float32(value)
    return value.astype(dtype)


def odd_float32(value: Value) -> Value:
    """f64 rounded to f32, an inexact result to the neighbour whose last bit is one (Boldo and Melquiond 2008)."""
    wide = np.asarray(value, np.float64)
    near = wide.astype(np.float32)
    toward_zero = np.where(np.abs(near.astype(np.float64)) > np.abs(wide), np.nextafter(near, np.float32(0)), near)
    inexact = np.isfinite(wide) & (toward_zero.astype(np.float64) != wide)
    bits = toward_zero.view(np.uint32) | inexact.astype(np.uint32)
    return bits.view(np.float32)[()]


def _two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """The rounded sum and its exact error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Value, b: Value) -> tuple[Value, Value]:
    """The rounded product and its exact error (Dekker, Veltkamp), for factors of ordinary magnitude."""
    product = a * b
    a_high, b_high = (lambda c: c - (c - a))(134217729.0 * a), (lambda c: c - (c - b))(134217729.0 * b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _odd_sum(a: Value, b: Value) -> Value:
    """a + b in f64, an inexact result rounded to the neighbour whose last bit is one."""
    total, error = _two_sum(np.asarray(a, np.float64), np.asarray(b, np.float64))
    total, error = np.asarray(total), np.asarray(error)
    even = (total.view(np.uint64) & np.uint64(1)) == 0
    neighbour = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where((error != 0) & np.isfinite(total) & even, neighbour, total)


def fma64(a: Value, b: Value, c: Value) -> Value:
    """a * b + c in f64, rounded once (Boldo and Melquiond 2008, "Emulation of FMA").

    Where a product or sum overflows, or its error term underflows, the result is that of two roundings.
    """
    product, product_error = _two_product(a, b)
    high, low = _two_sum(c, product_error)
    total, total_error = _two_sum(product, high)
    exact = total + _odd_sum(total_error, low)
    return np.where(np.isfinite(exact), exact, a * b + c)[()]


def fma_narrow(a: Value, b: Value, c: Value, dtype: np.dtype[Any]) -> Value:
    """a * b + c for floats of at most 32 bits, rounded once: the product is exact in f64."""
    wide = (np.asarray(v).astype(np.float64) for v in (a, b, c))
    left, right, addend = wide
    plain = left * right + addend
    odd = _odd_sum(left * right, addend)
    return round_to(np.where(np.isfinite(plain), odd, plain), dtype)[()]


_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def erf(x: Value) -> Value:
    """The error function in f64."""
    return _erf(x)


def erfc(x: Value) -> Value:
    """The complementary error function in f64."""
    return _erfc(x)


def round_away(x: Value) -> Value:
    """Round to an integer, halfway cases away from zero."""
    whole = np.trunc(x)
    away = np.abs(x - whole) >= 0.5
    return np.where(away, whole + np.copysign(x.dtype.type(1), x), whole)[()]


def maximum(a: Value, b: Value) -> Value:
    """The greater of two floats; NaN wins, and +0 is greater than -0."""
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))[()]


def minimum(a: Value, b: Value) -> Value:
    """The lesser of two floats; NaN wins, and -0 is less than +0."""
    return np.where((a == 0) & (b == 0), -(-a + -b), np.minimum(a, b))[()]


def divide_truncating(a: Value, b: Value) -> Value:
    """Integer division that rounds toward zero."""
    return np.floor_divide(a - np.fmod(a, b), b)


def divide_up(a: Value, b: Value) -> Value:
    """Integer division that rounds up."""
    return np.floor_divide(a, b) + (np.remainder(a, b) != 0).astype(a.dtype)


def integer_power(base: Value, exponent: Value) -> Value:
    """Signed integer power that wraps around; a negative exponent truncates the reciprocal."""
    base, exponent = np.broadcast_arrays(base, exponent)
    result, square = np.ones_like(base), base.copy()
    remaining = np.maximum(exponent, 0).view(unsigned(exponent.dtype))
    while remaining.any():
        result = np.where(remaining & 1, result * square, result)
        square = square * square
        remaining = remaining >> 1
    odd = (exponent & 1) != 0
    reciprocal = np.where(base == 1, 1, np.where(base == -1, np.where(odd, -1, 1), 0)).astype(base.dtype)
    return np.where(exponent < 0, reciprocal, result)[()]


def count_ones(x: Value, width: int) -> Value:
    """The number of set bits of unsigned integers."""
    total = x & 1
    for bit in range(1, width):
        total = total + ((x >> bit) & 1)
    return total


def leading_zeros(x: Value, width: int) -> Value:
    """The number of zero bits above the highest set bit; `width` for zero."""
    result = np.full(np.shape(x), width, x.dtype)
    for bit in range(width):
        result = np.where((x >> bit) & 1, width - 1 - bit, result)
    return result.astype(x.dtype)[()]


def trailing_zeros(x: Value, width: int) -> Value:
    """The number of zero bits below the lowest set bit; `width` for zero."""
    result = np.full(np.shape(x), width, x.dtype)
    for bit in reversed(range(width)):
        result = np.where((x >> bit) & 1, bit, result)
    return result.astype(x.dtype)[()]


def multiply_high(a: Value, b: Value) -> Value:
    """The upper half of the product of unsigned integers."""
    width = 8 * a.dtype.itemsize
    if width < 64:
        wide = a.astype(np.uint64) * b.astype(np.uint64)
        return (wide >> np.uint64(width)).astype(a.dtype)
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_high, a_low, b_high, b_low = a >> half, a & mask, b >> half, b & mask
    middle = a_high * b_low + ((a_low * b_low) >> half)
    other = a_low * b_high + (middle & mask)
    return a_high * b_high + (middle >> half) + (other >> half)


def multiply_high_signed(a: Value, b: Value) -> Value:
    """The upper half of the product of signed integers (Hacker's Delight, section 8-3)."""
    unsigned_dtype = unsigned(a.dtype)
    high = multiply_high(a.view(unsigned_dtype), b.view(unsigned_dtype)).view(a.dtype)
    zero = a.dtype.type(0)
    return high - np.where(a < 0, b, zero) - np.where(b < 0, a, zero)


def flush_denormals(x: Value) -> Value:
    """Subnormal numbers become zeros of the same sign."""
    return np.where(np.abs(x) < smallest_normal(x.dtype), np.copysign(x.dtype.type(0), x), x)[()]


def is_normal(x: Value) -> Value:
    """Finite, not zero and not subnormal."""
    return np.isfinite(x) & (np.abs(x) >= smallest_normal(x.dtype))


def smallest_normal(dtype: np.dtype[Any]) -> Value:
    """The least positive number with a full mantissa."""
    import ml_dtypes

    return ml_dtypes.finfo(dtype).smallest_normal

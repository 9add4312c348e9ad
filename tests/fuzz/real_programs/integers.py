"""Whole numbers: bit tricks that wrap around, fixed point, quantised products, calendars."""

from __future__ import annotations

import numpy as np

from tests.fuzz.real_programs.program import Array, program


@program(lambda d: (d.integers(1, 2**32, 40, dtype=np.uint64).astype(np.uint32),), ("uint32",))
def xorshift(state: Array) -> tuple[Array, Array]:
    for _ in range(3):
        state ^= state << 13
        state ^= state >> 17
        state ^= state << np.uint32(5)
    return state, (state >> np.uint32(8)) * np.float32(1.0 / (1 << 24))


@program(lambda d: (d.integers(0, 2**62, 30),), ("uint64", "int64"))
def population_count(x: Array) -> Array:
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    return (x * 0x0101010101010101) >> 56


@program(lambda d: (d.integers(-30000, 30000, 24), d.integers(-30000, 30000, 24)), ("int16",))
def fixed_point(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Q15 numbers: a rounded product, a saturated sum, a sum that wraps."""
    wide = a.astype(np.int32) * b
    product = ((wide + (1 << 14)) >> 15).astype(np.int16)
    saturated = np.clip(a.astype(np.int32) + b, -32768, 32767).astype(np.int16)
    return product, saturated, a + b


@program(lambda d: (d.integers(-128, 128, 9, 20), d.integers(-128, 128, 20, 12), 0.02, 3), ("int8",))
def quantised_matmul(a: Array, b: Array, scale: float, zero: int) -> tuple[Array, Array]:
    accumulated = (a.astype(np.int32) - zero) @ b.astype(np.int32)
    scaled = np.rint(accumulated * scale) + zero
    return accumulated, np.clip(scaled, -128, 127).astype(np.int8)


@program(lambda d: (d.integers(0, 256, 12, 16),), ("uint8",))
def hash_rows(data: Array) -> tuple[Array, Array]:
    value = np.full(data.shape[0], 14695981039346656037, dtype=np.uint64)
    for column in data.T:
        value = (value ^ column) * np.uint64(1099511628211)
    return value, data.sum(axis=1) % 251


@program(lambda d: (d.integers(0, 2**16, 20), d.integers(0, 2**16, 20)), ("uint32",))
def morton(x: Array, y: Array) -> Array:
    def spread(v: Array) -> Array:
        v = (v | (v << 8)) & 0x00FF00FF
        v = (v | (v << 4)) & 0x0F0F0F0F
        v = (v | (v << 2)) & 0x33333333
        return (v | (v << 1)) & 0x55555555

    return spread(x) | (spread(y) << 1)


@program(lambda d: (d.integers(0, 256, 40),), ("uint8", "uint16"))
def gray_and_reverse(x: Array) -> tuple[Array, Array, Array]:
    gray = x ^ (x >> 1)
    r = x & 0xFF
    r = ((r & 0xF0) >> 4) | ((r & 0x0F) << 4)
    r = ((r & 0xCC) >> 2) | ((r & 0x33) << 2)
    r = ((r & 0xAA) >> 1) | ((r & 0x55) << 1)
    return gray, r, ~x


@program(lambda d: (d.integers(-100000, 100000, 50),), ("int64", "int32"))
def civil_from_days(days: Array) -> tuple[Array, Array, Array]:
    """Year, month and day of a day number (Hinnant, chrono-compatible low-level date algorithms)."""
    z = days + 719468
    era, day_of_era = np.divmod(z, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_index = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_index + 2) // 5 + 1
    month = np.where(month_index < 10, month_index + 3, month_index - 9)
    return year_of_era + era * 400 + (month <= 2), month, day


@program(lambda d: (d.integers(-40, 40, 7, 9), d.integers(1, 9, 9), 4), ("int64", "int32", "int8"))
def clip_and_scale(a: Array, b: Array, k: int) -> tuple[Array, ...]:
    positive = np.maximum(a, 0)
    return np.clip(a, 2, 10) * k + b, a // b, a % b, -a // 3, a / b, positive.max(axis=1) - a.min(axis=1), a.mean(0)


@program(lambda d: (d.integers(0, 2, 6, 8), d.integers(0, 2, 8)), ("bool",))
def truth_tables(a: Array, b: Array) -> tuple[Array, ...]:
    both, either = a & b, a | b
    return both, either ^ a, ~a, a.any(axis=0), np.all(a | ~a), a.sum(axis=1), a @ b, np.where(a, 3, -1), a + b, a * 2.5


@program(lambda d: (d.integers(1, 500, 20), d.integers(1, 500, 20)), ("int64", "uint16"))
def greatest_common_divisor(a: Array, b: Array) -> tuple[Array, Array]:
    x, y = a.copy(), b.copy()
    for _ in range(14):
        done = y == 0
        x, y = np.where(done, x, y), np.where(done, 0, x % np.where(done, 1, y))
    return x, a // x * b

"""`//`, `%`, fmod and divmod give NumPy's bits: huge quotients, multiples and their neighbours, every special value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml
from tests.targets.drivers import needs_vulkan

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floor_divide": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "fmod": lambda x, y: np.fmod(x, y),
    "divmod of numpy": lambda x, y: np.divmod(x, y)[0] + 0 * np.divmod(x, y)[1],
    "by a constant": lambda x, y: (x // 7) + (x % 113) * 3,
    "by a power of two": lambda x, y: (x // 8) + (x % 16) * 3,
}
INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
COUNT = 3000


def floats(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Dividends and divisors: any bits, moderate and huge quotients, multiples, and all pairs of special values."""
    rng, width = np.random.default_rng(0), np.dtype(dtype).itemsize
    limits = np.finfo(dtype)
    positive = [0, 1, 2.5, 3, 1e-3, np.inf, limits.max, limits.tiny, limits.smallest_subnormal]
    special = np.array([np.nan, *positive, *(-x for x in positive)], dtype)
    divisors = np.exp2(rng.uniform(-100, 100, COUNT)).astype(dtype) * rng.choice([-1, 1], COUNT).astype(dtype)
    multiples = divisors * rng.integers(-100, 100, COUNT).astype(dtype)
    pairs = [
        (np.frombuffer(rng.bytes(COUNT * width), dtype), np.frombuffer(rng.bytes(COUNT * width), dtype)),
        (rng.uniform(-100, 100, COUNT), rng.uniform(-3, 3, COUNT)),
        (rng.integers(-(10**6), 10**6, COUNT), rng.integers(-50, 50, COUNT)),
        (divisors * np.exp2(rng.uniform(0, 25 if width == 4 else 60, COUNT)).astype(dtype), divisors),
        (multiples, divisors),
        (np.nextafter(multiples, dtype(np.inf)), divisors),
        (np.nextafter(multiples, dtype(0)), divisors),
        (np.repeat(special, len(special)), np.tile(special, len(special))),
    ]
    x, y = (np.concatenate([np.asarray(pair[i], dtype) for pair in pairs]) for i in (0, 1))
    return x, y


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_floats(name: str, dtype: type) -> None:
    x, y = floats(dtype)
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name](x, y)
    result = ml.compile(FUNCTIONS[name])(x, y)
    bits = f"u{x.itemsize}"
    wrong = (result.view(bits) != expected.view(bits)) & ~(np.isnan(result) & np.isnan(expected))
    first = int(wrong.argmax())
    assert not wrong.any(), f"{wrong.sum()}, first {x[first]!r}, {y[first]!r}: {result[first]!r}, {expected[first]!r}"


def integers(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Dividends and divisors of all sizes, multiples and their neighbours, and all pairs of special values."""
    rng, kind = np.random.default_rng(0), np.dtype(dtype)
    limits = np.iinfo(kind)
    special = np.array([limits.min, limits.min + 1, limits.max - 1, limits.max, 0, 1, 2, 3], kind)
    special = np.concatenate([special, np.array([-1, -2, -3], kind)]) if kind.kind == "i" else special
    any_size = np.frombuffer(rng.bytes(COUNT * kind.itemsize), kind) >> rng.integers(
        0, 8 * kind.itemsize, COUNT
    ).astype(kind)
    other = np.roll(any_size, 1)
    pairs = [
        (np.frombuffer(rng.bytes(COUNT * kind.itemsize), kind), any_size),
        (any_size, other),
        *((any_size * other + np.array(step).astype(kind), other) for step in (-1, 0, 1)),
        (np.repeat(special, len(special)), np.tile(special, len(special))),
    ]
    return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers(name: str, dtype: str) -> None:
    x, y = integers(dtype)
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name](x, y)
    np.testing.assert_array_equal(ml.compile(FUNCTIONS[name])(x, y), expected)


@pytest.mark.parametrize("dtype", ["b", "h", "i", "q", "B", "H", "I", "Q"])
@pytest.mark.parametrize("target", ["cpu", "reference", pytest.param("vulkan", marks=needs_vulkan)])
def test_the_reciprocal_of_integers_uses_no_floats(dtype: str, target: str) -> None:
    x = np.array([0, 1, 2, -1, -7, 5, 127]).astype(dtype)
    with np.errstate(all="ignore"):
        want = np.reciprocal(x)
    np.testing.assert_array_equal(ml.compile(np.reciprocal, target=target)(x), want)
    assert "f64" not in ml.trace(np.reciprocal, x).as_text()

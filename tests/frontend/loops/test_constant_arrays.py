"""Loops over arrays from outside of the program: one loop for many rows, unrolled where a row must be constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 7, 150)
ROWS = RNG.standard_normal((90, 3))
BITS = RNG.random(100) > 0.5
SMALL = RNG.integers(-9, 9, 120).astype(np.int8)
PAIRS = LABELS[:140].reshape(70, 2)
SEQUENCES = [RNG.integers(0, 7, n) for n in (20, 25, 30, 5, 1)]
TABLE = {k: float(k) for k in range(7)}
LAYERS = [RNG.standard_normal((3, 3)) for _ in range(7)]
X = np.array([0.1, 0.2, 0.3])


def labels(x: Any) -> Any:
    for y in LABELS:
        x = np.sin(x) * 0.5 + y
    return x


def rows(x: Any) -> Any:
    for row in ROWS:
        x = x * 0.9 + row
    return x


def bits(x: Any) -> Any:
    count = 0
    for bit in BITS:
        if bit:
            count += 1
    return x * count


def last(x: Any) -> Any:
    for y in SMALL:
        x = x + y
    return x, y


def pairs(x: Any) -> Any:
    for pair in PAIRS:
        u, v = pair
        x = x + u * v
    return x, pair


def greatest(x: Any) -> Any:
    best = None
    for y in LABELS:
        if best is None or y > best:
            best = y
    return x * best


def ended(x: Any) -> Any:
    for y in LABELS:
        if y == 6:
            break
        x = x + y
    return x


def stored(x: Any) -> Any:
    x = x.copy()
    for y in LABELS:
        x[y % 3] += 1.0
    return x


def nested(x: Any) -> Any:
    for y in LABELS:
        for row in ROWS[:40]:
            x = x * 0.99 + row * y
    return x


def likelihood(x: Any, sequence: Any) -> Any:
    for y in sequence:
        x = np.sin(x) + ROWS[y]
    return x


def sequences(x: Any) -> Any:
    return sum(likelihood(x, sequence) for sequence in SEQUENCES)


def sized(x: Any) -> Any:
    for y in LABELS:
        x = x + np.sum(np.ones(y))
    return x


LOOPS = [labels, rows, bits, last, pairs, greatest, ended, stored, nested, sized]


def looked_up(x: Any) -> Any:
    for y in LABELS:
        x = x * 0.5 + TABLE[int(y)]
    return x


def layers(x: Any) -> Any:
    for y in LABELS:
        x = np.tanh(LAYERS[y] @ x)
    return x


UNROLLED = [looked_up, layers]


def check(function: Callable[..., Any]) -> str:
    """The notes on a compiled function, which equals its original, with its derivative."""
    expected, compiled = function(X), ml.compile(function)
    found = compiled(X)
    pairs = zip(found, expected) if isinstance(expected, tuple) else [(found, expected)]
    for a, b in pairs:
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12)
    first = (lambda x: function(x)[0]) if isinstance(expected, tuple) else function
    slope = ml.compile(ml.grad(lambda x: np.sum(first(x))))(X)
    step = np.array([1e-6, 2e-6, -1e-6])
    np.testing.assert_allclose(slope @ step, np.sum(first(X + step) - first(X - step)) / 2, rtol=1e-4, atol=1e-13)
    return compiled.explain()


@pytest.mark.parametrize("function", LOOPS)
def test_loops(function: Callable[..., Any]) -> None:
    assert "unrolled" not in check(function)


@pytest.mark.parametrize("function", UNROLLED)
def test_rows_that_have_to_be_constants(function: Callable[..., Any]) -> None:
    assert "unrolled: 150 copies" in check(function)


def test_many_short_arrays_are_loops() -> None:
    """Of 81 iterations in all, which unrolled are more than 64 copies of one statement, the first 20 and 25 are not."""
    compiled = ml.compile(sequences)
    np.testing.assert_allclose(compiled(X), sequences(X), rtol=1e-12)
    assert "scf.for" in ml.trace(sequences, X).as_text()


def test_elements_are_read_anew() -> None:
    """A change of the array outside is seen, and compiles nothing."""
    table = np.arange(200.0)

    @ml.compile
    def total(x: Any) -> Any:
        for y in table:
            x = np.cos(x) + y
        return x

    def expected(x: Any) -> Any:
        for y in table:
            x = np.cos(x) + y
        return x

    assert total(1.0) == pytest.approx(expected(1.0))
    table[-1] = -5.0
    assert total(1.0) == pytest.approx(expected(1.0))
    assert "1 signature(s)" in total.explain()

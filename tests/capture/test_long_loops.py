"""Loops of array code that would be long when unrolled stay loops: compile time does not grow with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirml as ml

RNG = np.random.default_rng(0)
X, A, Y = RNG.random(40), RNG.random((50, 4)), RNG.random(50)


def filtered(x: Any, n: int) -> Any:
    s = x[0]
    for i in range(n):
        s = 0.9 * s + 0.1 * x[i % len(x)]
    return s


def sines(x: Any, n: int) -> Any:
    s = x[0]
    for i in range(n):
        s = np.sin(s) + x[i % len(x)]
    return s


def exchanged(x: Any, n: int) -> Any:
    a, b = x[0], x[1]
    for i in range(n):
        a, b = b, (a + b * x[i % len(x)]) % 7.0 * 0.1
    return a


def descent(x: Any, n: int) -> Any:
    w = x[:4] * 0
    for _ in range(n):
        w = w - 0.01 * (A.T @ (A @ w - Y)) / len(Y)
    return w


def wave(x: Any, n: int) -> Any:
    u, v = x, x * 0.5
    for _ in range(n):
        u, v = 2 * u - v + 0.1 * (np.roll(u, 1) + np.roll(u, -1) - 2 * u), u
    return u


def bodies(x: Any, n: int) -> Any:
    p = x[:30].reshape(10, 3)
    v = p * 0
    for _ in range(n):
        d = p[None] - p[:, None]
        q = (d**2).sum(-1) + 0.1
        v = v + 0.001 * (d / q[..., None] ** 1.5).sum(1)
        p = p + 0.001 * v
    return p


def means(x: Any, n: int) -> Any:
    points = x.reshape(20, 2)
    c = points[:3]
    for _ in range(n):
        nearest = np.argmin(((points[:, None] - c[None]) ** 2).sum(-1), 1)
        m = (nearest[:, None] == np.arange(len(c))).astype(float)
        c = (m.T @ points) / (m.sum(0)[:, None] + 1e-9)
    return c


def helped(x: Any, n: int) -> Any:
    return filtered(x, n) + sines(x, n)


LOOPS: list[Callable[[Any, int], Any]] = [filtered, sines, exchanged, descent, wave, bodies, means, helped]


@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
def test_the_program_is_as_long_for_any_number_of_rounds(function: Any) -> None:
    lengths = set()
    for n in (2500, 5000):
        found = ml.compile(lambda x, n=n: function(x, n))
        np.testing.assert_allclose(found(X), function(X, n), rtol=1e-6)
        lengths.add(len(found.ir("capture", X).splitlines()))
    assert len(lengths) == 1 and max(lengths) < 500


def test_short_ones_are_unrolled() -> None:
    assert "scf.for" not in ml.compile(descent, static_argnums=1).ir("capture", X, 20)


def test_what_cannot_be_a_loop_is_unrolled() -> None:
    def growing(x: Any) -> Any:
        found = []
        for i in range(1200):
            found.append(x[i % 40] * 2)
        return np.stack(found)

    np.testing.assert_array_equal(ml.compile(growing)(X), growing(X))
